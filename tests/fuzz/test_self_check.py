"""Rules over the target alone are held to what the runtime computes, operator by operator or of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from nnrewrite.engine.base.errors import InternalError
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz import self_check
from nnrewrite.fuzz.finding import End
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.sketch import Case, Step, Value
from nnrewrite.verify import Interpreter

RULES = ("onnxruntime",)


@pytest.fixture
def oracle(interpreter: Interpreter) -> Oracle:
    return Oracle(interpreter, loader.load(RULES).catalogue, RULES)


@pytest.mark.slow
def test_what_the_runtime_rounds_in_the_whole_left_side_is_no_fault_of_the_rule(oracle: Oracle) -> None:
    dialect = oracle.catalogue.find_dialect("onnx")
    generator = np.random.default_rng(0)

    def make(name: str, array: np.ndarray, constant: bool = True) -> Value:
        return Value(name, ir.DataType.from_numpy(array.dtype), array, constant)

    def add(operator: str, *operands: Value, **options: object) -> Step:
        spec = dialect.find_operator(operator, 18)
        assert spec is not None
        step = oracle.self_check.settle(Step(spec, operands, options), [1], [], lambda dtype: (), 18)
        return replace(step, results=(replace(step.results[0], name=f"of_{operands[0].name}"),))

    scale, zero = make("scale", np.array(0.25, np.float32)), make("zero", np.array(8, np.uint8))
    codes = make("x", generator.integers(0, 9, (1, 3, 8, 8)).astype(np.uint8), False)
    weights = make("w", generator.integers(-9, 9, (6, 1, 3, 3)).astype(np.int8))
    bias = make("b", np.full(6, 0.06, np.float32))  # half of the step that the runtime rounds a bias to
    x = add("DequantizeLinear", codes, scale, zero)
    w = add("DequantizeLinear", weights, make("ws", np.array(0.5, np.float32)), make("wz", np.zeros((), np.int8)))
    conv = add("Conv", x.results[0], w.results[0], bias, group=3)
    fine = make("ys", np.array(1 / 128, np.float32)), make("yz", np.array(128, np.uint8))
    y = add("QuantizeLinear", conv.results[0], *fine)
    found = oracle.self_check.judge(Case("several_of_each_channel", (x, w, conv, y), 18))
    assert (found.end, found.fired) == (End.PASSED, {"several_of_each_channel": 1})
    off = np.abs(found.actual[0].astype(int) - y.results[0].content)
    assert off.max() > 1


def test_a_mistake_of_the_program_is_a_failure_of_the_case(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise InternalError("rule several_of_each_channel", ValueError("none"))

    monkeypatch.setattr(self_check, "convert_graph", fail)
    found = oracle.self_check.judge(Case("several_of_each_channel", (), 18))
    assert found.end is End.FAILED
    assert "ValueError: none" in found.reason

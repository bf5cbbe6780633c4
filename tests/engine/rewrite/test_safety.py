"""What no rule file may do: make a cycle, go on for ever, fill the memory; and graphs of any depth and width."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite.backends import tflite_writer
from nnrewrite.conversion import pipeline
from nnrewrite.engine.base.budget import Budget
from nnrewrite.engine.base.errors import RewriteFailure
from nnrewrite.engine.check.checker import check
from nnrewrite.engine.dialects import literals
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.expressions.functions import EvaluationError
from nnrewrite.engine.passes.pass_list import convert_graph
from nnrewrite.engine.rewrite import apply
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.syntax.parser import parse

PAIR = """rule pair stage simplify {
  p = Neg(x)
  q = Add(x, z)
  => p = Mul(x, z)
     q = Sub(x, z)
  test x: f32[2], z: f32[2]
}"""


def rewritten(catalogue: Catalogue, rules: str, body: str) -> list[str]:
    file = parse(f"ruleset demo : onnx -> onnx opset 13..25\n{rules}", "demo.rules")
    assert not check([file], catalogue)
    text = f'<ir_version: 8, opset_import: ["": 18]> graph (float[2] x) => (float[2] y) {{ {body} }}'
    graph = ir.from_proto(onnx.parser.parse_model(text)).graph
    convert_graph(graph, RuleSet([file], catalogue, 18))
    return [f"{node.outputs[0].name} = {node.op_type}" for node in graph]


# ---- cycles


def test_nodes_that_would_be_computed_from_themselves_are_not_made(catalogue: Catalogue) -> None:
    assert rewritten(catalogue, PAIR, "p = Neg(x) z = Exp(p) y = Add(x, z)") == ["p = Neg", "z = Exp", "y = Add"]


def test_a_value_is_not_put_in_the_place_of_what_it_is_computed_from(catalogue: Catalogue) -> None:
    rule = PAIR.replace("p = Mul(x, z)\n     q = Sub(x, z)", "p = z\n     q = Sub(x, z)")
    assert rewritten(catalogue, rule, "p = Neg(x) z = Exp(p) y = Add(x, z)") == ["p = Neg", "z = Exp", "y = Add"]


def test_nodes_that_take_the_place_of_several_stand_before_all_that_read_them(catalogue: Catalogue) -> None:
    found = rewritten(catalogue, PAIR, "p = Neg(x) u = Exp(p) z = Abs(x) q = Add(x, z) y = Div(u, q)")
    assert sorted(found) == ["p = Mul", "q = Sub", "u = Exp", "y = Div", "z = Abs"]
    assert found.index("z = Abs") < found.index("p = Mul") < found.index("u = Exp")


def test_a_second_match_knows_the_nodes_of_the_first(catalogue: Catalogue) -> None:
    # What the first match made lets b read from a, which the second would turn round.
    body = "a = Neg(x) z = Exp(x) b = Add(x, z) c = Neg(b) w = Exp(c) d = Add(b, w) e = Add(a, c) y = Add(d, e)"
    found = rewritten(catalogue, PAIR, body)
    assert "c = Neg" in found
    assert "a = Mul" in found


# ---- rules without an end


def doubling(step: str) -> str:
    return "def d0(x) = x\n" + "\n".join(f"def d{i}(x) = {step.format(f'd{i - 1}(x)')}" for i in range(1, 30))


def test_a_rule_that_computes_without_end_is_stopped(catalogue: Catalogue) -> None:
    rules = doubling("{0} ++ {0}") + "\nrule r stage simplify { y = Neg(x) where len(d29([1])) > 0 => y = Abs(x)"
    with pytest.raises(RewriteFailure, match=r"demo.rules:\d+:6: error: rule r on .*: takes more than 4,194,304 steps"):
        rewritten(catalogue, rules + " test x: f32[2] }", "y = Neg(x)")


def test_a_rule_that_builds_without_end_is_stopped(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "Budget", functools.partial(Budget, nodes=1000))
    rules = doubling("{0} + {0}") + "\nrule r stage simplify { y = Neg(x) => y = d29(x) test x: f32[2] }"
    with pytest.raises(RewriteFailure, match=r"rule r on .*: builds more than"):
        rewritten(catalogue, rules, "y = Neg(x)")


def test_numbers_do_not_grow_without_end(catalogue: Catalogue) -> None:
    lets = "let a0 = 1 << 60 " + " ".join(f"let a{i} = a{i - 1} * a{i - 1}" for i in range(1, 12))
    rule = f"rule r stage simplify {{ y = Neg(x) {lets} where a11 > 0 => y = Abs(x) test x: f32[2] }}"
    assert rewritten(catalogue, rule, "y = Neg(x)") == ["y = Neg"]


@pytest.mark.parametrize(("shift", "same"), [(63, True), (70, False), (1 << 40, False)])
def test_a_shift_is_not_cut_off(catalogue: Catalogue, shift: int, same: bool) -> None:
    guard = f"where 1 << {shift} + rank(x) - rank(x) == 1 << 63"
    rule = f"rule r stage simplify {{ y = Neg(x) {guard} => y = Abs(x) test x: f32[2] }}"
    assert rewritten(catalogue, rule, "y = Neg(x)") == ["y = Abs" if same else "y = Neg"]


# ---- numbers that do not fit


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, 300], ir.DataType.UINT8),
        ([-1], ir.DataType.UINT32),
        ([1 << 31], ir.DataType.INT32),
        (0.5, ir.DataType.INT64),
    ],
)
def test_numbers_that_an_element_type_does_not_hold_are_refused(value: object, dtype: ir.DataType) -> None:
    with pytest.raises(EvaluationError, match=r"operand x: -?[\d.]+ is no [iu]\d+"):
        literals.make_array(value, dtype, [dtype], "x")


def test_numbers_that_fit_become_the_element_type() -> None:
    assert literals.make_array([0, 255], ir.DataType.UINT8, [ir.DataType.UINT8], "x").dtype == np.uint8
    assert literals.make_array(np.array([1, 2], np.int64), None, [ir.DataType.INT32], "x").dtype == np.int32
    assert literals.make_array(2.0, ir.DataType.INT32, [ir.DataType.INT32], "x") == 2


# ---- depth and width


def chain(catalogue: Catalogue, operators: Iterable[str]) -> bytes:
    spec = catalogue.find_dialect("tflite").operators

    def value(name: str) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))

    first = last = value("x")
    nodes = []
    for number, operator in enumerate(operators):
        result = value(f"v{number}")
        operands = [last, first][: len(spec[operator].operands)]
        nodes.append(ir.Node("tflite", operator, operands, outputs=[result], name=f"n{number}"))
        last = result
    graph = ir.Graph([first], [last], nodes=nodes, opset_imports={"tflite": 1}, name="main")
    return b"".join([tflite_writer.write(ir.Model(graph, ir_version=10), catalogue)])


@pytest.mark.slow
def test_depth_needs_no_stack(catalogue: Catalogue) -> None:
    found = pipeline.rewrite(chain(catalogue, ["RELU", "ADD", "TANH", "SUB"] * 500))
    assert sum(found.report.target_operators.values()) == 2000


@pytest.mark.slow
def test_a_graph_may_have_as_many_outputs_as_nodes(catalogue: Catalogue) -> None:
    def value(name: str) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))

    x, results = value("x"), [value(f"v{number}") for number in range(1200)]
    nodes = [
        ir.Node("tflite", "TANH" if i % 2 else "RELU", [x], outputs=[y], name=f"n{i}") for i, y in enumerate(results)
    ]
    graph = ir.Graph([x], results, nodes=nodes, opset_imports={"tflite": 1}, name="main")
    found = pipeline.rewrite(b"".join([tflite_writer.write(ir.Model(graph, ir_version=10), catalogue)]))
    assert [output.name for output in found.model.graph.output] == [value.name for value in results]

"""Suggested rules: what the search finds is checked and right, and it ends in its time where it finds nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from nnrewrite.cli.dispatch import app

pytest.importorskip("ai_edge_litert")

from nnrewrite.backends.probe import write_operator_model
from nnrewrite.conversion import pipeline
from nnrewrite.conversion.options import Options
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.suggest import Suggestion, is_sound, suggest
from nnrewrite.verify import Interpreter, Runtime

RULES = ("tflite2onnx",)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["suggest", *arguments])


def search(name: str, seconds: float) -> Suggestion | None:
    spec = loader.load(RULES).catalogue.find_dialect("tflite").operators[name]
    with Interpreter() as interpreter:
        return suggest(RULES, spec, interpreter, seconds, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nodes"), [("RELU_N1_TO_1", 1), pytest.param("FLOOR_DIV", 2, marks=pytest.mark.thorough)]
)
def test_a_rule_that_is_found_converts_models_to_equal_results(tmp_path: Path, name: str, nodes: int) -> None:
    found = search(name, 60)
    assert found is not None and found.nodes == nodes
    header = "ruleset mine over tflite2onnx : tflite -> onnx opset 13..25 default 18\n"
    (tmp_path / "mine.rules").write_text(header + found.text, encoding="utf-8")
    catalogue = loader.load((f"{tmp_path}",)).catalogue
    operands = catalogue.find_dialect("tflite").operators[name].operands
    kind = (np.float32, (5, 7))
    model = write_operator_model(catalogue, name, {one.name: kind for one in operands}, [kind])
    sample = [np.random.default_rng(place).normal(0, 3, (5, 7)).astype(np.float32) for place in range(len(operands))]
    conversion = pipeline.rewrite(model, Options(rules=(f"{tmp_path}",)))
    assert conversion.report.rules[found.rule] == 1
    with Interpreter() as interpreter:
        (want,) = interpreter.run(model, [sample])[0]
    (got,) = Runtime(conversion.model.SerializeToString()).run(sample)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.slow
def test_options_that_are_true_or_false_become_attributes() -> None:
    found = search("SUM", 60)
    assert found is not None and "=> y = ReduceSum(input, [n for n in axes]) {keepdims: keep_dims}\n" in found.text


@pytest.mark.thorough
@pytest.mark.slow
def test_zeros_are_divided_by_as_in_the_kernels() -> None:
    found = search("RSQRT", 60)
    assert found is not None and "=> y = Reciprocal(Sqrt(x))\n" in found.text


@pytest.mark.slow
def test_a_rule_that_fuzzing_refuses_does_not_hold() -> None:
    identity = "LayerNormalization(input, -1.0, LayerNormalization(input, 1.0, input))"
    with Interpreter() as interpreter:
        for operator, template, right in (("CAST", identity, False), ("ABS", "Abs(input)", True)):
            text = f"""ruleset suggested over tflite2onnx : tflite -> onnx opset 17..25 default 18
            rule demo {{ y = {operator}(input) where dtype(input) == "f32" => y = {template} test input: f32[2, 3] }}"""
            assert is_sound(text, "demo", [], interpreter, 0) is right


@pytest.mark.slow
def test_it_says_that_none_is_found() -> None:
    result = call("LSTM")
    assert result.exit_code == 1 and result.stdout == "LSTM: none found\n"
    document = json.loads(CliRunner().invoke(app, ["suggest", "LSTM", "--json"]).stdout)
    assert not document["ok"] and document["results"] == [] and document["command"] == "suggest"
    assert document["diagnostics"][0]["message"] == "LSTM: none found"


@pytest.mark.slow
def test_an_operator_with_a_rule_is_searched_as_if_it_had_none() -> None:
    result = call("lstm", "--time", "1")
    assert "LSTM has a rule already" in result.stderr and "searched as if it had none" in result.stderr
    assert call("LSTMM").exit_code == 2


@pytest.mark.slow
def test_a_search_ends_in_its_time() -> None:
    assert search("LSTM", 1) is None  # packs are loaded
    started = time.monotonic()
    assert search("GELU", 3) is None  # it takes more nodes than are tried
    assert 2 < time.monotonic() - started < 9

"""What operators mean is run in their place by the interpreter, which has no kernels for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from nnrewrite.conversion.options import Options
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.failure_files import replay, save
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.rule_sets import list_stacks
from nnrewrite.fuzz.runner import examine
from nnrewrite.fuzz.subjects import Subject, list_subjects
from nnrewrite.fuzz.tally import Tally
from nnrewrite.verify import Interpreter

pytestmark = pytest.mark.slow

OPERATORS = """
tflite:
  operators:
    Scaled: {domain: tflite.custom, operands: [x, "by?"], results: [y, total], options: {axes: ["[int32]", [0]]}}
    Twice: {domain: tflite.custom, operands: [x], results: [y]}
"""
RULES = """
ruleset own : tflite -> onnx opset 13..25
rule scaled {
  y, total = Scaled(x, by?) {axes}
  => y = x if by == none else x * by
     total = ReduceSum(x, axes) {keepdims: 0}
  test x: f32[2, 3], by: f32[3] for axes in [[0], [1], [0, 1]]
}
rule twice {
  y = Twice(x)
  => y = x + x
  test x: f32[2, 3]
}
"""
SCALED = """
rule scaled_means stage meaning {
  y, total = Scaled(x, by?) {axes}
  => y = x * (1.0 if by == none else by)
     total = SUM(x, axes)
}
"""


def tally(folder: Path, interpreter: Interpreter, meanings: str, name: str) -> tuple[Tally, Subject, Oracle]:
    (folder / "ops.yaml").write_text(OPERATORS, encoding="utf-8")
    (folder / "own.rules").write_text(RULES + meanings, encoding="utf-8")
    rules = (str(folder),)
    pack = loader.load(rules)
    subject = next(subject for subject in list_subjects(pack) if subject.name == name)
    oracle = Oracle(interpreter, pack.catalogue, rules)
    return examine(subject, oracle, 6), subject, oracle


def test_a_rule_is_held_against_what_its_operator_means(tmp_path: Path, interpreter: Interpreter) -> None:
    found, _, _ = tally(tmp_path, interpreter, SCALED, "scaled")
    assert (found.tried, found.explain_problem()) == (6, "")
    assert found.passed == found.fired["scaled"] == 6


@pytest.mark.parametrize(("right", "wrong"), [("x * (1.0 if", "x + (1.0 if"), ("SUM(x, axes)", "SUM(x, axes) * 2")])
def test_a_rule_that_does_something_else_fails(
    tmp_path: Path, interpreter: Interpreter, right: str, wrong: str
) -> None:
    assert right in SCALED
    found, _, _ = tally(tmp_path, interpreter, SCALED.replace(right, wrong), "scaled")
    assert "off by" in found.explain_problem()


def test_an_operator_may_mean_one_that_means_others(tmp_path: Path, interpreter: Interpreter) -> None:
    twice = "rule twice_means stage meaning { y = Twice(x) => y, _sum = Scaled(x, [2.0]) }"
    found, subject, oracle = tally(tmp_path, interpreter, SCALED + twice, "twice")
    assert (found.passed, found.explain_problem()) == (6, "")
    case = draw(Choices.make_seeded(1), subject, oracle)
    step, _ = case.as_run.steps
    assert step.operator.name == "MUL"
    assert step.results == case.outputs == case.as_run.outputs
    np.testing.assert_array_equal(step.results[0].content, case.inputs[0].content * 2)


@pytest.mark.parametrize(
    ("meaning", "said"),
    [
        ("", "has no kernel for the operator: say in a rule of `stage meaning`"),
        ("y = Twice(x) => y = Twice(x) * 1.0", "what Twice means is said by itself"),
        ("y = Twice(x) => y = x", "yields a result that no operator of its own computes"),
        ('y = Twice(x) where rank(x) == 7, "only of seven" => y = x + x', "only of seven"),
        ("y = Twice(x) => y = LOGICAL_NOT(x)", "LOGICAL_NOT has no kernel for f32"),
    ],
)
def test_a_meaning_that_says_nothing_is_told(tmp_path: Path, interpreter: Interpreter, meaning: str, said: str) -> None:
    rule = f"rule twice_means stage meaning {{ {meaning} }}" if meaning else ""
    found, subject, oracle = tally(tmp_path, interpreter, rule, "twice")
    found.add(examine(subject, oracle, 1, until=True))
    assert said in found.explain_problem()


@pytest.mark.thorough
def test_a_failure_is_run_again_with_what_the_operators_mean(tmp_path: Path, interpreter: Interpreter) -> None:
    meaning = SCALED.replace("x * (", "x - (")
    found, _, _ = tally(tmp_path, interpreter, meaning, "scaled")
    assert found.failure is not None
    options = Options(rules=(str(tmp_path),))
    stack = list_stacks(options)[0]
    report, _ = save(*found.failure, tmp_path / "out", {}, True, stack, options)
    assert f"--rules {tmp_path} --replay" in report.read_text(encoding="utf-8")
    assert not replay(report.with_suffix(".tflite"), options.rules).passed

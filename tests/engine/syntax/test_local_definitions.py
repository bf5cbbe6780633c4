"""Definitions inside a rule know its values, and are seen by that rule alone."""

from __future__ import annotations

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.check.checker import review
from nnrewrite.engine.dialects import ops_files
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.formatter import format_rules
from nnrewrite.engine.syntax.parser import parse

HEAD = "ruleset demo : tflite -> onnx opset 13..25\n\n"
RULE = """rule demo {
  y = SUM(x, const axes) {keep_dims}
  let k = rank(x)
  def from_front(a) = a if a >= 0 else a + k
  def all_from_front(ns) = [from_front(n) for n in ns]
  where all_from_front(flatten(axes)) == [1]
  => y = ReduceSum(x, array(all_from_front(flatten(axes)), "i64")) {keepdims: keep_dims}
  test x: f32[2, 3] for axes in [[1], [-1]]
}
"""


def test_a_local_definition_is_given_the_values_of_the_rule_that_it_uses() -> None:
    first, second, rule = parse(HEAD + RULE, "demo.rules").items
    assert isinstance(first, tree.Definition) and (first.name, first.parameters) == ("demo.from_front", ("a", "k"))
    assert isinstance(second, tree.Definition) and second.parameters == ("ns", "k")
    assert isinstance(rule, tree.Rule) and rule.definitions == ()
    found, _, contents = review([parse(HEAD + RULE, "demo.rules")], ops_files.load([]), True)
    assert found == [] and contents is not None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("def all_from_front", "def from_front", "`from_front` is defined already"),
        ("rule demo", "def from_front(a) = a\n\nrule demo", "`from_front` is defined already"),
        ("for n in ns]", "for n, k in zip(ns, ns)]", "`k` is another value here"),
    ],
)
def test_a_local_definition_that_cannot_stand_is_told(before: str, after: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(HEAD + RULE.replace(before, after), "demo.rules")
    [found] = caught.value.diagnostics
    assert found.message == message
    assert found.notes


def test_another_rule_does_not_see_a_local_definition() -> None:
    other = RULE.replace("demo", "other").replace("SUM", "MEAN").replace("def from_front(a)", "def _first(a)")
    found, _, _ = review([parse(HEAD + RULE + other, "demo.rules")], ops_files.load([]), True)
    assert "there is no function `from_front`" in {one.message for one in found}


def test_rules_with_local_definitions_are_formatted() -> None:
    assert format_rules(HEAD + RULE, "demo.rules") == HEAD + RULE
    assert format_rules(HEAD + RULE.replace("  def from", "def from"), "demo.rules") == HEAD + RULE

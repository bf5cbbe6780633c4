"""Groups stand for several values that are alike, and are written out before anything else reads a rule."""

from __future__ import annotations

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.formatter import format_rules
from nnrewrite.engine.syntax.parser import parse
from nnrewrite.engine.syntax.tree_traversal import list_child_fields

HEAD = "ruleset demo : tflite -> onnx opset 13..25\n\n"
GROUP = "group gates = [input, cell]\n\n"
RULE = """rule demo {
  y = LSTM(input: x, input_to_{g}_weights: w[g]? for g in gates)
  => a[input], a[cell] = Split(x)
     y = Concat([Neg(w[g]) for g in gates]..., a[cell])
  test x: f32[2], w[gates]: f32[4, 3]
}
"""


def demo(text: str) -> tree.Rule:
    [rule] = parse(text, "demo.rules").items
    assert isinstance(rule, tree.Rule)
    return rule


def test_a_group_is_written_out_member_by_member() -> None:
    rule, plain = demo(HEAD + GROUP + RULE), demo(HEAD + WRITTEN_OUT)
    assert strip(rule) == strip(plain)


WRITTEN_OUT = """rule demo {
  y = LSTM(input: x, input_to_input_weights: w_input?, input_to_cell_weights: w_cell?)
  => a_input, a_cell = Split(x)
     y = Concat([Neg(w_input), Neg(w_cell)]..., a_cell)
  test x: f32[2], w_input: f32[4, 3], w_cell: f32[4, 3]
}
"""


def strip(node: object) -> object:
    """A tree as plain data, without places."""
    if isinstance(node, tuple):
        return tuple(strip(item) for item in node)
    names = list_child_fields(type(node))
    return (
        node if names is None else (type(node), *(strip(getattr(node, name)) for name in names if "span" not in name))
    )


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("for g in gates)\n", "for g in gate)\n", "gate"),
        ("a[input],", "a[inptu],", "inptu"),
        ("w[gates]: f32", "w[doors]: f32", "doors"),
    ],
)
def test_what_is_no_group_is_told(before: str, after: str, name: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(HEAD + GROUP + RULE.replace(before, after), "demo.rules")
    [found] = caught.value.diagnostics
    assert found.message == f"`{name}` is no group, nor in one; there are gates"
    assert found.span.line > 4


def test_rules_with_groups_are_formatted() -> None:
    text = HEAD + GROUP + RULE
    assert format_rules(text, "demo.rules") == text
    loose = text.replace("w[g]? for", "w [ g ]?  for").replace("group gates = [input", "  group gates=[ input")
    assert format_rules(loose, "demo.rules") == text


def test_a_member_of_a_rule_without_groups_is_told() -> None:
    with pytest.raises(RuleError, match="is no group, nor in one: such as"):
        parse(HEAD + RULE, "demo.rules")

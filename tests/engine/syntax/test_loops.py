"""Loops that say what they carry are written out before anything else reads a rule."""

from __future__ import annotations

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.syntax.formatter import format_rules
from nnrewrite.engine.syntax.parser import parse
from nnrewrite.engine.syntax.tree_traversal import list_child_fields

HEAD = "ruleset demo : onnx -> onnx opset 13..25\n\n"
RULE = """rule demo stage recover {
  Loop(n, go) {body: graph(i, c) { carry v: x -> Identity(v) -> y  carry others...  yield d }}
  where len(others) > 0
  => Loop(n, go) {body: graph(i, c) { v = x  carry t: x -> w -> z  carry others...  collect u -> rows  yield d }}
     y = rows
  test x: f32[3], others: f32[2] for n in [3]
}
"""
WRITTEN_OUT = """rule demo stage recover {
  others_last_0[others_count_0]..., y, others_last_1... =
    Loop(n, go, others_first_0[others_count_0]..., x, others_first_1...)
    {body: graph(i, c, others_value_0[others_count_0]..., v, others_value_1...) {
      yield d, others_next_0[others_count_0]..., Identity(v), others_next_1...
    }}
  where len(others_next_0 ++ others_next_1) > 0
  => others_last_0..., z, others_last_1..., rows = Loop(n, go, others_first_0..., x, others_first_1...)
       {body: graph(i, c, others_value_0..., t, others_value_1...) {
         v = x  yield d, others_next_0..., w, others_next_1..., u }}
     y = rows
  test x: f32[3], others_first_0: f32[2], others_first_1: f32[2] for n in [3]
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


def test_what_a_loop_carries_is_written_out() -> None:
    assert strip(parse(HEAD + RULE, "demo.rules").items) == strip(parse(HEAD + WRITTEN_OUT, "demo.rules").items)


def test_a_value_keeps_its_place_among_those_of_the_pattern() -> None:
    two = RULE.replace(
        "carry others...  yield d }}\n  where", "carry w: k -> w -> m  carry others...  yield d }}\n  where"
    )
    two = two.replace(
        "carry t: x -> w -> z  carry others...  collect u -> rows", "carry w: k -> w -> m  carry others..."
    )
    [rule] = parse(HEAD + two, "demo.rules").items
    names = [[target.name for target in side.equations[0].targets] for side in (rule, rule.templates[0])]
    others = [f"others_last_{place}" for place in range(3)]
    assert names == [[others[0], "y", others[1], "m", others[2]], [others[0], others[1], "m", others[2]]]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "  Loop(n, go) {body",
            "  ys... = Loop(n, go) {body",
            "the results of a loop are named where it says what it carries",
        ),
        (
            "carry others...  yield d }}\n  where",
            "carry others...  carry more...  yield d }}\n  where",
            "a loop says `carry name...` once",
        ),
        ("carry others...  collect", "carry more...  collect", "no loop of the pattern carries `more...`"),
        ("     y = rows", "     Neg(rows)", "this has no result; only a loop that says what it carries stands alone"),
        (
            "where len(others) > 0",
            "let k = graph(i) { carry v: x -> v -> w  yield d }",
            "what is carried is said in the body of a loop that is an equation",
        ),
    ],
)
def test_a_loop_that_cannot_be_written_out_is_told(before: str, after: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(HEAD + RULE.replace(before, after), "demo.rules")
    [found] = caught.value.diagnostics
    assert found.message == message


def test_loops_are_formatted() -> None:
    assert format_rules(HEAD + RULE, "demo.rules") == HEAD + RULE
    assert format_rules(HEAD + RULE.replace("  carry", " carry").replace(" -> y", "->y"), "demo.rules") == HEAD + RULE

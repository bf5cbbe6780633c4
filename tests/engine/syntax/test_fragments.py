"""Fragments are put in where a rule names them, before anything else reads it."""

from __future__ import annotations

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.syntax.formatter import format_rules
from nnrewrite.engine.syntax.parser import parse
from nnrewrite.engine.syntax.tree_traversal import list_child_fields

HEAD = "ruleset demo : onnx -> onnx opset 13..25\n\n"
FRAGMENTS = """fragment real(v) = DequantizeLinear(v, {v}_scale, {v}_zero) {axis: _}
fragment fixed(v) = DequantizeLinear(const v, {v}_scale, {v}_zero) {axis: _}
fragment window = {strides, pads: p}
  let k = len(p)
  where k == 4

"""
RULE = """rule demo stage simplify {
  y = Conv(real(x @ NCHW), fixed(w), real(b)?) {window..., group: 1}
  let window...
  => y = Conv(x, w, b) {window...}
  test x: f32[2]
}
"""
WRITTEN_OUT = """rule demo stage simplify {
  y = Conv(DequantizeLinear(x @ NCHW, x_scale, x_zero) {axis: _},
    DequantizeLinear(const w, w_scale, w_zero) {axis: _}, DequantizeLinear(b, b_scale, b_zero) {axis: _}?)
    {strides, pads: p, group: 1}
  let k = len(p)
  where k == 4
  => y = Conv(x, w, b) {strides, pads: p}
  test x: f32[2]
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


def test_a_fragment_is_put_in_with_names_made_from_its_arguments() -> None:
    assert strip(parse(HEAD + FRAGMENTS + RULE, "demo.rules").items) == strip(parse(HEAD + WRITTEN_OUT, "d").items)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{window..., group", "{windows..., group", "`windows` is no fragment of options; there are window"),
        ("{window..., group", "{real..., group", "`real` is no fragment of options; there are window"),
        ("real(b)?", "window(b)?", "`window` is a fragment of options: it stands in braces, `{window...}`"),
        ("let window...", "let windows...", "`windows` is no fragment with clauses"),
        ("let k = len(p)", "let real...", "fragment `window` names another; it is to be written out here"),
        ("real(b)?", "real(b, c)?", "the fragment is `real(v)`"),
        ("real(b)?", "real(Neg(b))?", "`real` makes names from the one given as `v`, which is to be a variable"),
        ("fragment window", "fragment fixed", "fragment `fixed` is written twice"),
        ("DequantizeLinear(const v", "real(const v", "fragment `fixed` names another; it is to be written out here"),
    ],
)
def test_a_fragment_that_is_misused_is_told(before: str, after: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(HEAD + (FRAGMENTS + RULE).replace(before, after), "demo.rules")
    [found] = caught.value.diagnostics
    assert found.message == message
    assert found.span.line > 2


def test_fragments_are_formatted() -> None:
    text = HEAD + FRAGMENTS + RULE
    assert format_rules(text, "demo.rules") == text
    loose = (
        text.replace("real(v) =", "real( v )=").replace("{window..., ", "{ window ...,").replace("\nfrag", "\n  frag")
    )
    assert format_rules(loose, "demo.rules") == text

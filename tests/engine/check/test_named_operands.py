"""Operands that rules name stand where the operator has them; mistakes in naming them are told with their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.packs import loader
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.formatter import format_rules

RULE = """
ruleset demo over tflite2onnx : tflite -> onnx opset 13..25

rule demo {{
  y = FILL({pattern})
  => y = {template}
  test d: i64[2], v: f32[]
}}
"""


def load(folder: Path, pattern: str, template: str) -> tree.Rule:
    (folder / "demo.rules").write_text(RULE.format(pattern=pattern, template=template))
    items = (item for file in loader.read([f"{folder}"]).files for item in file.items)
    return next(item for item in items if isinstance(item, tree.Rule) and item.name == "demo")


def words(call: object) -> list[object]:
    assert isinstance(call, tree.Call)
    return [
        argument.value.name
        if isinstance(argument.value, tree.Name)
        else None
        if isinstance(argument.value, tree.Literal)
        else argument.value
        for argument in call.arguments
    ]


@pytest.mark.slow
def test_operands_stand_where_the_operator_has_them(tmp_path: Path) -> None:
    rule = load(tmp_path, "input: v, dims: d", "Expand(shape: d, input: v)")
    assert words(rule.equations[0].value) == ["d", "v"]
    assert words(rule.templates[0].equations[0].value) == ["v", "d"]


@pytest.mark.slow
def test_optional_operands_that_no_name_stands_for_are_left_out(tmp_path: Path) -> None:
    rule = load(tmp_path, "d, v", "Clip(Expand(v, d), max: 6.0)")
    call = rule.templates[0].equations[0].value
    assert isinstance(call, tree.Call)
    assert [isinstance(a.value, tree.Literal) and a.value.value for a in call.arguments] == [False, None, 6.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "template", "message", "help"),
    [
        ("dims: d, inptu: v", "Expand(v, d)", "`FILL` has no operand `inptu`", "did you mean `input`?"),
        ("d, dims: v", "Expand(v, d)", "operand `dims` of `FILL` is given twice", None),
        ("dims: d, v", "Expand(v, d)", "an operand without a name stands before those that have one", None),
        ("d, v", "Expand(shape: d)", "operand `input` of `Expand` is not given", "write `input: ...`"),
        ("d, v", "Expand(v, d) if rank(x: v) == 0 else v", "operands of `rank` have no names", None),
    ],
)
def test_mistakes_in_names_are_told(
    tmp_path: Path, pattern: str, template: str, message: str, help: str | None
) -> None:
    with pytest.raises(RuleError) as caught:
        load(tmp_path, pattern, template)
    assert (message, help) in [(found.message, found.help) for found in caught.value.diagnostics]


def test_names_of_operands_are_formatted() -> None:
    text = RULE.format(pattern="input :v,dims:d", template="Expand( shape:d,input : v )").lstrip()
    assert "FILL(input: v, dims: d)" in format_rules(text, "demo.rules")
    assert "Expand(shape: d, input: v)" in format_rules(text, "demo.rules")

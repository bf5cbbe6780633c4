"""Mistakes of a pack's ops.yaml, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from nnrewrite.engine import operators
from nnrewrite.engine.errors import RuleError

GOOD = "{domain: tflite.custom, operands: [x, b?], results: [y], options: {a: [float, 1.0], m: [Padding, SAME]}}"


def told(tmp_path: Path, text: str) -> str:
    path = tmp_path / "ops.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        operators.load([path])
    return str(caught.value).replace(f"{path}:", "")


def entry(fields: str, name: str = "Mine") -> str:
    return f"tflite:\n  operators:\n    {name}: {fields}\n"


def test_a_good_entry_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(entry(GOOD), encoding="utf-8")
    spec = operators.load([path]).dialect("tflite").operator("Mine")
    assert spec is not None
    assert [(o.name, o.optional) for o in spec.operands] == [("x", False), ("b", True)]
    assert {name: option.default for name, option in spec.options.items()} == {"a": 1.0, "m": "SAME"}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("tflite: [", "2:1", "this is not YAML"),
        ("- tflite", "1:1", "an `ops.yaml` is a mapping from dialects"),
        ("tflight: {operators: {}}", "1:1", "there is no dialect `tflight`, and a new one needs a `domain`"),
        ("tflite: {operator: {}}", "1:10", "a dialect has no `operator`"),
        ("tflite: {operators: [Mine]}", "1:21", "`operators` is a mapping"),
        (entry(GOOD, "mine"), "3:5", "the name of an operator begins with a capital letter"),
        (entry("[x]"), "3:11", "`Mine` is a mapping"),
        (entry(GOOD.replace("operands", "operand")), "3:35", "an operator has no `operand`"),
        (entry(GOOD.replace("results: [y], ", "")), "3:5", "nothing is said of the `results` of `Mine`"),
        (entry(GOOD.replace("[x, b?]", "x")), "3:45", "`operands` is a list of names"),
        (entry(GOOD.replace("b?", "b??")), "3:49", "an operand is a name"),
        (entry(GOOD.replace("tflite.custom", "tflite.costum")), "3:20", "`Mine` is no operator of the format"),
        (entry(GOOD.replace("domain: tflite.custom, ", "")), "3:5", "`Mine` is no operator of the format"),
        (entry(GOOD.replace("[float, 1.0]", "float")), "3:81", "an option is its type and its default"),
        (entry(GOOD.replace("[float", "[flaot")), "3:82", "there is no type `flaot`"),
        (entry(GOOD.replace("1.0", "one")), "3:89", "`one` is no default of type float"),
        (entry(GOOD.replace("SAME", "SMAE")), "3:108", "`SMAE` is no default of type Padding"),
        (entry(GOOD.replace("[float, 1.0]", "[[int32], []]")), "3:82", "an option is its type and its default"),
        (entry(GOOD.replace("results", "unsupported: true, results")), "3:67", "`unsupported` says in words why"),
        (entry(GOOD) + f"    Mine: {GOOD}\n", "4:5", "`Mine` is described twice"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    first = told(tmp_path, text).splitlines()[0]
    assert first.startswith(f"{place}: error: {message}")


def test_all_mistakes_are_told_with_what_may_be_meant(tmp_path: Path) -> None:
    text = told(tmp_path, entry(GOOD.replace("operands", "operand").replace("[float", "[flaot")))
    assert text.count(": error: ") == 3
    assert "help: did you mean `operands`?" in text
    assert "help: did you mean `float`?" in text

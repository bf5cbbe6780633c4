"""Mistakes of people who are new to rules: what is said says what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.packs import loader

RULE = """ruleset mine : tflite -> onnx opset 13..25

rule mine {{
  y = {pattern}
  {clause}
  => y = {template}
  test x: f32[2, 3]{test}
}}
"""


def told(folder: Path, clause: str = "", template: str = "Abs(x)", pattern: str = "ABS(x)", test: str = "") -> str:
    """The first mistake of a rule, with its help and its place in the rule."""
    text = RULE.format(pattern=pattern, clause=clause, template=template, test=test)
    (folder / "some.rules").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        loader.read([str(folder)])
    first = caught.value.diagnostics[0]
    return f"{first.span.line}: {first.message}; {first.help}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("where x.shape[0] == 2", "5: `x` has no member `shape`; write `shape(x)`"),
        ("where x.ndim == 2", "5: `x` has no member `ndim`; write `rank(x)`"),
        ("if rank(x) == 2", "6: unexpected `=>`; a rule applies where a clause says so: write `where` for `if`"),
        ("if rank(x) == 2:", "5: unexpected `:`; a rule applies where a clause says so: write `where` for `if`"),
        ("assert rank(x) == 2", "5: unexpected `rank`; `where condition` lets a rule apply, `require condition"),
        ("where rank(x) is 2", "5: unexpected `is`; write `==` for `is`"),
        ("where 1 < rank(x) < 3", "5: unexpected `<`; each comparison stands for itself: `1 < n and n < 3`"),
        ("where rank(x) == not 2", "5: unexpected `not`; behind an operator it stands in parentheses"),
        ("where rank(x) === 2", "5: unexpected `=`; two values are compared by `==`"),
        ("where rank(x) == 2 ** 1", "5: unexpected `*`; there is no power: of numbers it is `n * n`"),
        ("where shape(x)[1:] == [3]", "5: unexpected `:`; there are no slices: `[xs[i] for i in"),
        ("where any(d > 1 for d in shape(x))", "5: unexpected `(`; that it holds for one at least is written `len("),
        ("let n = clamp(3, 0, 1)", "5: there is no function `clamp`; of numbers it is `max(low, min(high, n))`"),
        ('where dtype(x) == float32', '5: there is no variable `float32` here; an element type is a string: `"f32"`'),
        ("let f = lambda n: n", "5: unexpected `n`; a function is a definition beside the rules"),
    ],
)  # fmt: skip
def test_habits_of_python_are_met_with_what_to_write(tmp_path: Path, clause: str, said: str) -> None:
    assert told(tmp_path, clause).startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("x ** 2", "unexpected `*`; there is no power: "),
        (
            "clamp(x, 0, 1)",
            "there is no function `clamp`; of numbers it is `max(low, min(high, n))`, of values of the ",
        ),
        ("relu(x)", "there is no function `relu`; of values of the graph it is the operator `Relu`"),
        ("np.abs(x)", "unexpected `(`; there are no methods and no modules"),
        ("Softmax(x, axis=1)", "unexpected `=`; an operand is named by `name: x`, and attributes stand in braces"),
        ("Softmax(x) {axis=1}", "unexpected `=`; an attribute and its value have `:` between them"),
        (
            "pads(x)",
            "there is no function `pads`; tflite2onnx defines it: begin the files by `ruleset NAME over tflite",
        ),
    ],
)
def test_habits_in_templates_are_met_with_what_to_write(tmp_path: Path, template: str, said: str) -> None:
    assert told(tmp_path, template=template).startswith(f"6: {said}")


@pytest.mark.slow
def test_a_floating_point_number_is_no_integer_attribute(tmp_path: Path) -> None:
    said = "attribute `axis` of `Softmax` is int64, and this is a floating-point number; `int(beta)` is an integer"
    options = {"pattern": "SOFTMAX(x) {beta}", "test": " for beta in [1.0]"}
    assert told(tmp_path, template="Softmax(x) {axis: beta}", **options) == f"6: {said}"
    assert "is a floating-point" in told(tmp_path, template="Softmax(x) {axis: 2 * beta}", **options)
    assert "attribute `kernel_shape` of `MaxPool` is [int64]" in told(
        tmp_path, template="MaxPool(x) {kernel_shape: [1, beta]}", **options
    )


@pytest.mark.slow
def test_what_the_pattern_never_takes_is_no_test(tmp_path: Path) -> None:
    said = told(tmp_path, pattern="SOFTMAX(x)", test=" for beta in [0.0, 2.0]")
    assert said.startswith("7: the pattern takes `beta` only where it is 0.0; an option that it does not mention must")
    said = told(tmp_path, pattern="GATHER(x, _) {axis: 1, batch_dims: _}", test=" for axis in [0]")
    assert "the pattern takes `axis` only where it is 1; the pattern names the value" in said
    said = told(tmp_path, pattern="ABS(x @ NHWC)")
    assert said.startswith("7: `x` is NHWC, and the test gives it 2 dimensions")
    said = told(
        tmp_path, pattern="GATHER(x, _) {axis, batch_dims: _}", clause="where axis > 0", test=" for axis in [0.5]"
    )
    assert "`axis` is an integer, and this is a floating-point number" in said

"""Rules and tables with `<=>`, read from right to left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx.parser
import pytest
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.packs import loader
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.parser import read
from nnrewrite.engine.syntax.reversal import Irreversible, reverse

HEADER = "ruleset demo : tflite -> onnx opset 13..25\n"
PADDINGS = ("SAME", "VALID")


def list_enumerants(operator: str, option: str) -> Sequence[str | bool]:
    return {"padding": PADDINGS, "keep": (False, True)}.get(option, ())


def turn(body: str) -> tree.Rule:
    """The one rule of a text, read backwards."""
    (item,) = read(HEADER + f"rule r {{ {body} }}", "demo.rules").items
    assert isinstance(item, tree.Rule)
    found = reverse(item, list_enumerants)
    assert isinstance(found, tree.Rule)
    return found


def test_both_sides_change_places() -> None:
    found = turn("y = LEAKY_RELU(x) {alpha}  <=> y = LeakyRelu(x) {alpha}  test x: f32[2] for alpha in [0.5]")
    pattern, (template,) = found.equations[0].value, found.templates
    assert isinstance(pattern, tree.Call) and isinstance(template.equations[0].value, tree.Call)
    assert (pattern.callee, template.equations[0].value.callee) == ("LeakyRelu", "LEAKY_RELU")
    assert not template.reversible


def test_of_several_right_sides_the_one_is_read_that_says_so() -> None:
    found = turn("y = HARD_SWISH(x)  <=> y = HardSwish(x)  => y = x * Clip(x + 3.0, 0.0, 6.0) / 6.0  test x: f32[2]")
    assert len(found.templates) == 1


def test_marks_of_operands_stand_where_these_are_read() -> None:
    found = turn("y = CONV_2D(x, const w, b?)  <=> y = Conv(x, w, b)")
    pattern, made = found.equations[0].value, found.templates[0].equations[0].value
    assert isinstance(pattern, tree.Call) and isinstance(made, tree.Call)
    assert [(one.const, one.optional) for one in pattern.arguments] == [(False, False), (True, False), (False, True)]
    assert not any(one.const or one.optional for one in made.arguments)


@pytest.mark.parametrize(
    ("option", "solved"),
    [
        ("a + 1", ["a = given - 1"]),
        ("1 + a", ["a = given - 1"]),
        ("a - 2", ["a = given + 2"]),
        ("3 - a", ["a = 3 - given"]),
        ("-a", ["a = -given"]),
        ("-(a + 1)", ["a = -given - 1"]),
        ("[a, b]", ["len(given) == 2", "a = given[0]", "b = given[1]"]),
        ("[1, a]", ["len(given) == 2", "given[0] == 1", "a = given[1]"]),
    ],
)
def test_options_are_solved_for(option: str, solved: list[str]) -> None:
    found = turn(f"y = POOL(x) {{first: a, second: b}}  <=> y = Pool(x) {{given: {option}, other: b}}")
    assert [word(clause) for clause in found.clauses] == [one.replace("given", "given_0") for one in solved]


def word(node: object) -> str:
    """A clause or an expression as it would be written, as far as these tests need it."""
    match node:
        case tree.Let(name, value):
            return f"{name} = {word(value)}"
        case tree.Where(condition):
            return word(condition)
        case tree.Binary(operator, left, right):
            return f"{word(left)} {operator} {word(right)}"
        case tree.Unary(operator, operand):
            return f"{operator}{word(operand)}"
        case tree.Index(value, index):
            return f"{word(value)}[{word(index)}]"
        case tree.Call(callee, _, arguments):
            return f"{callee}({', '.join(word(one.value) for one in arguments)})"
        case tree.Literal(value):
            return f"{value}".lower()
        case tree.Name(name) | tree.Symbol(name):
            return name
    raise AssertionError(node)


@pytest.mark.parametrize(("option", "tried"), [("padding", ["SAME", "VALID"]), ("keep", ["false", "true"])])
def test_of_what_is_not_solved_each_value_is_tried(option: str, tried: list[str]) -> None:
    drawn = f"test x: f32[2] for p in [{', '.join(tried)}]"
    found = turn(f"y = POOL(x) {{{option}: p}}  <=> y = Pool(x) {{mode: name_of(p)}}  {drawn}")
    conditions = [word(one.condition) for one in found.templates]
    assert conditions == [f"mode_0 == name_of({value})" for value in tried]
    (generator,) = found.tests[0].generators
    assert generator.name == "mode_0" and isinstance(generator.domain, tree.ListOf)


def test_options_of_tests_are_those_of_the_other_side() -> None:
    found = turn("y = POOL(x) {axis}  <=> y = Pool(x) {axis: axis + 1}  test x: f32[2] for axis in [0, 1]")
    (generator,) = found.tests[0].generators
    assert isinstance(generator.domain, tree.ListOf)
    assert [word(one) for one in generator.domain.items] == ["0 + 1", "1 + 1"]


def test_extents_of_tests_stand_in_the_order_of_the_other_side() -> None:
    found = turn(
        "y @ NHWC = S2D(x @ NHWC) {b}  <=> y @ NCHW = SpaceToDepth(x @ NCHW) {size: b}  test x: f32[1, 4, 6, 3]"
    )
    (declaration,) = found.tests[0].declarations
    assert [one.low for one in declaration.shape] == [1, 3, 4, 6]


def test_names_that_no_side_reads_are_left_out() -> None:
    found = turn("y = NEG(x)  let t = dtype(x)  where rank(x) > 1  <=> y = Neg(x)  => y = cast(x, t)")
    assert [word(one) for one in found.clauses] == ["rank(x) > 1"]


def test_a_family_is_read_backwards_member_by_member() -> None:
    (item,) = read(
        HEADER + "rule r over {ADD => Add} { y = SRC(a, b) {pot: _}  <=> y = DST(a, b) }", "demo.rules"
    ).items
    assert isinstance(item, tree.Rule)
    found = reverse(item, list_enumerants)
    assert isinstance(found, tree.Rule)
    assert [(one.source, one.target) for one in found.over] == [("Add", "ADD")]
    made = found.templates[0].equations[0].value
    assert isinstance(made, tree.Call) and (made.callee, made.attributes) == ("DST", ())


def test_a_table_is_read_backwards_where_it_says_so() -> None:
    (item,) = read(HEADER + "table t { ABS <=> Abs  CEIL => Ceil }", "demo.rules").items
    assert isinstance(item, tree.Table)
    found = reverse(item, list_enumerants)
    assert isinstance(found, tree.Table)
    assert [(one.source, one.target) for one in found.entries] == [("Abs", "ABS")]


def test_what_has_no_meaning_backwards_is_refused() -> None:
    with pytest.raises(Irreversible, match="an operand that is computed"):
        turn("y = SQUARE(x)  <=> y = Pow(x, 1.0 + 1.0)")
    with pytest.raises(Irreversible, match="it is not said how"):
        turn("y = POOL(x) {a}  <=> y = Pool(x) {a: a * a}")


# ---- packs


def write(folder: Path, said: str) -> str:
    (folder / "back.rules").write_text(f"ruleset back : onnx -> tflite opset 26..26\n{said}\n")
    return f"{folder}"


def test_a_pack_reads_rules_of_another_backwards(tmp_path: Path) -> None:
    pack = loader.load((write(tmp_path, "reverse tflite2onnx.{unary, gelu}"),))
    assert {"unary", "gelu"} <= {item.name for file in pack.files for item in file.items}


def test_what_the_program_reads_backwards_converts_models() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> net (float[3] x) => (float[3] y)
      { a = Gelu <approximate = "tanh"> (x)  b = LeakyRelu <alpha = 0.3> (a)  y = Neg(b) }"""
    found = rewrite(onnx.parser.parse_model(text).SerializeToString(), to=".tflite").report
    assert dict(found.target_operators) == {"GELU": 1, "LEAKY_RELU": 1, "NEG": 1}
    assert set(found.rules) == {"gelu", "leaky_relu", "unary.Neg"}


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("reverse tflite2onnx.unari", "no `unari` that holds both ways"),
        ("reverse tflite2onnx.add_n", "no `add_n` that holds both ways"),
        ("reverse nowhere.unary", "there is no rule set `nowhere`"),
    ],
)
def test_what_cannot_be_read_backwards_is_told(tmp_path: Path, said: str, wrong: str) -> None:
    with pytest.raises(RuleError) as caught:
        loader.load((write(tmp_path, said),))
    assert any(wrong in one.message for one in caught.value.diagnostics)


def test_a_pack_that_leads_elsewhere_is_not_read_backwards(tmp_path: Path) -> None:
    (tmp_path / "back.rules").write_text("ruleset back : onnx -> onnx opset 13..25\nreverse tflite2onnx.unary\n")
    with pytest.raises(RuleError) as caught:
        loader.load((f"{tmp_path}",))
    assert "tflite2onnx leads elsewhere" in caught.value.diagnostics[0].message

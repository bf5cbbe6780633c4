"""Rule text to syntax tree."""

from __future__ import annotations

import io
import pickle
import re
import subprocess

import lark
import pytest
from nnrewrite.engine.base.errors import RuleError, Span
from nnrewrite.engine.expressions.compile import Frame, evaluate
from nnrewrite.engine.syntax import parser, tree
from nnrewrite.engine.syntax.formatter import format_rules
from nnrewrite.engine.syntax.parser import GRAMMAR, parse
from nnrewrite.engine.syntax.syntax_errors import RESERVED
from nnrewrite.engine.syntax.tree_traversal import walk

HEADER = "ruleset demo : tflite -> onnx opset 13..25\n"


def items(text: str) -> tuple[tree.Rule | tree.Table | tree.Definition, ...]:
    return parse(HEADER + text, "demo.rules").items


def expression(text: str) -> tree.Expression:
    [item] = items(f"def f(x) = {text}")
    assert isinstance(item, tree.Definition)
    return item.body


def shown(node: tree.Expression) -> str:
    """An expression with every infix operator in brackets."""
    match node:
        case tree.Binary(symbol, left, right):
            return f"({shown(left)} {symbol} {shown(right)})"
        case tree.Unary(symbol, operand):
            return f"({symbol} {shown(operand)})"
        case tree.Conditional(then, condition, other):
            return f"({shown(then)} if {shown(condition)} else {shown(other)})"
        case tree.Name(name) | tree.Symbol(name):
            return name
        case tree.Literal(value):
            return repr(value)
    raise AssertionError(node)


@pytest.mark.slow
def test_the_grammar_has_no_conflicts() -> None:
    pytest.importorskip("interegular")
    lark.Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", strict=True, maybe_placeholders=True)


def test_the_reserved_words_are_those_of_the_grammar() -> None:
    pattern = next(line for line in GRAMMAR.read_text(encoding="utf-8").splitlines() if line.startswith("NAME:"))
    assert set(pattern.split("(?:")[1].split(")")[0].split("|")) == RESERVED


def test_a_header_names_dialects_opsets_and_a_default() -> None:
    file = parse("ruleset demo : tflite -> onnx opset 13..25 default 18", "demo.rules")
    assert (file.name, file.source, file.target) == ("demo", "tflite", "onnx")
    assert (file.opsets, file.default_opset) == ((13, 25), 18)


def test_a_rule_without_a_stage_is_lowered_at_priority_nought() -> None:
    [rule] = items("rule r { y = ABS(x) => y = Abs(x) }")
    assert isinstance(rule, tree.Rule)
    assert (rule.stage, rule.priority) == ("lower", 0)


def test_modifiers_stand_in_any_order() -> None:
    [rule] = items("rule r over {ABS => Abs} priority 3 stage normalize { y = SRC(x) => y = DST(x) }")
    assert isinstance(rule, tree.Rule)
    assert (rule.stage, rule.priority, rule.over[0].target) == ("normalize", 3, "Abs")


def test_a_table_keeps_which_entries_lead_back() -> None:
    [table] = items("table t { ABS <=> Abs  EXP => Exp }")
    assert isinstance(table, tree.Table)
    assert [(entry.source, entry.reversible) for entry in table.entries] == [("ABS", True), ("EXP", False)]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a ++ b + c", "(a ++ (b + c))"),
        ("a == b and not c or d", "(((a == b) and (not c)) or d)"),
        ("a not in b", "(a not in b)"),
        ("a not   in b", "(a not in b)"),
        ("-a * b", "((- a) * b)"),
        ("-2", "-2"),
        ("1 - 2", "(1 - 2)"),
        ("a if b else c if d else e", "(a if b else (c if d else e))"),
        ("a << 1 & 3", "((a << 1) & 3)"),
    ],
)
def test_infix_operators_bind_as_they_are_read(text: str, meaning: str) -> None:
    assert shown(expression(text)) == meaning


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-6", 1e-6), ("2.5E3", 2500.0), ("true", True), ("none", None), ('"a\\"b"', 'a"b'), ("007", 7)],
)
def test_literals_have_their_value(text: str, value: object) -> None:
    literal = expression(text)
    assert isinstance(literal, tree.Literal)
    assert literal.value == value


def test_names_may_begin_with_a_word_of_the_language() -> None:
    assert shown(expression("format + notable + input + orient")) == "(((format + notable) + input) + orient)"


def test_an_attribute_named_alone_stands_for_its_variable() -> None:
    call = expression("Concat(x) {axis}")
    assert isinstance(call, tree.Call)
    assert isinstance(call.attributes[0].value, tree.Name)
    assert call.attributes[0].value.name == "axis"


def test_arguments_keep_their_marks() -> None:
    [rule] = items("rule r { y @ NHWC = OP(const a, b?, c..., d @ OHWI) => y = Abs(a) }")
    assert isinstance(rule, tree.Rule)
    call = rule.equations[0].value
    assert isinstance(call, tree.Call)
    marks = [(a.const, a.optional, a.spread, a.layout) for a in call.arguments]
    assert marks == [
        (True, False, False, None),
        (False, True, False, None),
        (False, False, True, None),
        (False, False, False, "OHWI"),
    ]
    assert rule.equations[0].targets[0].layout == "NHWC"


def test_tests_hold_ranges_and_domains() -> None:
    [rule] = items("rule r { y = OP(x) => y = Abs(x) test x: f32[1, 5..8, n] for a in [1, 2], b in range(3) }")
    assert isinstance(rule, tree.Rule)
    [test] = rule.tests
    assert [(d.low, d.high, d.name) for d in test.declarations[0].shape] == [
        (1, 1, None),
        (5, 8, None),
        (None, None, "n"),
    ]
    assert [generator.name for generator in test.generators] == ["a", "b"]


def test_lines_and_comments_mean_nothing() -> None:
    one = items("rule r { y = ABS(x) => y = Abs(x) }")
    many = items("rule r # says little\n{\n y =\nABS(x)\n=>\n y = Abs(x)}")
    assert str(one).replace("line=2", "") != str(many)
    assert [type(node) for node in walk(one)] == [type(node) for node in walk(many)]


def test_nodes_know_their_place() -> None:
    [rule] = items("rule r {\n  y = ABS(x)\n  => y = Abs(x)\n}")
    assert isinstance(rule, tree.Rule)
    assert rule.span == Span("demo.rules", 2, 6, 2, 7)
    assert rule.equations[0].value.span == Span("demo.rules", 3, 7, 3, 13)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("where " + "9" * 2000 + " > rank(x)", "an integer of more than 1000 digits"),
        ('where "\\x" == dtype(x)', "an escape that there is not"),
        ('where "' + "a" * 500_000 + '" == dtype(x)', "a file of more than"),
        ("where rank(x) == [1" + ", 1" * 20 + "\n  => y = x }", "this `[` is not closed"),
    ],
)
def test_texts_without_measure_are_told(body: str, said: str) -> None:
    with pytest.raises(RuleError, match=re.escape(said)):
        parse(
            f"ruleset a : tflite -> onnx opset 13..25\nrule r {{ y = ABS(x) {body} => y = Abs(x) test x: f32[2] }}", "x"
        )


def test_a_long_list_of_numbers_is_one_word() -> None:
    numbers = [1, -2, 0.5, 1e-7] * 5000
    found = expression(str(numbers))
    assert isinstance(found, tree.Numbers)
    assert evaluate(found, Frame({})) == numbers


def test_kept_tables_hold_text_and_tokens_and_nothing_that_runs() -> None:
    tables = pickle.dumps({"rules": [lark.Token("NAME", "x"), 1, "y"]})
    assert parser._PlainData(io.BytesIO(tables)).load() == {"rules": ["x", 1, "y"]}
    with pytest.raises(pickle.UnpicklingError, match=r"Popen is no plain data"):
        parser._PlainData(io.BytesIO(pickle.dumps(subprocess.Popen))).load()


def test_names_of_packs_have_hyphens_and_differences_have_spaces() -> None:
    text = (
        "ruleset a-b over c-d without e, f after g : onnx -> onnx opset 13..25\n"
        "use c-d.{one, two}\n"
        "reverse h-2-i.one\n"
        "\n"
        "def less(use, over_all) = use - over_all - 1\n"
    )
    file = parse(text, "demo.rules")
    assert (file.name, file.base, file.without, file.after) == ("a-b", "c-d", ("e", "f"), ("g",))
    assert [one.pack for one in (*file.uses, *file.reverses)] == ["c-d", "c-d", "h-2-i"]
    loose = text.replace("over c", "over   c").replace("use c-d.{", "use c-d . {  ").replace(" - over", "-over")
    assert format_rules(text, "demo.rules") == format_rules(loose, "demo.rules") == text


@pytest.mark.parametrize("name", ["a-", "-a", "a--b", "a- b", "a.b"])
def test_a_hyphen_stands_inside_a_name_of_a_pack(name: str) -> None:
    with pytest.raises(RuleError, match="unexpected"):
        parse(f"ruleset {name} : onnx -> onnx opset 13..25\n", "demo.rules")

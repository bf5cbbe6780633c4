"""Syntax errors: what is wrong with a text, worded with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from ..base.errors import Diagnostic, Note, Span
from ..base.startup import dataclass
from .diagnostics import join_words
from .habits import POWER, suggest_for_word

#: words that are no names
_WORDS = """rule table def stage over where require remark let when test for in if else and or not any const fold graph
  carry collect yield none true false"""
RESERVED = frozenset(re.findall(r"\w+", _WORDS))

#: how the grammar's terminals are called in messages
_SPOKEN = {
    "NAME": "a name",
    "PACKNAME": "the name of a pack",
    "OP": "an operator or enumerant",
    "INT": "an integer",
    "FLOAT": "a number",
    "STRING": "a string",
    "LAYOUT": "a layout such as NHWC",
    "CMP": "a comparison",
    "KEYWORD": "`none`, `true` or `false`",
    "ARROW": "`=>`",
    "$END": "the end of the file",
    "CONST": "`const`",
    "ANY": "`any`",
    "AND": "`and`",
    "OR": "`or`",
    "NOT": "`not`",
    "IN": "`in`",
    "SPREAD": "`...`",
    "OPTIONAL": "`?`",
    "CHOICE": "`|`",
    "CONCAT": "`++`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "MULOP": "`*`",
    "NOT_IN": "`not in`",
}
#: what may go on after any expression; it is of no help where something else was forgotten
_INFIX = frozenset(
    {"CMP", "CONCAT", "PLUS", "MINUS", "MULOP", "NOT_IN", "IN", "AND", "OR", "CHOICE", "IF", "DOT", "LSQB"}
)
#: what shows that a bracket before it was not closed
_ENDS = frozenset({")", "]", "}", "=>", "<=>", "="})
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Found:
    """What stands where the parser stopped: the text, its terminal, what could have stood there, and the rest."""

    text: str
    expected: frozenset[str]
    before: str
    after: str


#: a `require` whose message has not come yet
_REQUIRE = re.compile(r"\brequire\b[^{}\"]*$")


#: a name that is given a value inside a call
_NAMED = re.compile(r"[(,]\s*\w+\s*$")
#: the rest of what is computed from a list
_GENERATED = re.compile(r"[^()]*\sfor\s")
#: the word that begins a statement, as far as it goes
_BEGINS = re.compile(r"(?:^|\n)\s*([a-z]+)\b[^\n]*$")
#: the last word
_LAST = re.compile(r"\b(lambda(?=[\w\s,]*$)|[a-z]+\s*$)")


def _is_name(found: _Found) -> bool:
    """Whether a word stands where a name belongs, not where the next clause or item begins."""
    goes_on = found.expected & {"ARROW", "RULE", "TEST", "RBRACE", "RPAR", "RSQB", "COMMA"}
    return not goes_on or found.after.lstrip().startswith(("=", ",", "@"))


#: slips that people make, the first that fits is told
_SLIPS: tuple[tuple[Callable[[_Found], bool], str], ...] = (
    (
        lambda f: "ARROW" in f.expected and f.text in ("}", "test"),
        "a rule says what is built by `=>` and an equation, before its tests",
    ),
    (
        lambda f: f.text in ("where", "require", "remark", "let") and "TEST" in f.expected,
        "`where`, `require`, `remark` and `let` stand between the pattern and the first `=>`",
    ),
    (
        lambda f: "COMMA" in f.expected and "ARROW" not in f.expected and bool(_REQUIRE.search(f.before)),
        '`require` ends with a message: `require condition, "why not"`',
    ),
    (
        lambda f: f.text in RESERVED and "NAME" in f.expected and _is_name(f),
        "`{0}` is a word of the language; choose another name",
    ),
    (lambda f: f.text[:1].isupper() and "PACKNAME" in f.expected, "names of packs are written in lower case"),
    (
        lambda f: f.text[:1].isupper() and "NAME" in f.expected and "OP" not in f.expected,
        "variables are written in lower case, operators and enumerants in upper case",
    ),
    (
        lambda f: f.text == "=" and f.expected == {"LPAR"},
        "variables are written in lower case, operators and enumerants in upper case",
    ),
    (lambda f: "LAYOUT" in f.expected, "a layout is two to six capital letters, such as NHWC"),
    (
        lambda f: f.before.endswith("any") and f.text == "(" and bool(_GENERATED.match(f.after)),
        "that it holds for one at least is written `len([n for n in ns if n > 0]) > 0`",
    ),
    (
        lambda f: f.before.rstrip().endswith("any"),
        "after `any` comes the variable that stands for the operator: `any op(xs...)`",
    ),
    (lambda f: f.text == "=" and f.before.endswith("=="), "two values are compared by `==`"),
    (
        lambda f: f.text in _ENDS | {",", ":"} and {"LPAR", "LSQB", "NAME", "OP"} <= f.expected,
        "an expression is missing before it",
    ),
    (
        lambda f: f.text == "=>" and {"COLON", "CMP"} <= f.expected and "RPAR" not in f.expected,
        "at least is written `>=`",
    ),
    (
        lambda f: f.text == "=" and "RPAR" in f.expected and bool(_NAMED.search(f.before)),
        "an operand is named by `name: x`, and attributes stand in braces: `OP(x) {{axis: 1}}`",
    ),
    (lambda f: f.text == "=" and "COLON" in f.expected, "an attribute and its value have `:` between them"),
    (lambda f: f.text == "=" and "CMP" in f.expected, "two values are compared by `==`"),
    (lambda f: f.text == "!", "write `not` for `!`"),
    (lambda f: f.text == "&" and f.before.endswith("&"), "write `and` for `&&`"),
    (lambda f: f.text == "|" and f.before.endswith("|"), "write `or` for `||`"),
    (lambda f: f.text == "'", "a string stands in double quotes"),
    (lambda f: f.text == '"', "a string ends on the line on which it begins"),
    (lambda f: f.text in ("//", "/") and not f.before.rsplit("\n", 1)[-1].strip("/ "), "a comment begins with `#`"),
    (lambda f: f.text == ";", "nothing stands between two equations or clauses: leave `;` out"),
    (lambda f: f.text == ".", "a number has digits on both sides of its point, such as 0.5"),
    (lambda f: f.text == "->" or (f.text == ">" and f.before.endswith("-")), "an arrow between two sides is `=>`"),
    (lambda f: f.text == "^" or f.text == "**" or (f.text == "*" and f.before.endswith("*")), POWER),
    (lambda f: f.text == ">" and f.before.endswith("<"), "unequal is written `!=`"),
    (lambda f: f.text == "*" and f.before.rstrip().endswith(("[", ",", "(")), "lists are joined by `++`: `xs ++ [1]`"),
    (lambda f: f.text[:1] == '"' and f.before.endswith("f"), 'a message puts values in by itself: `"not {{n}}"`'),
    (lambda f: f.text == "@" and "ARROW" in f.expected, "`@` names dimensions; a product of matrices is an operator"),
    (lambda f: f.text == "is", "write `==` for `is`, and `!=` for `is not`: `b == none`"),
    (
        lambda f: f.text == "(" and bool(re.search(r"\.[a-z_]\w*$", f.before)),
        "there are no methods and no modules: functions stand alone, `f(x)`",
    ),
    (
        lambda f: f.text == ":" and "RSQB" in f.expected,
        "there are no slices: `[xs[i] for i in range(1, len(xs))]`, of values of the graph an operator",
    ),
    (lambda f: f.text == ":" and "ARROW" in f.expected, "nothing stands at the end of a clause: leave `:` out"),
    (
        lambda f: f.text == "for" and "RPAR" in f.expected,
        "a list is computed in brackets: `[n * 2 for n in ns]`",
    ),
    (lambda f: f.expected == {"RULESET"}, "a file begins with `ruleset NAME : SOURCE -> TARGET opset LOW..HIGH`"),
)


def explain_error(error: UnexpectedInput, text: str, file: str, grammar: Lark) -> Diagnostic:
    """Word the mistake at which a parser stopped."""
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        lines = text.splitlines() or [""]
        span = Span(file, len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)
        found = _explain_token("", getattr(error, "accepts", None) or error.expected, text, len(text))
        notes = _find_unclosed(text, file)
        return Diagnostic(span, "the file ends too early", notes, _suggest_help(found, grammar))
    expected: Iterable[str]
    if isinstance(error, UnexpectedToken):
        token = error.token
        line, column = token.line or 1, token.column or 1
        span = Span(file, line, column, token.end_line or line, token.end_column or column)
        word, expected = str(token), error.accepts or error.expected
    else:
        assert isinstance(error, UnexpectedCharacters)
        span = Span(file, error.line, error.column, error.line, error.column + 1)
        word, expected = error.char, error.allowed or ()
    position = error.pos_in_stream or 0
    found = _explain_token(word, expected, text, position)
    begins = not text[:position].rpartition("\n")[2].strip()  # as what follows something forgotten does
    closes = begins and not found.expected.isdisjoint({"RBRACE", "RPAR", "RSQB"}) and "COMMA" in found.expected
    notes = _find_unclosed(text[:position], file) if word in RESERVED or word in _ENDS or closes else ()
    inside = closes or word in ("rule", "table", "def") or (notes and "`{`" not in notes[0].message)
    if _is_unfinished(found):
        begun = [found.start() for found in re.finditer(r"\bif\b", text[:position])]
        notes, inside = (_note_place("this `if` has no `else`", text, file, begun[-1], 2),), True
    return Diagnostic(span, f"unexpected `{word}`", notes if inside else (), _suggest_help(found, grammar))


def _explain_token(word: str, expected: Iterable[str], text: str, position: int) -> _Found:
    return _Found(word, frozenset(expected) - {"NUMBERS"}, text[:position], text[position + len(word) :])


def _suggest_help(found: _Found, grammar: Lark) -> str | None:
    if (habit := _find_habit(found)) is not None:
        return habit
    for fits, advice in _SLIPS:
        if fits(found):
            return advice.format(found.text)
    names = sorted({_name_terminal(name, grammar) for name in found.expected - _INFIX or found.expected})
    return f"expected {join_words(names)}" if 0 < len(names) <= 9 else None


def _find_habit(found: _Found) -> str | None:
    """What to write for a statement of another language, where the parser stopped in one."""
    if _is_unfinished(found):
        begun = _BEGINS.search(found.before.rstrip())
        return (suggest_for_word(begun[1]) if begun is not None else None) or "an expression says both: `a if c else b`"
    last = _LAST.search(found.before)
    return suggest_for_word(last[1].strip()) if last is not None and last[1].strip() not in RESERVED else None


def _is_unfinished(found: _Found) -> bool:
    """Whether an `if` has no `else`."""
    return "ELSE" in found.expected and "RULE" not in found.expected


def _name_terminal(terminal: str, grammar: Lark) -> str:
    if terminal in _SPOKEN:
        return _SPOKEN[terminal]
    for definition in grammar.terminals:
        if definition.name == terminal and definition.pattern.type == "str":
            return f"`{definition.pattern.value}`"
    return f"`{terminal.lower()}`"


def _find_unclosed(text: str, file: str) -> tuple[Note, ...]:
    """The innermost bracket that is open at the end of a text; closers that fit none are passed over."""
    open_: list[tuple[str, int]] = []
    for found in re.finditer(r'"(?:[^"\\\n]++|\\.)*+"|#[^\n]*|[()\[\]{}]', text):
        bracket = found.group()
        if bracket in _BRACKETS:
            open_.append((bracket, found.start()))
        elif open_ and bracket == _BRACKETS[open_[-1][0]]:
            open_.pop()
    if not open_:
        return ()
    bracket, start = open_[-1]
    return (_note_place(f"this `{bracket}` is not closed", text, file, start, 1),)


def _note_place(message: str, text: str, file: str, start: int, length: int) -> Note:
    """A remark about what begins at a position of a text."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return Note(message, Span(file, line, column, line, column + length))

"""Rule files in their one form: indentation by meaning, one space where one belongs; lines and comments stay.

Line breaks are the writer's: a long rule is laid out by hand. Lines that go on keep their indentation where it is
deeper than that of what they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ..base.errors import Span
from ..base.startup import dataclass
from . import tree
from .parser import read
from .syntax_errors import RESERVED

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+|\w*\{[a-z_]\w*\}(?:\w+|\w*(?=\s*:))|\w+|\.\.\.|\.\.|<=>|=>|->|==|!=|<=|>=|<<|>>|//|\+\+'
    r"|[^\s\w]"
)
#: the words before names of packs, which may have hyphens
_NAMING = frozenset({"ruleset", "over", "after", "use", "reverse"})
_PACK = re.compile(r"\w+(?:-\w+)*")
#: columns: what stands in a rule, and the equations of a template after its first
_BODY, _EQUATION = 2, 5
#: spaces between the entries of a table and of an `over` family
_ENTRIES = {"table": 3, "over": 2}
_ITEMS = frozenset({"rule", "table", "def", "ruleset", "over", "graph", "group", "fragment", "use", "reverse"})
_TIGHT_BEFORE = frozenset({")", "]", ",", "...", "?", ".", ":"})
_TIGHT_AFTER = frozenset({"(", "[", "."})
_OPERATORS = frozenset(re.findall(r"\S+", "= == != < > <= >= + - * / // % << >> & ++ | => <=> ( [ { , : @ .."))


@dataclass(frozen=True, slots=True)
class _Brace:
    """An open brace: what it belongs to, and whether its inside is set apart by spaces."""

    kind: str
    apart: bool


def format_rules(text: str, file: str) -> str:
    """A rule file in its one form; raises RuleError where it cannot be parsed."""
    before = read(text, file)
    starts = dict(_list_starts(before))
    lines: list[str] = []
    state = _State()
    current = 0
    for number, line in enumerate(text.splitlines(), 1):
        code, comment = _split(line)
        if not code:
            lines.append(_indent_comment(comment, current, state, line))
            continue
        column = len(line) - len(line.lstrip()) + 1
        start = starts.get((number, column))
        if start is not None:
            indent = current = start
        elif code.startswith("}") and state.is_closing_item():
            indent = current = 0
        else:
            indent = max(_measure_width(line), current + (0 if code.startswith("}") else 2))
        body = state.space_tokens(code)
        gap = max(2, len(line) - len(comment) - len(line[: len(line) - len(comment)].rstrip())) if comment else 0
        lines.append(" " * indent + body + " " * gap + comment)
    after = "\n".join(_trim_blank_lines(lines)) + "\n"
    if _strip_places(read(after, file)) != _strip_places(before):
        raise AssertionError(f"{file}: formatting would change what the rules say")
    return after


def _split(line: str) -> tuple[str, str]:
    """The code of a line and its comment."""
    found = re.match(r'((?:"(?:\\.|[^"\\\n])*"|[^"#])*)(#.*)?$', line)
    assert found is not None
    return found.group(1).strip(), (found.group(2) or "").rstrip()


def _measure_width(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _indent_comment(comment: str, current: int, state: _State, line: str) -> str:
    """A line of its own: at the margin between items, else where it was or with what it stands among."""
    if not comment:
        return ""
    return " " * (max(_measure_width(line), _BODY) if state.braces else 0) + comment


def _trim_blank_lines(lines: list[str]) -> Iterator[str]:
    """Lines without blank ones at either end, and never two of them in a row."""
    previous = ""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    for line in kept:
        if line or previous:
            yield line
        previous = line


class _State:
    """The braces that are open, and the token before: what decides about spaces."""

    def __init__(self) -> None:
        self.braces: list[_Brace] = []
        self._previous = ""
        self._before = ""
        self._item = ""

    def is_closing_item(self) -> bool:
        """Whether the next brace closes a rule or a table."""
        return len(self.braces) == 1

    def space_tokens(self, code: str) -> str:
        """The tokens of a line with the spaces that belong between them."""
        out = ""
        place = 0
        while (found := self._find_token(code, place)) is not None:
            token, place = found.group(), found.end()
            space = self._choose_space(token) if out else ""
            out += space + token
            self._advance(token)
        return out

    def _find_token(self, code: str, place: int) -> re.Match[str] | None:
        """The next token of a line from a place on."""
        found = _TOKEN.search(code, place)
        named = found is not None and self._previous in _NAMING and _PACK.match(code, found.start())
        return named or found

    def _advance(self, token: str) -> None:
        if token in _ITEMS:
            self._item = token
        if token == "{":
            self.braces.append(self._open_brace())
        elif token == "}" and self.braces:
            self.braces.pop()
        self._before, self._previous = self._previous, token

    def _open_brace(self) -> _Brace:
        if not self.braces and self._item in ("rule", "table") and self._previous != "over":
            return _Brace(self._item, True)
        if self._previous == "over":
            self._item = "rule"
            return _Brace("over", False)
        if self._item == "graph":
            self._item = "rule"
            return _Brace("graph", True)
        return _Brace("options", False)

    def _choose_space(self, token: str) -> str:
        last, kind = self._previous, self.braces[-1].kind if self.braces else ""
        if last == "{":
            return " " if self.braces[-1].apart else ""
        if token == "}":
            return " " if self.braces and self.braces[-1].apart else ""
        if token in ("yield", "carry", "collect"):
            return "  "
        if kind in _ENTRIES and self._before in ("=>", "<=>") and token not in ("test", "=>", "<=>"):
            return " " * _ENTRIES[kind]
        if token == ":" and self._item in ("ruleset", "over"):
            return " "
        if (token == ".." and last.isdigit()) or (last == ".." and token.isdigit()):
            return ""
        if token in _TIGHT_BEFORE or last in _TIGHT_AFTER:
            return ""
        if token in ("(", "[") and (re.fullmatch(r"\w+", last) or last in (")", "]")) and self._is_call(last):
            return ""
        if last == "-" and not self._minus:
            return ""
        return " "

    def _is_call(self, last: str) -> bool:
        return last not in RESERVED or last in ("fold", "graph")

    @property
    def _minus(self) -> bool:
        """Whether the minus before stands between two operands."""
        before = self._before
        return not (before == "" or before in _OPERATORS or before in RESERVED - {"none", "true", "false"})


def _list_starts(file: tree.RuleFile) -> Iterator[tuple[tuple[int, int], int]]:
    """Where statements begin, by line and column, and the column that they belong at."""
    yield (file.span.line, file.span.column), 0
    yield from ((_find_place(use.span), 0) for use in (*file.uses, *file.reverses))
    for word, named in (("group", file.groups), ("fragment", file.fragments)):
        yield from (((one.span.line, one.span.column - len(word) - 1), 0) for one in named)
    yield from ((_find_start(clause), _BODY) for fragment in file.fragments for clause in fragment.clauses)
    for item in file.items:
        word = {tree.Rule: "rule", tree.Table: "table", tree.Definition: "def"}[type(item)]
        yield (item.span.line, item.span.column - len(word) - 1), 0
        if isinstance(item, tree.Definition):
            continue
        if isinstance(item, tree.Table):
            yield from ((_find_place(entry.span), _BODY) for entry in item.entries)
        else:
            yield from ((_find_place(equation.span), _BODY) for equation in item.equations)
            yield from ((_find_start(clause), _BODY) for clause in item.clauses)
            for local in item.definitions:
                yield (local.span.line, local.span.column - len("def ")), _BODY
            for template in item.templates:
                yield from ((_find_place(equation.span), _EQUATION) for equation in template.equations)
                yield _find_place(template.span), _BODY
        yield from ((_find_place(test.span), _BODY) for test in item.tests)


def _find_start(clause: tree.Clause) -> tuple[int, int]:
    back = len("let ") if isinstance(clause, tree.Let) else 0
    return clause.span.line, clause.span.column - back


def _find_place(span: Span) -> tuple[int, int]:
    return span.line, span.column


def _strip_places(node: Any) -> Any:
    """A syntax tree without its places."""
    if isinstance(node, tuple):
        return tuple(_strip_places(item) for item in node)
    if isinstance(node, Span):
        return None
    if is_dataclass(node) and not isinstance(node, type):
        return (type(node).__name__, *(_strip_places(getattr(node, field.name)) for field in fields(node)))
    return node

"""Precedence of operators: rows of operands and operators as they are written become trees (precedence climbing)."""

from __future__ import annotations

from collections import deque

import lark

from ..base.errors import Span
from . import tree
from .diagnostics import ParseError

Part = lark.Token | tree.Expression

#: how strongly what stands between two operands binds them; of two that bind alike the first does so first
_PRECEDENCE = {
    "CHOICE": 1,
    "OR": 2,
    "AND": 3,
    "CMP": 5,
    "IN": 5,
    "NOT_IN": 5,
    "CONCAT": 6,
    "PLUS": 7,
    "MINUS": 7,
    "MULOP": 8,
}
_COMPARISON = _PRECEDENCE["CMP"]
#: and what stands before one
_NOT, _NEGATIVE = 4, 9


def build_expression(row: list[Part], file: str) -> tree.Expression:
    """The tree of operands with an operator between each two and any number before each.

    Raises ParseError for comparisons in a row, and for a `not` in what binds stronger.
    """
    return _parse_binary(deque(row), 0, file)


def locate_token(token: lark.Token, file: str) -> Span:
    """Where a word stands in a file."""
    line, column = token.line or 1, token.column or 1
    return Span(file, line, column, token.end_line or line, token.end_column or column)


def _parse_binary(row: deque[Part], least: int, file: str) -> tree.Expression:
    """Take an operand off a row, and what operators of this precedence or a higher one join to it."""
    first = row.popleft()
    left = _parse_unary(first, row, least, file) if isinstance(first, lark.Token) else first
    while row and (precedence := _find_precedence(row[0])) >= least:
        operator = row.popleft()
        assert isinstance(operator, lark.Token)
        right = _parse_binary(row, precedence + 1, file)
        span = _join_spans(left.span, right.span)
        if operator.type == "CHOICE":
            left = tree.Choice(left, right, span)
        else:
            left = tree.Binary(" ".join(operator.split()), left, right, span)
        if precedence == _COMPARISON and row and _find_precedence(row[0]) == _COMPARISON:
            assert isinstance(row[0], lark.Token)
            help = "each comparison stands for itself: `1 < n and n < 3`"
            raise ParseError(locate_token(row[0], file), f"unexpected `{row[0]}`", help)
    return left


def _parse_unary(prefix: lark.Token, row: deque[Part], least: int, file: str) -> tree.Expression:
    """Take the operand behind a `not` or a minus, which a number has in it."""
    place = locate_token(prefix, file)
    if prefix.type == "NOT" and least > _NOT:
        raise ParseError(place, "unexpected `not`", "behind an operator it stands in parentheses: `a == (not b)`")
    operand = _parse_binary(row, _NOT if prefix.type == "NOT" else _NEGATIVE, file)
    span = _join_spans(place, operand.span)
    if prefix.type == "MINUS" and isinstance(operand, tree.Literal) and isinstance(operand.value, (int, float)):
        return tree.Literal(-operand.value, span)
    return tree.Unary(str(prefix), operand, span)


def _find_precedence(part: Part) -> int:
    assert isinstance(part, lark.Token)
    return _PRECEDENCE[part.type]


def _join_spans(first: Span, last: Span) -> Span:
    return Span(first.file, first.line, first.column, last.end_line, last.end_column)

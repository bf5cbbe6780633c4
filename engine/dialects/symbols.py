"""Integers that a run decides, as polynomials over extents that are not known yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

#: an integer, or the text of what it is computed from: the name of an extent, or `=` and a polynomial over such names
Symbol = int | str
#: coefficients by the names, in order, whose product they stand before; a number stands before no name
Polynomial = Mapping[tuple[str, ...], int]

#: what the names begin with that inference makes up for extents which have none
UNNAMED = "unk__"
#: what polynomials are not followed beyond, in terms
_MOST = 32
#: a polynomial as this module writes it; a name that only looks like one stands for itself
_TERM = r"-?[0-9]+(?:\*[^*+=]+)*"
_WRITTEN = re.compile(rf"={_TERM}(?:\+{_TERM})*")
_MARKS = {"%": "%25", "*": "%2A", "+": "%2B", "=": "%3D"}


def add(a: Symbol, b: Symbol) -> Symbol | None:
    """The sum; None where it is too long to be followed."""
    return _format_symbol(_add_polynomials(_read(a), _read(b)))


def subtract(a: Symbol, b: Symbol) -> Symbol | None:
    """The difference; None where it is too long to be followed."""
    return _format_symbol(_add_polynomials(_read(a), _multiply_polynomials(_read(b), {(): -1})))


def multiply(a: Symbol, b: Symbol) -> Symbol | None:
    """The product; None where it is too long to be followed."""
    left, right = _read(a), _read(b)
    return None if len(left) * len(right) > _MOST else _format_symbol(_multiply_polynomials(left, right))


def divide(a: Symbol, b: Symbol) -> Symbol | None:
    """The quotient without its remainder; where it may have one, a name that stands for it."""
    exact = divide_exactly(a, b)
    if exact is not None:
        return exact
    if find_sign(a) not in (0, 1) or find_sign(b) != 1:
        return None
    # of extents and a number, as 2n + 1, the number alone may leave a remainder
    rest = _read(a).get((), 0) % b if isinstance(b, int) and isinstance(a, str) else 0
    multiple = subtract(a, rest) if rest else None
    whole = None if multiple is None else divide_exactly(multiple, b)
    return f"({a})/({b})" if whole is None else whole


def divide_exactly(a: Symbol, b: Symbol) -> Symbol | None:
    """The quotient where there is no remainder, whatever the names stand for."""
    left, right = _read(a), _read(b)
    if len(right) != 1:
        return 1 if left == right and left and find_sign(b) == 1 else None
    [(names, factor)] = right.items()
    found: dict[tuple[str, ...], int] = {}
    for term, coefficient in left.items():
        rest = list(term)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if coefficient % factor:
            return None
        found[tuple(rest)] = coefficient // factor
    return _format_symbol(found)


def find_sign(a: Symbol) -> int | None:
    """1 for what is positive where extents are, 0 for zero, -1 for what is negative; None where that is open.

    Extents that have no name in the source, such as how many elements are not zero, may be zero.
    """
    terms = _read(a)
    signs = {(coefficient > 0) - (coefficient < 0) for coefficient in terms.values()}
    if not signs:
        return 0
    sure = any(not any(name.startswith(UNNAMED) for name in names) for names in terms)
    return signs.pop() if len(signs) == 1 and sure else None


def may_be_zero(a: Symbol) -> bool:
    """Whether an extent may be 0: one that a run counts, such as the elements that are not zero, whose name is made up.

    Made-up names are told by their prefix or by a point. Extents that a source names are taken to be 1 or more.
    """
    return isinstance(a, str) and (UNNAMED in a or "." in a)


def compare(a: Symbol, b: Symbol) -> int | None:
    """The sign of the difference; None where it is open."""
    found = subtract(a, b)
    return None if found is None else find_sign(found)


def _read(symbol: Symbol) -> Polynomial:
    if not isinstance(symbol, str):
        return {(): int(symbol)} if symbol else {}
    if not _WRITTEN.fullmatch(symbol):
        return {(symbol,): 1}
    return dict(_parse_terms(symbol[1:]))


def _parse_terms(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    for term in text.split("+"):
        coefficient, *names = term.split("*")
        yield tuple(map(_unquote, names)), int(coefficient)


def _format_symbol(polynomial: Polynomial) -> Symbol | None:
    terms = sorted((names, coefficient) for names, coefficient in polynomial.items() if coefficient)
    if not terms or terms[-1][0] == ():
        return terms[-1][1] if terms else 0
    if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1 and not _WRITTEN.fullmatch(terms[0][0][0]):
        return terms[0][0][0]
    if len(terms) > _MOST or len(str(terms)) > 1024:
        return None
    return "=" + "+".join("*".join([str(factor), *map(_quote, names)]) for names, factor in terms)


def _add_polynomials(a: Polynomial, b: Polynomial) -> Polynomial:
    found = dict(a)
    for names, coefficient in b.items():
        found[names] = found.get(names, 0) + coefficient
    return {names: coefficient for names, coefficient in found.items() if coefficient}


def _multiply_polynomials(a: Polynomial, b: Polynomial) -> Polynomial:
    found: dict[tuple[str, ...], int] = {}
    for names, coefficient in a.items():
        for others, factor in b.items():
            key = tuple(sorted(names + others))
            found[key] = found.get(key, 0) + coefficient * factor
    return {names: coefficient for names, coefficient in found.items() if coefficient}


def _quote(name: str) -> str:
    return "".join(_MARKS.get(letter, letter) for letter in name)


def _unquote(name: str) -> str:
    for letter, mark in reversed(_MARKS.items()):
        name = name.replace(mark, letter)
    return name

"""The texts of rules, by the places that converted models record."""

from __future__ import annotations

from collections.abc import Iterable

from ..conversion.target import find_line

#: lines of a rule that a page shows, and letters of all
_LINES, _LETTERS = 30, 300_000


def read_rules(places: Iterable[str]) -> dict[str, str]:
    """The text of each rule whose file is at hand, with the comment above it, by its place `rule (file:line)`."""
    found: dict[str, str] = {}
    room = _LETTERS
    for place in places:
        known = find_line(place)
        if known is None:
            continue
        lines, at = known
        text = "\n".join(lines[_find_beginning(lines, at) : _find_end(lines, at)])
        room -= len(text)
        if room < 0:
            break
        found[place] = text
    return found


def _find_beginning(lines: list[str], at: int) -> int:
    """Where the comment above a line begins."""
    while at and lines[at - 1].startswith("#"):
        at -= 1
    return at


def _find_end(lines: list[str], at: int) -> int:
    """Behind the brace that closes what a line opens, or behind the line where it opens none."""
    if not lines[at].rstrip().endswith("{"):
        return at + 1
    last = next((i for i in range(at, len(lines)) if lines[i].startswith("}")), at)
    return min(last + 1, at + _LINES)

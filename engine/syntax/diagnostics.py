"""Diagnostics as they are collected: each mistake once, with a suggestion where a name is misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from ..base.errors import Diagnostic, Note, Span
from . import tree

#: lists of names up to this length are shown whole where nothing is close to what was written
_SHOWN = 8


class ParseError(Exception):
    """What the grammar admits and the language does not: the first mistake of a text."""

    def __init__(self, span: Span, message: str, help: str | None = None) -> None:
        self.diagnostic = Diagnostic(span, message, (), help)
        super().__init__(message)


class Collector:
    """All mistakes found so far.

    The members of an `over` family share one text: inside `merge_family`, one mistake is kept for each place.
    """

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._told: set[tuple[Span, str]] = set()
        self._places: set[Span] | None = None
        self._notes: list[Note] = []

    def add_error(self, span: Span, message: str, help: str | None = None, notes: Iterable[Note] = ()) -> None:
        """Add a mistake, unless it has been told."""
        if (span, message) in self._told or (self._places is not None and span in self._places):
            return
        self._told.add((span, message))
        if self._places is not None:
            self._places.add(span)
        self.found.append(Diagnostic(span, message, (*notes, *self._notes), help))

    @contextmanager
    def merge_family(self) -> Iterator[None]:
        """Keep one mistake for each place while the members of a family are checked."""
        before, self._places = self._places, set()
        try:
            yield
        finally:
            self._places = before

    @contextmanager
    def add_note(self, message: str, span: Span) -> Iterator[None]:
        """Add a note to every mistake found meanwhile."""
        self._notes.insert(0, Note(message, span))
        try:
            yield
        finally:
            self._notes.pop(0)


def find_unknown_dialects(file: tree.RuleFile, known: Collection[str]) -> list[Diagnostic]:
    """The mistakes of a header that names dialects which there are none of."""
    return [
        Diagnostic(file.span, f"there is no dialect `{name}`", (), suggest(name, known, "the dialects"))
        for name in dict.fromkeys((file.source, file.target))
        if name not in known
    ]


def suggest(name: str, known: Iterable[str], what: str = "") -> str | None:
    """What may have been meant by a name that is not known: the closest ones, or all where they are few."""
    names = sorted(set(known))
    folded = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name, names, 2, 0.6) or [
        folded[other] for other in difflib.get_close_matches(name.casefold(), folded, 2, 0.6)
    ]
    if len(close) == 2 and _measure_likeness(name, close[0]) - _measure_likeness(name, close[1]) > 0.1:
        close.pop()
    if close:
        return f"did you mean {join_words(f'`{other}`' for other in close)}?"
    if what and 0 < len(names) <= _SHOWN:
        return f"{what}: {', '.join(f'`{other}`' for other in names)}"
    return None


def _measure_likeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, name.casefold(), other.casefold()).ratio()


def join_words(words: Iterable[str], last: str = "or") -> str:
    """Words in a row: `a, b or c`."""
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def spell(value: object) -> str:
    """A value as rules write it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def add_article(noun: str) -> str:
    """A noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

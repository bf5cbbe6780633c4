"""Searches for cases that fail, with Hypothesis: it draws them, makes them small, and keeps them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import Phase, find, reject, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase, InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

from .choices import Choices
from .sketch import Case

#: draws a case, or says by None that there is none of these choices
Source = Callable[[Choices], Case | None]
#: the first choice of each case tells it from the simplest of all, which Hypothesis begins every search with
_NOT_SIMPLEST = (1 << 32) - 1
_KEY = b"cases"
#: cases of one search of Hypothesis
_BATCH = 8


class SearchEnded(BaseException):
    """Ends a search at once. It is no Exception, as Hypothesis makes the case small that one is raised by."""


def draw_cases(source: Source) -> st.SearchStrategy[Case]:
    """Cases of a source, each by choices that Hypothesis makes."""

    @st.composite  # without arguments, which Hypothesis would put into words
    def draw_case(draw: st.DrawFn) -> Case:
        if not draw(st.integers(0, _NOT_SIMPLEST)):
            reject()
        case = source(Choices(lambda low, high: draw(st.integers(low, high))))
        if case is None:
            reject()
        return case

    return draw_case()


def search(source: Source, fails: Callable[[Case], bool], examples: int, seed: str) -> None:
    """Try so many cases of a seed, and make the first that fails small; `source` and `fails` may raise SearchEnded."""
    made, over = random.Random(seed), False

    def fail_on(case: Case) -> bool:
        nonlocal over
        found = fails(case)
        over = over or found
        return found

    # In longer searches Hypothesis draws half of the cases close to the simplest, or like those before.
    for begun in range(0, examples, _BATCH):
        count = min(_BATCH, examples - begun)
        chosen = settings(max_examples=count, phases=(Phase.generate, Phase.shrink), database=None)
        if over or not _find(source, fail_on, chosen, made):
            break


def reduce(made: Sequence[int], source: Source, fails: Callable[[Case], bool]) -> None:
    """Shrink a failing case that was drawn by these choices."""
    database = InMemoryExampleDatabase()
    database.save(_KEY, _store([*made, 0]))  # what is kept with nothing to spare is taken for small by Hypothesis
    _find(source, fails, settings(phases=(Phase.reuse, Phase.shrink), database=database))


def repeat(kept: Path, name: str, source: Source, fails: Callable[[Case], bool]) -> None:
    """Try the cases that are kept under a name in a folder; those that do not fail any more are forgotten."""
    database = DirectoryBasedExampleDatabase(kept)
    if any(True for _ in database.fetch(name.encode())):
        _find(source, fails, settings(phases=(Phase.reuse,), database=database), key=name.encode())


def keep(kept: Path, name: str, made: Sequence[int]) -> None:
    """Keep a case under a name in a folder."""
    DirectoryBasedExampleDatabase(kept).save(name.encode(), _store(made))


def _store(made: Sequence[int]) -> bytes:
    """A case in the form in which Hypothesis keeps examples."""
    return choices_to_bytes((1, *made))


def _find(
    source: Source,
    fails: Callable[[Case], bool],
    chosen: settings,
    seeded: random.Random | None = None,
    key: bytes = _KEY,
) -> bool:
    """Search; whether it may go on, as nobody said that it is over."""
    # Flaky: where the interpreter takes too long or crashes, the same choices draw another case when made again.
    with contextlib.suppress(NoSuchExample, Unsatisfiable, Flaky):
        try:
            find(draw_cases(source), fails, settings=settings(chosen, deadline=None), random=seeded, database_key=key)
        except SearchEnded:
            return False
    return True

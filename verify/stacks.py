"""Stacks: the rule sets that conversions lay over each other, each with the rules and categories to try in it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ..engine import packs
from ..engine.collector import uncollected
from ..engine.errors import RewriteError
from ..engine.packs import Pack
from ..options import Options
from .categories import Category, categories
from .fingerprints import Fingerprint, fingerprints
from .subjects import Subject, subjects

Trial = Subject | Category


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Rule sets that are laid over each other, and what is tried in them rather than in other stacks.

    With `exact` they promise the codes of the reference kernels.
    """

    rules: tuple[str, ...]
    pack: Pack
    exact: bool
    trials: tuple[Trial, ...]


def stacks(rules: tuple[str, ...]) -> list[Stack]:
    """The stack of some rule sets as conversions have it by default, then those that options make of them.

    Raises RuleError for mistakes in rule files, CallError for unknown rule sets.
    """
    found: list[Stack] = []
    known: set[str] = set()
    variants = {options.stacked: options.exact for options in Options(rules=rules).variants}
    with uncollected(), _ahead(list(variants)[2:]):
        for stacked, exact in variants.items():
            pack = packs.load(stacked)
            new = tuple(trials(pack, known))
            if new:
                found.append(Stack(stacked, pack, exact, new))
            known.update(trial.name for trial in new)
    return found


@contextmanager
def _ahead(stacked: Sequence[tuple[str, ...]]) -> Iterator[None]:
    """Have other processes read packs meanwhile, which are then found where packs are kept."""
    processes = []
    if sys.platform == "linux" and (os.cpu_count() or 1) > 1:
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=_read_ahead, args=(names,), daemon=True) for names in stacked]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.join()


def _read_ahead(names: tuple[str, ...]) -> None:
    with suppress(RewriteError):  # who asks for it is told
        packs.load(names)


def trials(pack: Pack, known: Container[str] = ()) -> list[Trial]:
    """All that can be tried of a pack but for what is `known` by name: rules with tests, and layout categories."""
    rules = (
        subject for subject in subjects(pack, known) if subject.tests and (subject.of_source or not subject.excuse)
    )
    return [*rules, *(category for category in categories(pack) if category.name not in known)]


def digests(found: list[Stack]) -> dict[str, str]:
    """The fingerprints of all that is tried, by name; first what uses few entries of ops.yaml, as it tells most."""
    made: dict[str, Fingerprint] = {}
    for stack in found:
        made |= fingerprints(stack.pack, {trial.name for trial in stack.trials})
    return {name: made[name].digest for name in sorted(made, key=lambda name: (made[name].breadth, name))}

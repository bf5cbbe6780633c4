"""Stacks: the rule sets that conversions lay over each other, each with the rules and categories to try in it."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ..engine import packs
from ..engine.packs import Pack
from ..options import Options
from .categories import Category, categories
from .fingerprints import fingerprints
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
    for options in Options(rules=rules).variants:
        pack = packs.load(options.stacked)
        new = tuple(trials(pack, known))
        if new:
            found.append(Stack(options.stacked, pack, options.exact, new))
        known.update(trial.name for trial in new)
    return found


def trials(pack: Pack, known: Container[str] = ()) -> list[Trial]:
    """All that can be tried of a pack but for what is `known` by name: rules with tests that ops.yaml does not excuse,
    and layout categories."""
    rules = (subject for subject in subjects(pack, known) if subject.tests and not subject.excuse)
    return [*rules, *(category for category in categories(pack) if category.name not in known)]


def digests(found: list[Stack]) -> dict[str, str]:
    """The fingerprints of all that is tried, by name."""
    made: dict[str, str] = {}
    for stack in found:
        made |= fingerprints(stack.pack, {trial.name for trial in stack.trials})
    return made

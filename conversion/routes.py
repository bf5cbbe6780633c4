"""Routes: the rule sets that lead from the dialect of a model to that of the file to write, one after the other."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.packs import folders, headers
from ..engine.packs.headers import read_pair


def find_route(source: str, target: str, rules: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """The rule sets of each step from one dialect to another, by the fewest steps; a step within one dialect is last.

    `rules` are those that the user asked for: all that read and write the same dialects lie over each other, and
    those of a target's own dialect over the step before. Raises CallError where nothing leads there.
    """
    if rules:
        return _group_rules(source, rules)
    if source == target:
        return [(f"{source}2{target}",)]
    ways: dict[str, list[tuple[str, ...]]] = {source: []}
    frontier = [source]
    while frontier and target not in ways:
        reached = []
        for dialect in frontier:
            for name, (begins, ends) in _list_pairs().items():
                if begins == dialect and ends not in ways:
                    ways[ends] = [*ways[dialect], (name,)]
                    reached.append(ends)
        frontier = reached
    if target not in ways:
        raise CallError(f"no rule sets lead from {source} to {target}")
    return ways[target]


@dataclass(frozen=True, slots=True)
class RouteStep:
    """The rule sets of a step, and rules of them that do not hold."""

    names: tuple[str, ...]
    without: tuple[str, ...] = ()


def add_prerequisites(route: Sequence[tuple[str, ...]]) -> list[RouteStep]:
    """The steps of a route, each behind a step by the rule set that its header says it comes after.

    Such a step stays within the dialect that is read, and has what the rules lie over within that dialect as well.
    """
    found: list[RouteStep] = []
    for names in route:
        lineage = headers.add_bases(names)
        for after in (header.after for name in lineage if (header := headers.read_header(folders.find_folder(name)))):
            if after is not None and not (found and after.name in headers.add_bases(found[-1].names)):
                within = (one for one in lineage if read_pair(one) == read_pair(after.name))
                found.append(RouteStep((*within, after.name), tuple(sorted(after.without))))
        found.append(RouteStep(names))
    return found


def find_reading_rules(source: str) -> tuple[str, ...]:
    """Rule sets of the program that read a dialect, from which what it consists of is known."""
    return next((name,) for name, (begins, _) in _list_pairs().items() if begins == source)


def _group_rules(source: str, rules: Sequence[str]) -> list[tuple[str, ...]]:
    steps: list[tuple[tuple[str, str] | None, list[str]]] = []
    bases = {(below, read_pair(name)) for name in rules for below in headers.add_bases([name])[:-1]}
    for name in rules:
        pair = read_pair(name)
        if pair is not None and any(name == below and pair != above for below, above in bases):
            continue  # it comes along with what lies over it
        if steps and (pair is None or pair[0] == pair[1] or pair == steps[-1][0]):
            steps[-1][1].append(name)
        else:
            steps.append((pair, [name]))
    reads = next((pair[0] for pair, _ in steps if pair is not None), source)
    if reads != source:
        raise CallError(f"the rules of {', '.join(steps[0][1])} read {reads}, the model is {source}")
    return [tuple(names) for _, names in steps]


@functools.cache
def _list_pairs() -> dict[str, tuple[str, str]]:
    """The rule sets of the program that lead from one dialect to another, laid over none that does, with the two."""
    found: dict[str, tuple[str, str]] = {}
    for name in folders.list_built_in():
        pair = read_pair(name)
        below = [read_pair(folder.name) for folder, _ in headers.list_lineage(name)[:-1]]
        if pair is not None and pair[0] != pair[1] and pair not in below:
            found.setdefault(name, pair)
    return found

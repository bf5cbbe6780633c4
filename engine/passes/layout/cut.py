"""Minimum cut: which operators run in which of two layouts at the least cost, solved exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...base.startup import dataclass
from .flow import find_source_side

#: what stands in a unit's place where the layout is no question: fixed to the first, to the second, or to a third one
FIRST, SECOND, THIRD = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor that `producer` yields and `users` read: `elements` to move once for each layout that it is read in and
    not yielded in. Equal numbers of elements are told apart by `ties`.
    """

    producer: int
    users: frozenset[int]
    elements: int
    ties: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Units numbered from 0; `terms` cost as they say, `alone` is what a unit costs in ties in either layout."""

    units: int
    terms: Sequence[Term]
    alone: Mapping[int, tuple[int, int]]

    def compute_cost(self, second: Sequence[bool]) -> tuple[int, int]:
        """Elements and ties that an assignment of the second layout costs."""
        moved, ties = 0, sum(costs[second[unit]] for unit, costs in self.alone.items())
        for term in self.terms:
            has = _index_layout(term.producer, second)
            read = {_index_layout(user, second) for user in term.users} - {has}
            moved += term.elements * len(read)
            ties += term.ties * len(read)
        return moved, ties

    def count(self, second: Sequence[bool], alone: int) -> int:
        """Nodes that an assignment costs, where ties of so many stand for one node of a unit alone."""
        nodes = sum(costs[second[unit]] // alone for unit, costs in self.alone.items())
        return nodes + sum(
            len({_index_layout(user, second) for user in term.users} - {_index_layout(term.producer, second)})
            for term in self.terms
        )


def _index_layout(unit: int, second: Sequence[bool]) -> int:
    return unit if unit < 0 else SECOND if second[unit] else FIRST


def solve(problem: Problem) -> list[bool]:
    """Decide for each unit whether it runs in the second layout, at the least elements, then ties, then first ones.

    The decision is exact. Where one layout for all costs nothing it is that one, the second before the first.
    """
    arcs = _Arcs(problem)
    if not arcs.from_source:
        return [True] * problem.units
    if not arcs.into_sink:
        return [False] * problem.units
    return arcs.find_cut()


class _Arcs:
    """The network: the source side runs first, the sink side second."""

    def __init__(self, problem: Problem) -> None:
        self._units = problem.units
        self.source, self.sink = problem.units, problem.units + 1
        self._count = problem.units + 2
        self._elements: Counter[tuple[int, int]] = Counter()
        self._ties: Counter[tuple[int, int]] = Counter()
        self._never: set[tuple[int, int]] = set()
        for unit, (first, second) in problem.alone.items():
            if second > first:
                self._ties[self.source, unit] += second - first
            elif first > second:
                self._ties[unit, self.sink] += first - second
        for term in problem.terms:
            self._add_term(term)
        self.from_source = any(tail == self.source for tail, _ in (*self._elements, *self._ties))
        self.into_sink = any(head == self.sink for _, head in (*self._elements, *self._ties))

    def _add_term(self, term: Term) -> None:
        free = sorted(user for user in term.users if user >= 0)
        end = {FIRST: self.source, SECOND: self.sink}
        producer = end.get(term.producer, term.producer)
        # Once where somebody reads it second and it is yielded first ...
        if term.producer != SECOND:
            tail = self.source if term.producer == THIRD else producer
            if SECOND in term.users:
                self._add_arc(tail, self.sink, term)
            elif free:
                self._add_arc(tail, self._add_either(free, False), term)
        # ... and once where somebody reads it first and it is yielded second.
        if term.producer != FIRST:
            head = self.sink if term.producer == THIRD else producer
            if FIRST in term.users:
                self._add_arc(self.source, head, term)
            elif free:
                self._add_arc(self._add_either(free, True), head, term)

    def _add_either(self, users: list[int], reads_first: bool) -> int:
        """A node that is on one side as soon as one of the users is."""
        if len(users) == 1:
            return users[0]
        node, self._count = self._count, self._count + 1
        self._never.update((user, node) if reads_first else (node, user) for user in users)
        return node

    def _add_arc(self, tail: int, head: int, term: Term) -> None:
        if tail == head or (tail, head) == (self.source, self.sink):
            return  # no choice of ours changes it
        self._elements[tail, head] += term.elements
        self._ties[tail, head] += term.ties

    def find_cut(self) -> list[bool]:
        # Elements come before ties: one cost, in which all ties together weigh less than one element.
        weight = sum(self._ties.values()) + 1
        costs = {
            pair: max(0, self._elements[pair]) * weight + self._ties[pair] for pair in {*self._elements, *self._ties}
        }  # a damaged model may count fewer than no elements
        endless = sum(costs.values()) + 1
        arcs = [(tail, head, costs[tail, head]) for tail, head in sorted(costs)]
        arcs += [(tail, head, endless) for tail, head in sorted(self._never)]
        reached = find_source_side(self._count, self.source, self.sink, arcs)
        return [unit not in reached for unit in range(self._units)]

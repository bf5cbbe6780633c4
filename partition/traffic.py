"""The bytes that go from part to part: fewer where units are of another level that they may be of as well."""

from __future__ import annotations

from collections.abc import Sequence

from .network import OUTSIDE, Edge, Network

#: so many times units move to later levels, and back to earlier ones
_SWEEPS = 2
#: tensors of more readers than this are left out
_MANY = 64


class Traffic:
    """What units of the device read and yield, and the levels that they are of, in whose order all can run."""

    def __init__(self, network: Network, device: Sequence[bool], levels: list[int]) -> None:
        self._device, self._levels = device, levels
        self._near: list[list[Edge]] = [[] for _ in range(network.units)]
        for edge in network.edges if max(levels, default=0) > 1 else ():
            for unit in {edge.producer, *edge.users} if len(edge.users) <= _MANY else ():
                if unit != OUTSIDE and device[unit]:
                    self._near[unit].append(edge)
        self._before = network.list_before()
        self._after: list[list[int]] = [[] for _ in range(network.units)]
        for head, tails in enumerate(self._before):
            for tail in tails:
                self._after[tail].append(head)

    def reduce(self) -> None:
        """Give units the levels of their neighbours where fewer bytes go between parts then; the levels change."""
        highest = max(self._levels, default=0)
        for _ in range(_SWEEPS if highest > 1 else 0):
            self._move_later(highest)
            self._move_earlier()

    def _move_later(self, highest: int) -> None:
        """Readers first: a unit may be of any level up to those of its readers, less one where the host is between."""
        latest = [highest] * len(self._levels)
        for unit in reversed(range(len(self._levels))):
            here = self._device[unit]
            for head in self._after[unit]:
                limit = self._levels[head] - (not here) if self._device[head] else latest[head]
                latest[unit] = min(latest[unit], limit)
            if here and latest[unit] > self._levels[unit]:
                self._choose(unit, self._levels[unit], latest[unit])

    def _move_earlier(self) -> None:
        """What is read first: a unit may be of any level from those that it reads, and one more behind the host."""
        earliest = [int(here) for here in self._device]
        for unit, tails in enumerate(self._before):
            here = self._device[unit]
            for tail in tails:
                limit = self._levels[tail] if self._device[tail] else earliest[tail] + here
                earliest[unit] = max(earliest[unit], limit)
            if here and earliest[unit] < self._levels[unit]:
                self._choose(unit, earliest[unit], self._levels[unit])

    def _choose(self, unit: int, low: int, high: int) -> None:
        """Give a unit the best level of those of its neighbours, if it is better than its own."""
        own = self._levels[unit]
        near = {self._find_level(other) for edge in self._near[unit] for other in (edge.producer, *edge.users)}
        counted = [(self._count(unit, level), level) for level in near if low <= level <= high and level != own]
        if counted and min(counted)[0] < self._count(unit, own):
            self._levels[unit] = min(counted)[1]

    def _count(self, unit: int, level: int) -> int:
        """The bytes of what a unit reads and yields that leave or enter a part, were the unit of a level."""
        own, self._levels[unit] = self._levels[unit], level
        found = 0
        for edge in self._near[unit]:
            place = self._find_level(edge.producer)
            found += edge.size * any(self._find_level(user) != place for user in edge.users)
        self._levels[unit] = own
        return found

    def _find_level(self, unit: int) -> int:
        """The level of a unit of the device, -1 for the host."""
        return self._levels[unit] if unit != OUTSIDE and self._device[unit] else -1

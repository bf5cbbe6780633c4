"""The problem: units of a graph that may run on a device, what moves between them, and what an answer costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..engine.base.startup import dataclass

#: the number that stands for the inputs of the model, and for what reads its outputs: both are on the host
OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor of `size` bytes that a unit yields and others read."""

    producer: int
    users: frozenset[int]
    size: int


@dataclass(frozen=True, slots=True)
class Network:
    """Units in topological order, which run on the host or, where they are `supported`, on the device.

    `gains` is what each unit saves on the device and `part_cost` what each part costs, both in bytes that could be
    moved instead.
    """

    supported: tuple[bool, ...]
    edges: tuple[Edge, ...]
    gains: tuple[int, ...]
    part_cost: int = 0

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.supported)

    def iterate_arcs(self) -> Iterator[tuple[int, int]]:
        """Every pair of units of which the second reads what the first yields."""
        for edge in self.edges:
            if edge.producer != OUTSIDE:
                yield from ((edge.producer, user) for user in edge.users if user != OUTSIDE)

    def list_before(self) -> list[list[int]]:
        """The units that each unit reads."""
        before: list[list[int]] = [[] for _ in range(self.units)]
        for tail, head in self.iterate_arcs():
            before[head].append(tail)
        return before

    def count_moved_bytes(self, device: Sequence[bool]) -> int:
        """The bytes that cross: each tensor once where somebody reads it on the other side than it is yielded on."""
        return sum(edge.size for edge in self.edges if self._is_crossing(edge, device))

    def compute_cost(self, device: Sequence[bool], parts: int) -> int:
        """What an answer costs: the bytes that cross, less the gains of units on the device, and the cost of parts."""
        gained = sum(gain for gain, taken in zip(self.gains, device, strict=True) if taken)
        return self.count_moved_bytes(device) - gained + self.part_cost * parts

    def _is_crossing(self, edge: Edge, device: Sequence[bool]) -> bool:
        here = edge.producer != OUTSIDE and device[edge.producer]
        return any((user != OUTSIDE and device[user]) != here for user in edge.users)

"""Axis orders: which axis of a tensor stands where, and what it costs to change that."""

from __future__ import annotations

import math

#: axis `order[i]` of the tensor stands at position i
Order = tuple[int, ...]
Extents = tuple[int | str | None, ...]

#: what an extent that is known only at run time counts for
NOMINAL = 16


def make_identity(rank: int) -> Order:
    """The order in which every axis stands at its own position."""
    return tuple(range(rank))


def compose(first: Order, then: Order) -> Order:
    """The order that comes of permuting by `first` and the outcome by `then`."""
    return tuple(first[i] for i in then)


def invert(order: Order) -> Order:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def find_permutation(has: Order, wanted: Order) -> Order:
    """The permutation that brings a tensor from one order into another."""
    position = invert(has)
    return tuple(position[axis] for axis in wanted)


def are_alike(extents: Extents, first: Order, second: Order) -> bool:
    """Whether two orders of a tensor of these extents put all elements at the same places in memory."""
    long = [[axis for axis in order if extents[axis] != 1] for order in (first, second)]
    return long[0] == long[1]


def is_still(extents: Extents, perm: Order) -> bool:
    """Whether a permutation of a tensor of these extents leaves all elements where they are in memory."""
    return are_alike(extents, make_identity(len(perm)), perm)


def count_elements(extents: Extents) -> int:
    """How many elements a tensor has, extents that are not known counted as NOMINAL."""
    return math.prod(extent if isinstance(extent, int) else NOMINAL for extent in extents)

"""Variadic operands, `xs...`: which values each name takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


class Taking(Protocol):
    """What stands in a list of patterns: it takes one value, or several, whose number `count` may name."""

    @property
    def name(self) -> str:
        """The name that it binds."""

    @property
    def spread(self) -> bool:
        """Whether it takes several values."""

    @property
    def count(self) -> str | None:
        """The name of how many these are, where it has one."""


def assign_places(
    patterns: Sequence[Taking], total: int, found: Mapping[str, Any]
) -> Iterator[tuple[list[slice], Mapping[str, Any]]]:
    """Yield the places of `total` values that each of some patterns can take, and what is bound then.

    A name that is bound takes as many as it stands for, `xs[n]...` as many as `n` says or binds; what is left over is
    tried in every division, fewest to the first.
    """
    single = sum(not one.spread for one in patterns)

    def divide(rest: Sequence[Taking], start: int, free: int, bound: Mapping[str, Any]) -> Iterator[Any]:
        if not rest:
            if free == 0:
                yield [], bound
            return
        one, later = rest[0], rest[1:]
        for number in _list_counts(one, any(other.spread for other in later), free, bound):
            taken = number if one.spread else 0
            counted = {**bound, one.count: number} if one.count is not None and one.spread else bound
            for places, more in divide(later, start + number, free - taken, counted):
                yield [slice(start, start + number), *places], more

    if total >= single:
        yield from divide(patterns, 0, total - single, found)


def _list_counts(one: Taking, others: bool, free: int, bound: Mapping[str, Any]) -> Sequence[int]:
    """How many values a pattern may take, of those that may be taken by this one or by others after it."""
    if not one.spread:
        return [1]
    known = bound.get(one.count or one.name)
    if isinstance(known, list):
        known = len(known)
    if known is not None:
        return [known] if known <= free else []
    return range(free + 1) if others else [free]

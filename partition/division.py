"""The answer: sides by the minimum cut, then a bounded search, as a cost of each part makes the problem a hard one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from ..engine.base.startup import dataclass
from .network import Network
from .parts import find_parts
from .sides import choose_sides

#: with so many units that the device takes every answer is tried
_ALL = 12
#: else answers are tried as long as they have so many units in all
_LOOKS = 100_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The part that each unit is in, -1 on the host, and what that costs."""

    parts: tuple[int, ...]
    cost: int

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len({part for part in self.parts if part >= 0})


def divide(network: Network) -> Answer:
    """Decide what runs on the device, and in which parts, at the least cost that is found.

    Exact where parts cost nothing, and for up to twelve units that the device takes; else at least as good as the
    minimum cut and as taking all that the device can, with every part given back to the host that does not pay.
    """
    able = [unit for unit, taken in enumerate(network.supported) if taken]
    if len(able) <= _ALL:
        sides = (dict(zip(able, chosen, strict=True)) for chosen in itertools.product((True, False), repeat=len(able)))
        return min(
            (_answer(network, [one.get(unit, False) for unit in range(network.units)]) for one in sides),
            key=lambda found: found.cost,
        )
    left = _LOOKS
    found = []
    for device in (choose_sides(network), list(network.supported)):
        answer, left = _improve(network, device, left)
        found.append(answer)
    return min(found, key=lambda answer: answer.cost)


def _answer(network: Network, device: Sequence[bool]) -> Answer:
    parts = find_parts(network, device)
    return Answer(tuple(parts), network.cost(device, len({part for part in parts if part >= 0})))


def _improve(network: Network, device: Sequence[bool], left: int) -> tuple[Answer, int]:
    """Give parts back to the host as long as that costs less; what is left of the units to look at."""
    best = _answer(network, device)
    while network.part_cost and left > 0:
        better = best
        for drop in _list_drops(network, best):
            left -= network.units
            tried = _answer(network, [part >= 0 and part not in drop for part in best.parts])
            if tried.cost < better.cost:
                better = tried
                break
            if left <= 0:
                break
        if better is best:
            break
        best = better
    return best, left


def _list_drops(network: Network, answer: Answer) -> Iterator[frozenset[int]]:
    """Parts to give back: all together that gain less than they cost, half of these, and each by itself."""
    gains: Counter[int] = Counter()
    for unit, part in enumerate(answer.parts):
        if part >= 0:
            gains[part] += network.gains[unit]
    ranked = sorted(gains, key=lambda part: gains[part])
    poor = [part for part in ranked if gains[part] <= network.part_cost]
    while len(poor) > 1:
        yield frozenset(poor)
        poor = poor[: len(poor) // 2]
    yield from (frozenset({part}) for part in ranked)

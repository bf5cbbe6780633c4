"""The answer: sides by the minimum cut, then a bounded search, as a cost of each part makes the problem a hard one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..engine.base.startup import dataclass
from .network import OUTSIDE, Network
from .parts import find_levels, find_parts, find_pieces
from .sides import choose_sides

#: with so many units that the device takes every answer is tried
_ALL = 12
#: so many units are looked at in all, for every answer or in a search
_LOOKS = 1_000_000


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

    Exact where parts cost nothing, and for up to twelve units that the device takes unless there are very many others;
    else at least as good as the minimum cut and as taking all that the device can, each improved as `search` does it.
    """
    able = [unit for unit, taken in enumerate(network.supported) if taken]
    if not network.part_cost:
        device = choose_sides(network)
    elif len(able) <= _ALL and network.units << len(able) <= 4 * _LOOKS:
        device = _try_all(network, able)
    else:
        device = search(network)
    parts = find_parts(network, device)
    return Answer(tuple(parts), network.compute_cost(device, len({part for part in parts if part >= 0})))


def search(network: Network) -> list[bool]:
    """The best sides that a bounded search finds: from the minimum cut, from all that the device takes, and from
    nothing there, levels, pieces and units go to the other side as long as that costs less.
    """
    found = _Search(network)
    starts = (choose_sides(network), list(network.supported), [False] * network.units)
    return min((found.improve(device) for device in starts), key=lambda answer: answer[1])[0]


class _Search:
    """Improves sides step by step, looking at no more units than it may."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._before = network.list_before()
        self._left = _LOOKS

    def improve(self, device: Sequence[bool]) -> tuple[list[bool], int]:
        """The best sides that single changes lead to, and their cost."""
        best, cost = list(device), self._judge(device)
        share = self._left // 2
        while share > 0:
            for changed in self._list_changes(best):
                tried = list(best)
                for unit in changed:
                    tried[unit] = not tried[unit]
                share -= self._network.units
                if (found := self._judge(tried)) < cost:
                    best, cost = tried, found
                    break
                if share <= 0:
                    break
            else:
                break
        return best, cost

    def _judge(self, device: Sequence[bool]) -> int:
        self._left -= self._network.units
        levels = find_levels(self._before, device)
        return self._network.compute_cost(
            device, max((lv for lv, here in zip(levels, device, strict=True) if here), default=0)
        )

    def _list_changes(self, device: Sequence[bool]) -> Iterator[Iterable[int]]:
        """Units to take to the other side together: levels that gain less than they cost, all, half of them and each;
        then every level, every piece, and every unit."""
        levels = find_levels(self._before, device)
        pieces = find_pieces(self._before, device, levels)
        of_level: dict[int, list[int]] = {}
        for piece in pieces:
            of_level.setdefault(levels[piece[0]], []).extend(piece)
        gains = {level: sum(self._network.gains[unit] for unit in units) for level, units in of_level.items()}
        ranked = sorted(of_level, key=lambda level: gains[level])
        poor = [level for level in ranked if gains[level] <= self._network.part_cost]
        while len(poor) > 1:
            yield [unit for level in poor for unit in of_level[level]]
            poor = poor[: len(poor) // 2]
        yield from (of_level[level] for level in ranked)
        yield from pieces
        yield from ((unit,) for unit, taken in enumerate(self._network.supported) if taken)


def _try_all(network: Network, able: Sequence[int]) -> list[bool]:
    """The best sides of all, which are tried at once: the number of each says which units are on the device."""
    number = np.arange(1 << len(able))
    off = np.zeros(len(number), bool)
    device: list[npt.NDArray[np.bool_]] = [off] * network.units
    for place, unit in enumerate(able):
        device[unit] = (number >> place & 1).astype(bool)
    cost = np.zeros(len(number), np.int64)
    for edge in network.edges:
        here = off if edge.producer == OUTSIDE else device[edge.producer]
        crosses = np.zeros(len(number), bool)
        for user in edge.users:
            crosses |= here != (off if user == OUTSIDE else device[user])
        cost += edge.size * crosses
    most = np.zeros(len(number), np.int32)
    levels: list[npt.NDArray[np.int32]] = []
    for unit, reads in enumerate(network.list_before()):
        here = device[unit]
        level = here.astype(np.int32)
        for tail in reads:
            level = np.maximum(level, levels[tail] + (here & ~device[tail]))
        levels.append(level)
        most = np.maximum(most, level)
        cost -= network.gains[unit] * here
    best = int(np.argmin(cost + network.part_cost * most))
    return [bool(each[best]) for each in device]

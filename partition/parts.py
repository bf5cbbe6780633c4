"""Parts: units of the device that run as one, so that no part waits for what waits for it."""

from __future__ import annotations

from collections.abc import Sequence

from .network import Network

#: merging looks at so many units for each that there is, then stops; at so many in small graphs
_LOOKS, _AT_LEAST = 8, 200_000
#: in graphs of so many units or fewer parts are also merged from single units, should that leave fewer
_SMALL = 10_000


def find_parts(network: Network, device: Sequence[bool]) -> list[int]:
    """The number of the part that each unit is in, -1 for those on the host.

    The level of a unit is the highest of those that it reads, and one more where the side changes: units of one level
    and side that are connected make a part, which is convex, as a way out of it and back would change sides twice.
    Parts of different levels are then merged where no way leads from one to the other but straight. In graphs that are
    not large single units are merged so as well, and the fewer parts are the answer.
    """
    before: list[list[int]] = [[] for _ in range(network.units)]
    after: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.arcs():
        before[head].append(tail)
        after[tail].append(head)
    level = [0] * network.units
    part = _Sets(network.units)
    for unit in range(network.units):
        here = device[unit]
        level[unit] = max((level[tail] + (device[tail] != here) for tail in before[unit]), default=int(here))
        for tail in before[unit]:
            if here and device[tail] and level[tail] == level[unit]:
                part.join(tail, unit)
    _merge(part, before, after, device)
    found = _number(part, device)
    if network.units <= _SMALL and max(found, default=0) > 0:
        single = _Sets(network.units)
        _merge(single, before, after, device)
        found = min(found, _number(single, device), key=lambda parts: max(parts, default=-1))
    return found


def _number(part: _Sets, device: Sequence[bool]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(part.find(unit), len(numbers)) if here else -1 for unit, here in enumerate(device)]


def order_steps(network: Network, parts: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The steps in which all runs: the number of a part or -1 for the host, and the units, none of which waits for a
    later step. What the host can run at one time is one step."""
    waits = [0] * network.units
    after: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.arcs():
        waits[head] += 1
        after[tail].append(head)
    members: dict[int, list[int]] = {}
    for unit, part in enumerate(parts):
        members.setdefault(part, []).append(unit)
    inside = _count_inside(network, parts)
    open_ = {part: sum(waits[unit] for unit in units) - inside[part] for part, units in members.items() if part >= 0}
    ready = [unit for unit in members.get(-1, ()) if not waits[unit]]
    started = [part for part, left in open_.items() if not left]
    steps: list[tuple[int, list[int]]] = []

    def finish(unit: int, reached: list[int]) -> None:
        for head in after[unit]:
            if parts[head] < 0:
                waits[head] -= 1
                if not waits[head]:
                    reached.append(head)
            elif parts[head] != parts[unit]:
                open_[parts[head]] -= 1
                if not open_[parts[head]]:
                    started.append(parts[head])

    while ready or started:
        if ready:
            units: list[int] = []
            while ready:
                unit = ready.pop()
                units.append(unit)
                finish(unit, ready)
            steps.append((-1, sorted(units)))
        while started:
            part = started.pop(0)
            steps.append((part, members[part]))
            for unit in members[part]:
                finish(unit, ready)
    return steps


def join_steps(network: Network, parts: Sequence[int]) -> list[int]:
    """Parts that can run one right after the other made one: fewer parts, of pieces that need not be connected.

    What stands together in an order in which all can run is convex.
    """
    joined = list(parts)
    last = -1
    for part, members in order_steps(network, parts):
        if part >= 0 and last >= 0:
            for unit in members:
                joined[unit] = last
        else:
            last = part
    return joined


def _count_inside(network: Network, parts: Sequence[int]) -> dict[int, int]:
    found = dict.fromkeys(parts, 0)
    for tail, head in network.arcs():
        if parts[tail] == parts[head]:
            found[parts[tail]] += 1
    return found


class _Sets:
    """Disjoint sets of units."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, unit: int) -> int:
        while self._parent[unit] != unit:
            self._parent[unit] = self._parent[self._parent[unit]]
            unit = self._parent[unit]
        return unit

    def join(self, first: int, second: int) -> None:
        self._parent[self.find(second)] = self.find(first)


def _merge(part: _Sets, before: list[list[int]], after: list[list[int]], device: Sequence[bool]) -> None:
    """Merge parts that read each other, as long as no way leads from one into the other through anything else."""
    members: dict[int, list[int]] = {}
    for unit in range(len(after)):
        members.setdefault(part.find(unit) if device[unit] else -1 - unit, []).append(unit)
    looks = max(_LOOKS * len(after), _AT_LEAST)
    for head in range(len(after)):
        for tail in before[head]:
            if not (device[tail] and device[head]) or part.find(tail) == part.find(head) or looks <= 0:
                continue
            first, second = part.find(tail), part.find(head)
            seen, looked = _leads(part, first, second, members, after, device, looks)
            looks -= looked
            if seen:
                continue
            joined = members.pop(first) + members.pop(second)
            part.join(first, second)
            members[part.find(first)] = joined


def _leads(
    part: _Sets,
    first: int,
    second: int,
    members: dict[int, list[int]],
    after: list[list[int]],
    device: Sequence[bool],
    limit: int,
) -> tuple[bool, int]:
    """Whether a way leads from one part to another through anything else, and how many units were looked at.

    What takes longer than the limit counts as a way.
    """
    work = [head for unit in members[first] for head in after[unit] if not device[head] or part.find(head) != second]
    work = [head for head in work if not device[head] or part.find(head) != first]
    seen: set[int] = set()
    looked = len(members[first])
    while work:
        unit = work.pop()
        key = part.find(unit) if device[unit] else -1 - unit
        if key == second:
            return True, looked
        if key in seen or key == first:
            continue
        seen.add(key)
        for each in members[key] if device[unit] else (unit,):
            looked += 1
            work += after[each]
        if looked > limit:
            return True, looked
    return False, looked

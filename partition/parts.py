"""Parts: units of the device that run as one, so that no part waits for what waits for it."""

from __future__ import annotations

from collections.abc import Sequence

from .network import Network
from .traffic import Traffic


def find_levels(before: Sequence[Sequence[int]], device: Sequence[bool]) -> list[int]:
    """The level of each unit: on how many sides of the device the way to it has been, itself included, at most.

    `before` has what each unit reads. All units of the device of one level can run as one part, as a way out of it and
    back would be of a higher level; and there cannot be fewer parts than levels, since a way that has been on the
    device so often has the host between.
    """
    levels: list[int] = []
    for reads, here in zip(before, device, strict=True):
        level = int(here)
        for tail in reads:
            reached = levels[tail] + (here and not device[tail])
            if reached > level:
                level = reached
        levels.append(level)
    return levels


def find_parts(network: Network, device: Sequence[bool]) -> list[int]:
    """The number of the part that each unit is in, -1 for those on the host.

    Units of one level are one part: there are no fewer parts in which these units could run. What is connected within a
    level and read by a part of a later one is of that one where no unit of the host waits for it, and single units are
    of the level that leaves the fewest bytes between parts. Where parts cost nothing each is connected.
    """
    before = network.list_before()
    levels = find_levels(before, device)
    _wait(network, device, levels, find_pieces(before, device, levels))
    if network.part_cost:
        Traffic(network, device, levels).reduce()
        numbers: dict[int, int] = {}
        return [
            numbers.setdefault(level, len(numbers)) if here else -1 for level, here in zip(levels, device, strict=True)
        ]
    parts = [-1] * network.units
    for number, piece in enumerate(find_pieces(before, device, levels)):
        for unit in piece:
            parts[unit] = number
    return parts


def find_pieces(before: Sequence[Sequence[int]], device: Sequence[bool], levels: Sequence[int]) -> list[list[int]]:
    """Units of the device that are of one level and connected."""
    parent = list(range(len(before)))

    def find(unit: int) -> int:
        while parent[unit] != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    for unit, reads in enumerate(before):
        for tail in reads:
            if device[unit] and device[tail] and levels[unit] == levels[tail]:
                parent[find(unit)] = find(tail)
    pieces: dict[int, list[int]] = {}
    for unit, here in enumerate(device):
        if here:
            pieces.setdefault(find(unit), []).append(unit)
    return list(pieces.values())


def _wait(network: Network, device: Sequence[bool], levels: list[int], pieces: Sequence[list[int]]) -> None:
    """Give pieces the level of the first part that reads them, where nothing on the host needs them before."""
    after: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.iterate_arcs():
        after[tail].append(head)
    never = max(levels, default=0) + 1
    latest = [never] * network.units  # of units of the host: the level of what needs it, less one
    alone = [[unit] for unit, here in enumerate(device) if not here]
    # Readers first: those of a piece are of a higher level, or on the host.
    for units in sorted([*alone, *pieces], key=lambda one: (levels[one[0]], not device[one[0]], one[0]), reverse=True):
        heads = {head for unit in units for head in after[unit]}.difference(units)
        wanted = min((levels[head] for head in heads if device[head]), default=never)
        left = min((latest[head] for head in heads if not device[head]), default=never)
        if not device[units[0]]:
            latest[units[0]] = min(wanted - 1, left)
        elif wanted <= min(left, never - 1):
            for unit in units:
                levels[unit] = wanted


def order_steps(network: Network, parts: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The steps in which all runs: the number of a part or -1 for the host, and the units, none of which waits for a
    later step. What the host can run at one time is one step."""
    waits = [0] * network.units
    after: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.iterate_arcs():
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


def _count_inside(network: Network, parts: Sequence[int]) -> dict[int, int]:
    found = dict.fromkeys(parts, 0)
    for tail, head in network.iterate_arcs():
        if parts[tail] == parts[head]:
            found[parts[tail]] += 1
    return found

"""Which units run on the device where parts cost nothing: an exact minimum cut."""

from __future__ import annotations

from ..engine.passes.layout.cut import FIRST, SECOND, Problem, Term, solve
from .network import OUTSIDE, Network


def choose_sides(network: Network) -> list[bool]:
    """Decide for each unit whether it runs on the device, at the least bytes that cross, less gains.

    The answer is exact.
    """
    unit = {place: number for number, place in enumerate(p for p, taken in enumerate(network.supported) if taken)}
    if not unit:
        return [False] * network.units

    def find_side(place: int) -> int:
        return FIRST if place == OUTSIDE else unit.get(place, FIRST)

    terms = [
        Term(find_side(edge.producer), frozenset(map(find_side, edge.users)), edge.size, 0) for edge in network.edges
    ]
    # What a unit gains is what it costs on the host: a tensor that the device yields, for it alone.
    terms += [Term(SECOND, frozenset({number}), network.gains[place], 0) for place, number in unit.items()]
    second = solve(Problem(len(unit), terms, {}))
    return [place in unit and second[unit[place]] for place in range(network.units)]

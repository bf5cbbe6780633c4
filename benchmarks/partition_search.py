"""How good the answers of a partition are, and how long they take, on random graphs.

    python benchmarks/partition_search.py --optimum COUNT
    python benchmarks/partition_search.py --large UNITS

The first compares answers with the best of all, which is found by trying everything: every choice of sides, and for
each the fewest parts in any order, by running what the device can and what the host can in turn. The second takes the
time of one large graph.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
from nnrewrite.partition.division import divide, search
from nnrewrite.partition.network import OUTSIDE, Edge, Network
from nnrewrite.partition.parts import find_levels


def draw(generator: np.random.Generator, most: int = 12, free: bool = False) -> Network:
    """A random network of up to `most` units, whose parts have a cost unless they are `free`."""
    count = int(generator.integers(1, most + 1))
    users: list[set[int]] = [set() for _ in range(count + 1)]
    for head in range(count):
        for tail in generator.integers(-1, head, size=int(generator.integers(1, 4))):
            users[int(tail)].add(head)
    for tail in range(count):
        if not users[tail] or generator.random() < 0.3:
            users[tail].add(OUTSIDE)
    edges = [
        Edge(tail, frozenset(users[tail]), int(generator.integers(0, 10))) for tail in range(-1, count) if users[tail]
    ]
    supported = tuple(bool(taken) for taken in generator.random(count) < 0.8)
    gains = tuple(int(gain) for gain in generator.integers(0, 7, count))
    return Network(supported, tuple(edges), gains, 0 if free else int(generator.integers(1, 9)))


def draw_large(units: int) -> Network:
    """A chain with branches, of which the device takes nine tenths."""
    generator = np.random.default_rng(0)
    users: list[set[int]] = [set() for _ in range(units)]
    for head in range(1, units):
        for tail in {head - 1, max(0, head - int(generator.integers(1, 50)))}:
            users[tail].add(head)
    users[-1].add(OUTSIDE)
    edges = [Edge(tail, frozenset(each), int(generator.integers(1, 5000))) for tail, each in enumerate(users) if each]
    supported = tuple(bool(taken) for taken in generator.random(units) < 0.9)
    return Network(supported, tuple(edges), (1000,) * units, 1000)


def find_least(network: Network) -> int:
    """The least that any answer costs, by trying all of them; without a thought of `divide`'s."""
    reads = [0] * network.units
    for tail, head in network.iterate_arcs():
        reads[head] |= 1 << tail
    can = sum(1 << unit for unit, taken in enumerate(network.supported) if taken)
    least, chosen = network.compute_cost([False] * network.units, 0), can
    while chosen:
        device = [bool(chosen >> unit & 1) for unit in range(network.units)]
        cost = network.compute_cost(device, 0)
        if cost < least:  # parts make it no cheaper
            least = min(least, cost + network.part_cost * _count_turns(reads, chosen))
        chosen = (chosen - 1) & can
    return least


def _count_turns(reads: Sequence[int], device: int) -> int:
    """How often the device has its turn where each side runs all that it can before the other one does."""
    done, turns, units = 0, 0, range(len(reads))
    while done != (1 << len(reads)) - 1:
        for mine in (~device, device):
            before = done
            while ready := [u for u in units if not done >> u & 1 and mine >> u & 1 and reads[u] & ~done == 0]:
                done |= sum(1 << unit for unit in ready)
            turns += mine == device and done != before
    return turns


def compare(count: int) -> None:
    """Print how many answers are the best there is: of the whole division, of its cut, and of its search by itself."""
    generator = np.random.default_rng(0)
    drawn = [draw(generator) for _ in range(count)]
    least = [find_least(network) for network in drawn]
    whole = sum(divide(network).cost == best for network, best in zip(drawn, least, strict=True))
    costs = []
    for network in drawn:
        device = search(network)
        levels = find_levels(network.list_before(), device)
        costs.append(network.compute_cost(device, max(lv * here for lv, here in zip(levels, device, strict=True))))
    alone = sum(cost == best for cost, best in zip(costs, least, strict=True))
    free = [draw(generator, free=True) for _ in range(count)]
    exact = sum(divide(network).cost == find_least(network) for network in free)
    print("| graphs of up to 12 units | the best there is |\n|---|---|")
    print(f"| parts at a cost | {whole} of {count} |")
    print(f"| parts at a cost, by the search for larger graphs | {alone} of {count} |")
    print(f"| parts without a cost, by the minimum cut | {exact} of {count} |")
    print(
        f"largest distance of the search: {max(map(int.__sub__, costs, least))}, mean of the best {np.mean(least):.1f}"
    )


def main() -> None:
    """Print a table, or a time."""
    if sys.argv[1] == "--optimum":
        compare(int(sys.argv[2]))
        return
    network = draw_large(int(sys.argv[2]))
    started = time.process_time()
    answer = divide(network)
    took = time.process_time() - started
    print(f"{network.units:,} units, {answer.count} parts: {took:.1f} s of processor time, cost {answer.cost:,}")


if __name__ == "__main__":
    main()

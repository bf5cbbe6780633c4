"""Partitions beside those of others, over the same graphs and the same support.

    python benchmarks/partition.py [--torch PYTHON] TARGET MODEL...
    python benchmarks/partition.py [--torch PYTHON] --random COUNT

For each model the parts, the bytes between host and device, and the bytes that go in and out of parts, between two of
them too. `--torch` names an interpreter that has PyTorch, whose partitioner is then asked as well; partition_peers.py
says what the others are. Where a body is divided too it is a graph of its own.
"""

from __future__ import annotations

import sys

import numpy as np
from nnrewrite.benchmarks.partition_peers import (
    ask_torch,
    connect,
    count_exchanged,
    count_parts,
    follow_order,
    group_as_onnx_runtime,
    merge_greedily,
)
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.partition import partition
from nnrewrite.partition.division import divide
from nnrewrite.partition.network import OUTSIDE, Edge, Network

#: what others do, by what they are called in the table
_PEERS = {
    "ONNX Runtime": group_as_onnx_runtime,
    "the same, connected": lambda network: connect(network, group_as_onnx_runtime(network)),
    "greedy merging": merge_greedily,
    "order of the file": follow_order,
}

#: parts, bytes between host and device, bytes in and out of parts
Figures = tuple[int, int, int]


def draw(generator: np.random.Generator) -> Network:
    """A random network of up to 40 units."""
    units = int(generator.integers(2, 41))
    users: list[set[int]] = [set() for _ in range(units)]
    for head in range(1, units):
        for tail in generator.integers(max(0, head - 8), head, size=int(generator.integers(1, 4))):
            users[int(tail)].add(head)
    for each in users:
        if not each:
            each.add(OUTSIDE)
    edges = [Edge(tail, frozenset(each), int(generator.integers(1, 100))) for tail, each in enumerate(users)]
    supported = tuple(bool(taken) for taken in generator.random(units) < 0.75)
    return Network(supported, tuple(edges), (1_000_000,) * units, 1)


def measure(network: Network, parts: list[int]) -> Figures:
    """The figures of an answer."""
    return count_parts(parts), network.count_moved_bytes([part >= 0 for part in parts]), count_exchanged(network, parts)


def divide_all(networks: list[Network], torch: str | None) -> dict[str, list[Figures]]:
    """The figures of each network, by who has divided it."""
    found = {"this": [measure(network, list(divide(network).parts)) for network in networks]}
    found |= {name: [measure(network, peer(network)) for network in networks] for name, peer in _PEERS.items()}
    if torch is not None:
        answers = ask_torch(torch, networks)
        for name in answers[0]:
            found[name] = [measure(one, answer[name]) for one, answer in zip(networks, answers, strict=True)]
    return found


def show(names: list[str], found: dict[str, list[Figures]]) -> None:
    """Print a table: the parts of each graph, all figures of all graphs, and on how many others have less."""
    print(f"| parts of | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}")
    for place, name in enumerate(names):
        print(f"| {name} | {' | '.join(f'{figures[place][0]:,}' for figures in found.values())} |")
    heads = ("parts", "bytes between host and device", "bytes in and out of parts")
    print(f"\n| all of {len(found['this'])} | {' | '.join(heads)} | fewer parts than this | fewer bytes | of parts |")
    print(f"|{'---|' * 7}")
    for name, figures in found.items():
        sums = [sum(column) for column in zip(*figures, strict=True)]
        less = [
            sum(theirs[place] < ours[place] for theirs, ours in zip(figures, found["this"], strict=True))
            for place in range(3)
        ]
        print(f"| {name} | {' | '.join(f'{figure:,}' for figure in [*sums, *less])} |")


def main() -> None:
    """Print a table."""
    arguments, torch = sys.argv[1:], None
    if arguments[0] == "--torch":
        torch, arguments = arguments[1], arguments[2:]
    if arguments[0] == "--random":
        generator = np.random.default_rng(0)
        networks = [draw(generator) for _ in range(int(arguments[1]))]
        show([], divide_all(networks, torch))
        return
    names, networks = [], []
    for path in arguments[1:]:
        try:
            plans = partition(path, arguments[0]).plans.values()
        except RewriteError as error:
            print(f"{path}: {f'{error}'.splitlines()[0]}")
            continue
        names += [path.rpartition("/")[2]] * len(plans)
        networks += [plan.network for plan in plans]
    show(names, divide_all(networks, torch))


if __name__ == "__main__":
    main()

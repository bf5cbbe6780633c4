"""Partitions beside those of greedy merging, over the same graphs and the same support.

    python benchmarks/partition.py TARGET MODEL.onnx...
    python benchmarks/partition.py --random COUNT

Greedy merging is what PyTorch's CapabilityBasedPartitioner and TVM's MergeCompilerRegions do: all that the target takes
is on the device; each node joins the parts of the nodes that it reads, one after the other, where that makes no circle.
In the order of a file is what stands in it without a node of the host between. Both are counted in connected parts.
ONNX Runtime's is CreateSupportedPartitions, by which its execution providers answer GetCapability: what they take joins
the open group, in topological order, and a node that they do not take and that reads the group closes it. Its groups
need not be connected: the last column counts the connected pieces of them.
"""

from __future__ import annotations

import sys

import numpy as np
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.partition import partition
from nnrewrite.partition.division import divide
from nnrewrite.partition.network import OUTSIDE, Edge, Network


def merge_greedily(network: Network) -> list[int]:
    """The part of each unit, -1 on the host: parts merged in pairs with a check for circles."""
    after: list[set[int]] = [set() for _ in range(network.units)]
    before: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.arcs():
        after[tail].add(head)
        before[head].append(tail)
    part = [unit if taken else -1 for unit, taken in enumerate(network.supported)]
    members = {unit: {unit} for unit, number in enumerate(part) if number >= 0}

    def circles(union: set[int]) -> bool:
        """Whether a way leads out of these units and back into them; parts on the way are entered as a whole."""
        work = [head for unit in union for head in after[unit] if head not in union]
        seen: set[int] = set()
        while work:
            unit = work.pop()
            if unit in seen:
                continue
            whole = members[part[unit]] if part[unit] >= 0 else {unit}
            seen |= whole
            for head in {head for each in whole for head in after[each]}:
                if head in union:
                    return True
                work.append(head)
        return False

    for unit in range(network.units):
        for tail in before[unit]:
            if part[unit] < 0 or part[tail] < 0 or part[unit] == part[tail]:
                continue
            union = members[part[unit]] | members[part[tail]]
            if not circles(union):
                gone, kept = part[unit], part[tail]
                members[kept] |= members.pop(gone)
                for each in members[kept]:
                    part[each] = kept
    return part


def follow_order(network: Network) -> list[int]:
    """The part of each unit where a part is what stands together in the order of the file, in connected pieces."""
    run, runs = 0, []
    for unit, taken in enumerate(network.supported):
        run += unit > 0 and taken != network.supported[unit - 1]
        runs.append(run if taken else -1)
    return connect(network, runs)


def group_as_onnx_runtime(network: Network) -> list[int]:
    """The group of each unit, -1 on the host, as `CreateSupportedPartitionNodeGroups` of ONNX Runtime makes them.

    Source: onnxruntime/core/providers/partitioning_utils.cc, written anew after its comments.
    """
    after: list[list[int]] = [[] for _ in range(network.units)]
    waits = [0] * network.units
    for tail, head in network.arcs():
        after[tail].append(head)
        waits[head] += 1
    work = [unit for unit in range(network.units) if not waits[unit]]
    later: list[int] = []
    border: set[int] = set()
    group, groups = [-1] * network.units, 0
    while work or later:
        if not work:
            groups += 1
            border.clear()
            work, later = later, []
            continue
        unit = work.pop(0)
        if network.supported[unit]:
            group[unit] = groups
            border.discard(unit)
            border.update(after[unit])
        elif unit in border:
            later.append(unit)
            continue
        for head in after[unit]:
            waits[head] -= 1
            if not waits[head]:
                work.append(head)
    return group


def connect(network: Network, group: list[int]) -> list[int]:
    """Groups in their connected pieces."""
    part = list(range(network.units))

    def find(unit: int) -> int:
        while part[unit] != unit:
            unit = part[unit]
        return unit

    for tail, head in network.arcs():
        if group[tail] >= 0 and group[tail] == group[head]:
            part[find(head)] = find(tail)
    return [find(unit) if group[unit] >= 0 else -1 for unit in range(network.units)]


def count_parts(parts: list[int]) -> int:
    """How many parts there are."""
    return len({part for part in parts if part >= 0})


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


def show(name: str, network: Network) -> tuple[int, ...]:
    """Print parts and bytes of one network, ours and by greedy merging, and the parts that others make."""
    ours, greedy, order = divide(network), merge_greedily(network), follow_order(network)
    moved = network.moved([part >= 0 for part in ours.parts]), network.moved(network.supported)
    runtime = group_as_onnx_runtime(network)
    others = count_parts(order), count_parts(runtime), count_parts(connect(network, runtime))
    figures = ours.count, moved[0], count_parts(greedy), moved[1], *others
    if name:
        print(f"| {name} | " + " | ".join(f"{figure:,}" for figure in figures) + " |")
    return figures


def main() -> None:
    """Print a table."""
    arguments = sys.argv[1:]
    heads = "| | parts | bytes | greedy: parts | bytes | order of the file | ONNX Runtime: groups | connected |"
    print(f"{heads}\n|{'---|' * 8}")
    if arguments[0] == "--random":
        generator = np.random.default_rng(0)
        found = [show("", draw(generator)) for _ in range(int(arguments[1]))]
    else:
        found = []
        for path in arguments[1:]:
            try:
                found.append(show(path.rpartition("/")[2], partition(path, arguments[0]).plan.network))
            except RewriteError as error:
                print(f"| {path.rpartition('/')[2]} | {error} |")
    print("| all | " + " | ".join(f"{sum(column):,}" for column in zip(*found, strict=True)) + " |")
    print(f"more parts than greedy merging: {sum(one[0] > one[2] for one in found)} of {len(found)}")
    print(f"more parts than ONNX Runtime, connected: {sum(one[0] > one[6] for one in found)} of {len(found)}")
    print(f"more parts than ONNX Runtime's groups: {sum(one[0] > one[5] for one in found)} of {len(found)}")
    print(f"more bytes than greedy merging: {sum(one[1] > one[3] for one in found)} of {len(found)}")


if __name__ == "__main__":
    main()

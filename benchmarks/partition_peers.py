"""How others divide the same graphs: which parts they make of what a target takes.

Greedy merging is what TVM's MergeCompilerRegions does: all that the target takes is on the device; each node joins the
parts of the nodes that it reads, one after the other, where that makes no circle. ONNX Runtime's is
CreateSupportedPartitions, by which its execution providers answer GetCapability: what they take joins the open group,
in topological order, and a node that they do not take and that reads the group closes it. PyTorch's own partitioner is
asked where it is installed. In the order of a file is what stands in it without a node of the host between.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nnrewrite.partition.network import OUTSIDE, Network

#: the program that asks PyTorch
_TORCH = Path(__file__).with_name("partition_torch.py")


def merge_greedily(network: Network) -> list[int]:
    """The part of each unit, -1 on the host: parts merged in pairs with a check for circles."""
    after: list[set[int]] = [set() for _ in range(network.units)]
    before: list[list[int]] = [[] for _ in range(network.units)]
    for tail, head in network.iterate_arcs():
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

    Source: onnxruntime/core/providers/partitioning_utils.cc, written anew after what it documents.
    """
    after: list[list[int]] = [[] for _ in range(network.units)]
    waits = [0] * network.units
    for tail, head in network.iterate_arcs():
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

    for tail, head in network.iterate_arcs():
        if group[tail] >= 0 and group[tail] == group[head]:
            part[find(head)] = find(tail)
    return [find(unit) if group[unit] >= 0 else -1 for unit in range(network.units)]


def count_parts(parts: list[int]) -> int:
    """How many parts there are."""
    return len({part for part in parts if part >= 0})


def ask_torch(python: str, networks: Sequence[Network]) -> list[Mapping[str, list[int]]]:
    """The parts that PyTorch's CapabilityBasedPartitioner makes of each network, by the name of how it was asked."""
    asked = [{"supported": network.supported, "arcs": list(network.iterate_arcs())} for network in networks]
    done = subprocess.run([python, _TORCH], input=json.dumps(asked), capture_output=True, text=True, check=True)
    found: list[Mapping[str, list[int]]] = json.loads(done.stdout)
    return found


def count_exchanged(network: Network, parts: Sequence[int]) -> int:
    """The bytes that go in and out of parts: each tensor once that is read in another part than it is yielded in, or on
    the other side."""
    place = {OUTSIDE: -1, **dict(enumerate(parts))}
    return sum(edge.size for edge in network.edges if any(place[edge.producer] != place[user] for user in edge.users))

"""Parts by PyTorch's CapabilityBasedPartitioner; runs where torch is, and needs nothing of nnrewrite.

    python benchmarks/partition_torch.py < NETWORKS.json > PARTS.json

reads a list of networks, each with what is `supported` and the `arcs` between units, and writes for each the part of
every unit, -1 outside of all, as the partitioner makes them and without its horizontal fusion.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase


def join(*values: Any) -> Any:
    """Stand for any operator."""
    return values


class Taken(OperatorSupportBase):  # type: ignore[misc]
    """Units that the device takes."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = taken

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        """Whether the device takes a node."""
        return node.name in self._taken


def divide(network: dict[str, Any], vertical: bool) -> list[int]:
    """The part of each unit of a network; only what reads each other is merged if that is to be `vertical`."""
    graph = torch.fx.Graph()
    given = graph.placeholder("given")
    reads: dict[int, list[int]] = {}
    for tail, head in network["arcs"]:
        reads.setdefault(head, []).append(tail)
    nodes: list[torch.fx.Node] = []
    for unit in range(len(network["supported"])):
        nodes.append(graph.call_function(join, tuple(nodes[tail] for tail in reads.get(unit, ())) or (given,)))
    read = {tail for tails in reads.values() for tail in tails}
    graph.output(tuple(node for unit, node in enumerate(nodes) if unit not in read))
    taken = frozenset(node.name for node, here in zip(nodes, network["supported"], strict=True) if here)
    partitioner = CapabilityBasedPartitioner(
        torch.fx.GraphModule(torch.nn.Module(), graph),
        Taken(taken),
        allows_single_node_partition=True,
        skip_horizontal_fusion=vertical,
    )
    part = {node.name: number for number, one in enumerate(partitioner.propose_partitions()) for node in one.nodes}
    return [part.get(node.name, -1) for node in nodes]


if __name__ == "__main__":
    answers = []
    for place, network in enumerate(json.load(sys.stdin)):
        print(f"network {place}: {len(network['supported'])} units", file=sys.stderr)
        answers.append({"PyTorch": divide(network, False), "PyTorch, vertical": divide(network, True)})
    json.dump(answers, sys.stdout)

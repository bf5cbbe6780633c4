"""A graph as a network: nodes that go together as units, the tensors between them as edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from .capability import Supported, list_read
from .network import OUTSIDE, Edge, Network

#: what stands for an extent that is not known before run time
_EXTENT = 1


def count_bytes(value: ir.Value) -> int:
    """The bytes of a tensor, unknown extents taken for 1; 0 for strings and for an unknown type or number of axes."""
    if value.dtype in (None, ir.DataType.STRING) or value.shape is None:
        return 0
    extents = [extent if isinstance(extent, int) else _EXTENT for extent in value.shape]
    assert value.dtype is not None
    return math.prod(extents) * max(1, value.dtype.bitwidth) // 8


def list_units(graph: ir.Graph, together: Sequence[frozenset[ir.Node]]) -> list[tuple[ir.Node, ...]]:
    """Nodes that go together, and each other node by itself, in an order in which each stands behind what it reads.

    Sets of nodes that could not run as one, since something outside of them stands between, are taken apart.
    """
    sets = {node: group for group in together for node in group}
    while True:
        of = {node: sets.get(node, frozenset((node,))) for node in graph}
        waits = dict.fromkeys(of.values(), 0)
        after: dict[frozenset[ir.Node], list[frozenset[ir.Node]]] = {group: [] for group in waits}
        for node in graph:
            for value in list_read(node):
                producer = value.producer()
                if producer in of and of[producer] is not of[node]:
                    after[of[producer]].append(of[node])
                    waits[of[node]] += 1
        ready = [group for group, left in waits.items() if not left]
        ordered = []
        for group in ready:
            ordered.append(group)
            for other in after[group]:
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)
        stuck = [group for group, left in waits.items() if left and len(group) > 1]
        if not stuck:
            place = {node: number for number, node in enumerate(graph)}
            return [tuple(sorted(group, key=lambda node: place[node])) for group in ordered]
        for node in max(stuck, key=len):
            del sets[node]


def make_network(
    graph: ir.Graph, units: Sequence[tuple[ir.Node, ...]], supported: Supported, gain: int, part_cost: int
) -> Network:
    """The network of a graph: what moves between its units, which the target takes, what each node gains there.

    What reads constants alone gains nothing: it is computed where it is read, and for nothing else.
    """
    unit = {node: number for number, nodes in enumerate(units) for node in nodes}
    users: dict[ir.Value, set[int]] = {}
    for node, number in unit.items():
        for value in list_read(node):
            users.setdefault(value, set()).add(number)
    for value in graph.outputs:
        users.setdefault(value, set()).add(OUTSIDE)
    edges = []
    for value, read in users.items():
        producer = value.producer()
        maker = OUTSIDE if producer is None or producer not in unit else unit[producer]
        if read - {maker}:
            edges.append(Edge(maker, frozenset(read - {maker}), count_bytes(value)))
    taken = frozenset().union(*supported.together) if supported.together else frozenset()
    whole = set(supported.together)
    able = tuple(
        all(node in taken for node in nodes) and (len(nodes) > 1 or frozenset(nodes) in whole) for nodes in units
    )
    gains = tuple(gain * sum(any(True for _ in list_read(node)) for node in nodes) for nodes in units)
    return Network(able, tuple(edges), gains, part_cost)

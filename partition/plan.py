"""A graph divided: its nodes as units of a network, and the steps in which it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ..engine.base.startup import dataclass
from .capability import Supported, list_read
from .division import divide
from .network import OUTSIDE, Edge, Network
from .parts import order_steps

#: what stands for an extent that is not known before run time
_EXTENT = 1


@dataclass(frozen=True, slots=True)
class Prices:
    """What an answer is judged by, in bytes: the gain of a node on the device, the cost of a part, and the fewest
    nodes that make one."""

    gain: int = 4096
    part: int = 65536
    least: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """Nodes that run as one, in their order; on the device by the name of a part, else on the host."""

    part: str
    nodes: tuple[ir.Node, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in which a graph runs, the bytes that cross between host and device, and why nodes are on the host."""

    steps: tuple[Step, ...]
    moved: int
    reasons: Mapping[ir.Node, str]

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps on the device."""
        return tuple(step for step in self.steps if step.part)


def plan(graph: ir.Graph, supported: Supported, prices: Prices) -> Plan:
    """Divide a sorted graph between the host and a device that takes some of its nodes."""
    units = _list_units(graph, supported.together)
    network = _make_network(graph, units, supported, prices)
    answer = divide(network)
    sizes = [0] * (max(answer.parts, default=-1) + 1)
    for unit, part in zip(units, answer.parts, strict=True):
        if part >= 0:
            sizes[part] += len(unit)
    parts = [part if part >= 0 and sizes[part] >= prices.least else -1 for part in answer.parts]
    reasons = dict(supported.reasons)
    for unit, part in zip(units, parts, strict=True):
        for node in unit if part < 0 else ():
            reasons.setdefault(node, "the device takes it, and to move its tensors would cost more than it gains")
    steps: list[Step] = []
    place = {node: number for number, node in enumerate(graph)}
    for part, members in order_steps(network, parts):
        nodes = sorted((node for unit in members for node in units[unit]), key=lambda node: place[node])
        count = sum(1 for step in steps if step.part)
        steps.append(Step(f"part_{count}" if part >= 0 else "", tuple(nodes)))
    return Plan(tuple(steps), network.moved([part >= 0 for part in parts]), reasons)


def count_bytes(value: ir.Value) -> int:
    """The bytes of a tensor, with one in the place of each extent that is not known; 0 where its type is not."""
    if value.dtype is None or value.shape is None:
        return 0
    extents = [extent if isinstance(extent, int) else _EXTENT for extent in value.shape]
    return math.prod(extents) * max(1, value.dtype.bitwidth) // 8


def _list_units(graph: ir.Graph, together: Sequence[frozenset[ir.Node]]) -> list[tuple[ir.Node, ...]]:
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


def _make_network(
    graph: ir.Graph, units: Sequence[tuple[ir.Node, ...]], supported: Supported, prices: Prices
) -> Network:
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
    return Network(able, tuple(edges), tuple(prices.gain * len(nodes) for nodes in units), prices.part)

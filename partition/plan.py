"""A graph divided: its nodes as units of a network, and the steps in which it runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from ..engine.base.startup import dataclass
from .capability import Supported, list_read
from .division import divide
from .network import Network
from .parts import order_steps
from .units import list_units, make_network


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
    """The steps in which a graph runs, the bytes that cross between host and device, and why nodes are on the host.

    `network` is the problem that it answers.
    """

    network: Network
    steps: tuple[Step, ...]
    moved: int
    reasons: Mapping[ir.Node, str]

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps on the device."""
        return tuple(step for step in self.steps if step.part)


def plan_graph(graph: ir.Graph, supported: Supported, prices: Prices, numbers: Iterator[int] | None = None) -> Plan:
    """Divide a sorted graph between the host and a device that takes some of its nodes.

    Parts are named by `numbers`, from 0 if there are none.
    """
    numbers = itertools.count() if numbers is None else numbers
    units = list_units(graph, supported.together)
    network = make_network(graph, units, supported, prices.gain, prices.part)
    chosen = divide(network).parts
    sizes = [0] * (max(chosen, default=-1) + 1)
    for unit, part in zip(units, chosen, strict=True):
        if part >= 0:
            sizes[part] += len(unit)
    parts = [part if part >= 0 and sizes[part] >= prices.least else -1 for part in chosen]
    reasons = dict(supported.reasons)
    few = f"the device takes it, and a part of fewer than {prices.least} nodes is not worth its cost"
    reasons.update(
        (node, few) for unit, old, new in zip(units, chosen, parts, strict=True) if old != new for node in unit
    )
    parts = _keep_untyped_within_steps(network, units, parts, reasons)
    for unit, part in zip(units, parts, strict=True):
        for node in unit if part < 0 else ():
            reasons.setdefault(node, "the device takes it, and to move its tensors would cost more than it gains")
    steps: list[Step] = []
    place = {node: number for number, node in enumerate(graph)}
    for part, members in order_steps(network, parts):
        nodes = sorted((node for unit in members for node in units[unit]), key=lambda node: place[node])
        steps.append(Step(f"part_{next(numbers)}" if part >= 0 else "", tuple(nodes)))
    return Plan(network, tuple(steps), network.count_moved_bytes([part >= 0 for part in parts]), reasons)


def _keep_untyped_within_steps(
    network: Network, units: Sequence[tuple[ir.Node, ...]], parts: list[int], reasons: dict[ir.Node, str]
) -> list[int]:
    """Give parts back that stand between a tensor of no known element type and what reads it: no file can hold one."""
    untyped = _list_bound(units)
    while untyped:
        steps = order_steps(network, parts)
        step = {each: number for number, (_, members) in enumerate(steps) for each in members}
        between = {
            steps[number][0]: name
            for (tail, head), name in untyped.items()
            if step[tail] != step[head]
            for number in range(min(step[tail], step[head]), max(step[tail], step[head]) + 1)
            if steps[number][0] >= 0
        }
        if not between:
            break
        for place, part in enumerate(parts):
            if part in between:
                why = f"{between[part]}, which cannot leave a step, is used on both sides of it, or by it and elsewhere"
                reasons.update((node, why) for node in units[place])
                parts[place] = -1
    return parts


def _list_bound(units: Sequence[tuple[ir.Node, ...]]) -> dict[tuple[int, int], str]:
    """Pairs of units that run in one step, with what holds them together.

    That is a tensor of no known element type, which no file can hold at its ends; a variable that both read; and where
    nodes are there for their effects, as they yield nothing, all that see what these change.
    """
    unit = {node: number for number, nodes in enumerate(units) for node in nodes}
    bound: dict[tuple[int, int], str] = {}
    variables: dict[ir.Value, int] = {}
    for node, number in unit.items():
        for value in list_read(node):
            producer = value.producer()
            if value.dtype is None and producer in unit and unit[producer] != number:
                bound[unit[producer], number] = value.name or ""
        for kept in node.inputs:
            if kept is None or kept.producer() is not None or kept.const_value is not None or kept.is_graph_input():
                continue
            if variables.setdefault(kept, number) != number:
                bound[variables[kept], number] = kept.name or ""
    if any(not node.outputs for node in unit):
        seeing = [number for node, number in unit.items() if not node.outputs or any(map(_is_handle, node.inputs))]
        seeing += [number for node, number in unit.items() if any(map(_is_handle, node.outputs))]
        bound.update(((seeing[0], number), "a variable") for number in seeing if number != seeing[0])
    return bound


def _is_handle(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is None

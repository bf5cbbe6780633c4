"""A plan as a picture: what runs on the device and on the host, in the order in which values flow."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from ..engine.passes.layout.graph_drawing import Box, draw
from .capability import list_read
from .plan import Plan, Step
from .units import count_bytes

#: fills of parts, which take turns, of nodes of the host, and of what goes in and out of the model
_PARTS, _HOST, _OUTSIDE = ("#cfe8ff", "#d3f9d8", "#e5dbff", "#c5f6fa"), "#ffe1b8", "#eeeeee"
#: with more nodes than this each step is one box
_NODES = 400


def draw_plan(graph: ir.Graph, plan: Plan) -> str:
    """Draw a divided graph as SVG, a box for each node, or for each step where there are many nodes.

    Parts have colours of their own, and the reason why a node is on the host shows where a pointer rests on it.
    """
    boxes: list[Box] = []
    number: dict[ir.Value, int] = {}
    arrows: dict[tuple[int, int], None] = {}
    count = sum(len(step.nodes) for step in plan.steps)
    for value in graph.inputs:
        if value.const_value is None:
            number[value] = len(boxes)
            boxes.append(Box(f"{value.name}", "input", f"{value.name}: {count_bytes(value):,} bytes", _OUTSIDE))
    parts = 0
    for step in plan.steps:
        fill = _PARTS[parts % len(_PARTS)] if step.part else _HOST
        parts += bool(step.part)
        for nodes in [step.nodes] if count > _NODES else [(node,) for node in step.nodes]:
            read = dict.fromkeys(value for node in nodes for value in list_read(node) if value in number)
            arrows.update(dict.fromkeys((number[value], len(boxes)) for value in read))
            number.update((output, len(boxes)) for node in nodes for output in node.outputs)
            boxes.append(_make_box(step, nodes, plan, fill))
    for value in graph.outputs:
        if value in number:
            arrows[number[value], len(boxes)] = None
            boxes.append(Box(f"{value.name}", "output", f"{value.name}: {count_bytes(value):,} bytes", _OUTSIDE))
    left = sum(len(step.nodes) for step in plan.steps if not step.part)
    legend = [
        Box(f"on the device: {parts} parts", f"{count - left} nodes", "", _PARTS[0]),
        Box("on the host", f"{left} nodes", "", _HOST),
        Box("between both", f"{plan.moved:,} bytes", "", _OUTSIDE),
    ]
    return draw(boxes, list(arrows), legend)


def _make_box(step: Step, nodes: tuple[ir.Node, ...], plan: Plan, fill: str) -> Box:
    name = step.part or "host"
    if len(nodes) == 1:
        (node,) = nodes
        return Box(node.op_type, name, f"{node.name}: {plan.reasons.get(node, name)}", fill)
    return Box(name, f"{len(nodes)} nodes", _list_operators(nodes), fill)


def _list_operators(nodes: Iterable[ir.Node]) -> str:
    return ", ".join(sorted({node.op_type for node in nodes}))

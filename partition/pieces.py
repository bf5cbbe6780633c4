"""Steps as graphs of their own: what they read and yield beyond themselves, and the constants that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ..engine.base.startup import dataclass
from ..engine.rewrite.traversal import walk_nodes
from .capability import list_constants, list_read
from .plan import Plan, Step


@dataclass(frozen=True, slots=True)
class Piece:
    """The nodes of a step as a graph of their own: what they read and yield beyond it, and their constants."""

    name: str
    step: Step
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    constants: tuple[ir.Value, ...]


def cut_graph(graph: ir.Graph, plan: Plan) -> list[Piece]:
    """The pieces of a divided graph in the order in which they run; outputs that are constants are one of the host."""
    ends = set(graph.outputs)
    readers: dict[ir.Value, set[int]] = {}
    for number, step in enumerate(plan.steps):
        for node in step.nodes:
            for value in list_read(node):
                readers.setdefault(value, set()).add(number)
    pieces = []
    for number, step in enumerate(plan.steps):
        made = {output for node in step.nodes for output in node.outputs}
        read = dict.fromkeys(value for node in step.nodes for value in list_read(node) if value not in made)
        left = [
            output
            for node in step.nodes
            for output in node.outputs
            if output in ends or readers.get(output, set()) - {number}
        ]
        constants = dict.fromkeys(value for node in step.nodes for value in list_constants(node))
        pieces.append(Piece(step.part or f"host_{number}", step, tuple(read), tuple(left), tuple(constants)))
    given = dict.fromkeys(value for value in graph.outputs if value.const_value is not None)
    if fixed := tuple(value for value in given if not value.is_graph_input()):
        pieces.append(Piece(f"host_{len(pieces)}", Step("", ()), (), fixed, fixed))
    return pieces


def view_graph(
    imports: Mapping[str, int],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    nodes: Sequence[ir.Node],
    constants: Sequence[ir.Value],
    name: str,
) -> ir.GraphView:
    """Nodes of a model as a graph; `imports` has the versions of operator sets that the model says."""
    versions = dict(imports)
    for node in walk_nodes(nodes):
        versions.setdefault(node.domain, node.version or 1)
    return ir.GraphView(inputs, outputs, nodes=nodes, initializers=constants, opset_imports=versions, name=name)

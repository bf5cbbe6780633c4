"""Pass `closures`: the graphs of nodes are given what they read of the graph around them as inputs of their own."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from ..base.names import Scope
from ..base.startup import dataclass
from ..dialects.operators import OperatorSpec
from ..rewrite.subgraphs import find_bodies
from .base import Module, Visit


@dataclass(frozen=True, slots=True)
class Closures:
    """Let the nodes of a dialect whose graphs read nothing but their inputs pass on all that those read."""

    name, visits = "closures", Visit.INSIDE_FIRST

    def run(self, module: Module) -> None:
        """Close the graphs of the nodes of one graph; those inside them are closed before."""
        if not module.target.facts.closed:
            return
        for node in list(module.graph):
            graphs = find_bodies(node)
            spec = module.target.find_operator(node.op_type)
            if graphs and spec is not None:
                _close(node, graphs, spec, module.names)


def _close(node: ir.Node, graphs: list[ir.Graph], spec: OperatorSpec, names: Scope) -> None:
    free = {graph: _find_free(graph) for graph in graphs}
    captured: dict[ir.Value, None] = {}
    for graph, values in free.items():
        inner = names.make_inner(graph)
        for value in values:
            if value.const_value is not None and not value.is_graph_input():
                _replace(graph, value, inner.adopt(value))
            else:
                captured.setdefault(value)
    if not captured:
        return
    deciding = [node.attributes[name].as_graph() for name in spec.facts.decides if name in node.attributes]
    for graph in graphs:
        for value in captured:
            given = ir.Value(name=names.make_name(f"{value.name}/inner"), type=value.type, shape=value.shape)
            graph.inputs.append(given)
            if value in free[graph]:
                _replace(graph, value, given)
            if deciding and graph not in deciding:
                graph.outputs.append(given)
    first = len(node.inputs)
    node.resize_inputs(first + len(captured))
    for place, value in enumerate(captured):
        node.replace_input_with(first + place, value)
    if deciding:  # a loop hands on what it carries
        count = len(node.outputs)
        node.resize_outputs(count + len(captured))
        for output, value in zip(node.outputs[count:], captured, strict=True):
            output.name = names.make_name(f"{value.name}/after")
            output.type, output.shape = value.type, value.shape


def _find_free(graph: ir.Graph) -> list[ir.Value]:
    """The values that a graph reads and does not have."""
    own: set[ir.Value] = {*graph.inputs, *graph.initializers.values()}
    own |= {output for node in graph for output in node.outputs}
    read: Iterable[ir.Value | None] = (*(v for node in graph for v in node.inputs), *graph.outputs)
    return [value for value in dict.fromkeys(read) if value is not None and value not in own]


def _replace(graph: ir.Graph, before: ir.Value, after: ir.Value) -> None:
    for usage in tuple(before.uses()):
        if usage.node.graph is graph:
            usage.node.replace_input_with(usage.idx, after)
    for place, output in enumerate(graph.outputs):
        if output is before:
            graph.outputs[place] = after

"""Nodes that compute one of several graphs: the graph takes the place of the node where it is known which."""

from __future__ import annotations

import onnx_ir as ir

from ..base.constants import read_initializer
from ..dialects.inference import Extents, intersect, make_shape, read_extents
from ..dialects.operators import OperatorSpec
from ..rewrite.subgraphs import detach, make_copy
from .base import Module


def choose_graph(node: ir.Node, spec: OperatorSpec) -> ir.Graph | None:
    """The graph whose results a node has, where its condition is constant."""
    condition = None if not spec.facts.chooses or node.inputs[0] is None else read_initializer(node.inputs[0])
    if condition is None or condition.size != 1:
        return None
    for name, wanted in spec.facts.chooses.items():
        attribute = node.attributes.get(name)
        if attribute is not None and bool(condition.reshape(())) == wanted:
            return attribute.as_graph()
    return None


def inline(node: ir.Node, graph: ir.Graph, module: Module) -> list[ir.Node]:
    """Put the nodes of a graph of a node in its place; these nodes."""
    constants = [value for value in graph.initializers.values() if value.const_value is not None]
    graph.initializers.clear()
    for value in constants:
        value.name = module.names.make_name(value.name or "constant")
        module.names.graph.register_initializer(value)
    moved = list(graph)
    results = list(graph.outputs)
    graph.outputs.clear()
    graph.remove(moved)
    for one in moved:
        for output in one.outputs:
            output.name = module.names.make_name(output.name or one.op_type)
    module.graph.insert_before(node, moved)
    for output, result in zip(node.outputs, results, strict=True):
        if output.is_graph_output() and (module.depth and not _is_own(result, module.graph)):
            made = make_copy(module.schematic.find_role("copy"), result)
            module.names.name_node(made, f"{output.name}/{made.op_type}")
            module.graph.insert_before(node, [made])
            moved.append(made)
            result = made.outputs[0]
        ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=True)
    detach(node)
    module.graph.remove(node)
    return moved


def merge_results(node: ir.Node, spec: OperatorSpec) -> None:
    """Let the results of a node have what those of all its graphs have in common."""
    graphs = [node.attributes[name].as_graph() for name in spec.facts.chooses if name in node.attributes]
    for place, output in enumerate(node.outputs):
        found = [graph.outputs[place] for graph in graphs if place < len(graph.outputs)]
        if not found or len({one.dtype for one in found}) != 1 or found[0].dtype is None:
            continue
        output.type = found[0].type
        shapes = [read_extents(one) for one in found]
        known: Extents | None = shapes[0]
        for shape in shapes[1:]:
            if known is None or shape is None or len(shape) != len(known):
                known = None
                break
            known = intersect(known, shape)
        if known is not None:
            named = [f"{output.name}.{axis}" if e is None else e for axis, e in enumerate(known)]
            output.shape = make_shape(tuple(named))


def _is_own(value: ir.Value, graph: ir.Graph) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is graph and not value.is_graph_output()

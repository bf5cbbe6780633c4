"""The host's model: what stays on the host with one node for each part, in the bodies of loops and branches too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import onnx_ir as ir

from ..engine.base.startup import dataclass, field
from ..engine.rewrite.subgraphs import copy_unnamed
from .capability import list_constants
from .model_files import ModelFiles
from .pieces import Piece, cut_graph, view_graph
from .plan import Plan


@dataclass(frozen=True, slots=True)
class _Host:
    """A host's model being made: copies of graphs by what they are copies of, and the functions that its parts are."""

    model: ir.Model
    files: ModelFiles
    plans: Mapping[ir.Graph, Plan]
    functions: bool
    copies: dict[ir.Graph, ir.Graph] = field(default_factory=dict)
    made: list[ir.Function] = field(default_factory=list)


def write_host(
    path: Path, model: ir.Model, files: ModelFiles, plans: Mapping[ir.Graph, Plan], name: str, functions: bool
) -> None:
    """Write the model of the host, whose graphs are divided by `plans`; with `functions` its parts are functions of it.

    What parts read as constants are then operands of their nodes. The graphs of `model` stay as they are.
    """
    host = _Host(model, files, plans, functions)
    try:
        for graph in reversed(tuple(plans)):  # bodies stand behind what names them
            host.copies[graph] = _copy_graph(host, graph, name if graph is model.graph else graph.name or "")
        files.save(path, host.copies[model.graph], model, host.made, host.copies)
    finally:
        # Values of the model forget their copied readers.
        for copied in host.copies.values():
            for node in copied:
                for place in range(len(node.inputs)):
                    node.replace_input_with(place, None)


def _copy_graph(host: _Host, graph: ir.Graph, name: str) -> ir.Graph:
    """A copy of a graph, of one name throughout, with a node in the place of each part."""
    found = {value: _copy_value(value) for value in graph.inputs}
    inputs = list(found.values())
    nodes = []
    for piece in cut_graph(graph, host.plans[graph]):
        nodes += (
            [_make_call(host, piece, found)] if piece.step.part else [_copy(host, n, found) for n in piece.step.nodes]
        )
    outputs = [found.get(value, value) for value in graph.outputs]
    read = dict.fromkeys(value for node in nodes for value in list_constants(node) if value.graph is graph)
    for value in graph.outputs:
        if value not in found and value.const_value is not None:
            read[value] = None
    constants = {value: _copy_value(value) for value in read}
    return ir.Graph(
        inputs,
        [constants.get(value, value) for value in outputs],
        nodes=nodes,
        initializers=list(constants.values()),
        opset_imports=view_graph(host.model.graph.opset_imports, (), (), nodes, (), name).opset_imports,
        name=name,
    )


def _make_call(host: _Host, piece: Piece, found: dict[ir.Value, ir.Value]) -> ir.Node:
    """The node in the place of a part."""
    inputs = [*piece.inputs, *(piece.constants if host.functions else ())]
    operands = [found.get(value, value) for value in inputs]
    call = ir.Node(host.files.domain, piece.name, operands, num_outputs=len(piece.outputs), name=piece.name, version=1)
    for output, value in zip(call.outputs, piece.outputs, strict=True):
        found[value] = _describe(output, value)
    if host.functions:
        inside = view_graph(host.model.graph.opset_imports, inputs, piece.outputs, piece.step.nodes, (), piece.name)
        host.made.append(ir.Function(host.files.domain, piece.name, graph=cast(ir.Graph, inside), attributes=()))
    return call


def _copy(host: _Host, node: ir.Node, found: dict[ir.Value, ir.Value]) -> ir.Node:
    """A node of the host, whose graphs are the copies of its own."""
    attributes = [
        ir.AttrGraph(name, host.copies[attribute.value])
        if attribute.type == ir.AttributeType.GRAPH and attribute.value in host.copies
        else attribute
        for name, attribute in node.attributes.items()
    ]
    inputs = [None if value is None else found.get(value, value) for value in node.inputs]
    copied = copy_unnamed(node, inputs, attributes)
    for old, new in zip(node.outputs, copied.outputs, strict=True):
        new.name = old.name
        found[old] = new
    return copied


def _copy_value(value: ir.Value) -> ir.Value:
    return _describe(ir.Value(const_value=value.const_value), value)


def _describe(value: ir.Value, like: ir.Value) -> ir.Value:
    """Let a value have the name of another one and what is known of it."""
    value.name, value.type, value.shape = like.name, like.type, like.shape
    value.meta.update(like.meta)
    return value

"""Excerpts: the part of a TensorFlow Lite model that computes some value from others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import onnx_ir as ir

from ..backends import tflite_writer
from ..engine.base.constants import STATEFUL
from ..engine.dialects.operators import Catalogue


def write_excerpt(
    model: ir.Model, catalogue: Catalogue, result: ir.Value, given: Collection[ir.Value]
) -> tuple[bytes, list[ir.Value]]:
    """Write the part of a model that computes a value, given others; and the values that are its inputs, in order.

    Inputs are those of the values given that it needs, and of the model's own. Raises ModelError as the writer does.
    """
    needed = _list_needed(result, given)
    copies: dict[ir.Value, ir.Value] = {}
    inputs: list[ir.Value] = []

    def read(value: ir.Value | None) -> ir.Value | None:
        if value is None or value in copies:
            return None if value is None else copies[value]
        copies[value] = _copy(value)
        comes = value.is_graph_input() or (value.const_value is None and not value.meta.get(STATEFUL))
        if value in given or (comes and value.producer() not in needed):
            inputs.append(value)
        return copies[value]

    def write(value: ir.Value) -> ir.Value:
        if value in given:  # what its users read is the input of this name
            return _copy(value)
        return copies.setdefault(value, _copy(value))

    nodes = [
        _copy_node(node, [read(value) for value in node.inputs], [write(v) for v in node.outputs]) for node in needed
    ]
    entered = [copies[value] for value in inputs]
    graph = ir.Graph(
        entered,
        [copies[result]],
        nodes=nodes,
        initializers=[copy for copy in copies.values() if copy.const_value is not None and copy not in entered],
        opset_imports=model.graph.opset_imports,
        name=model.graph.name,
    )
    part = ir.Model(graph, ir_version=model.ir_version or 10)
    part.meta["subgraphs"] = [graph, *model.meta["subgraphs"][1:]]
    return tflite_writer.write(part, catalogue), inputs


def _copy(value: ir.Value) -> ir.Value:
    copy = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
    copy.meta.update(value.meta)
    return copy


def _copy_node(node: ir.Node, inputs: Sequence[ir.Value | None], outputs: Sequence[ir.Value]) -> ir.Node:
    attributes = node.attributes.values()
    copy = ir.Node(node.domain, node.op_type, inputs, attributes, outputs=outputs, version=node.version, name=node.name)
    copy.meta.update(node.meta)
    return copy


def _list_needed(result: ir.Value, given: Collection[ir.Value]) -> list[ir.Node]:
    """The nodes that compute a value, given others, operands before users."""
    nodes: set[ir.Node] = set()
    work = [result.producer()]
    while work:
        node = work.pop()
        if node is None or node in nodes:
            continue
        nodes.add(node)
        work += [value.producer() for value in node.inputs if value is not None and value not in given]
    graph = result.graph
    return [] if graph is None else [node for node in graph if node in nodes]

"""Graphs as ONNX's own messages have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

import onnx
import onnx.defs

from ..engine.dialects.operators import Dialect

#: opsets before this one lack the rules of broadcasting that all later ones have
FIRST = 7
#: from this version of the format on, an initializer that is an input as well is a default that callers may override
OVERRIDABLE = 4
#: lists of extents are shorter by far
_SHORT = 1024


def list_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph or a function, and of the graphs inside them."""
    for node in graph.node:
        yield node
        for inner in list_bodies(node):
            yield from list_nodes(inner)


def list_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for inner in list_bodies(node):
            yield from list_graphs(inner)


def list_bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that are attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def are_lists_short(graph: onnx.GraphProto, dialect: Dialect) -> bool:
    """Whether no list in a graph of which shapes are inferred has many elements, or as many as a number says that is
    not known: onnx.shape_inference takes room for each element that it follows, known or not."""
    spans = {one.name for one in dialect.operators.values() if one.facts.span}
    sized = {one.name for one in dialect.operators.values() if one.facts.fills is not None or one.facts.extents}
    for one in list_graphs(graph):
        known = set()
        for value in (*one.input, *one.value_info, *one.output):
            kind = value.type.tensor_type
            extents = kind.shape.dim
            if len(extents) == 1 and extents[0].dim_value > _SHORT:
                return False
            if kind.HasField("shape") and (len(extents) != 1 or extents[0].HasField("dim_value")):
                known.add(value.name)
        for node in one.node:
            if node.op_type in spans or (node.op_type in sized and not known.issuperset(node.output)):
                return False
    return True


def read_proto(model: str | bytes, external_data: bool = True) -> onnx.ModelProto:
    """Read a model from its path or its bytes; constants in other files are read or stay there."""
    if isinstance(model, bytes):
        return onnx.load_model_from_string(model)
    return onnx.load(model, load_external_data=external_data)


def forget_maps(graph: onnx.GraphProto) -> None:
    """Leave values without a type that are maps, for which a graph of `onnx_ir` has none."""
    for told in (*graph.value_info, *graph.output):
        if are_maps(told.type):
            told.ClearField("type")


def are_maps(kind: onnx.TypeProto) -> bool:
    """Whether values of a type are maps, or hold them."""
    return kind.HasField("map_type") or (kind.HasField("sequence_type") and are_maps(kind.sequence_type.elem_type))


def import_domains(model: onnx.ModelProto, standard: Collection[str]) -> None:
    """Import the domains of nodes that a model does not import, as ONNX Runtime does: in the last version that `onnx`
    knows, the first of those that it does not know. The standard's own say nothing without a version, and stay."""
    known = {one.domain for one in model.opset_import}.union(standard)
    for domain in sorted({node.domain for node in list_nodes(model.graph)} - known):
        versions = (one.since_version for one in onnx.defs.get_all_schemas() if one.domain == domain)
        model.opset_import.add(domain=domain, version=max(versions, default=1))


def list_defaults(graph: onnx.GraphProto) -> frozenset[str]:
    """The names of the inputs that have a default."""
    return frozenset({one.name for one in graph.initializer} & {one.name for one in graph.input})


def fix_defaults(graph: onnx.GraphProto) -> None:
    """Let constants be no inputs, so that nobody overrides them."""
    given = list_defaults(graph)
    kept = [value for value in graph.input if value.name not in given]
    del graph.input[:]
    graph.input.extend(kept)


def copy_outer_results(graph: onnx.GraphProto, dialect: Dialect) -> None:
    """Let bodies yield a copy of what is a value of a graph around them: there a result is one of the body's own."""
    foreign = [
        (body, found) for node in list_nodes(graph) for body in list_bodies(node) if (found := _list_foreign(body))
    ]
    if not foreign:
        return
    operator = dialect.find_role("copy").name
    taken = {name for node in list_nodes(graph) for name in (*node.input, *node.output)}
    taken |= {value.name for one in list_graphs(graph) for value in (*one.input, *one.output, *one.initializer)}
    for body, outputs in foreign:
        for output in outputs:
            number = next(n for n in count() if f"{output.name}/copy_{n}" not in taken)
            copied = f"{output.name}/copy_{number}"
            taken.add(copied)
            body.node.append(onnx.helper.make_node(operator, [output.name], [copied]))
            output.name = copied


def _list_foreign(body: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The outputs of a body that nothing in it yields."""
    own = {one.name for one in (*body.input, *body.initializer)}
    own |= {one.values.name for one in body.sparse_initializer} | {name for node in body.node for name in node.output}
    return [output for output in body.output if output.name and output.name not in own]

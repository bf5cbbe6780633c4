"""Graphs as ONNX's own messages have them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

#: from this version of the format on, an initializer that is an input as well is a default that callers may override
OVERRIDABLE = 4


def list_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of those inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from list_nodes(inner)


def read_proto(model: str | bytes, external_data: bool = True) -> onnx.ModelProto:
    """Read a model from its path or its bytes; constants in other files are read or stay there."""
    if isinstance(model, bytes):
        return onnx.load_model_from_string(model)
    return onnx.load(model, load_external_data=external_data)


def list_defaults(graph: onnx.GraphProto) -> frozenset[str]:
    """The names of the inputs that have a default."""
    return frozenset({one.name for one in graph.initializer} & {one.name for one in graph.input})


def fix_defaults(graph: onnx.GraphProto) -> None:
    """Let constants be no inputs, so that nobody overrides them."""
    given = list_defaults(graph)
    kept = [value for value in graph.input if value.name not in given]
    del graph.input[:]
    graph.input.extend(kept)

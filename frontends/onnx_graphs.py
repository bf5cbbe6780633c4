"""Graphs as ONNX's own messages have them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx


def list_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of those inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from list_nodes(inner)

"""Orders in which a stage visits the nodes of a graph."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from .subgraphs import find_bodies


def walk_nodes(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Nodes, and the nodes of their graphs."""
    for node in nodes:
        yield node
        for body in find_bodies(node):
            yield from walk_nodes(body)


def drain(work: deque[ir.Node]) -> Iterator[ir.Node]:
    """The items of a queue in turn, until none is left; some may be added meanwhile."""
    while work:
        yield work.popleft()


def list_neighbours(made: list[ir.Node]) -> Iterator[ir.Node]:
    """The nodes that may match anew beside freshly made ones: users of their results, producers of their operands."""
    for node in made:
        yield from itertools.chain.from_iterable((usage.node for usage in output.uses()) for output in node.outputs)
        for value in node.inputs:
            producer = value.producer() if value is not None else None
            if producer is not None:
                yield producer


def is_sorted(graph: ir.Graph) -> bool:
    """Whether every node of a graph stands behind those that it reads, and those that the nodes of its graphs read."""
    seen: set[ir.Node] = set()
    for node in graph:
        for inner in walk_nodes((node,)):
            for value in inner.inputs:
                producer = value.producer() if value is not None else None
                if producer is not None and producer.graph is graph and producer not in seen:
                    return False
        seen.add(node)
    return all(is_sorted(body) for node in graph for body in find_bodies(node))

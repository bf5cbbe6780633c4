"""Cycle check: levels of nodes, by which a replacement of several nodes is kept from depending on itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir

from .subgraphs import find_bodies
from .traversal import walk_nodes


class Precedence:
    """Levels of the nodes of one graph: a node's is never below those of the nodes that it reads.

    A node that takes the place of one stands at its level. Nodes that take the place of several stand at the highest
    of theirs, and with them all that reads what the lower ones computed: only nodes between the levels are looked at.
    """

    __slots__ = ("_graph", "_levels", "_owners")

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._levels: dict[ir.Node, int] = {}
        #: the node that each inner graph is of
        self._owners: dict[ir.Graph, ir.Node] = {}

    def follow(self, root: ir.Node, made: Sequence[ir.Node]) -> None:
        """Take note of nodes that take the place of one."""
        if self._levels:
            level = self._levels.get(root, 0)
            self._levels.update((node, level) for node in made)
            self._owners.update(_list_owners(made))

    def join(
        self, pairs: Sequence[tuple[ir.Value, ir.Value]], made: Sequence[ir.Node], stays: Sequence[ir.Value] = ()
    ) -> bool:
        """Take note of nodes that are to take the place of the producers of the first values of some pairs.

        They may read values that stay.

        False where they cannot: what they read, or a second value, is computed from one of the first.
        """
        if not self._levels:
            self._levels, self._owners = _number_nodes(self._graph), dict(_list_owners(self._graph))
        levels = self._levels
        known = (*(value for value, _ in pairs), *stays)
        level = max(levels.get(node, 0) for value in known if (node := value.producer()) is not None)
        fresh = set(walk_nodes(made))
        behind: set[ir.Node] = set()
        work = [user for value, _ in pairs for user in _list_users(value) if user not in fresh]
        while work:
            node = self._find_outer(work.pop())
            if node is None:
                return False
            if node in behind or levels.get(node, level) > level:
                continue
            behind.add(node)
            work += [user for output in node.outputs for user in _list_users(output)]
        operands = [value for node in fresh for value in node.inputs if value is not None]
        if any(value.producer() in behind for value in (*operands, *(after for _, after in pairs))):
            return False
        levels.update((node, level) for node in (*behind, *made))
        self._owners.update(_list_owners(made))
        return True

    def _find_outer(self, node: ir.Node) -> ir.Node | None:
        """The node of the graph that a node is or stands inside of; None where that is not known."""
        found: ir.Node | None = node
        while found is not None and found.graph is not self._graph:
            found = self._owners.get(found.graph) if isinstance(found.graph, ir.Graph) else None
        return found


def _list_owners(nodes: Iterable[ir.Node]) -> Iterator[tuple[ir.Graph, ir.Node]]:
    """The graphs of nodes and of the nodes in them, each with the node that it is of."""
    return ((body, node) for node in walk_nodes(nodes) for body in find_bodies(node))


def _list_users(value: ir.Value) -> Iterable[ir.Node]:
    return (usage.node for usage in value.uses())


def _number_nodes(graph: ir.Graph) -> dict[ir.Node, int]:
    """The nodes of a graph, each with its number in an order in which none stands before one that it reads."""
    waits: dict[ir.Node, set[ir.Node]] = {node: set() for node in graph if node.graph is graph}
    feeds: dict[ir.Node, list[ir.Node]] = {}
    for node, waiting in waits.items():
        for inner in walk_nodes((node,)):
            for value in inner.inputs:
                producer = value.producer() if value is not None else None
                if producer in waits and producer is not node and producer not in waiting:
                    waiting.add(producer)
                    feeds.setdefault(producer, []).append(node)
    ready = [node for node, waiting in waits.items() if not waiting]
    levels: dict[ir.Node, int] = {}
    while ready:
        node = ready.pop()
        levels[node] = len(levels)
        for user in feeds.get(node, ()):
            waits[user].discard(node)
            if not waits[user]:
                ready.append(user)
    return levels

"""Edits of a graph: values replaced, nodes removed, and what is unused afterwards swept away."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..base.names import Scope
from ..dialects.operators import OperatorSpec
from .cycles import Precedence
from .subgraphs import detach, detach_bodies, make_copy


class Edits:
    """The changes to one graph. `inner` says that it belongs to a node, so that it yields only what its own nodes make.

    Every change takes a time of its own, whatever the size of the graph and the number of its outputs.
    """

    __slots__ = (
        "_changed",
        "_copy",
        "_gone",
        "_inner",
        "_nodes",
        "_outputs",
        "_precedence",
        "_sorted",
        "graph",
        "scope",
        "single_use",
    )

    def __init__(self, graph: ir.Graph, scope: Scope, copy: OperatorSpec, inner: bool) -> None:
        self.graph, self.scope = graph, scope
        self._copy, self._inner = copy, inner
        #: nodes that stand in the graph until it is swept, and belong to it no more
        self._gone: list[ir.Node] = []
        #: where among the graph's outputs each value stands, since the last sweep
        self._outputs: dict[ir.Value, list[int]] = {}
        #: nodes may be there that nobody uses
        self._changed = False
        self._nodes: list[ir.Node] | None = None
        self._precedence = Precedence(graph)
        #: values that were left with one use, for which a rule may have waited
        self.single_use: list[ir.Value] = []
        #: nodes stand behind those that they read, as far as that is known
        self._sorted = True

    def list_nodes(self) -> list[ir.Node]:
        """The nodes of the graph in order, listed anew only after a change."""
        if self._nodes is None:
            self._nodes = list(self.graph)
        return self._nodes

    def can_replace(
        self,
        root: ir.Node,
        made: Sequence[ir.Node],
        pairs: Sequence[tuple[ir.Value, ir.Value]],
        stays: Sequence[ir.Value] = (),
    ) -> bool:
        """Whether each second value of the pairs can replace the first without a cycle.

        `stays` are values that are not computed before the root, and that what is made may read.
        """
        if self._inner and not made and self._is_copy_of_copy(root, pairs):
            return False
        if not stays and all(before.producer() is root for before, _ in pairs):
            self._precedence.follow(root, made)
            return True
        self._sorted = False
        return self._precedence.join(pairs, made, stays)

    def _is_copy_of_copy(self, root: ir.Node, pairs: Sequence[tuple[ir.Value, ir.Value]]) -> bool:
        """Whether one copy would replace another: a graph yields only what its own nodes make, so copies stay."""
        if (root.domain, root.op_type) != (self._copy.domain, self._copy.name):
            return False
        return any(before.is_graph_output() and not self._can_yield(after) for before, after in pairs)

    def put(self, root: ir.Node, made: Sequence[ir.Node], pairs: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """Put nodes before `root`, and of each pair the second value in the place of the first."""
        for _, after in pairs:
            self.register(after)
        self.graph.insert_before(root, made)
        detach_bodies(root, made)
        for before, after in pairs:
            if self._inner and before.is_graph_output() and not self._can_yield(after):
                after = self._copy_value(root, after)
            self._replace(before, after)
        self._abandon([root, *(producer for before, _ in pairs if (producer := before.producer()) is not None)])
        self._changed = True
        self._nodes = None

    def register(self, value: ir.Value | None) -> None:
        """Let a constant belong to the graph."""
        if value is not None and value.const_value is not None:
            self.scope.register(value)

    def sweep(self) -> None:
        """Remove nodes and constants that nobody uses, where anything has changed."""
        if not self._changed:
            return
        self._changed = False
        self._nodes = None
        self._outputs.clear()
        self.single_use.clear()
        for node in reversed(self.graph):
            if node.graph is not None and _is_unused(node):
                self._give_up(node)
        for node in self._gone:
            node.graph = self.graph
        self.graph.remove(self._gone)
        for node in self._gone:
            node.resize_outputs(0)  # nodes and values hold each other, and nobody looks for what only they hold
        self._gone.clear()
        if not self._sorted:
            self.graph.sort()
            self._sorted = True
        _remove_unused_constants(self.graph)

    def _abandon(self, nodes: list[ir.Node]) -> None:
        """Give up nodes that nobody uses any more, and what they alone used: guards ask who reads a value."""
        while nodes:
            node = nodes.pop()
            if node.graph is not self.graph or any(o.uses() or o.is_graph_output() for o in node.outputs):
                continue
            read = [value for value in node.inputs if value is not None]
            nodes += [producer for value in read if (producer := value.producer())]
            self._give_up(node)
            self.single_use += [value for value in read if len(value.uses()) == 1]

    def _give_up(self, node: ir.Node) -> None:
        """Let a node read nothing and be of no graph; it goes with others later, each removal looks at all outputs."""
        detach(node)
        node.graph = None
        self._gone.append(node)

    def _replace(self, before: ir.Value, after: ir.Value) -> None:
        for usage in before.uses():
            usage.node.replace_input_with(usage.idx, after)
        if not before.is_graph_output():
            return
        outputs = self.graph.outputs
        if before not in self._outputs:
            self._outputs.clear()
            for position, value in enumerate(outputs):
                self._outputs.setdefault(value, []).append(position)
        positions = self._outputs.pop(before, [])
        for position in positions:
            outputs[position] = after
        self._outputs.setdefault(after, []).extend(positions)

    def _can_yield(self, value: ir.Value) -> bool:
        """Whether an inner graph can yield a value: what its own nodes make, and once."""
        producer = value.producer()
        return producer is not None and producer.graph is self.graph and not value.is_graph_output()

    def _copy_value(self, root: ir.Node, value: ir.Value) -> ir.Value:
        node = make_copy(self._copy, value)
        self.scope.name_node(node, f"{value.name}/{self._copy.name}")
        self.graph.insert_before(root, [node])
        return node.outputs[0]


def remove_unused(graph: ir.Graph) -> None:
    """Remove nodes and constants that nobody uses."""
    for node in reversed(graph):
        if _is_unused(node):
            detach(node)
            graph.remove(node)
    _remove_unused_constants(graph)


def _is_unused(node: ir.Node) -> bool:
    """Whether nobody uses what a node yields; one that yields nothing is there for its effect."""
    return bool(node.outputs) and not any(output.uses() or output.is_graph_output() for output in node.outputs)


def _remove_unused_constants(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
            del graph.initializers[name]

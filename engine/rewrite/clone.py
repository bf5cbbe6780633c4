"""Clones of nodes that a pattern found inside a subgraph, for a template that writes them into another graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ..base.errors import Span
from ..base.names import Scope
from .replacement import make_known_result
from .subgraphs import copy, copy_attribute, find_bodies
from .traversal import walk_nodes


class Unreachable(Exception):
    """A value of the old graph has no place in the new one, so the rule does not apply."""


class Cloner:
    """Copies what computes values of old graphs, given what stands in the new one for some of these values."""

    __slots__ = ("_graphs", "_scope", "_span", "_standing", "nodes")

    def __init__(self, graphs: Sequence[ir.Graph], scope: Scope, span: Span) -> None:
        self._graphs, self._scope, self._span = graphs, scope, span
        self._standing: dict[ir.Value, ir.Value] = {}
        #: the copies, operands before users
        self.nodes: list[ir.Node] = []

    def is_old(self, value: Any) -> bool:
        """Whether a value belongs to one of the old graphs."""
        return isinstance(value, ir.Value) and find_graph(value) in self._graphs

    def note_names(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Take note which values have the names now that values of the old graphs had."""
        for name, before in old.items():
            after = new.get(name)
            if after is before:
                continue
            pairs = [(before, after)]
            if isinstance(before, list) and isinstance(after, list):
                pairs = list(zip(before, after, strict=False))
            for one, other in pairs:
                if self.is_old(one):
                    self._standing[one] = other if isinstance(other, ir.Value) else self._copy_constant(one, other)

    def find_value(self, value: Any) -> Any:
        """What stands for a value in the new graph: itself, where it is of neither graph.

        Raises Unreachable where it depends on an input of the old graph that nothing stands for.
        """
        if not self.is_old(value):
            return value
        work = [value]
        while work:  # graphs may be deep
            one = work[-1]
            waiting = [] if one in self._standing else self._list_missing(one)
            if waiting:
                work += waiting
            else:
                work.pop()
                if one not in self._standing:
                    self._copy(one)
        return self._standing[value]

    def _list_missing(self, value: ir.Value) -> list[ir.Value]:
        producer = value.producer()
        if producer is None:
            return []
        read: list[ir.Value | None] = []
        for node in walk_nodes([producer]):
            read += node.inputs
            read += [one for body in find_bodies(node) for one in body.outputs]
        return [one for one in read if one is not None and self.is_old(one) and one not in self._standing]

    def _copy(self, value: ir.Value) -> None:
        producer = value.producer()
        if producer is None and value.const_value is not None and not value.is_graph_input():
            self._standing[value] = self._scope.adopt(value)
            return
        if producer is None:
            raise Unreachable(value.name)
        inputs = [None if one is None else self._standing.get(one, one) for one in producer.inputs]
        attributes = [copy_attribute(one, self._standing, self._scope) for one in producer.attributes.values()]
        made = copy(producer, inputs, self._scope, attributes)
        made.name = made.outputs[0].name
        for old, new in zip(producer.outputs, made.outputs, strict=True):
            self._standing.setdefault(old, new)
        self.nodes.append(made)

    def _copy_constant(self, old: ir.Value, elements: Any) -> ir.Value:
        return make_known_result(self._scope, self._span, old, elements)


def find_graph(value: ir.Value) -> ir.Graph | None:
    """The graph that a value is defined in."""
    producer = value.producer()
    graph = value.graph if producer is None else producer.graph
    return graph if isinstance(graph, ir.Graph) else None

"""What a target takes of a graph, by its rules of the stage `support`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from ..engine.base.errors import Reason
from ..engine.base.names import Scope
from ..engine.base.startup import dataclass
from ..engine.rewrite.driver import Driver
from ..engine.rewrite.rules import RuleSet
from ..engine.rewrite.stages import SUPPORT
from ..engine.rewrite.subgraphs import find_bodies
from ..engine.rewrite.traversal import walk_nodes


@dataclass(frozen=True, slots=True)
class Supported:
    """The nodes that a target takes, in sets that it takes together or not at all, and why it takes no others."""

    together: tuple[frozenset[ir.Node], ...]
    reasons: Mapping[ir.Node, str]


def find_supported(graph: ir.Graph, rules: RuleSet) -> Supported:
    """Ask the rules of the stage `support` about each node; nodes whose tensors have no known type are not taken."""
    driver = Driver(graph, rules, SUPPORT, Scope(graph))
    reasons: dict[ir.Node, str] = {}
    groups: list[frozenset[ir.Node]] = []
    alone: set[ir.Node] = set()
    for node in graph:
        found = driver.find_covered(node)
        untyped = [value.name for value in (*node.inputs, *node.outputs) if value is not None and value.dtype is None]
        if untyped:
            reasons[node] = f"the element type of {untyped[0]} is not known"
        elif found is None:
            reasons[node] = _explain(driver, node)
        elif isinstance(found, Reason):
            reasons[node] = f"{found.message} (rule {found.rule})"
        elif len(found) == 1:
            alone.add(node)
        else:
            groups.append(frozenset(found))
    groups = [group for group in groups if not group <= alone]
    joined = _join([*groups, *(frozenset({node}) for node in alone)])
    taken = {node for group in joined for node in group}
    return Supported(tuple(joined), {node: why for node, why in reasons.items() if node not in taken})


def _explain(driver: Driver, node: ir.Node) -> str:
    """Why no rule takes a node: where those about its operator do not fit, which a `require` would say in words."""
    misses = driver.explain_misses(node, general=True)
    told = "; ".join(dict.fromkeys(f"{miss.message} (rule {miss.rule}, {miss.span})" for miss in misses))
    return told or f"no rule of the target is about {node.op_type}"


def _join(groups: list[frozenset[ir.Node]]) -> list[frozenset[ir.Node]]:
    """Sets of nodes with those that share one made one."""
    of: dict[ir.Node, set[ir.Node]] = {}
    for group in groups:
        joined: set[ir.Node] = set(group)
        for node in group:
            joined |= of.get(node, set())
        for node in joined:
            of[node] = joined
    return [frozenset(one) for one in {id(joined): joined for joined in of.values()}.values()]


def list_read(node: ir.Node) -> Iterator[ir.Value]:
    """The values that a node reads, and those that its graphs read from around them.

    Constants are left out, and what nothing yields: a variable that the node itself keeps between calls.
    """
    inner = {output for each in walk_nodes([node]) for output in each.outputs} - set(node.outputs)
    for each in walk_nodes([node]):
        for graph in find_bodies(each):
            inner.update(graph.inputs)
            inner.update(graph.initializers.values())
    for each in walk_nodes([node]):
        for value in each.inputs:
            if value is None or value in inner or (value.const_value is not None and not value.is_graph_input()):
                continue
            if value.is_graph_input() or value.producer() is not None:
                yield value


def list_constants(node: ir.Node) -> Iterator[ir.Value]:
    """The constants of the graphs around it that a node reads, or its graphs do."""
    inner: set[ir.Value] = set()
    for each in walk_nodes([node]):
        for body in find_bodies(each):
            inner.update(body.initializers.values())
    for each in walk_nodes([node]):
        for value in each.inputs:
            if value is not None and value.const_value is not None and value not in inner:
                yield value

"""Observers of passes: one prints the graph after a pass, one checks that it is valid after each."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from ..base.errors import RewriteError
from ..rewrite.subgraphs import find_bodies
from .base import Module, Observer, Pass


def print_after(wanted: str, say: Callable[[str], None]) -> Observer:
    """Make an observer that says the graph after each pass of a name; `all` stands for every pass."""

    def print_graph(one: Pass, module: Module) -> None:
        if wanted in (one.name, "all"):
            say(f"# after {one.name}\n{_format_graph(module.graph)}")

    return print_graph


def _format_graph(graph: ir.Graph, indent: str = "") -> str:
    """A graph as a line for each node: results, operator, operands, attributes, and below it the graphs it holds."""
    lines = [f"{indent}graph {graph.name}({', '.join(map(_describe, graph.inputs))})"]
    for node in graph:
        results, operands = (
            ", ".join(map(_describe, node.outputs)),
            ", ".join(_format_name(value) for value in node.inputs),
        )
        plain = [one for one in node.attributes.values() if one.type is not ir.AttributeType.GRAPH]
        options = ", ".join(f"{one.name}: {one.value!r:.60}" for one in plain)
        domain = f"{node.domain}." if node.domain else ""
        lines.append(f"{indent}  {results} = {domain}{node.op_type}({operands}){f' {{{options}}}' if options else ''}")
        lines += [_format_graph(body, indent + "    ") for body in find_bodies(node)]
    lines.append(f"{indent}  return {', '.join(_format_name(value) for value in graph.outputs)}")
    return "\n".join(lines)


def _format_name(value: ir.Value | None) -> str:
    return "none" if value is None else value.name or "?"


def _describe(value: ir.Value) -> str:
    shape = "[?]" if value.shape is None else f"[{', '.join(f'{extent}' for extent in value.shape)}]"
    return f"{_format_name(value)}: {'?' if value.dtype is None else value.dtype.name.lower()}{shape}"


def check_graph(one: Pass, module: Module) -> None:
    """Raise RewriteError where a pass left a graph in which a value is read that nothing computes, or too late.

    An observer for tests: it takes the time of a pass.
    """
    wrong = _find_fault(module.graph, set())
    if wrong:
        raise RewriteError(f"after {one.name}: {wrong}")


def _find_fault(graph: ir.Graph, outer: set[ir.Value]) -> str:
    """What is wrong with a graph whose nodes may read the values of `outer`; nothing where nothing is.

    The order of nodes is left to the pass that sorts them.
    """
    known = {*outer, *graph.inputs, *(output for node in graph for output in node.outputs)}
    for node in graph:
        if node.graph is not graph:
            return f"{node.op_type} {node.name} stands in a graph that it does not belong to"
        for value in node.inputs:
            if value is not None and value not in known and value.const_value is None:
                return f"{node.op_type} {node.name} reads {value.name}, which nothing computes"
        wrong = next((found for body in find_bodies(node) if (found := _find_fault(body, known))), "")
        if wrong:
            return wrong
    lost = [value.name for value in graph.outputs if value not in known and value.const_value is None]
    return f"the graph yields {lost[0]}, which nothing computes" if lost else ""

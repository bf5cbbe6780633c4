"""Names of outputs: those that a graph is to have for them, by values of their own."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from ..base.errors import RewriteError
from ..dialects.operators import Dialect
from ..rewrite.subgraphs import make_copy


def name_outputs(graph: ir.Graph, wanted: Mapping[int, str], dialect: Dialect) -> None:
    """Give outputs their names, by their places; one that is another input, a constant or a repeat by another name gets
    a node of its own.

    Raises RewriteError where one name is of two values.
    """
    named: dict[str, tuple[ir.Value, ir.Value]] = {}
    seen = {value for place, value in enumerate(graph.outputs) if place not in wanted}
    taken = {value.name: value for value in _list_values(graph)}
    for position, name in wanted.items():
        value = source = graph.outputs[position]
        if name in named:  # as files may list a value twice
            if named[name][0] is not source:
                raise RewriteError(f"output {name} is listed twice, and is another value each time")
            graph.outputs[position] = named[name][1]
            continue
        if value.name == name and value.is_graph_input() and value not in seen:
            # The source passes an input on by its name, which no other value can have.
            seen.add(value)
            named[name] = source, value
            continue
        if value.name != name or value in seen or value.producer() is None:
            other = taken.get(name)
            if value.producer() is None or value in seen or (other is not None and other.producer() is None):
                value = _copy(graph, value, dialect)
                graph.outputs[position] = value
            if other is not None and other is not value and other.name == name:  # what is inside may have any name
                other.name = _find_free_name(f"{name}_inner", taken)
                taken[other.name] = other
            value.name = name
            taken[name] = value
        seen.add(value)
        named[name] = source, value


def _copy(graph: ir.Graph, value: ir.Value, dialect: Dialect) -> ir.Value:
    graph.append(made := make_copy(dialect.find_role("copy"), value))
    return made.outputs[0]


def _list_values(graph: ir.Graph) -> list[ir.Value]:
    return [*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)]


def _find_free_name(base: str, taken: dict[str | None, ir.Value]) -> str:
    count = 1
    while f"{base}_{count}" in taken:
        count += 1
    return f"{base}_{count}"

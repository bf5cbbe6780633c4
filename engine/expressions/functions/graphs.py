"""Functions about graphs that options name."""

from __future__ import annotations

from typing import Any

from .registry import register


@register
def operators(graph: Any) -> list[str]:
    """The names of the operators of a graph that an option names, in order."""
    return [node.op_type for node in graph.graph if node.graph is not None]


@register
def passed(graph: Any) -> list[int | None]:
    """For each result of a graph, which of its inputs it is; `none` for one that is computed."""
    inputs = list(graph.graph.inputs)
    return [inputs.index(result) if result in inputs else None for result in graph.graph.outputs]

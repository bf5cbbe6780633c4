"""Graphs as data of a page: nodes with what is known of them, and edges between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import onnx_ir as ir

from ..engine.base.quantization import quantization
from ..engine.rewrite.driver import RULE, SOURCE

#: so many nodes are drawn at most, and so many letters of a text shown
_NODES, _LETTERS, _TENSORS = 15_000, 200, 8


def describe_graph(
    graph: ir.Graph, sides: Mapping[ir.Node, str] | None = None, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Describe a graph: `sides` says in which layout a node runs, `refused` names what no rule took."""
    nodes: list[dict[str, Any]] = []
    edges: list[tuple[int, int]] = []
    at: dict[ir.Value, int] = {}
    for node in graph:
        if len(nodes) == _NODES:
            break
        source = node.metadata_props.get(SOURCE, "")
        names = {source, node.name or "", *(value.name or "" for value in node.outputs)} - {""}
        edges += dict.fromkeys((at[value], len(nodes)) for value in node.inputs if value is not None and value in at)
        at.update((value, len(nodes)) for value in node.outputs)
        nodes.append(
            {
                "op": cut(node.op_type),
                "name": cut(node.name or next(iter(value.name or "" for value in node.outputs), "")),
                "rule": cut(node.metadata_props.get(RULE, "")),
                "source": cut(source),
                "side": "refused" if names & set(refused) else (sides or {}).get(node, "either"),
                "inputs": [_describe_value(value) for value in node.inputs[:_TENSORS]],
                "outputs": [_describe_value(value) for value in node.outputs[:_TENSORS]],
                "attributes": cut(", ".join(map(_describe_attribute, node.attributes.values()))),
            }
        )
    return {"nodes": nodes, "edges": edges, "more": max(0, len(graph) - len(nodes))}


def cut(text: str) -> str:
    """A text without what is beyond the letters that a page shows."""
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _describe_value(value: ir.Value | None) -> str:
    if value is None:
        return "none"
    shape = "?" if value.shape is None else " x ".join(f"{extent}" for extent in value.shape) or "scalar"
    text = f"{cut(value.name or '')} {value.dtype.name.lower() if value.dtype is not None else '?'} {shape}"
    known = quantization(value)
    if known is None:
        return text
    if known.scale.size > 1:
        return f"{text}, {known.scale.size} scales along axis {known.axis}"
    return f"{text}, scale {float(known.scale.ravel()[0]):.6g}, zero point {int(known.zero_point.ravel()[0])}"


def _describe_attribute(attribute: ir.Attr) -> str:
    shown = (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING, ir.AttributeType.INTS)
    return f"{attribute.name}={attribute.value!s:.60}" if attribute.type in shown else attribute.name

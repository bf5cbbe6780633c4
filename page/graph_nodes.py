"""Graphs as data of a page: tensors, nodes with what is known of them, and the graph's inputs and outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ..engine.base.quantization import quantization
from ..engine.base.startup import dataclass, field
from ..engine.rewrite.driver import RULE, SOURCE

#: so many nodes are drawn at most, so many letters of a text shown, and so many operands of a node
_NODES, _LETTERS, _OPERANDS = 15_000, 200, 64
#: what stands between the sizes of a shape
_BY = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True, slots=True)
class _Table:
    """Texts or tensors that are written once and referred to by their place."""

    rows: list[Any] = field(default_factory=list)
    places: dict[Any, int] = field(default_factory=dict)

    def place(self, key: Any, row: Any) -> int:
        """The place of a row, which is added where its key is new."""
        if key not in self.places:
            self.places[key] = len(self.rows)
            self.rows.append(row)
        return self.places[key]


def describe_graph(
    graph: ir.Graph, sides: Mapping[ir.Node, str] | None = None, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Describe a graph as tables that refer to each other by place.

    `sides` says in which layout a node runs, `refused` names nodes, or what they stem from, that no rule took.

    A node has its operator, name, rule, source node, side, operands and results (-1 for one that is left out),
    attributes, and 1 where it computes from constants alone. A tensor has its name, type, shape, quantization, and 1
    where it is constant.
    """
    tensors, rules = _Table(), _Table()
    nodes: list[list[Any]] = []
    known: set[ir.Value] = set()
    for node in graph:
        if len(nodes) == _NODES:
            break
        constant = _is_constant(node, known)
        if constant:
            known.update(node.outputs)
        rule, source = cut(node.metadata_props.get(RULE, "")), node.metadata_props.get(SOURCE, "")
        is_refused = source in refused or (node.name or "") in refused
        nodes.append(
            [
                cut(node.op_type),
                cut(node.name or next((value.name for value in node.outputs if value.name), "")),
                rules.place(rule, rule),
                cut(source),
                "refused" if is_refused else (sides or {}).get(node, "either"),
                _place(tensors, node.inputs),
                _place(tensors, node.outputs),
                cut(", ".join(map(_describe_attribute, node.attributes.values()))),
                int(constant),
            ]
        )
    return {
        "tensors": tensors.rows,
        "rules": rules.rows,
        "nodes": nodes,
        "inputs": _place(tensors, graph.inputs),
        "outputs": _place(tensors, graph.outputs),
        "more": max(0, len(graph) - len(nodes)),
    }


def describe_interface(values: Sequence[ir.Value]) -> list[list[str]]:
    """The names, types and shapes of a graph's inputs or outputs."""
    return [_describe_value(value)[:3] for value in values[:_OPERANDS]]


def cut(text: str) -> str:
    """A text without what is beyond the letters that a page shows."""
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _is_constant(node: ir.Node, known: set[ir.Value]) -> bool:
    given = [value for value in node.inputs if value is not None]
    if not given:
        return any(value.const_value is not None for value in node.outputs)
    return all(value.const_value is not None or value in known for value in given)


def _place(tensors: _Table, values: Sequence[ir.Value | None]) -> list[int]:
    return [-1 if v is None else tensors.place(v, _describe_value(v)) for v in values[:_OPERANDS]]


def _describe_value(value: ir.Value) -> list[Any]:
    shape = "?" if value.shape is None else _BY.join(cut(f"{extent}") for extent in value.shape) or "scalar"
    kind = value.dtype.name.lower() if value.dtype is not None else "?"
    return [cut(value.name or ""), kind, cut(shape), _describe_quantization(value), int(value.const_value is not None)]


def _describe_quantization(value: ir.Value) -> str:
    known = quantization(value)
    if known is None or not known.scale.size:
        return ""
    if known.scale.size > 1:
        least, most = float(known.scale.min()), float(known.scale.max())
        return f"{known.scale.size} scales of {least:.3g} to {most:.3g} along axis {known.axis}"
    return f"scale {float(known.scale.ravel()[0]):.6g}, zero point {int(known.zero_point.ravel()[0])}"


def _describe_attribute(attribute: ir.Attr) -> str:
    shown = (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING, ir.AttributeType.INTS)
    return f"{attribute.name}={attribute.value!s:.60}" if attribute.type in shown else attribute.name

"""Graphs as data of a page: tensors, nodes with what is known of them, and the graph's inputs and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ..engine.base.errors import format_count
from ..engine.base.provenance import RULE, SOURCE
from ..engine.base.quantization import read_quantization
from ..engine.base.startup import dataclass, field

#: so many nodes are drawn at most, so many letters of a text shown, and so many operands of a node
_NODES, _LETTERS, _OPERANDS = 15_000, 160, 64
#: what stands between the sizes of a shape
_BY = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts that are written once, without what is beyond the letters that a page shows, and referred to by place."""

    rows: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def find_place(self, text: str) -> int:
        """The place of a text, which is added where it is new."""
        shown = shorten(text)
        if shown not in self.places:
            self.places[shown] = len(self.rows)
            self.rows.append(shown)
        return self.places[shown]


@dataclass(frozen=True, slots=True)
class _Tensors:
    """The tensors of a graph, each described once and referred to by place."""

    texts: Texts
    rows: list[list[Any]] = field(default_factory=list)
    places: dict[ir.Value, int] = field(default_factory=dict)

    def find_places(self, values: Sequence[ir.Value | None]) -> list[int]:
        """The places of some tensors, -1 for one that is left out."""
        return [-1 if value is None else self._find_place(value) for value in values[:_OPERANDS]]

    def _find_place(self, value: ir.Value) -> int:
        if value not in self.places:
            self.places[value] = len(self.rows)
            *told, constant = _describe_value(value)
            self.rows.append([*map(self.texts.find_place, told), constant])
        return self.places[value]


def describe_graph(
    graph: ir.Graph, texts: Texts, sides: Mapping[ir.Node, str] | None = None, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Describe a graph as tables that refer to each other by place; names and other texts go into `texts`.

    `sides` says in which layout a node runs, `refused` names nodes, or what they stem from, that no rule took.

    A node has its operator, name, rule, source node, side, operands and results (-1 for one that is left out),
    attributes, and 1 where it computes from constants alone. A tensor has its name, type, shape, quantization, and 1
    where it is constant.
    """
    tensors = _Tensors(texts)
    nodes: list[list[Any]] = []
    known: set[ir.Value] = set()
    for node in graph:
        if len(nodes) == _NODES:
            break
        constant = _is_constant(node, known)
        if constant:
            known.update(node.outputs)
        rule, source = node.metadata_props.get(RULE, ""), node.metadata_props.get(SOURCE, "")
        is_refused = source in refused or (node.name or "") in refused
        nodes.append(
            [
                texts.find_place(node.op_type),
                texts.find_place(node.name or next((value.name for value in node.outputs if value.name), "")),
                texts.find_place(rule),
                texts.find_place(source),
                "refused" if is_refused else (sides or {}).get(node, "either"),
                tensors.find_places(node.inputs),
                tensors.find_places(node.outputs),
                texts.find_place(", ".join(map(_describe_attribute, node.attributes.values()))),
                int(constant),
            ]
        )
    return {
        "tensors": tensors.rows,
        "nodes": nodes,
        "inputs": tensors.find_places(graph.inputs),
        "outputs": tensors.find_places(graph.outputs),
        "more": max(0, len(graph) - len(nodes)),
    }


def describe_interface(values: Sequence[ir.Value]) -> list[list[str]]:
    """The names, types and shapes of a graph's inputs or outputs."""
    return [[shorten(text) for text in _describe_value(value)[:3]] for value in values[:_OPERANDS]]


def shorten(text: str) -> str:
    """A text without what is beyond the letters that a page shows, out of its middle: names differ at their ends."""
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS // 3]}…{text[1 - _LETTERS + _LETTERS // 3 :]}"


def _is_constant(node: ir.Node, known: set[ir.Value]) -> bool:
    given = [value for value in node.inputs if value is not None]
    if not given:
        return any(value.const_value is not None for value in node.outputs)
    return all(value.const_value is not None or value in known for value in given)


def _describe_value(value: ir.Value) -> list[Any]:
    shape = "?" if value.shape is None else _BY.join(shorten(f"{extent}") for extent in value.shape) or "scalar"
    kind = value.dtype.name.lower() if value.dtype is not None else "?"
    return [value.name or "", kind, shape, _describe_quantization(value), int(value.const_value is not None)]


def _describe_quantization(value: ir.Value) -> str:
    known = read_quantization(value)
    if known is None or not known.scale.size:
        return ""
    if known.scale.size > 1:
        least, most = float(known.scale.min()), float(known.scale.max())
        return f"{known.scale.size} scales of {least:.3g} to {most:.3g} along axis {known.axis}"
    return f"scale {float(known.scale.ravel()[0]):.6g}, zero point {int(known.zero_point.ravel()[0])}"


def _describe_attribute(attribute: ir.Attr) -> str:
    if attribute.type == ir.AttributeType.GRAPH:
        inside = Counter(node.op_type for node in attribute.as_graph())
        told = ", ".join(f"{name} {count}" for name, count in inside.most_common(5))
        return f"{attribute.name}: {format_count(inside.total(), 'node')} ({told})"
    shown = (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING, ir.AttributeType.INTS)
    return f"{attribute.name}={attribute.value!s:.60}" if attribute.type in shown else attribute.name

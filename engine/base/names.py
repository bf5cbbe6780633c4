"""Unique names and shared constants of a graph that rules change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .constants import AS_STORED, CALLED, NUMBERS, TRAINED, Elements, find_trained, permute_elements

#: small constants of equal type, shape and bytes are shared
_SHARED = 256


def show_name(node: ir.Node) -> str:
    """What a message calls a node: by its name, or where it has none by its first result."""
    return node.name or next((one.name for one in node.outputs if one.name), "")


class Scope:
    """The names and shared constants of one graph under construction."""

    __slots__ = ("_adopted", "_counts", "_nodes", "_shared", "_taken", "graph")

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        #: the names in use, read off the graph when the first new one is wanted
        self._taken: set[str | None] = set()
        #: those of nodes which are not called like their first result, as a result of another may be called
        self._nodes: set[str | None] = set()
        #: the next number to try for a name that is taken
        self._counts: dict[str, int] = {}
        self._adopted: dict[ir.Value, ir.Value] = {}
        self._shared: dict[tuple[np.dtype[Any], tuple[int, ...], bytes], ir.Value] = {}

    def make_inner(self, graph: ir.Graph) -> Scope:
        """A scope for a graph of one of this graph's nodes: the names are those of both, the constants its own."""
        self._read_names()
        other = Scope(graph)
        other._taken, other._counts, other._nodes = self._taken, self._counts, self._nodes
        return other

    def reserve(self, names: Iterable[str | None]) -> None:
        """Keep names, which graphs inside this one have, from being given again."""
        self._read_names()
        self._taken.update(names)

    def make_name(self, base: str) -> str:
        """A name that no value and no node of the graph has yet."""
        self._read_names()
        name = base
        if name in self._taken:
            count = self._counts.get(base, 1)
            while (name := f"{base}_{count}") in self._taken:
                count += 1
            self._counts[base] = count + 1
        self._taken.add(name)
        return name

    def _read_names(self) -> None:
        """Read the names in use off the graph and those inside it, which see its values, once."""
        if not self._taken:
            self._taken.add(None)
            for graph in (self.graph, *self.graph.subgraphs()):
                self._taken.update(value.name for value in (*graph.inputs, *graph.initializers.values()))
                self._taken.update(output.name for node in graph for output in node.outputs)
                self._taken.update(node.name for node in graph)
                self._nodes.update(n.name for n in graph if not n.outputs or n.name != n.outputs[0].name)

    def name_node(self, node: ir.Node, base: str) -> None:
        """Name the results of a node that have no name yet, and the node like its first."""
        for output in node.outputs:
            if output.name is None:
                output.name = self.make_name(base)
        if not node.name:
            self._read_names()
            called = node.outputs[0].name
            node.name = self.make_name(f"{called}") if called in self._nodes else called

    def make_computed_constant(self, elements: Elements, base: str, operands: Sequence[ir.Value | None]) -> ir.Value:
        """A constant value computed of operands, called by the weight among them that is to be trained."""
        weight = find_trained(operands)
        return self.make_constant(elements, weight or base, weight)

    def make_constant(self, elements: Elements, base: str, weight: str | None = None) -> ir.Value:
        """A constant value, shared with an equal one where it is small; `weight` names one that is to be trained."""
        key = None
        if (
            weight is None
            and isinstance(elements, np.ndarray)
            and elements.size <= _SHARED
            and elements.dtype.kind not in "OSU"
        ):
            key = elements.dtype, elements.shape, elements.tobytes()
            if key in self._shared:
                return self._shared[key]
        tensor = _make_tensor(elements)
        name = self.make_name(base)
        called = self.graph.meta.setdefault(CALLED, {})
        if name != base or base in called:
            called[name] = called.get(base, base)
        shape = ir.Shape(elements.shape)
        value = ir.Value(name=name, shape=shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
        tensor.name = name
        if weight is not None:
            value.meta[TRAINED] = weight
        if key is not None:
            self._shared[key] = value
        return value

    def register(self, constant: ir.Value) -> ir.Value:
        """Let a constant be of the graph, which a shared one may be already."""
        if constant.graph is None:
            self.graph.register_initializer(constant)
        return constant

    def adopt(self, constant: ir.Value) -> ir.Value:
        """Copy a constant of another graph into this one, once for each constant."""
        if constant not in self._adopted:
            value = ir.Value(
                name=self.make_name(constant.name or "constant"),
                shape=constant.shape,
                type=constant.type,
                const_value=constant.const_value,
            )
            value.meta.update(constant.meta)
            self.graph.register_initializer(value)
            self._adopted[constant] = value
        return self._adopted[constant]


def permute_constant(value: ir.Value, perm: Sequence[int], scope: Scope) -> ir.Value | None:
    """A constant with its axes permuted; None for a value that is none, or that stays as it is stored."""
    elements = None if AS_STORED in value.meta else permute_elements(value, perm)
    return None if elements is None else scope.make_computed_constant(elements, value.name or "constant", [value])


def permute_dequantized(value: ir.Value, perm: Sequence[int], scope: Scope) -> ir.Node:
    """Make a node that dequantizes a constant with its axes permuted: its codes move, and the axis of its scales."""
    producer = value.producer()
    assert producer is not None and producer.inputs[0] is not None
    codes = permute_elements(producer.inputs[0], perm)
    assert codes is not None
    moved = scope.make_constant(codes, f"{producer.inputs[0].name}")
    made = ir.Node(producer.domain, producer.op_type, [moved, *producer.inputs[1:]], num_outputs=1)
    for name, kept in producer.attributes.items():
        made.attributes.add(ir.AttrInt64(name, list(perm).index(kept.as_int())) if name == "axis" else kept)
    result, real = made.outputs[0], value.meta[NUMBERS]
    result.type, result.shape = value.type, ir.Shape(codes.shape)
    result.meta[NUMBERS] = lambda: np.transpose(real(), perm)
    return made


def _make_tensor(elements: Elements) -> ir.TensorProtocol:
    if isinstance(elements, ir.LazyTensor):
        return elements
    if elements.dtype.kind in "OSU":
        words = [word.encode() if isinstance(word, str) else word for word in elements.ravel().tolist()]
        return ir.StringTensor(words, shape=ir.Shape(elements.shape))
    return ir.Tensor(elements)

"""A graph in which forms say where codes begin and end, and what is made in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.quantization import CODES, DEQUANTIZE_BY, KEY, QUANTIZE_BY, Quantization, read_node_grid
from ..dialects.operators import OperatorSpec
from ..expressions.functions import SHORT
from .base import Module


def find_producer(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()


def is_real(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and value.dtype.is_floating_point()


def are_alike(grids: Sequence[Quantization]) -> bool:
    return all(one == grids[0] for one in grids)


def is_allowed(spec: OperatorSpec, position: int, dtype: ir.DataType) -> bool:
    """Whether ops.yaml has an element type among those of an operand, as codes or as numbers that stand for such.

    Where it names none, what moves codes moves those of all types.
    """
    types = spec.facts.types
    if not types:
        return spec.facts.quantization == CODES
    words = types[min(position, len(types) - 1)].split()
    name = SHORT[dtype]
    return not {"any", name, f"q{name}"}.isdisjoint(words)


class CodedGraph:
    """One graph of the target, with the names and the rules of its module."""

    def __init__(self, module: Module) -> None:
        self.graph, self.dialect, self.scope = module.graph, module.target, module.names
        self.settle = module.rules.settle
        self.quantize = self.dialect.find_role(QUANTIZE_BY)
        self.dequantize = self.dialect.find_role(DEQUANTIZE_BY)

    def find_role(self, node: ir.Node | None) -> str | None:
        """Whether a node is one of the two forms, and which."""
        spec = None if node is None or node.domain != self.dialect.domain else self.dialect.find_operator(node.op_type)
        return spec.role if spec is not None and spec.role in (QUANTIZE_BY, DEQUANTIZE_BY) else None

    def is_dequantize(self, form: ir.Node | None) -> bool:
        """Whether a node is the form that reads numbers off a grid."""
        return self.find_role(form) == DEQUANTIZE_BY

    def find_grid(self, result: ir.Value) -> tuple[Quantization, ir.DataType] | None:
        """The grid that all that reads a result puts it on, and the type of its codes."""
        forms = [use.node for use in result.uses()]
        if not forms or result.is_graph_output() or any(self.find_role(form) != QUANTIZE_BY for form in forms):
            return None
        dtype = forms[0].outputs[0].dtype
        if dtype is None or not are_alike([read_node_grid(form) for form in forms]):
            return None
        return (read_node_grid(forms[0]), dtype) if all(form.outputs[0].dtype == dtype for form in forms) else None

    def replace(self, form: ir.Node, after: ir.Value) -> None:
        """Let users of a form's result use another value, and remove the form."""
        before = form.outputs[0]
        if before.is_graph_output() and not after.is_graph_output():
            after.name = before.name
        ir.convenience.replace_all_uses_with(before, after, replace_graph_outputs=True)
        self.graph.remove(form, safe=True)

    def requantize(
        self, codes: ir.Value, wanted: Quantization, dtype: ir.DataType, node: ir.Node, before: bool = False
    ) -> ir.Value:
        """Codes brought to another grid."""
        spec = self.dialect.find_role("quantize")
        made = ir.Node(spec.domain, spec.name, [codes], num_outputs=1)
        made.metadata_props.update(node.metadata_props)
        result = made.outputs[0]
        result.type, result.shape, result.meta[KEY] = ir.TensorType(dtype), codes.shape, wanted
        self.scope.name_node(made, f"{codes.name}/{spec.name}")
        (self.graph.insert_before if before else self.graph.insert_after)(node, made)
        return result

    def make_constant(self, elements: np.ndarray[Any, Any], like: ir.Value, known: Quantization | None) -> ir.Value:
        """A constant of the graph, on a grid where it is one of codes."""
        made = ir.Value(
            name=self.scope.make_name(f"{like.name}/codes"),
            shape=ir.Shape(elements.shape),
            type=ir.TensorType(ir.DataType.from_numpy(elements.dtype)),
            const_value=ir.Tensor(elements),
        )
        if known is not None:
            made.meta[KEY] = known
        self.graph.register_initializer(made)
        return made

    def make_form(self, spec: OperatorSpec, value: ir.Value, like: ir.Node, dtype: ir.DataType) -> ir.Node:
        """A form over a value, by the grid of another."""
        made = ir.Node(spec.domain, spec.name, [value, *like.inputs[1:]], like.attributes.values(), num_outputs=1)
        made.metadata_props.update(like.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = ir.TensorType(dtype), value.shape
        self.scope.name_node(made, f"{value.name}/{spec.role}")
        return made

    def find_spec(self, node: ir.Node) -> OperatorSpec | None:
        """What ops.yaml says of a node of the dialect that is no form."""
        spec = self.dialect.find_operator(node.op_type) if node.domain == self.dialect.domain else None
        return None if spec is None or self.find_role(node) is not None else spec

    def has_activation(self, node: ir.Node, spec: OperatorSpec) -> bool:
        """Whether an activation is fused into a node."""
        name = self.dialect.facts.activation
        held = node.attributes.get(name or "")
        return held is not None and spec.options[held.name].default != held.value

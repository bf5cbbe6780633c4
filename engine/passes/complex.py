"""Pass `complex`: complex numbers become pairs of real ones, in a last axis of two, since targets compute with none."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..expressions.functions import PAIR
from .base import Module, Visit

#: the element type of the parts
_PARTS = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}


class Complex:
    """Give every complex value a last axis of two, for its real and its imaginary part."""

    name, visits = "complex", Visit.FUNCTIONS_FIRST

    def run(self, module: Module) -> None:
        """Turn the complex values of one graph into pairs, and note whether there are any."""
        module.outcome.complex |= split_complex(module.graph)


def split_complex(graph: ir.Graph) -> bool:
    """Give every complex value of a graph its last axis of two; whether there are any."""
    found = False
    for value in (*graph.inputs, *graph.initializers.values(), *(o for node in graph for o in node.outputs)):
        parts = _PARTS.get(value.dtype) if value.dtype is not None else None
        if parts is None:
            continue
        found = True
        value.meta[PAIR] = True
        value.type = ir.TensorType(parts)
        if value.shape is not None:
            value.shape = ir.Shape([*value.shape, 2])
        if value.const_value is not None:
            array = value.const_value.numpy()
            value.const_value = ir.Tensor(np.stack([array.real, array.imag], axis=-1), name=value.name)
    return found


def clear_complex_marks(graph: ir.Graph) -> None:
    """Take pairs of real numbers for what they are, in a graph and in those of its nodes: rules have made them so."""
    values = [*graph.inputs, *graph.initializers.values()]
    for node in ir.traversal.RecursiveGraphIterator(graph):
        values += node.outputs
    for value in values:
        value.meta.pop(PAIR, None)

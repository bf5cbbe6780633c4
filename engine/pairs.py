"""Complex numbers as pairs of real ones: targets compute with none, so a last axis of two holds both parts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .functions import PAIR, is_complex
from .language import tree
from .rules import Rule

#: the element type of the parts
_PARTS = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}


def pair(graph: ir.Graph) -> bool:
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


def paired(node: ir.Node) -> bool:
    """Whether a node takes or yields complex numbers."""
    return any(is_complex(value) for value in (*node.inputs, *node.outputs) if value is not None)


def minds(rule: Rule) -> bool:
    """Whether a rule asks which values are complex; one that does not speaks of real numbers alone."""
    calls = (one for one in tree.walk((rule.clauses, rule.templates)) if isinstance(one, tree.Call))
    return any(call.callee == is_complex.__name__ for call in calls)

"""Constants that a file stores in another type than nodes read them in: read as they are, before a model is divided."""

from __future__ import annotations

import onnx_ir as ir

from ..engine.base.constants import initial_array
from ..engine.base.quantization import dequantize, inherit, quantization
from ..engine.dialects.operators import Dialect


def fold_stored(graph: ir.Graph, dialect: Dialect) -> None:
    """Let nodes that make real numbers of a stored constant be constants themselves.

    Each would be a tensor to move from step to step, and to rules for weights no constant. Integers become what they
    stand for, numbers of half precision the same in single; operators of the trait `stored` yield what they read.
    """
    role = dialect.role("dequantize").name
    for node in list(graph):
        spec = dialect.operators.get(node.op_type)
        if spec is None or node.domain != dialect.domain or not (spec.name == role or "stored" in spec.traits):
            continue
        (output,), stored = node.outputs, node.inputs[0]
        codes = None if stored is None else initial_array(stored)
        if codes is None or output.dtype is None or output.is_graph_output():
            continue
        known = quantization(stored) if spec.name == role else None
        if known is None and spec.name == role and codes.dtype.kind in "iu":
            continue
        numbers = codes if known is None else dequantize(codes, known)
        value = ir.Value(
            name=output.name,
            type=output.type,
            shape=ir.Shape(numbers.shape),
            const_value=ir.Tensor(numbers.astype(output.dtype.numpy()), name=output.name),
        )
        inherit(output, value)
        ir.convenience.replace_all_uses_with(output, value)
        graph.remove(node, safe=True)
        graph.register_initializer(value)

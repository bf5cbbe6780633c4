"""What is constant although a file computes it: made a constant before a model is divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..engine.base.constants import read_initializer
from ..engine.base.quantization import EXTENTS, dequantize, inherit, read_quantization
from ..engine.dialects.operators import Dialect
from ..engine.rewrite.rules import RuleSet
from ..engine.rewrite.subgraphs import find_bodies
from .units import count_bytes

#: what stays a node where it would be larger
_SMALL = 4096


def fold_stored(graph: ir.Graph, dialect: Dialect) -> None:
    """Let nodes that make real numbers of a stored constant be constants themselves.

    Each would be a tensor to move from step to step, and to rules for weights no constant. Integers become what they
    stand for, numbers of half precision the same in single; operators of the trait `stored` yield what they read.
    """
    role = dialect.find_role("dequantize").name
    for node in list(graph):
        spec = dialect.operators.get(node.op_type)
        if spec is None or node.domain != dialect.domain or not (spec.name == role or "stored" in spec.traits):
            continue
        (output,), stored = node.outputs, node.inputs[0]
        codes = None if stored is None else read_initializer(stored)
        if codes is None or output.dtype is None or output.is_graph_output():
            continue
        known = read_quantization(stored) if spec.name == role else None
        if known is None and spec.name == role and codes.dtype.kind in "iu":
            continue
        _hold(graph, node, codes if known is None else dequantize(codes, known))


def fold_shape_arithmetic(graph: ir.Graph, rules: RuleSet) -> None:
    """Let nodes that compute with sizes and other small constants be constants where all of these are known,
    and results have the sizes that follow.

    Each would be a node that a target may not take, and stand between its parts.
    """
    for node in list(graph):
        spec = rules.source.operators.get(node.op_type)
        if spec is None or node.domain != rules.source.domain or any(find_bodies(node)):
            continue
        _infer_sizes(node, rules)
        if len(node.outputs) != 1:
            continue
        (output,) = node.outputs
        if output.dtype in (None, ir.DataType.STRING) or output.is_graph_output() or not spec.facts.pure:
            continue
        sizes_alone = spec.facts.quantization == EXTENTS
        read = [value for value in node.inputs if value is not None and not sizes_alone]
        if any(map(read_quantization, (*read, output))):
            continue
        if _is_sized(output) and count_bytes(output) > _SMALL:
            continue
        operands = [None if value is None else _make_stand_in(value, sizes_alone) for value in node.inputs]
        if not operands or any(value is not None and value.const_value is None for value in operands):
            continue
        alone = ir.Node(node.domain, node.op_type, operands, node.attributes.values(), num_outputs=1)
        alone.outputs[0].type = output.type
        found = rules.settle(alone) if rules.settle is not None else None
        if found is not None and found[0].nbytes <= _SMALL:
            _hold(graph, node, np.asarray(found[0]))


def _infer_sizes(node: ir.Node, rules: RuleSet) -> None:
    """Let results of unknown sizes have those that follow from operands of known ones."""
    if rules.settle is None or all(map(_is_sized, node.outputs)):
        return
    if not all(value is None or value.const_value is not None or _is_sized(value) for value in node.inputs):
        return
    known = [(output.type, output.shape) for output in node.outputs]
    elements = rules.settle(node) or ()
    for output, one in zip(node.outputs, elements, strict=False):
        output.shape = ir.Shape(one.shape)
    for output, (held, shape) in zip(node.outputs, known, strict=True):
        output.type = held
        if not _is_sized(output):
            output.shape = shape


def _is_sized(value: ir.Value) -> bool:
    return value.shape is not None and all(isinstance(extent, int) for extent in value.shape)


def _make_stand_in(value: ir.Value, extents_only: bool) -> ir.Value:
    """A constant with the elements of a small one, or of zeros where only their number is read; else one of unknown
    elements."""
    array = read_initializer(value) if value.const_value is not None and value.const_value.nbytes <= _SMALL else None
    if array is None and extents_only and value.dtype is not None and value.shape is not None and _is_sized(value):
        array = np.broadcast_to(
            np.zeros((), value.dtype.numpy()), [size for size in value.shape if isinstance(size, int)]
        )
    held = None if array is None else ir.Tensor(array)
    return ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=held)


def _hold(graph: ir.Graph, node: ir.Node, elements: npt.NDArray[Any]) -> None:
    """Put a constant in the place of the only result of a node."""
    (output,) = node.outputs
    assert output.dtype is not None
    value = ir.Value(
        name=output.name,
        type=output.type,
        shape=ir.Shape(elements.shape),
        const_value=ir.Tensor(elements.astype(output.dtype.numpy()), name=output.name),
    )
    inherit(output, value)
    ir.convenience.replace_all_uses_with(output, value)
    graph.remove(node, safe=True)
    graph.register_initializer(value)

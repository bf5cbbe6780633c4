"""Quantized nodes: what the integers of their operands and results are to them."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from ..base.errors import ModelError
from ..base.quantization import read_quantization
from ..dialects.operators import Dialect, OperatorSpec, get_option

#: bits of codes that kernels bring to one grid where they compare or join them; wider ones they take as they are
_MATCHED_BITS = 8
#: bits of the widest activations that are quantized; wider integers are also counts and places
_CODE_BITS = 16


def is_about_integers(node: ir.Node) -> bool:
    """Whether integers have a map to real numbers on one side of a node only: they are all that is meant."""
    return _is_map_lost(node.outputs, node.inputs) or _is_map_lost(node.inputs, node.outputs)


def _is_map_lost(known: Iterable[ir.Value | None], others: Iterable[ir.Value | None]) -> bool:
    types = {value.dtype for value in known if value is not None and read_quantization(value)}
    return any(value is not None and value.dtype in types and not read_quantization(value) for value in others)


def require_scales(node: ir.Node) -> None:
    """Refuse codes that nothing says the real numbers of; raises ModelError."""
    known = {value.dtype: value for value in node.inputs if value is not None and read_quantization(value)}
    for result in node.outputs:
        dtype = result.dtype
        if dtype is not None and dtype in known and dtype.bitwidth <= _CODE_BITS and not read_quantization(result):
            raise ModelError(
                f"{node.name}: result {result.name} of {node.op_type} has no scale, and {known[dtype].name},"
                " which it is computed of, has one: the file does not say what its integers stand for"
            )


def is_dequantizing(node: ir.Node) -> bool:
    """Whether quantized operands come in and real numbers go out."""
    return all(value.dtype is not None and value.dtype.is_floating_point() for value in node.outputs)


def has_wide_codes(node: ir.Node) -> bool:
    """Whether quantized operands have more bits than are brought to one grid."""
    known = (value.dtype for value in node.inputs if read_quantization(value) and value is not None)
    return any(dtype is not None and dtype.bitwidth > _MATCHED_BITS for dtype in known)


def has_quantized_weights(node: ir.Node) -> bool:
    """Whether constant operands, which no caller overrides, are quantized."""
    known = (value for value in node.inputs if value is not None and value.const_value is not None)
    return any(read_quantization(value) and not value.is_graph_input() for value in known)


def has_fused_activation(node: ir.Node, spec: OperatorSpec | None, source: Dialect) -> bool:
    """Whether an activation, which is a function of real numbers, is fused into a node."""
    option = source.facts.activation
    if spec is None or option is None or option not in spec.options:
        return False
    return bool(get_option(node, spec.options[option]) != spec.options[option].default)

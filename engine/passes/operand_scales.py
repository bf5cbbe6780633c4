"""The scales that kernels take operands to have, where files say others or none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from ..base.errors import RewriteError
from ..base.quantization import Quantization
from ..dialects.operators import OperatorSpec


def require_fit(node: ir.Node, value: ir.Value, known: Quantization) -> None:
    """Raise RewriteError where a value has other extents along the axis of its scales than there are scales."""
    extents = () if value.shape is None else value.shape.dims
    if not known.per_axis or value.shape is None:
        return
    found = extents[known.axis] if known.axis < len(extents) else 1
    if isinstance(found, int) and found != known.scale.size:
        shape = ", ".join(f"{extent}" for extent in extents)
        raise RewriteError(
            f"{node.name}: {value.name} of {node.op_type} has {known.scale.size} scales, which are taken along axis"
            f" {known.axis}, and is [{shape}]"
        )


def find_products(
    node: ir.Node, spec: OperatorSpec | None, known: Callable[[ir.Value | None], Quantization | None]
) -> Iterator[tuple[int, Quantization]]:
    """Operands whose scale is the product of others', as kernels that add a bias to an integer sum take it.

    They do not look at the scale that the file gives it, and take integers without any for the same. Raises
    RewriteError where the others have scales along axes of different extents.
    """
    if spec is None:
        return
    places = {operand.name: position for position, operand in enumerate(spec.operands)}
    for name, factors in spec.facts.products.items():
        positions = [places[factor] for factor in factors]
        if places[name] >= len(node.inputs):
            continue
        maps = [known(node.inputs[position]) for position in positions]
        own = node.inputs[places[name]]
        codes = own is not None and own.dtype is not None and own.dtype.is_integer()
        if not codes or any(m is None for m in maps):
            continue
        if len({m.scale.size for m in maps if m is not None} - {1}) > 1:
            sizes = " and ".join(f"{m.scale.size}" for m in maps if m is not None)
            raise RewriteError(f"{node.name}: operands {', '.join(factors)} of {node.op_type} have {sizes} scales")
        scale = functools.reduce(np.multiply, [m.scale.astype(np.float32) for m in maps if m is not None])
        yield places[name], Quantization(scale, np.zeros(scale.shape, np.int64), 0)


def find_channels(spec: OperatorSpec | None) -> dict[int, int]:
    """The axis along which kernels take the scales of an operand, by its position, whatever axis the file names."""
    known = {} if spec is None else spec.facts.channels
    return {} if spec is None else {n: known[o.name] for n, o in enumerate(spec.operands) if o.name in known}

"""Quantization parameters: what the integers of a quantized value stand for."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .constants import NUMBERS as ELEMENTS
from .constants import read_initializer
from .errors import ModelError
from .startup import dataclass

#: the key under which a value holds its Quantization
KEY = "quantization"
#: the classes of operators in ops.yaml, by what they do with codes: they move them, compare or join them on one grid,
#: mean the integers themselves, read no elements, or pass them to graphs; those without one compute with real numbers
CODES, MATCHED, RAW, EXTENTS, PASSED = "codes", "matched", "raw", "extents", "passed"
#: the trait of operators whose kernels take real activations with integer weights
HYBRID = "hybrid"

#: the entry of a model's metadata that says what its numbers are, and what it says where nothing is quantized any more
NUMBERS, REAL = "nnrewrite.numbers", "real"

#: the roles of forms of a dialect whose operands name the grid, which files have in the types of codes
QUANTIZE_BY, DEQUANTIZE_BY = "quantize_by", "dequantize_by"
#: the option by which a form says so
_BY_RANGE = "by_range"

_INTEGERS = frozenset(dtype for dtype in ir.DataType if dtype.is_integer())


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """How a value's integers map to real numbers: `real = (integer - zero_point) * scale`.

    `scale` and `zero_point` have the same shape: `[1]` for one pair for the whole value, `[n]` for one pair for each of
    the n indices along `axis`. For blockwise quantization they have the value's rank and `block_size` is the number of
    neighbouring elements that share a pair, 0 otherwise; `axes` lists the axes that are not divided into blocks where
    the file says so. Two are equal when they mean the same mapping, whatever the arrays' types.
    """

    scale: npt.NDArray[np.floating]
    zero_point: npt.NDArray[np.integer]
    axis: int = 0
    block_size: int = 0
    axes: tuple[int, ...] = ()

    @property
    def per_axis(self) -> bool:
        """Whether there is one pair for each index along `axis` and not one for the whole value."""
        return self.scale.ndim == 1 and self.scale.size > 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantization):
            return NotImplemented
        return (
            np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
            and (self.scale.size == 1 or self.axis == other.axis)
            and self.block_size == other.block_size
            and self.axes == other.axes
        )

    def __hash__(self) -> int:
        return hash((tuple(self.scale.ravel().tolist()), self.block_size))


def read_quantization(value: ir.Value | None) -> Quantization | None:
    """How the integers of a value map to real numbers; None for values that are not quantized."""
    if value is None or value.dtype not in _INTEGERS:
        return None
    found = value.meta.get(KEY)
    return found if isinstance(found, Quantization) else None


def is_blockwise(value: ir.Value | None) -> bool:
    """Whether neighbouring elements of a value share a scale."""
    known = read_quantization(value)
    return known is not None and known.block_size > 0


def inherit(before: ir.Value, after: ir.Value) -> None:
    """Copy the quantization of a value to the one that takes its place."""
    if read_quantization(before) is not None:
        after.meta[KEY] = before.meta[KEY]


def carry_grid(said: Iterable[ir.Value | None], unsaid: Iterable[ir.Value | None]) -> None:
    """Let values of which nothing says a grid lie on that of the first other codes of their type, unless that is one by
    channels: operands and results of what moves or joins codes."""
    first = next((value for value in said if read_quantization(value) is not None), None)
    known = read_quantization(first)
    if first is None or known is None or known.per_axis:
        return
    for value in unsaid:
        if value is not None and value.dtype == first.dtype and read_quantization(value) is None:
            value.meta[KEY] = known


def is_dropping_grid(read: Iterable[ir.Value | None], yielded: Iterable[ir.Value], treated: str | None) -> bool:
    """Whether codes are yielded of which nothing says what numbers they stand for, though it is said of those read.

    `treated` says how the operator treats quantized values: what moves or joins codes on one grid leaves them on it.
    """
    grids = {value.dtype: known for value in read if value is not None and (known := read_quantization(value))}
    moved = treated in ("codes", "matched")
    if not grids or (treated is not None and not (moved and any(known.per_axis for known in grids.values()))):
        return False
    return any(value.dtype in grids and read_quantization(value) is None for value in yielded)


def read_grid(scale: np.ndarray[Any, Any], zero_point: np.ndarray[Any, Any], axis: int = 0) -> Quantization:
    """The quantization that a scale and a zero point say, or those for each index along an axis."""
    return Quantization(scale.reshape(-1).astype(np.float32), zero_point.reshape(-1).astype(np.int64), axis)


def is_by_range(form: ir.Node) -> bool:
    """Whether a kernel takes the codes of a form beside real activations, which it quantizes by their range."""
    asked = form.attributes.get(_BY_RANGE)
    return asked is not None and bool(asked.value)


def read_node_grid(node: ir.Node) -> Quantization:
    """The quantization that the operands of a node name behind its first; where it names no zero point, it is 0.

    Raises ValueError where they are computed, ModelError where there are not as many as places along the axis.
    """
    said_scale, said_zero = (*node.inputs[1:3], None)[:2]
    scale = None if said_scale is None else read_initializer(said_scale)
    zero_point = None if said_zero is None else read_initializer(said_zero)
    if scale is not None and said_zero is None:
        zero_point = np.zeros(scale.shape, np.int64)
    if scale is None or zero_point is None:
        raise ValueError(f"{node.name} reads a grid that is computed")
    said, codes = node.attributes.get("axis"), node.inputs[0]
    known = read_grid(scale, zero_point, 0 if said is None else said.as_int())
    if scale.ndim == 1 and codes is not None:
        _check_counts(codes, known)
    return known


def _check_counts(codes: ir.Value, known: Quantization) -> None:
    rank = 0 if codes.shape is None else codes.shape.rank()
    places = codes.shape[known.axis] if codes.shape is not None and -rank <= known.axis < rank else None
    counts = {known.scale.size, known.zero_point.size} - {1, places}
    if counts and isinstance(places, int):
        raise ModelError(f"{codes.name} has {max(counts)} scales or zero points for {places} places along an axis")


def note_numbers(node: ir.Node) -> None:
    """Record what a node makes of codes: real numbers of their shape, and which ones where they are constant."""
    if node.inputs[0] is None:
        return
    result, codes = node.outputs[0], read_initializer(node.inputs[0])
    result.type, result.shape = ir.TensorType(ir.DataType.FLOAT), node.inputs[0].shape
    if codes is not None:
        known = read_node_grid(node)
        node.outputs[0].meta[ELEMENTS] = functools.partial(dequantize, codes, known)


def dequantize(codes: np.ndarray[Any, Any], known: Quantization) -> np.ndarray[Any, Any]:
    """Compute the real numbers that integers stand for: `(code - zero_point) * scale`, in float32 as kernels do."""
    scale: np.ndarray[Any, Any] = known.scale.astype(np.float32)
    zero: np.ndarray[Any, Any] = known.zero_point.astype(np.int64)
    if known.block_size:
        block = np.arange(codes.shape[known.axis]) // known.block_size
        scale, zero = (np.take(part, block, known.axis) for part in (scale, zero))
    else:
        extents = [-1 if known.per_axis and axis == known.axis else 1 for axis in range(codes.ndim)]
        scale, zero = scale.reshape(extents), zero.reshape(extents)
    real: np.ndarray[Any, Any] = ((codes.astype(np.int64) - zero).astype(np.float32) * scale).astype(np.float32)
    return real

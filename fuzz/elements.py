"""Elements: what values hold when a rule is tried, drawn by element type."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx_ir as ir

from ..engine.base.quantization import Quantization
from ..verify.frames import Array
from .choices import Choices
from .landmarks import draw_around

#: the largest number that a drawn integer reaches where the type is wider
_WIDE = 100
_WORDS = (b"", b"a", b"tensor", b"\xc3\xa9t\xc3\xa9", b"0")

# What kernels round, saturate, compare or divide by: halves, zeros of both signs, equal neighbours, magnitudes apart.
_FLOATS = ("plain", "plain", "plain", "halves", "sparse", "positive", "tiny", "small", "large")
_POWERS = (0.5, 0.25, 0.125, 1.0)
_FINER = 1 / 4096
#: in so many of a hundred draws elements are around numbers that a rule names
_AROUND = 30
_SCALES = (0.5, 0.1, 0.02, 0.75, 0.0078125, 0.3)


#: limits that floats are held to as well
_OF_FLOATS = ("byte", "natural", "scale", "moderate", "distinct")


def draw_elements(
    choices: Choices,
    dtype: ir.DataType,
    shape: Sequence[int],
    limit: str | None = None,
    around: Sequence[float] = (),
) -> Array:
    """Draw an array of a type that is not quantized; `limit` is what ops.yaml says that they must be.

    In some draws many elements are `around` some numbers.
    """
    found = np.asarray(_draw_elements(choices, dtype, shape))
    wide = found.dtype.kind in "fiu" and found.dtype.itemsize > 1  # large products of bytes saturate on some processors
    if around and choices.free and wide and choices.draw_chance(_AROUND):
        found = draw_around(found, around, np.random.default_rng(choices.draw_seed()))
    if not dtype.is_integer() and limit not in _OF_FLOATS:
        return found
    return np.asarray(restrict_elements(found, limit), found.dtype)


def restrict_elements(array: Array, limit: str | None) -> Array:
    """Take other numbers for those that a limit rules out."""
    if limit == "byte" and array.dtype.kind in "if":
        return np.clip(array, -128, 127)
    if limit == "moderate":
        return np.clip(array, -2, 2)
    if limit == "distinct":
        order = np.argsort(np.argsort(array, axis=None, kind="stable")).reshape(array.shape)
        return np.asarray(order / 8).astype(array.dtype)
    if limit == "scale":
        return np.abs(array) % 1 + 2**-7
    if limit == "bits":
        return np.clip(array, 0, 7)
    if limit == "few":
        return np.clip(array, 0 if array.dtype.kind == "u" else -2, 2)
    if limit == "nonzero":
        return np.where(array == 0, array.dtype.type(1), array)
    if limit == "natural":
        return np.maximum(array, 0)
    if limit == "positive":
        return np.maximum(array, 1)
    return array


def _draw_elements(choices: Choices, dtype: ir.DataType, shape: Sequence[int]) -> Array:
    generator = np.random.default_rng(choices.draw_seed())
    if dtype == ir.DataType.STRING:
        # One string alone is fed as bytes of fixed length, of which there is at least one.
        words = [word for word in _WORDS if word or shape]
        return np.array(
            [words[place] for place in generator.integers(0, len(words), int(np.prod(shape)))], object
        ).reshape(shape)
    numpy_type = dtype.numpy()
    if dtype == ir.DataType.BOOL:
        return generator.integers(0, 2, shape).astype(numpy_type)
    if dtype.is_integer():
        limits = ml_dtypes.iinfo(numpy_type)  # type: ignore[no-untyped-call]
        low, high = choices.pick([(-9, 9), (0, 2), (1, 20), (-_WIDE, _WIDE)])
        low, high = max(low, int(limits.min)), min(high, int(limits.max))
        return generator.integers(low, high, shape, endpoint=True).astype(numpy_type)
    kind = choices.pick(_FLOATS)
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return (_draw_floats(generator, kind, shape) + 1j * _draw_floats(generator, kind, shape)).astype(numpy_type)
    return _draw_floats(generator, kind, shape).astype(numpy_type)


def _draw_floats(generator: np.random.Generator, kind: str, shape: Sequence[int]) -> Array:
    plain = generator.normal(0, 2, shape)
    if kind == "halves":
        return generator.integers(-9, 9, shape, endpoint=True) / 2
    if kind == "sparse":
        return np.where(generator.random(shape) < 0.4, np.copysign(0.0, plain), plain)
    if kind == "positive":
        return np.abs(plain) + 0.1
    return plain * {"plain": 1.0, "tiny": 1e-7, "small": 1e-3, "large": 40.0}[kind]


def draw_indices(
    choices: Choices, dtype: ir.DataType, shape: Sequence[int], extents: Sequence[int], limit: str | None = None
) -> Array:
    """Draw integers that say where: positions, axes and extents of what the other operands hold.

    A few are drawn one by one, -1 and the extents themselves among them; many lie below one of the extents. `limit` is
    what ops.yaml says that they must be.
    """
    return restrict_elements(_draw_indices(choices, dtype, shape, extents), limit)


def _draw_indices(choices: Choices, dtype: ir.DataType, shape: Sequence[int], extents: Sequence[int]) -> Array:
    count = int(np.prod(shape))
    numpy_type = dtype.numpy()
    unsigned = dtype in (ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)
    if count <= 4 and choices.draw_chance(50):
        pool = sorted({0, 1, 2, *extents, *([] if unsigned else [-1])}, key=lambda n: (n < 0, n))
        return np.array([choices.pick(pool) for _ in range(count)], numpy_type).reshape(shape)
    limits = [(0, max(0, min(extents, default=1) - 1)), (0, 0), (0, 1), (1, 2), *((0, n - 1) for n in extents if n > 1)]
    low, high = choices.pick(limits if unsigned else [*limits, (-1, 1)])
    generator = np.random.default_rng(choices.draw_seed())
    return np.asarray(generator.integers(low, high, shape, endpoint=True)).astype(numpy_type)


def draw_grid(choices: Choices, dtype: ir.DataType, symmetric: bool = False, exact: bool = False) -> Quantization:
    """Draw one scale and zero point for a whole value; `symmetric` ones have the zero point 0.

    The scales of `exact` ones are powers of two, so that equal numbers on different grids are told from unequal ones.
    """
    # Sixteen bits are for precision: their scales are those of eight bits made finer.
    scale = choices.pick(_POWERS if exact else _SCALES) * (1 if dtype.bitwidth == 8 else _FINER)
    zero = 0
    if not symmetric and dtype in (ir.DataType.INT8, ir.DataType.UINT8):
        limits = np.iinfo(dtype.numpy())
        zero = choices.pick([limits.max // 2 + 1 + limits.min // 2, limits.min, limits.max, limits.min + 131])
    return make_grid(scale, zero)


def make_grid(scale: float, zero: int) -> Quantization:
    """One scale and zero point for a whole value."""
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))


def draw_axis_grid(choices: Choices, extent: int, axis: int) -> Quantization:
    """Draw a scale for each index along an axis, all zero points 0."""
    generator = np.random.default_rng(choices.draw_seed())
    scale = generator.choice(np.array(_SCALES, np.float32), extent)
    return Quantization(scale, np.zeros(extent, np.int64), axis)


def draw_codes(
    choices: Choices, dtype: ir.DataType, shape: Sequence[int], symmetric: bool, zero: int, limit: str | None = None
) -> Array:
    """Draw stored integers of a quantized value: all of them, or those close to the middle.

    `symmetric` ones leave the lowest out, as weights do; `limit` is what ops.yaml says that the numbers must be which
    they stand for, and `zero` the code of 0.
    """
    found = _draw_codes(choices, dtype, shape, symmetric)
    if limit == "nonzero":
        other = zero + 1 if zero < np.iinfo(found.dtype).max else zero - 1
        return np.asarray(np.where(found == zero, found.dtype.type(other), found))
    if limit in ("positive", "natural"):
        return np.asarray(np.maximum(found, found.dtype.type(min(zero + 1, np.iinfo(found.dtype).max))))
    return found


def _draw_codes(choices: Choices, dtype: ir.DataType, shape: Sequence[int], symmetric: bool) -> Array:
    limits = np.iinfo(dtype.numpy())
    generator = np.random.default_rng(choices.draw_seed())
    middle = limits.max // 2 + 1 + limits.min // 2
    reach = choices.pick([limits.max - middle, 20, 3])
    low = max(limits.min + int(symmetric), middle - reach - 1)
    found = np.asarray(generator.integers(low, middle + reach, shape, endpoint=True)).astype(dtype.numpy())
    # The kernels of old files read bytes as signed, of which weights leave the lowest out as well.
    return np.where(found == middle, found + 1, found) if symmetric and not limits.min else found


def draw_sums(choices: Choices, dtype: ir.DataType, shape: Sequence[int]) -> Array:
    """Draw stored integers of a bias, as large as a few products of 8-bit numbers."""
    generator = np.random.default_rng(choices.draw_seed())
    return generator.integers(-3000, 3000, shape).astype(dtype.numpy())


def shift_digits(array: Array, quantized: bool, way: int = 0) -> Array:
    """Floats changed in their last digits, zeros in their sign, codes by one; other numbers are exact, and stay.

    Small floats are changed by a digit of the largest too, as sums that cancel are off by that.
    """
    signs = np.full(array.shape, way) if way else np.random.default_rng(0).integers(-1, 1, array.shape, endpoint=True)
    if array.dtype.kind == "f":
        info = np.finfo(array.dtype)
        largest = np.abs(array[np.isfinite(array)]).max(initial=0)
        digit = np.where(array == 0, info.tiny, info.eps * largest)
        return np.asarray(array * (1 + 4 * signs * info.eps) + signs * digit, array.dtype)
    if quantized:
        limits = np.iinfo(array.dtype)
        return np.asarray(np.clip(array.astype(np.int32) + signs, limits.min, limits.max), array.dtype)
    return array


def shift_half_step(array: Array, way: int) -> Array:
    """Floats changed by half a step of 255 between the least of them and the largest, each up or down, by the `way`th
    draw; other numbers stay."""
    if array.dtype.kind != "f" or not array.size:
        return array
    step = (array.max(initial=0) - array.min(initial=0)) / 255
    signs = np.random.default_rng(way).choice([-0.5, 0.5], array.shape)
    return np.asarray(array + signs * step, array.dtype)

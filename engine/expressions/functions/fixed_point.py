"""Functions about what the integers of a quantized value stand for, and about numbers of fixed point."""

from __future__ import annotations

import math

import onnx_ir as ir

from ...base.budget import BITS
from ...base.quantization import Quantization, is_blockwise, read_quantization
from .registry import EvaluationError, register


@register
def quantized(x: ir.Value) -> bool:
    """Whether a value's integers stand for real numbers, by one scale or by one for each index along an axis."""
    return read_quantization(x) is not None and not is_blockwise(x)


@register
def scales(x: ir.Value) -> list[float]:
    """The scales of a quantized value: one, or one for each index along an axis."""
    return [float(scale) for scale in _require_quantization(x).scale.ravel()]


@register
def scale(x: ir.Value) -> float:
    """The scale of a quantized value that has one."""
    found: list[float] = scales(x)
    if len(found) != 1:
        raise EvaluationError(f"{x.name} has {len(found)} scales")
    return found[0]


@register
def zero_point(x: ir.Value) -> int:
    """The integer of a quantized value that stands for zero."""
    points = {int(point) for point in _require_quantization(x).zero_point.ravel()}
    if len(points) != 1:
        raise EvaluationError(f"{x.name} has {len(points)} zero points")
    return points.pop()


@register
def scratch_scale(y: ir.Value, index: int) -> float:
    """The scale of one of the values that the file keeps beside the operator that computes a value; 0 for none."""
    known = _find_scratch(y, index)
    return 0.0 if known is None else float(known.scale[0])


@register
def scratch_zero_point(y: ir.Value, index: int) -> int:
    """The integer that stands for zero in one of the values kept beside the operator of a value; 0 for none."""
    known = _find_scratch(y, index)
    return 0 if known is None else int(known.zero_point[0])


@register
def scratches(y: ir.Value) -> int:
    """How many values the file keeps beside the operator that computes a value."""
    return len(_list_intermediates(y))


@register
def mantissa(x: float, bits: int) -> int:
    """The integer m of so many bits with x = m * 2^(exponent(x, bits) - bits), rounded half away from zero."""
    return _split_number(x, bits)[0]


@register
def exponent(x: float, bits: int) -> int:
    """The power of two that goes with a number's mantissa of so many bits; 0 for 0."""
    return _split_number(x, bits)[1]


@register
def exp(x: float) -> float:
    """The exponential of a number."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


@register
def tanh(x: float) -> float:
    """The hyperbolic tangent of a number."""
    return math.tanh(x)


@register
def log(x: float) -> float:
    """The natural logarithm of a positive number."""
    if x <= 0:
        raise EvaluationError("logarithm of a number that is not positive")
    return math.log(x)


def _require_quantization(x: ir.Value | None) -> Quantization:
    if x is None:
        raise EvaluationError("an operand that is left out has no scale")
    found = read_quantization(x)
    if found is None:
        raise EvaluationError(f"{x.name} is not quantized")
    return found


def _list_intermediates(y: ir.Value) -> tuple[ir.Value, ...]:
    node = y.producer()
    return () if node is None else tuple(node.meta.get("intermediates", ()))


def _find_scratch(y: ir.Value, index: int) -> Quantization | None:
    values = _list_intermediates(y)
    return read_quantization(values[index]) if 0 <= index < len(values) else None


def _split_number(x: float, bits: int) -> tuple[int, int]:
    if not 0 <= bits <= BITS:
        raise EvaluationError(f"a mantissa of {bits} bits")
    fraction, power = math.frexp(x)
    scaled = abs(fraction) * 2**bits
    whole = math.floor(scaled) + (scaled - math.floor(scaled) >= 0.5)
    if whole == 2**bits:
        whole, power = whole // 2, power + 1
    return (whole if x >= 0 else -whole), power


__all__ = [
    "exp",
    "exponent",
    "log",
    "mantissa",
    "quantized",
    "scale",
    "scales",
    "scratch_scale",
    "scratch_zero_point",
    "scratches",
    "tanh",
    "zero_point",
]

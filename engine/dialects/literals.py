"""Compile-time values converted to operands and attributes of the types that an operator's schema asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..expressions.functions import EvaluationError, convert_to_python, highest, lowest
from ..expressions.functions.registry import SHORT
from .operators import Option


def make_attribute(option: Option, value: Any) -> ir.Attr:
    """An attribute of the type that the operator's option has; raises EvaluationError for a value of another kind."""
    name, kind = option.name, option.type
    value = value if kind == "tensor" else convert_to_python(value)
    if kind == "tensor":
        return ir.AttrTensor(name, ir.Tensor(np.asarray(value)))
    if kind.startswith("["):
        items = value if isinstance(value, list) else [value]
        if None in items:
            raise EvaluationError(f"attribute {name}: an extent is not known before run time")
        if kind == "[float]":
            return ir.AttrFloat32s(name, [float(item) for item in items])
        return ir.AttrStrings(name, items) if kind == "[string]" else ir.AttrInt64s(name, [int(item) for item in items])
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        raise EvaluationError(f"attribute {name} takes one {kind}, not a list")
    if kind == "float":
        return ir.AttrFloat32(name, float(value))
    if isinstance(value, str):
        return ir.AttrString(name, value)
    return ir.AttrInt64(name, int(value))


def make_array(
    operand: Any, bound: ir.DataType | None, allowed: Sequence[ir.DataType], name: str
) -> np.ndarray[Any, Any]:
    """A compile-time value as an array of the element type that the operand takes.

    An array of the type that is `bound` keeps it, also where no kernel has it: others compute in a wider one.

    Raises EvaluationError for what is no number, and for integers that the element type does not hold.
    """
    if isinstance(operand, list) and any(isinstance(convert_to_python(item), list | type(None)) for item in operand):
        if None in operand:
            raise EvaluationError(f"operand {name}: an extent is not known before run time")
        operand = convert_to_python(operand)
    if isinstance(operand, np.ndarray):
        own = ir.DataType.from_numpy(operand.dtype) if operand.dtype != np.object_ else ir.DataType.STRING
        wanted = bound if bound is not None and bound in allowed else own
        if allowed and wanted not in allowed and own != bound:
            wanted = allowed[0]
        return operand if wanted == own else _cast_exactly(operand, wanted, name)
    array = np.asarray(operand)
    natural = {"b": ir.DataType.BOOL, "f": ir.DataType.FLOAT}.get(array.dtype.kind, ir.DataType.INT64)
    wanted = bound or (natural if natural in allowed or not allowed else allowed[0])
    if array.dtype.kind in "OUS" and array.size:
        raise EvaluationError(f"operand {name}: {convert_to_python(operand)} is not numeric")
    return _cast_exactly(array, wanted, name)


def _cast_exactly(array: np.ndarray[Any, Any], wanted: ir.DataType, name: str) -> np.ndarray[Any, Any]:
    """Numbers in an element type; raises EvaluationError where it holds other ones in the place of some of them."""
    fitted: np.ndarray[Any, Any] = array.astype(wanted.numpy())
    if wanted not in SHORT or not wanted.is_integer() or not array.size or array.dtype.kind not in "biuf":
        return fitted
    wrong = fitted.astype(np.float64) != array if array.dtype.kind == "f" else ~_convert_within(array, wanted)
    if np.any(wrong):
        first = array.reshape(-1)[np.argmax(wrong)].item()
        raise EvaluationError(f"operand {name}: {first} is no {SHORT[wanted]}")
    return fitted


def _convert_within(array: np.ndarray[Any, Any], wanted: ir.DataType) -> np.ndarray[Any, Any]:
    short = SHORT[wanted]
    low, high = int(lowest(short)), int(highest(short))
    own = array.dtype.kind != "b" and np.iinfo(array.dtype)
    fits = np.ones(array.shape, bool)
    if own and own.min < low:
        fits &= array >= low
    if own and own.max > high:
        fits &= array <= high
    return fits

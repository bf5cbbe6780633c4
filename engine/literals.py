"""Compile-time values where an operator wants operands and attributes: of the types that its schema asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.defs
import onnx_ir as ir

from .functions import EvaluationError, plain
from .operators import Option

_PARAMETER = onnx.defs.OpSchema.FormalParameterOption


def attribute(option: Option, value: Any) -> ir.Attr:
    """An attribute of the type that the operator's option has; raises EvaluationError for a value of another kind."""
    name, kind = option.name, option.type
    value = value if kind == "tensor" else plain(value)
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


def formal(
    parameters: Sequence[onnx.defs.OpSchema.FormalParameter], position: int
) -> onnx.defs.OpSchema.FormalParameter | None:
    if position < len(parameters):
        return parameters[position]
    if parameters and parameters[-1].option == _PARAMETER.Variadic:
        return parameters[-1]
    return None


def array(operand: Any, bound: ir.DataType | None, allowed: list[str], name: str) -> np.ndarray[Any, Any]:
    """A compile-time value as an array of the element type that the operand takes."""
    if isinstance(operand, list) and any(isinstance(plain(item), list | type(None)) for item in operand):
        if None in operand:
            raise EvaluationError(f"operand {name}: an extent is not known before run time")
        operand = plain(operand)
    kinds = {kind: text for text in allowed if (kind := _onnx_type(text)) is not None}
    if isinstance(operand, np.ndarray):
        own = ir.DataType.from_numpy(operand.dtype) if operand.dtype != np.object_ else ir.DataType.STRING
        wanted = bound if bound is not None and bound in kinds else own
        if kinds and wanted not in kinds:
            wanted = next(iter(kinds))
        return operand if wanted == own else operand.astype(wanted.numpy())
    array = np.asarray(operand)
    natural = {"b": ir.DataType.BOOL, "f": ir.DataType.FLOAT}.get(array.dtype.kind, ir.DataType.INT64)
    wanted = bound or (natural if natural in kinds or not kinds else next(iter(kinds)))
    if array.dtype.kind in "OUS" and array.size:
        raise EvaluationError(f"operand {name}: {plain(operand)} is not numeric")
    return array.astype(wanted.numpy())


def _onnx_type(text: str) -> ir.DataType | None:
    inner = text.removeprefix("tensor(").removesuffix(")").upper()
    return ir.DataType.__members__.get(inner)

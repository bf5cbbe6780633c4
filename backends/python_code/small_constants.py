"""Constants of a few numbers, which are written where they are read."""

from __future__ import annotations

import ast

import onnx_ir as ir

from ...engine.base.constants import TRAINED
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions.registry import SHORT
from .steps import shorten
from .templates import fill, make_literal, parse_template

#: so many numbers at most
_FEW = 8


def is_written_in_place(value: ir.Value, python: DialectPython | None) -> bool:
    """Whether the numbers of a constant are written, as they are few and not trained: no member of a class holds it."""
    tensor = value.const_value
    if python is None or not python.constant or tensor is None or TRAINED in value.meta:
        return False
    return 0 < tensor.size <= (1 if tensor.dtype.is_floating_point() else _FEW)


def write_constant(value: ir.Value, python: DialectPython) -> ast.expr:
    """The expression of a constant by its numbers."""
    tensor = value.const_value
    assert tensor is not None and value.dtype is not None
    numbers = _write_numbers(tensor.numpy().tolist(), tensor.dtype == ir.DataType.FLOAT)
    dtype = parse_template(python.types[SHORT[value.dtype]])
    return fill(parse_template(python.constant), {"value": numbers, "dtype": dtype})


def _write_numbers(numbers: object, single: bool) -> ast.expr:
    """Numbers in lists, those in single precision with no more digits than they need."""
    if isinstance(numbers, list):
        return ast.List([_write_numbers(one, single) for one in numbers])
    return make_literal(shorten(numbers) if single and isinstance(numbers, float) else numbers)

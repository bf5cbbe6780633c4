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
    return 0 < tensor.size <= (1 if tensor.dtype == ir.DataType.FLOAT else _FEW)


def write_constant(value: ir.Value, python: DialectPython) -> ast.expr:
    """The expression of a constant by its numbers."""
    tensor = value.const_value
    assert tensor is not None and value.dtype is not None
    numbers = tensor.numpy().tolist()
    if tensor.dtype == ir.DataType.FLOAT:
        numbers = _shorten_all(numbers)
    dtype = parse_template(python.types[SHORT[value.dtype]])
    return fill(parse_template(python.constant), {"value": _make_list(numbers), "dtype": dtype})


def _shorten_all(numbers: object) -> object:
    if isinstance(numbers, list):
        return [_shorten_all(one) for one in numbers]
    return shorten(numbers) if isinstance(numbers, float) else numbers


def _make_list(numbers: object) -> ast.expr:
    return ast.List([_make_list(one) for one in numbers]) if isinstance(numbers, list) else make_literal(numbers)

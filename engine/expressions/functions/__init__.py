"""The functions of the compile-time language: pure, total, and numpy-like."""

from __future__ import annotations

from . import fixed_point, graphs, lists, numbers, tensors  # enter what they define
from .registry import (
    CONSTANTS,
    DTYPES,
    FUNCTIONS,
    NARROW_FLOATS,
    PAIR,
    SHORT,
    ElementType,
    EvaluationError,
    Function,
    UnknownValueError,
    Unsupported,
    convert_to_python,
    format_value,
)
from .tensors import bits, highest, is_complex, is_float, is_integer, lowest

__all__ = [
    "CONSTANTS",
    "DTYPES",
    "FUNCTIONS",
    "NARROW_FLOATS",
    "PAIR",
    "SHORT",
    "ElementType",
    "EvaluationError",
    "Function",
    "UnknownValueError",
    "Unsupported",
    "bits",
    "convert_to_python",
    "fixed_point",
    "format_value",
    "graphs",
    "highest",
    "is_complex",
    "is_float",
    "is_integer",
    "lists",
    "lowest",
    "numbers",
    "tensors",
]

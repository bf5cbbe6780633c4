"""The functions of the compile-time language: pure, total, and numpy-like."""

from __future__ import annotations

from . import graphs, lists, numbers, quantities, tensors  # enter what they define
from .registry import (
    CONSTANTS,
    DTYPES,
    FUNCTIONS,
    PAIR,
    ElementType,
    EvaluationError,
    Function,
    Stuck,
    Unsupported,
    plain,
)
from .tensors import bits, highest, is_complex, is_float, is_integer, lowest

__all__ = [
    "CONSTANTS",
    "DTYPES",
    "FUNCTIONS",
    "PAIR",
    "ElementType",
    "EvaluationError",
    "Function",
    "Stuck",
    "Unsupported",
    "bits",
    "graphs",
    "highest",
    "is_complex",
    "is_float",
    "is_integer",
    "lists",
    "lowest",
    "numbers",
    "plain",
    "quantities",
    "tensors",
]

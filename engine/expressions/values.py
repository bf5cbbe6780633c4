"""What the compile-time language computes with values: equality, truth, arithmetic, and the items of lists."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.budget import BITS
from .functions import EvaluationError, UnknownValueError, convert_to_python, format_value
from .functions.registry import LIMIT, SCALARS

# `type(x) is ir.Value` stands where isinstance would say the same: the class comes with a protocol, which makes
# isinstance take longer than all else that an expression does.


def is_same(left: Any, right: Any) -> bool:
    """Equality of the language: identity for run-time values, elements for lists and arrays."""
    if type(left) in SCALARS and type(right) in SCALARS:
        return bool(left == right)
    if left is None or right is None or type(left) is ir.Value or type(right) is ir.Value:
        return left is right
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return bool(left.shape == right.shape and (left == right).all())
    return bool(convert_to_python(left) == convert_to_python(right))


def read_truth(value: Any) -> bool:
    """The truth of a condition; raises EvaluationError for what is neither a truth value nor a number."""
    if value is True or value is False:
        return value
    value = convert_to_python(value)
    if not isinstance(value, (bool, int, float)):
        raise EvaluationError(f"{format_value(value)} is neither true nor false")
    return bool(value)


def take_item(value: Any, index: Any) -> Any:
    """One item of a list or constant; raises EvaluationError where there is none."""
    if isinstance(value, (list, np.ndarray)) and isinstance(index, (int, np.integer)):
        return value[index]
    raise EvaluationError(f"{format_value(value)} cannot be indexed with {format_value(index)}")


def limit_size(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operation that can make its operands longer, up to what numbers and arrays may take; arrays of a model that
    are longer may stay so."""

    def compute_limited(a: Any, b: Any) -> Any:
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        if both and np.broadcast(a, b).size > max(LIMIT, a.size, b.size):
            raise EvaluationError(f"an array of more than {LIMIT:,} elements")
        found = compute(a, b)
        if type(found) is int and found.bit_length() > BITS:
            raise EvaluationError(f"an integer of more than {BITS:,} bits")
        return found

    return compute_limited


def shift_left(a: Any, b: Any) -> Any:
    """Numbers with so many zeros behind their bits; raises EvaluationError where more are asked for than any has."""
    if b > BITS:
        raise EvaluationError(f"a shift by {b}, where integers have {BITS:,} bits")
    return a << b


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": limit_size(operator.add),
    "-": limit_size(operator.sub),
    "*": limit_size(operator.mul),
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": limit_size(shift_left),
    ">>": operator.rshift,
    "&": operator.and_,
}
ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def read_number(value: Any) -> Any:
    """What can be computed with; raises UnknownValueError for what is not known, EvaluationError for no number."""
    if type(value) is int or type(value) is float:
        return value
    if value is None:
        raise UnknownValueError("an extent or constant is not known before run time")
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return value
    raise EvaluationError(f"{format_value(value)} is not a number")


def list_items(value: Any) -> list[Any]:
    """The items of a list or a constant; raises EvaluationError for anything else."""
    if type(value) is list:
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        return list(convert_to_python(value))
    if not isinstance(value, list):
        raise EvaluationError(f"{format_value(value)} is not a list")
    return value


def has_item(items: Any, item: Any) -> bool:
    """Whether an item is in a list."""
    return any(is_same(item, other) for other in list_items(items))

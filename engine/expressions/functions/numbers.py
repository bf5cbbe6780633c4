"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .registry import (
    EvaluationError,
    Number,
    Numbers,
    convert_to_list,
    convert_to_python,
    format_value,
    list_items,
    register,
    require_known,
)


@register
def is_number(x: Any) -> bool:
    """Whether something is a number, and no name of an extent, no list and not `none`."""
    return isinstance(x, int | float | np.number)


@register
def abs_(x: Number) -> Any:
    """The absolute value."""
    return np.abs(x) if isinstance(x, np.ndarray) else abs(x)


@register
def min_(*xs: Numbers) -> Any:
    """The least of several numbers, or of one list or array."""
    return min(_read_operands(xs, "min"))


@register
def max_(*xs: Numbers) -> Any:
    """The greatest of several numbers, or of one list or array."""
    return max(_read_operands(xs, "max"))


@register
def sum_(xs: Numbers) -> Any:
    """The sum of a list of numbers."""
    return sum(require_known(convert_to_list(xs), "an extent"))


@register
def prod(xs: Numbers) -> Any:
    """The product of a list of numbers."""
    return math.prod(require_known(convert_to_list(xs), "an extent"))


@register
def ceil_div(a: int, b: int) -> int:
    """The quotient of two integers, rounded up."""
    if require_known(b, "a divisor") == 0:
        raise EvaluationError("division by zero")
    quotient: int = -(-require_known(a, "an extent") // b)
    return quotient


@register
def floor(x: float) -> int:
    """The greatest integer not above a number."""
    return math.floor(x)


@register
def ceil(x: float) -> int:
    """The least integer not below a number."""
    return math.ceil(x)


@register
def sqrt(x: float) -> float:
    """The square root of a number that is not negative."""
    if x < 0:
        raise EvaluationError("square root of a negative number")
    return math.sqrt(x)


@register
def int_(x: Numbers) -> int:
    """A number, a truth value or an array of one element as an integer."""
    return int(_read_single(x))


@register
def float_(x: Numbers) -> float:
    """A number, a truth value or an array of one element as a floating-point number."""
    return float(_read_single(x))


@register
def bit(mask: int, index: int) -> bool:
    """Whether a bit of a mask is set; the lowest is bit 0."""
    return bool(int(mask) >> min(int(index), 63) & 1)


def _read_single(x: Any) -> Any:
    x = require_known(convert_to_python(x), "a number")
    while isinstance(x, list) and len(x) == 1:
        x = x[0]
    if not isinstance(x, (bool, int, float)):
        raise EvaluationError(f"{format_value(x)} is not a single number")
    return x


def _read_operands(xs: Sequence[Any], what: str) -> list[Any]:
    if len(xs) == 1 and isinstance(xs[0], np.ndarray) and xs[0].size > 0:
        # Its ends stand for all elements, without a list of them.
        return [xs[0].min().item(), xs[0].max().item()]
    found = [convert_to_python(x) for x in (list_items(xs[0]) if len(xs) == 1 else xs)]
    if not found:
        raise EvaluationError(f"{what} of nothing")
    return list(require_known(found, "an extent"))

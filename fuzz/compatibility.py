"""Compatibility: whether a value that is there can stand where a test declares an operand."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.expressions.functions import DTYPES
from ..engine.syntax import tree
from .sketch import Value


def are_alike(declared: Sequence[tree.Dimension], extents: Sequence[int]) -> bool:
    """Whether extents that are declared the same are the same, where there are as many as declared."""
    pairs = {(d.low, d.high, d.name): extent for d, extent in zip(declared, extents, strict=False)}
    same = all(pairs[d.low, d.high, d.name] == extent for d, extent in zip(declared, extents, strict=False))
    return same or len(declared) != len(extents)


def is_within(dimension: tree.Dimension, extent: int) -> bool:
    """Whether an extent is one that a test may draw."""
    low = dimension.low
    return low is None or low <= extent <= (low if dimension.high is None else dimension.high)


def has_type(value: Value, name: str) -> bool:
    """Whether a value is of the type of a short name, quantized where that has a `q` in front."""
    return (value.grid is not None) == name.startswith("q") and value.dtype == DTYPES[name.removeprefix("q")]


def are_exchangeable(first: Value | None, second: Value | None) -> bool:
    """Whether two operands could each stand where the other does."""
    if first is None or second is None:
        return False
    return (first.dtype, first.content.ndim) == (second.dtype, second.content.ndim)

"""Functions of lists and arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from .registry import (
    LIMIT,
    Elements,
    ElementType,
    EvaluationError,
    Items,
    Number,
    Numbers,
    Sequences,
    data_type,
    function,
    items,
    known,
    to_list,
    to_python,
)


@function
def len_(xs: Sequences) -> int:
    """The number of items of a list, or of rows of an array."""
    if np.ndim(xs) == 0 and not isinstance(xs, (list, tuple, str)):
        raise EvaluationError("a single number has no length")
    return len(xs)


@function
def letters(text: str) -> list[str]:
    """The characters of a text but blanks."""
    return [letter for letter in text if not letter.isspace()]


@function
def range_(start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """The integers from 0 (or `start`) up to, not including, `stop`."""
    found = range(known(start, "an extent")) if stop is None else range(start, stop, step)
    if len(found) > LIMIT:
        raise EvaluationError(f"a range of {len(found)} integers is longer than any rule needs")
    return list(found)


@function
def zip_(*lists: Items) -> list[list[Any]]:
    """Lists of the first items, the second items, and so on, of lists of equal length."""
    items = [to_list(xs) for xs in lists]
    if len({len(xs) for xs in items}) > 1:
        raise EvaluationError(f"zip over lists of different lengths: {', '.join(str(len(xs)) for xs in items)}")
    return [list(group) for group in zip(*items, strict=True)]


@function
def enumerate_(xs: Items) -> list[list[Any]]:
    """Pairs of index and item."""
    return [[i, x] for i, x in enumerate(items(xs))]


@function
def sorted_(xs: Items) -> list[Any]:
    """The items in ascending order."""
    return sorted(to_list(xs))


@function
def reversed_(xs: Items) -> list[Any]:
    """The items in the opposite order."""
    return list(reversed(items(xs)))


@function
def unique(xs: Items) -> list[Any]:
    """The items without repeats, in the order of their first occurrence."""
    return list(dict.fromkeys(to_list(xs)))


@function
def index_of(xs: Items, x: Any) -> int:
    """The position of an item in a list."""
    items = to_list(xs)
    if to_python(x) not in items:
        raise EvaluationError(f"{to_python(x)} is not in {items}")
    return items.index(to_python(x))


@function
def norm(axes: Numbers, rank: int) -> list[int]:
    """Axes counted from the front: negative ones have the rank added."""
    counted = [axis + rank if axis < 0 else axis for axis in to_list(axes)]
    if any(not 0 <= axis < rank for axis in counted):
        raise EvaluationError(f"axes {to_list(axes)} are out of range for rank {rank}")
    return counted


@function
def inverse(perm: Numbers) -> list[int]:
    """The permutation that undoes a permutation."""
    items = to_list(perm)
    return [items.index(i) for i in range(len(items))]


@function
def array(values: Elements, name: ElementType) -> np.ndarray[Any, Any]:
    """A list of numbers or texts as an array of an element type named in short."""
    elements = values if isinstance(values, np.ndarray) else np.asarray(to_python(values))
    return elements.astype(data_type(name).numpy())


@function
def full(extents: Numbers, number: Number, name: ElementType) -> np.ndarray[Any, Any]:
    """An array of a shape filled with one number."""
    extents = known(to_list(extents), "an extent")
    if math.prod(extents) > LIMIT:
        raise EvaluationError(f"an array of shape {extents} is larger than any rule needs")
    return np.full(extents, to_python(number), data_type(name).numpy())


@function
def reshape(x: Numbers, extents: Numbers) -> np.ndarray[Any, Any]:
    """An array with the same elements in another shape."""
    try:
        return np.reshape(_elements(x), to_list(extents))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@function
def transpose(x: Numbers, perm: Numbers) -> np.ndarray[Any, Any]:
    """An array with its axes permuted."""
    try:
        return np.transpose(_elements(x), to_list(perm))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@function
def take(x: Numbers, places: Numbers) -> np.ndarray[Any, Any]:
    """The items of an array, along its first axis, that are at some places."""
    wanted = known(to_list(places), "a place")
    rows = len(x) if np.ndim(x) else 0
    if any(not 0 <= place < rows for place in wanted):
        raise EvaluationError(f"there are {rows} items, so that none can be at each of {wanted[:8]}")
    return np.asarray(x)[np.asarray(wanted, np.int64)]


@function
def flatten(x: Numbers) -> list[Any]:
    """The elements of an array, last axis fastest, as a list."""
    return to_list(np.ravel(_elements(x)))


def _elements(x: Any) -> Any:
    """A tensor that an option holds as an array: numpy 2.0 makes real numbers of its integers by itself."""
    if isinstance(x, list | np.ndarray | int | float):  # which takes long to tell of a protocol
        return x
    return x.numpy() if isinstance(x, ir.TensorProtocol) else x

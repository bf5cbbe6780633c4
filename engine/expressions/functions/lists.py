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
    convert_to_list,
    convert_to_python,
    find_data_type,
    format_value,
    list_items,
    register,
    require_known,
)


@register
def len_(xs: Sequences) -> int:
    """The number of items of a list, or of rows of an array."""
    if not isinstance(xs, (list, tuple, str)) and np.ndim(xs) == 0:
        raise EvaluationError("a single number has no length")
    return len(xs)


@register
def letters(text: str) -> list[str]:
    """The characters of a text but blanks."""
    return [letter for letter in text if not letter.isspace()]


@register
def word(letters: Items) -> str:
    """The text that some characters make, one behind the other."""
    return "".join(map(str, convert_to_list(letters)))


@register
def range_(start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """The integers from 0 (or `start`) up to, not including, `stop`."""
    found = range(require_known(start, "an extent")) if stop is None else range(start, stop, step)
    if len(found) > LIMIT:
        raise EvaluationError(f"a range of {len(found)} integers is longer than any rule needs")
    return list(found)


@register
def zip_(*lists: Items) -> list[list[Any]]:
    """Lists of the first items, the second items, and so on, of lists of equal length."""
    items = [convert_to_list(xs) for xs in lists]
    if len({len(xs) for xs in items}) > 1:
        raise EvaluationError(f"zip over lists of different lengths: {', '.join(str(len(xs)) for xs in items)}")
    return [list(group) for group in zip(*items, strict=True)]


@register
def enumerate_(xs: Items) -> list[list[Any]]:
    """Pairs of index and item."""
    return [[i, x] for i, x in enumerate(list_items(xs))]


@register
def sorted_(xs: Items) -> list[Any]:
    """The items in ascending order."""
    return sorted(convert_to_list(xs))


@register
def reversed_(xs: Items) -> list[Any]:
    """The items in the opposite order."""
    return list(reversed(list_items(xs)))


@register
def unique(xs: Items) -> list[Any]:
    """The items without repeats, in the order of their first occurrence."""
    return list(dict.fromkeys(convert_to_list(xs)))


@register
def index_of(xs: Items, x: Any) -> int:
    """The position of an item in a list."""
    items = convert_to_list(xs)
    if convert_to_python(x) not in items:
        raise EvaluationError(f"{format_value(x)} is not in {format_value(items)}")
    return items.index(convert_to_python(x))


@register
def indices_of(xs: Items, items: Items) -> np.ndarray[Any, Any]:
    """The position of each item in a list, the length of the list for one that is not there, as an array."""
    known: dict[Any, int] = {}
    for place, x in enumerate(convert_to_list(xs)):
        known.setdefault(x, place)
    return np.array([known.get(item, len(xs)) for item in convert_to_list(items)], np.int64)


@register
def longest_way(ways: Items) -> int:
    """How many steps lead on at most, where each of `ways` lists the place behind each place: itself at an end."""
    ways_on = [np.asarray(way, np.int64) for way in ways]
    count = len(ways_on[0])
    if any(len(way) != count or (count and not 0 <= way.min() <= way.max() < count) for way in ways_on):
        raise EvaluationError("each place has one behind it, among as many places")
    here, steps = np.arange(count), 0
    while len(here):
        here = np.unique(np.concatenate([way[here][way[here] != here] for way in ways_on]))
        steps += bool(len(here))
        if steps > count:
            raise EvaluationError("the ways lead round in circles")
    return steps


@register
def norm(axes: Numbers, rank: int) -> list[int]:
    """Axes counted from the front: negative ones have the rank added."""
    counted = [axis + rank if axis < 0 else axis for axis in convert_to_list(axes)]
    if any(not 0 <= axis < rank for axis in counted):
        raise EvaluationError(f"axes {convert_to_list(axes)} are out of range for rank {rank}")
    return counted


@register
def inverse(perm: Numbers) -> list[int]:
    """The permutation that undoes a permutation."""
    items = convert_to_list(perm)
    return [items.index(i) for i in range(len(items))]


@register
def array(values: Elements, name: ElementType) -> np.ndarray[Any, Any]:
    """A list of numbers or texts as an array of an element type named in short."""
    elements = values if isinstance(values, np.ndarray) else np.asarray(convert_to_python(values))
    return elements.astype(find_data_type(name).numpy())


@register
def full(extents: Numbers, number: Number, name: ElementType) -> np.ndarray[Any, Any]:
    """An array of a shape filled with one number."""
    extents = require_known(convert_to_list(extents), "an extent")
    if math.prod(extents) > LIMIT:
        raise EvaluationError(f"an array of shape {extents} is larger than any rule needs")
    return np.full(extents, convert_to_python(number), find_data_type(name).numpy())


@register
def reshape(x: Numbers, extents: Numbers) -> np.ndarray[Any, Any]:
    """An array with the same elements in another shape."""
    try:
        return np.reshape(_read_elements(x), convert_to_list(extents))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@register
def transpose(x: Numbers, perm: Numbers) -> np.ndarray[Any, Any]:
    """An array with its axes permuted."""
    try:
        return np.transpose(_read_elements(x), convert_to_list(perm))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@register
def take(x: Numbers, places: Numbers) -> np.ndarray[Any, Any]:
    """The items of an array, along its first axis, that are at some places."""
    wanted = np.asarray(require_known(places, "a place"), np.int64)
    rows = len(x) if np.ndim(x) else 0
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < rows:
        raise EvaluationError(f"there are {rows} items, so that none can be at each of {wanted.ravel()[:8].tolist()}")
    return np.asarray(x)[wanted]


@register
def flatten(x: Numbers) -> list[Any]:
    """The elements of an array, last axis fastest, as a list."""
    return convert_to_list(np.ravel(_read_elements(x)))


def _read_elements(x: Any) -> Any:
    """A tensor that an option holds as an array: numpy 2.0 makes real numbers of its integers by itself."""
    if isinstance(x, list | np.ndarray | int | float):  # which takes long to tell of a protocol
        return x
    return x.numpy() if isinstance(x, ir.TensorProtocol) else x

"""Seeded inputs: what a model is fed when both sides of a conversion are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .frames import Array
from .interpreter import Tensor

# Integers that carry no scale are lengths, positions or words of a vocabulary: the narrower range is tried where the
# model refuses the wider one, and 0 is left out last.
RANGES = ((0, 10), (0, 2), (0, 1), (1, 10))


def draw(tensors: Sequence[Tensor], seed: int = 0, samples: int = 1) -> Iterator[list[list[Array]]]:
    """Draw samples of inputs, each time anew from a narrower domain until the model takes them.

    Floats are uniform in [-1, 1); quantized integers and 8-bit ones use all their codes; other integers lie in
    [0, 10), then {0, 1}, then are 0, then in [1, 10); strings are digits. A dimension that is not static is what the
    file says in its place, else 1. The same seed gives the same inputs. Where no domain narrows there is one draw.
    """
    narrows = any(_is_index(tensor) for tensor in tensors)
    for limits in RANGES if narrows else RANGES[:1]:
        generator = np.random.default_rng(seed)
        yield [[_draw_value(tensor, generator, limits) for tensor in tensors] for _ in range(samples)]


def _is_index(tensor: Tensor) -> bool:
    return not tensor.scales and tensor.dtype not in ("int8", "uint8") and np.dtype(tensor.dtype).kind in "iu"


def _draw_value(tensor: Tensor, generator: np.random.Generator, limits: tuple[int, int]) -> Array:
    shape = tuple(max(1, size) if dynamic < 0 else size for size, dynamic in _list_dimensions(tensor))
    if tensor.dtype == "object":
        words = [str(word).encode() for word in generator.integers(0, 100, shape).ravel()]
        return _make_objects(words).reshape(shape)
    dtype: np.dtype[Any] = np.dtype(tensor.dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        if _is_index(tensor):
            return generator.integers(*limits, shape).astype(dtype)
        codes = np.iinfo(dtype)
        return generator.integers(codes.min, codes.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (generator.uniform(-1, 1, shape) + 1j * generator.uniform(-1, 1, shape)).astype(dtype)
    return generator.uniform(-1, 1, shape).astype(dtype)


def _list_dimensions(tensor: Tensor) -> list[tuple[int, int]]:
    signature = tensor.signature if len(tensor.signature) == len(tensor.shape) else tensor.shape
    return list(zip(tensor.shape, signature, strict=True))


def _make_objects(items: Sequence[bytes]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array

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

#: what stands for a free extent of which the file says nothing, or 1, as of images of any size; that of batches is 1
SIZES = (16, 64, 224, 1)
#: a second of sound, for models of which windows leave nothing of less; of inputs of one axis behind that of samples
SECOND = 16_000


def draw(tensors: Sequence[Tensor], seed: int = 0, samples: int = 1) -> Iterator[list[list[Array]]]:
    """Draw samples of inputs, each time anew from a narrower domain until the model takes them.

    Floats are uniform in [-1, 1); quantized integers and 8-bit ones use all their codes; other integers lie in [0, 10),
    then {0, 1}, then are 0, then in [1, 10), then are the length of what stands beside them where there is one for each
    sample, as of sequences with what stands behind their ends; but are 1 where they count what there is; strings are
    digits. A dimension that is not static is what the file says in its place, and where that is 1, as it is where
    nothing is said, others are tried before it. The same seed gives the same inputs. Where no domain narrows and all
    extents are known there is one draw.
    """
    narrows = any(_is_index(tensor) for tensor in tensors)
    free = any(_is_free(*one) for tensor in tensors for one in _list_dimensions(tensor)[_count_sample_axes(tensor) :])
    sizes = SIZES[-1:] if not free else (*SIZES, SECOND) if all(map(_may_be_sound, tensors)) else SIZES
    lengths = any(map(_may_be_length, tensors)) and any(map(_may_be_sequence, tensors))

    def draw_samples(extent: int, limits: tuple[int, int]) -> list[list[Array]]:
        generator = np.random.default_rng(seed)
        return [[_draw_value(tensor, generator, limits, extent) for tensor in tensors] for _ in range(samples)]

    for extent in sizes:
        for limits in RANGES if narrows else RANGES[:1]:
            yield draw_samples(extent, limits)
        if lengths:
            yield [_set_lengths(tensors, sample) for sample in draw_samples(extent, RANGES[0])]


def _may_be_length(tensor: Tensor) -> bool:
    """Whether a tensor may say how long each sample is: an integer for each."""
    return _is_index(tensor) and len(tensor.shape) == 1 and not tensor.counts


def _may_be_sequence(tensor: Tensor) -> bool:
    """Whether a tensor may be that of which lengths are told: real, with more axes than that of samples."""
    return tensor.dtype.startswith("float") and len(tensor.shape) > 1


def _set_lengths(tensors: Sequence[Tensor], sample: Sequence[Array]) -> list[Array]:
    """A sample in which all lengths are that of the first sequence."""
    pairs = list(zip(tensors, sample, strict=True))
    length = next(array.shape[1] for tensor, array in pairs if _may_be_sequence(tensor))
    return [np.full_like(array, length) if _may_be_length(tensor) else array for tensor, array in pairs]


def _may_be_sound(tensor: Tensor) -> bool:
    """Whether a tensor may have as many elements as a second of sound: it is real and has one axis for each sample."""
    return tensor.dtype.startswith("float") and len(tensor.shape) - _count_sample_axes(tensor) <= 1


def _is_index(tensor: Tensor) -> bool:
    return not tensor.scales and tensor.dtype not in ("int8", "uint8") and np.dtype(tensor.dtype).kind in "iu"


def _draw_value(tensor: Tensor, generator: np.random.Generator, limits: tuple[int, int], extent: int) -> Array:
    batches = _count_sample_axes(tensor)
    shape = tuple(
        (1 if place < batches else extent) if _is_free(size, dynamic) else size
        for place, (size, dynamic) in enumerate(_list_dimensions(tensor))
    )
    if tensor.dtype == "object":
        words = [str(word).encode() for word in generator.integers(0, 100, shape).ravel()]
        return _make_objects(words).reshape(shape)
    dtype: np.dtype[Any] = np.dtype(tensor.dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        if tensor.counts:
            return np.ones(shape, dtype)
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


def _is_free(size: int, dynamic: int) -> bool:
    return dynamic < 0 and size <= 1


def _count_sample_axes(tensor: Tensor) -> int:
    """How many axes in front are those of samples."""
    return 1 if len(tensor.shape) > 1 else 0


def _make_objects(items: Sequence[bytes]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array

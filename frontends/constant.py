"""The bytes of a constant as a tensor: views wherever the element type allows."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..engine.base.startup import dataclass

#: a sparse constant may be this many times larger than the whole file before it is taken for a malformed one
_EXPANSION = 256
#: what numpy can hold
_RANK, _ELEMENTS = 64, 1 << 58


class ConstantError(ValueError):
    """Bytes that do not hold the elements that the tensor's type and shape ask for."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a sparse tensor: `size` children for each parent, or listed ones (compressed sparse rows)."""

    size: int
    segments: npt.NDArray[np.integer] | None = None
    indices: npt.NDArray[np.integer] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """How the stored elements of a sparse tensor are laid out, in the terms of the TACO compiler.

    `order` is the order in which dimensions are traversed, those of the blocks numbered after those of the tensor;
    `blocks` names the dimension that each block dimension divides; `levels` has one entry for each element of `order`;
    `stored` are the elements that are in the file.
    """

    order: tuple[int, ...]
    blocks: tuple[int, ...]
    levels: tuple[Level, ...]
    stored: npt.NDArray[Any]


def make_tensor(data: memoryview, dtype: ir.DataType, shape: tuple[int, ...], name: str) -> ir.TensorProtocol:
    """Wrap bytes as a constant without copying them; strings are unpacked.

    Raises ConstantError when the number of bytes is not what type and shape ask for.
    """
    _check(shape)
    if dtype == ir.DataType.STRING:
        return ir.StringTensor(unpack_strings(data, math.prod(shape)), shape=ir.Shape(shape), name=name)
    wanted = -(-math.prod(shape) * dtype.bitwidth // 8)
    if wanted != len(data):
        raise ConstantError(f"shape {list(shape)} of {dtype.name} takes {wanted} bytes, its buffer has {len(data)}")
    if dtype.bitwidth < 8:
        return ir.PackedTensor(np.frombuffer(data, np.uint8), dtype, shape=shape, name=name)
    return ir.Tensor(np.frombuffer(data, dtype.numpy()).reshape(shape), dtype, name=name)


def unpack_strings(data: memoryview, count: int) -> list[bytes]:
    """Unpack strings: their number, the offset of each and of the end as int32, then the bytes.

    Raises ConstantError where they are not as many, or not inside it.
    """
    if not count and not len(data):
        return []
    numbers = data[: len(data) // 4 * 4].cast("i")
    if not len(numbers) or numbers[0] != count or len(numbers) < count + 2:
        found = numbers[0] if len(numbers) else 0
        raise ConstantError(f"{count} strings are wanted, its buffer says {found} in {len(data)} bytes")
    offsets = numbers[1 : count + 2].tolist()
    if offsets != sorted(offsets) or offsets[0] < 4 * (count + 2) or offsets[-1] > len(data):
        raise ConstantError(f"the offsets of its {count} strings leave the buffer of {len(data)} bytes")
    return [bytes(data[start:end]) for start, end in itertools.pairwise(offsets)]


def densify(sparsity: Sparsity, shape: tuple[int, ...], limit: int) -> npt.NDArray[Any]:
    """Expand a sparse tensor to all its elements.

    `limit` is the size of the file in bytes, which bounds what its levels may ask for. Raises ConstantError when
    levels, shape and stored elements disagree.
    """
    _check(shape)
    rank, order = len(shape), sparsity.order
    if not rank or sorted(order) != list(range(len(sparsity.levels))) or len(order) != rank + len(sparsity.blocks):
        raise ConstantError(f"its sparsity traverses {list(order)} in shape {list(shape)}")
    if any(not 0 <= dimension < rank for dimension in sparsity.blocks):
        raise ConstantError(f"its sparsity has blocks in dimensions {list(sparsity.blocks)} of {rank}")
    if math.prod(shape) > _EXPANSION * (limit + 1024):
        raise ConstantError(f"its sparse shape {list(shape)} is too large")
    count = 1
    coordinates: dict[int, npt.NDArray[np.int64]] = {}
    for dimension, level in zip(order, sparsity.levels, strict=True):
        owners, own = _list_children(level, count, limit)
        coordinates = {known: values[owners] for known, values in coordinates.items()} | {dimension: own}
        count = len(own)
    if count != len(sparsity.stored):
        raise ConstantError(f"its sparsity describes {count} elements, its buffer has {len(sparsity.stored)}")
    index = [coordinates[dimension] for dimension in range(rank)]
    for block, dimension in enumerate(sparsity.blocks, rank):
        size = sparsity.levels[order.index(block)].size
        index[dimension] = index[dimension] * size + coordinates[block]
    if count and any(not 0 <= own.min() <= own.max() < n for own, n in zip(index, shape, strict=True)):
        raise ConstantError(f"its sparse indices leave the shape {list(shape)}")
    dense = np.zeros(shape, sparsity.stored.dtype)
    dense[tuple(index)] = sparsity.stored
    return dense


def _check(shape: tuple[int, ...]) -> None:
    """Refuse a shape that no array can have, which an array without elements could pretend to."""
    if len(shape) > _RANK or math.prod(max(n, 1) for n in shape) >= _ELEMENTS:
        raise ConstantError(f"no array can have the shape {list(shape)[:_RANK]}")


def _list_children(level: Level, parents: int, limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For the children at one level, in their order: the number of the parent, and the own coordinate."""
    if level.segments is None or level.indices is None:
        if level.size < 0 or parents * level.size > limit:
            raise ConstantError(f"a level of its sparsity has {level.size} elements for each of {parents}")
        return np.repeat(np.arange(parents), level.size), np.tile(np.arange(level.size), parents)
    segments, indices = level.segments.astype(np.int64), level.indices.astype(np.int64)
    lengths = np.diff(segments)
    if len(lengths) != parents or np.any(lengths < 0) or segments[0] != 0 or segments[-1] != len(indices):
        raise ConstantError("the segments of its sparsity do not divide its indices")
    return np.repeat(np.arange(parents), lengths), indices

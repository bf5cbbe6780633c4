"""Forms: how a value of a rewritten model may hold a tensor of the original, with other codes or in another order."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .frames import Array
from .interpreter import Tensor

#: about so many elements tell whether a form is likely
_SAMPLED = 1 << 16


class Numbers(StrEnum):
    """What elements are: as they were, codes of the other signedness, or the real numbers that codes stand for."""

    SAME = "same"
    SHIFTED = "shifted"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to hold a tensor: its elements, the order of its axes (those of extent 1 left out), type and extents."""

    tensor: Tensor
    #: those of the tensor, and those of another with the same elements whose axes are put in order
    extents: tuple[int, ...]
    parted: tuple[int, ...]
    numbers: Numbers
    order: tuple[int, ...]
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    @property
    def plain(self) -> bool:
        """Whether axes are neither merged nor split, and stand in their order."""
        return self.shape == self.parted == self.extents and self.order == tuple(range(len(self.order)))

    def encode(self, array: Array) -> Array:
        """What a value holds in the place of a tensor's elements."""
        moved = array.reshape(_drop_ones(self.parted)).transpose(self.order).reshape(self.shape)
        if self.numbers is Numbers.REAL:
            zero, scale = self.tensor.zero_points[0], np.float32(self.tensor.scales[0])
            moved = (moved.astype(np.int64) - zero).astype(np.float32) * scale
        elif self.numbers is Numbers.SHIFTED:
            moved = moved.astype(np.int64) + _find_shift(self.dtype)
        return np.ascontiguousarray(moved).astype(self.dtype).reshape(self.shape)

    def is_exceeded(self, array: Array) -> bool:
        """Whether a value holds real numbers that no code stands for, by more than a step, or integers too large."""
        dtype = np.dtype(self.tensor.dtype)
        if not array.size or self.numbers is Numbers.SHIFTED or dtype.kind not in "iu" or array.dtype.kind not in "iuf":
            return False
        limits = np.iinfo(dtype)
        low, high = float(limits.min), float(limits.max)
        if self.numbers is Numbers.REAL:
            zero, scale = self.tensor.zero_points[0], self.tensor.scales[0]
            low, high = (low - 1 - zero) * scale, (high + 1 - zero) * scale
        return bool(array.min() < low or array.max() > high)

    def decode(self, array: Array) -> Array:
        """The elements of the tensor that a value stands for; real numbers are rounded to codes.

        What is beyond the codes, or the integers of the tensor's type, is cut off there.
        """
        large = _drop_ones(self.parted)
        moved = array.reshape([large[axis] for axis in self.order])
        moved = moved.transpose(np.argsort(np.array(self.order, np.int64))).reshape(self.extents)
        dtype = np.dtype(self.tensor.dtype)
        if self.numbers is Numbers.REAL:
            codes = np.rint(moved.astype(np.float64) / self.tensor.scales[0]) + self.tensor.zero_points[0]
            limits = np.iinfo(dtype)
            # What is no number at all is no code either: 0 is as good as any.
            moved = np.clip(np.nan_to_num(codes, posinf=limits.max, neginf=limits.min), limits.min, limits.max)
        elif self.numbers is Numbers.SHIFTED:
            moved = moved.astype(np.int64) + _find_shift(dtype)
        elif dtype.kind in "iu" and moved.dtype.kind in "iu":
            limits, own = np.iinfo(dtype), np.iinfo(moved.dtype)
            moved = np.clip(moved, max(limits.min, own.min), min(limits.max, own.max))
        return moved.astype(dtype)


def list_forms(tensor: Tensor, array: Array, value: Array, others: Collection[tuple[int, ...]] = ()) -> list[Form]:
    """The forms in which a value of some type and extents may hold a tensor.

    `others` are the extents of tensors with the same elements: of an image, where this one is the image flattened.
    """
    numbers = _find_numbers(tensor, array, value)
    if numbers is None or array.size != value.size:
        return []
    return [
        Form(tensor, array.shape, parted, numbers, order, value.dtype, value.shape)
        for parted in dict.fromkeys((array.shape, *others))
        for order in _list_orders(_drop_ones(parted), _drop_ones(value.shape))
    ]


def _find_numbers(tensor: Tensor, array: Array, value: Array) -> Numbers | None:
    kinds = array.dtype.kind, value.dtype.kind
    if tensor.scales and array.dtype.kind in "iu":
        if value.dtype == np.float32:
            return Numbers.REAL if len(tensor.scales) == 1 else None
        if value.dtype.kind in "iu" and value.dtype.itemsize == array.dtype.itemsize == 1:
            return Numbers.SAME if kinds[0] == kinds[1] else Numbers.SHIFTED
    if object in (array.dtype, value.dtype) or "c" in kinds:
        return None
    # Indices may be of 64 bits, truth values integers, numbers of half precision single ones.
    alike = kinds[0] == kinds[1] or all(kind in "iub" for kind in kinds)
    return Numbers.SAME if alike else None


def _find_shift(dtype: np.dtype[np.generic]) -> int:
    """What codes move by so that they fit another signedness."""
    return -(2**7) if dtype.kind == "i" else 2**7


def _drop_ones(extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for extent in extents if extent != 1)


def _list_orders(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Orders of axes by which extents become others: as they are, the last in front or second, the first at the end.

    No other is tried: axes that are exchanged by mistake are not to be explained away.
    """
    axes = tuple(range(len(before)))
    orders = [axes, (*axes[-1:], *axes[:-1]), (*axes[:1], *axes[-1:], *axes[1:-1]) if len(axes) > 1 else axes]
    orders.append((*axes[1:], *axes[:1]))
    if sorted(before) == sorted(after):  # no axes are merged or split
        orders = [order for order in orders if tuple(before[axis] for axis in order) == after]
    return list(dict.fromkeys(orders))


def estimate_distance(want: Array, got: Array) -> float:
    """How far apart two arrays are on average, relative to the numbers expected: to tell a likely form by."""
    if not want.size:
        return 0.0
    stride = 1 + want.size // _SAMPLED
    expected, actual = (np.nan_to_num(array.ravel()[::stride].astype(np.float64)) for array in (want, got))
    scale = float(np.abs(expected).mean()) or 1.0
    found = float(np.abs(expected - actual).mean()) / scale
    return found if math.isfinite(found) else math.inf

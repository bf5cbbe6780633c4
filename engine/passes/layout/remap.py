"""The words by which ops.yaml says what an attribute or operand means, and what a change of axes does to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...base.startup import dataclass
from .order import Order

#: the word for a number for each axis that a run may compute
COMPUTED = "per_axis_computed"


@dataclass(frozen=True, slots=True)
class Reordered:
    """Numbers for each axis that a run computes: the same in another order."""

    order: Order


def remap_axes(value: Sequence[int], order: Order, result: Order) -> list[int]:
    """Axes by their numbers, which are now found elsewhere; the entries in the order they had."""
    return [order.index(number % len(order)) if order else number for number in value]


def remap_perm(value: Sequence[int], order: Order, result: Order) -> list[int]:
    """The permutation from operand to result, each of which may have another order now."""
    return [order.index(value[axis]) for axis in result]


def remap_per_axis(value: Sequence[int], order: Order, result: Order) -> list[int]:
    """A number for each axis."""
    return [value[axis] for axis in order]


def remap_per_axis_pairs(value: Sequence[int], order: Order, result: Order) -> list[int]:
    """A number for the beginning of each axis, and after them one for the end of each."""
    half = len(value) // 2
    return [*remap_per_axis(value[:half], order, result), *remap_per_axis(value[half:], order, result)]


def remap_per_axis_rows(value: Sequence[int], order: Order, result: Order) -> list[int]:
    """A row of two numbers for each axis, one for its beginning and one for its end."""
    return [number for axis in order for number in value[2 * axis : 2 * axis + 2]]


Word = Callable[[Sequence[int], Order, Order], list[int]]

#: `order` is that of the tensor whose axes the value counts, `result` that of the operator's result
WORDS: Mapping[str, Word] = {
    "axis": remap_axes,
    "axes": remap_axes,
    "perm": remap_perm,
    "per_axis": remap_per_axis,
    COMPUTED: remap_per_axis,
    "per_axis_pairs": remap_per_axis_pairs,
    "per_axis_rows": remap_per_axis_rows,
}

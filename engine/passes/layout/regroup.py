"""The axes that a Reshape merges, splits or leaves, found by comparing the shapes before and after."""

from __future__ import annotations

import math

from .order import Extents

Axes = tuple[int, ...]
#: axes before and after that hold the same elements
Pairs = list[tuple[Axes, Axes]]


class Opaque(Exception):
    """A node that is not understood well enough to be moved."""


def regroup(before: Extents, after: Extents) -> Pairs:
    """The runs of axes that a Reshape merges, splits or leaves; axes of extent 1 belong to none."""
    before, after = _solve_extent(before, after), _solve_extent(after, before)
    low = 0
    while low < min(len(before), len(after)) and _is_same(before[low], after[low]):
        low += 1
    high = 0
    while high < min(len(before), len(after)) - low and _is_same(before[-1 - high], after[-1 - high]):
        high += 1
    ends = len(before) - high, len(after) - high
    head: Pairs = [((i,), (i,)) for i in range(low)]
    tail: Pairs = [((ends[0] + i,), (ends[1] + i,)) for i in range(high)]
    middle = _pair_runs(before[low : ends[0]], after[low : ends[1]])
    shifted = [(tuple(i + low for i in a), tuple(i + low for i in b)) for a, b in middle]
    return [*head, *shifted, *tail]


def _solve_extent(shape: Extents, other: Extents) -> Extents:
    """A shape whose one extent that is not known follows from another shape with as many elements."""
    numbers, wanted = ([extent for extent in side if isinstance(extent, int)] for side in (shape, other))
    if len(numbers) != len(shape) - 1 or len(wanted) != len(other) or 0 in (*numbers, *wanted):
        return shape
    missing, rest = divmod(math.prod(wanted), math.prod(numbers))
    return shape if rest else tuple(extent if isinstance(extent, int) else missing for extent in shape)


def _is_same(first: int | str | None, second: int | str | None) -> bool:
    return first is not None and first == second


def _pair_runs(before: Extents, after: Extents) -> Pairs:
    if any(not isinstance(extent, int) for extent in (*before, *after)):
        return _pair_around(before, after) or _run(before, after)
    a, b = ([int(extent) for extent in side if isinstance(extent, int)] for side in (before, after))
    if math.prod(a) != math.prod(b) or 0 in a:
        raise Opaque
    pairs: Pairs = []
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            pairs.append(((i,), (j,)))
            i, j = i + 1, j + 1
        elif i < len(a) and a[i] == 1:
            pairs.append(((i,), ()))
            i += 1
        elif j < len(b) and b[j] == 1:
            pairs.append(((), (j,)))
            j += 1
        else:
            run_a, run_b = [i], [j]
            while (left := _multiply(a, run_a)) != (right := _multiply(b, run_b)):
                (run_a if left < right else run_b).append((run_a if left < right else run_b)[-1] + 1)
            pairs.append((tuple(run_a), tuple(run_b)))
            i, j = run_a[-1] + 1, run_b[-1] + 1
    return pairs


def _pair_around(before: Extents, after: Extents) -> Pairs | None:
    """The runs on either side of the one extent that is not known, where it must be the same before and after."""
    unknown = [[at for at, extent in enumerate(side) if not isinstance(extent, int)] for side in (before, after)]
    if [len(at) for at in unknown] != [1, 1]:
        return None
    (i,), (j,) = unknown
    try:
        head, tail = _pair_runs(before[:i], after[:j]), _pair_runs(before[i + 1 :], after[j + 1 :])
    except Opaque:
        return None
    later = [(tuple(axis + i + 1 for axis in a), tuple(axis + j + 1 for axis in b)) for a, b in tail]
    return [*head, ((i,), (j,)), *later]


def _run(before: Extents, after: Extents) -> Pairs:
    """One run, for extents that are not known, and around it the axes of extent 1 that it begins and ends with."""
    (low, high), (start, end) = (_trim_ones(side) for side in (before, after))
    return [
        *(((i,), ()) for i in range(low)),
        *(((), (i,)) for i in range(start)),
        (tuple(range(low, high)), tuple(range(start, end))),
        *(((i,), ()) for i in range(high, len(before))),
        *(((), (i,)) for i in range(end, len(after))),
    ]


def _trim_ones(shape: Extents) -> tuple[int, int]:
    long = [axis for axis, extent in enumerate(shape) if extent != 1]
    return (long[0], long[-1] + 1) if long else (0, len(shape))


def _multiply(extents_: list[int], run: list[int]) -> int:
    return math.prod(extents_[i] for i in run)

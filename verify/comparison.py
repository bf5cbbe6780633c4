"""Comparison of one output on both sides: how far apart, and whether that is a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .frames import Array
from .interpreter import Kernels, Tensor

RELATIVE_TOLERANCE = 1e-4
"""Of the largest magnitude in a float output: what other orders of summation cost, several times over."""
HALF_TOLERANCE = 2e-3
"""The same for float16, whose unit roundoff is 4.9e-4."""
ABSOLUTE_TOLERANCE = 1e-5
"""Least tolerance of a float output, so that one which is all rounding error of zero is not held to it."""
TOP = 10


class Verdict(StrEnum):
    """What a comparison comes to, best first; SPREAD is off by no more than the interpreter's own kernels allow."""

    EQUAL = "equal"
    CLOSE = "close"
    SPREAD = "spread"
    DIFFERENT = "different"

    @property
    def passed(self) -> bool:
        return self is not Verdict.DIFFERENT


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output, compared with what one set of the interpreter's kernels computes, worst of all samples.

    `absolute` is the largest difference (in steps where `quantized`), `relative` the same over the largest magnitude
    of the output and `mean_relative` the mean difference over it; all are None where values cannot be subtracted.
    `low` and `high` span the finite values expected. `top` is the share of the ten highest scores that both sides
    have in common, None where the output does not look like scores. `differing` counts the elements that are not equal
    where they are labels, that is integers without a scale, and is None elsewhere. `spread` is what the interpreter's
    own kernels differ by where that was asked, in elements of labels. `reason` words a difference.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    kernels: Kernels
    verdict: Verdict
    tolerance: float = 0.0
    absolute: float | None = None
    relative: float | None = None
    mean_relative: float | None = None
    low: float | None = None
    high: float | None = None
    top: float | None = None
    quantized: bool = False
    reason: str = ""
    differing: int | None = None
    spread: float = 0.0

    @property
    def error(self) -> str:
        """How far apart both sides are, in words."""
        if self.differing is not None:
            return f"{self.differing:,} of {math.prod(self.shape):,} elements differ"
        return f"off by {self.absolute or 0.0:.3g}{' steps' if self.quantized else ''}"


def compare(tensor: Tensor, want: Array, got: Array, kernels: Kernels, spread: float = 0.0) -> Comparison:
    """Compare an output of the interpreter, described by `tensor`, with that of the rewritten model.

    Floats may differ by 1e-4 of the output's largest magnitude (2e-3 for float16), quantized values and floats that
    are a view of them by one step, anything else not at all; NaN and infinities must stand in the same places. Where
    that fails, `spread` (what `measure_distance` is between the interpreter's own kernels) allows twice itself.
    """
    quantized = bool(tensor.scales) and want.dtype.kind in "iu"
    blank = Comparison(tensor.name, want.dtype.name, want.shape, kernels, Verdict.DIFFERENT, quantized=quantized)
    if want.dtype.kind == "c" and got.dtype == want.real.dtype and got.shape == (*want.shape, 2):
        got = got[..., 0] + 1j * got[..., 1]  # the form that complex numbers have where there are none
        got = got.astype(want.dtype)
    if want.shape != got.shape and not want.size == got.size == 1:
        return _reject(blank, f"shape {_format_shape(want.shape)} became {_format_shape(got.shape)}")
    got = got.reshape(want.shape)
    if _are_maps(want) and _are_maps(got):
        if [list(row) for row in want.flat] != [list(row) for row in got.flat]:
            return _reject(blank, "maps of other keys")
        return compare(tensor, _list_entries(want), _list_entries(got), kernels, spread)
    if want.dtype == object or got.dtype == object:
        return _judge(blank) if _list_texts(want) == _list_texts(got) else _reject(blank, "other strings")
    if want.dtype != got.dtype:
        return _reject(blank, f"type {want.dtype} became {got.dtype}")
    return _compare_numbers(blank, tensor, want, got, spread) if want.size else _judge(blank)


def _compare_numbers(blank: Comparison, tensor: Tensor, want: Array, got: Array, spread: float) -> Comparison:
    """Compare numbers of one type and shape, of which there are some; `blank` has what is known without them."""
    expected, actual = _widen(want), _widen(got)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)) or not np.array_equal(
        expected[~finite], actual[~finite], equal_nan=True
    ):
        return _reject(blank, "NaN or infinity in other places")
    if not finite.any():
        return _judge(blank)
    error = _subtract(want[finite], got[finite])
    magnitude = float(np.abs(expected[finite]).max())
    absolute, scale = float(error.max()), magnitude or 1.0
    real = expected[finite].real
    measured = replace(
        blank,
        tolerance=_compute_tolerance(tensor, want, blank.quantized, magnitude),
        absolute=absolute,
        relative=absolute / scale,
        mean_relative=float(error.mean()) / scale,
        low=float(real.min()),
        high=float(real.max()),
        top=_measure_top_agreement(expected, actual),
        differing=int(np.count_nonzero(error)) if _are_labels(tensor, want) else None,
        spread=spread,
    )
    return _judge(measured)


def measure_distance(tensor: Tensor, first: Array, second: Array) -> float:
    """Measure how far apart two outputs are: the largest finite difference, or how many of their labels differ."""
    if first.shape == second.shape and _are_labels(tensor, first):
        return float(np.count_nonzero(first != second))
    return measure_largest_difference(first, second)


def measure_largest_difference(first: Array, second: Array) -> float:
    """Measure the largest finite difference of two arrays, 0 where they cannot be subtracted."""
    if first.shape != second.shape or not first.size or object in (first.dtype, second.dtype):
        return 0.0
    difference = _subtract(first, second)
    difference = difference[np.isfinite(difference)]
    return float(difference.max()) if difference.size else 0.0


def reject(comparison: Comparison) -> Comparison:
    """The comparison as one that failed: nothing may differ there."""
    return _reject(comparison, f"{comparison.error}, tolerance 0")


def check_equal(name: str, want: Array, got: Array) -> str:
    """Describe how a result differs from that of the reference kernels, code for code; empty where it does not."""
    if want.dtype == got.dtype and np.array_equal(want, got, equal_nan=want.dtype.kind in "fc"):
        return ""
    return f"{name}: off by {measure_largest_difference(want, got):.3g} from the reference kernels, tolerance 0"


def check_form(name: str, want: Array, got: Array) -> str:
    """Describe how type and shape differ, where only these are known; empty where they do not."""
    pairs = want.dtype.kind == "c"  # which have real and imaginary parts along an axis of their own
    kind, shape = (want.real.dtype, (*want.shape, 2)) if pairs else (want.dtype, want.shape)
    return "" if (kind, shape) == (got.dtype, got.shape) else f"{name}: {kind}{shape} became {got.dtype}{got.shape}"


def choose_worst(comparisons: list[Comparison]) -> Comparison:
    """Take the comparison of one output that stands for those of all samples: the worst verdict, then error."""
    order = list(Verdict)
    return max(comparisons, key=lambda one: (order.index(one.verdict), one.differing or one.absolute or 0.0))


def _are_labels(tensor: Tensor, array: Array) -> bool:
    """Whether integers tell things apart and measure none: by how much two of them differ says nothing."""
    return not tensor.scales and array.dtype.kind in "iub"


def _compute_tolerance(tensor: Tensor, want: Array, quantized: bool, magnitude: float) -> float:
    if quantized:
        return 1.0
    if want.dtype.kind in "iub":
        return 0.0
    share = HALF_TOLERANCE if want.dtype.itemsize == 2 else RELATIVE_TOLERANCE
    # A step's own rounding in float32 comes on top of it.
    return max(ABSOLUTE_TOLERANCE, share * magnitude, 1.01 * tensor.step)


def _judge(measured: Comparison) -> Comparison:
    error = measured.absolute or 0.0
    if error == 0:
        return _set_verdict(measured, Verdict.EQUAL)
    if error <= measured.tolerance:
        return _set_verdict(measured, Verdict.CLOSE)
    if (error if measured.differing is None else measured.differing) <= 2 * measured.spread:
        return _set_verdict(measured, Verdict.SPREAD)
    if measured.differing is not None:
        return _reject(measured, measured.error)
    unit = " steps" if measured.quantized else ""
    return _reject(measured, f"{measured.error}, tolerance {measured.tolerance:.3g}{unit}")


def _set_verdict(measured: Comparison, verdict: Verdict, reason: str = "") -> Comparison:
    return replace(measured, verdict=verdict, reason=reason)


def _reject(measured: Comparison, reason: str) -> Comparison:
    return _set_verdict(measured, Verdict.DIFFERENT, reason)


def _subtract(first: Array, second: Array) -> NDArray[Any]:
    """How far apart the elements of two arrays are, those of integers of one type exactly."""
    if first.dtype == second.dtype and first.dtype.kind in "iub":
        unsigned = np.dtype(f"u{first.dtype.itemsize}")  # which alone holds all differences
        high, low = np.maximum(first, second), np.minimum(first, second)
        return np.asarray(np.subtract(high.view(unsigned), low.view(unsigned)))
    return np.asarray(np.abs(_widen(first) - _widen(second)))


def _widen(array: Array) -> NDArray[Any]:
    """Convert to a type in which differences of floats are exact enough: float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _measure_top_agreement(want: NDArray[Any], got: NDArray[Any]) -> float | None:
    """Measure Top-10 agreement where an output looks like scores: one vector of at least ten for each batch.

    A place that the other side counts among its ten agrees where the value expected there is not below the tenth
    highest, so that ties at the border are not held against anybody.
    """
    if want.ndim == 0 or want.dtype.kind == "c" or want.shape[-1] < TOP or any(size != 1 for size in want.shape[1:-1]):
        return None
    rows, others = (values.reshape(-1, want.shape[-1]) for values in (want, got))
    chosen = np.argpartition(-others, TOP - 1, axis=1)[:, :TOP]
    border = -np.partition(-rows, TOP - 1, axis=1)[:, TOP - 1 : TOP]
    return float((np.take_along_axis(rows, chosen, 1) >= border).mean())


def _are_maps(array: Array) -> bool:
    """Whether the elements are maps, as ONNX Runtime yields the scores of classes by their names."""
    return array.dtype == object and array.size > 0 and all(isinstance(item, dict) for item in array.flat)


def _list_entries(maps: Array) -> Array:
    """What the maps have for their keys, a row each."""
    return np.array([list(row.values()) for row in maps.flat])


def _list_texts(array: Array) -> list[str]:
    return [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in array.ravel()]


def _format_shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"

"""Operators of TensorFlow itself that take matrices, images and boxes, as numpy has them."""

from __future__ import annotations

import colorsys
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from nnrewrite.engine.dialects.operators import Catalogue

from .flex import Array, Case, agree, ints, numbers, operators


def bands() -> Iterator[Case]:
    x, padding = numbers(2, 3, 5), np.array(9, np.float32)
    for k, align in itertools.product(
        ((-1, 2), (0, 0), (1, 3)), ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
    ):
        rows = banded(x, *k, align)
        operands = (x, np.array(k, np.int32), padding)
        yield Case("FlexMatrixDiagPartV3", operands, (rows[:, 0] if k[0] == k[1] else rows,), options={"align": align})
        if align == "LEFT_LEFT":
            yield Case("FlexMatrixDiagPartV2", operands, (rows[:, 0] if k[0] == k[1] else rows,))
        i, j = np.indices((3, 5))
        whole = np.where((j - i >= k[0]) & (j - i <= k[1]), x, 9).astype(np.float32)
        diagonal = rows[:, 0] if k[0] == k[1] else rows
        extents = np.array(3, np.int32), np.array(5, np.int32)
        back = (diagonal, np.array(k, np.int32), *extents, padding)
        yield Case("FlexMatrixDiagV3", back, (whole,), options={"align": align})
        if align == "LEFT_LEFT":
            yield Case("FlexMatrixDiagV2", back, (whole,))
        under = numbers(2, 3, 5)
        put = (under, diagonal, np.array(k, np.int32))
        mixed = np.where((j - i >= k[0]) & (j - i <= k[1]), x, under).astype(np.float32)
        yield Case("FlexMatrixSetDiagV3", put, (mixed,), given=2, options={"align": align})
        if align == "LEFT_LEFT":
            yield Case("FlexMatrixSetDiagV2", put, (mixed,), given=2)
    band = (x, np.array((-1, 2), np.int32), padding)
    yield Case("FlexMatrixDiagPartV3", band, (banded(x, -1, 2, "RIGHT_LEFT"),), given=3)
    square, corner = numbers(2, 3, 3), numbers(2, 3)
    yield Case("FlexMatrixDiagPart", (square,), (np.diagonal(square, axis1=1, axis2=2),))
    yield Case("FlexMatrixDiag", (corner,), (corner[:, None] * np.eye(3, dtype=np.float32),))
    yield Case("FlexMatrixSetDiag", (square, corner), (np.where(np.eye(3) > 0, corner[:, None], square),), given=2)
    for below, above in ((1, 0), (-1, 1), (0, -1)):
        kept = ((j - i >= -below) | (below < 0)) & ((j - i <= above) | (above < 0))
        widths = np.array(below, np.int32), np.array(above, np.int32)
        yield Case("FlexMatrixBandPart", (x, *widths), (np.where(kept, x, 0).astype(np.float32),))


def banded(x: Array, low: int, high: int, align: str) -> Array:
    """The diagonals low..high of [N, rows, columns], highest first, each put left or right in rows padded with 9."""
    found = [[np.diagonal(matrix, d) for d in range(high, low - 1, -1)] for matrix in x]
    most = max(len(diagonal) for diagonal in found[0])
    result = np.full((len(x), high - low + 1, most), 9, np.float32)
    for n, row in itertools.product(range(len(x)), range(high - low + 1)):
        d, diagonal = high - row, found[n][row]
        right = (d >= 0 and align.startswith("RIGHT")) or (d <= 0 and align.endswith("RIGHT"))
        start = most - len(diagonal) if right else 0
        result[n, row, start : start + len(diagonal)] = diagonal
    return result


def systems() -> Iterator[Case]:
    a, b = numbers(2, 4, 4), numbers(2, 4, 3)
    a[0, 0, 0] = 0  # what stands first cannot always be divided by
    for adjoint in (True, False):
        given = a.transpose(0, 2, 1) if adjoint else a
        yield Case("FlexMatrixSolve", (a, b), (np.linalg.solve(given, b),), 2, {"adjoint": adjoint})
        yield Case("FlexMatrixInverse", (a,), (np.linalg.inv(given),), 1, {"adjoint": adjoint})
        for lower in (True, False):
            other = numbers(2, 4, 4)
            other[:, range(4), range(4)] = numbers(2, 4, least=1)
            part = np.tril(other) if lower else np.triu(other)
            wanted = np.linalg.solve(part.transpose(0, 2, 1) if adjoint else part, b)
            yield Case("FlexMatrixTriangularSolve", (other, b), (wanted,), 2, {"lower": lower, "adjoint": adjoint})
    definite = a @ a.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
    yield Case("FlexCholesky", (definite,), (np.linalg.cholesky(definite),))
    sign, size = np.linalg.slogdet(a)
    yield Case("FlexLogMatrixDeterminant", (a,), (sign, size))


def running() -> Iterator[Case]:
    x = numbers(2, 3, 4)
    for axis, exclusive, reverse in itertools.product((1, -1, 0), (False, True), (False, True)):
        options = {"exclusive": exclusive, "reverse": reverse}
        operands = x, np.array(axis, np.int32)
        turned = np.flip(x, axis) if reverse else x
        for name, function, start in (
            ("FlexCumprod", np.multiply, 1),
            ("FlexCumulativeLogsumexp", np.logaddexp, -np.inf),
        ):
            found = function.accumulate(turned, axis)
            if exclusive:
                first = np.full_like(np.take(found, [0], axis), start)
                found = np.concatenate([first, np.delete(found, -1, axis)], axis)
            yield Case(name, operands, (np.flip(found, axis) if reverse else found,), 1, options)


def colours(function: Any, x: Array) -> Array:
    return np.array([function(*pixel) for pixel in x.reshape(-1, 3)], np.float32).reshape(x.shape)


def images() -> Iterator[Case]:
    x = numbers(2, 3, 5, 3, least=0, most=1)
    x[0, 0, 0] = 0.5, 0.5, 0.5
    x[0, 0, 1] = 0
    yield Case("FlexRGBToHSV", (x,), (colours(colorsys.rgb_to_hsv, x),))
    yield Case("FlexHSVToRGB", (x,), (colours(colorsys.hsv_to_rgb, x),))
    hsv = colours(colorsys.rgb_to_hsv, x)
    for delta in (0.3, -0.9):
        turned = (hsv + np.float32([delta, 0, 0])) % np.float32([1, 2, 2])
        wanted = colours(colorsys.hsv_to_rgb, turned)
        yield Case("FlexAdjustHue", (x, np.array(delta, np.float32)), (wanted,), given=2)
    for factor in (0.4, 3.0):
        stronger = np.clip(hsv * np.float32([1, factor, 1]), 0, 1)
        wanted = colours(colorsys.hsv_to_rgb, stronger)
        yield Case("FlexAdjustSaturation", (x, np.array(factor, np.float32)), (wanted,), given=2)
    boxes = np.float32([[0.1, 0.2, 0.9, 0.7], [0.8, 0.9, 0.1, 0.2], [-0.5, 0, 1.5, 1]])
    for size, method in itertools.product(((4, 3), (1, 2)), ("bilinear", "nearest")):
        crops = np.stack([crop(x[i], box, size, method) for i, box in zip((1, 0, 1), boxes, strict=True)])
        operands = x, boxes, ints(1, 0, 1), ints(*size)
        yield Case("FlexCropAndResize", operands, (crops,), 2, {"method": method, "extrapolation_value": 7.0})
    for padding, batch in itertools.product(("SAME", "VALID"), (True, False)):
        options = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": padding, "include_batch_in_index": batch}
        yield Case("FlexMaxPoolWithArgmax", (x,), highest(x, padding, batch), 1, options)


def crop(image: Array, box: Array, size: tuple[int, int], method: str) -> Array:
    """What TensorFlow cuts out of [H, W, C] between (y1, x1) and (y2, x2): places outside are 7."""
    ends = [extent - 1 for extent in image.shape[:2]]
    places = [
        np.linspace(box[i], box[i + 2], n) * end if n > 1 else np.array([(box[i] + box[i + 2]) / 2 * end])
        for i, (n, end) in enumerate(zip(size, ends, strict=True))
    ]
    result = np.full((*size, image.shape[2]), 7, np.float32)
    for (i, y), (j, x) in itertools.product(enumerate(places[0]), enumerate(places[1])):
        if not (0 <= y <= ends[0] and 0 <= x <= ends[1]):
            continue
        if method == "nearest":
            result[i, j] = image[int(y + 0.5), int(x + 0.5)]
        else:
            above, left = int(y), int(x)
            below, right = min(above + 1, ends[0]), min(left + 1, ends[1])
            rows = image[[above, below]][:, [left, right]]
            columns = rows[:, 0] + (rows[:, 1] - rows[:, 0]) * (x - left)
            result[i, j] = columns[0] + (columns[1] - columns[0]) * (y - above)
    return result


def highest(x: Array, padding: str, batch: bool) -> tuple[Array, Array]:
    """Maxima in windows of 2 by 3 that move by 2 and 1, and where they are: rows, columns, channels, from 0."""
    n, h, w, c = x.shape
    before = 1 if padding == "SAME" else 0
    rows, columns = (-(-h // 2), w) if padding == "SAME" else ((h - 2) // 2 + 1, w - 2)
    values, at = np.zeros((n, rows, columns, c), np.float32), np.zeros((n, rows, columns, c), np.int64)
    for i, row, column, k in np.ndindex(values.shape):
        window = [
            (x[i, p, q, k], ((i if batch else 0) * h * w + p * w + q) * c + k)
            for p in range(row * 2, min(row * 2 + 2, h))
            for q in range(max(column - before, 0), min(column - before + 3, w))
        ]
        values[i, row, column, k], at[i, row, column, k] = max(window, key=lambda found: found[0])
    return values, at


#: what TensorFlow 2.21 makes of 2 rows of 3 in 3 rows of 2
RESIZED: list[tuple[str, dict[str, Any], list[float]]] = [
    ("Bicubic", {"half_pixel_centers": True}, [-0.53528, 2.13526, 5.12774, 13.44891, 10.79076, 24.76255]),
    ("Bicubic", {"half_pixel_centers": False}, [0.0, 2.59375, 6.16984, 15.31905, 10.0, 23.21875]),
    ("Bicubic", {"align_corners": True}, [0.0, 4.0, 4.5, 14.5, 9.0, 25.0]),
    ("Area", {}, [0.33333, 3.0, 5.83333, 12.5, 11.33333, 22.0]),
    ("Bilinear", {"half_pixel_centers": True}, [0.25, 3.25, 5.5, 13.0, 10.75, 22.75]),
    ("NearestNeighbor", {}, [0.0, 1.0, 0.0, 1.0, 9.0, 16.0]),
]


def sizes() -> Iterator[Case]:
    image = np.float32([[0, 1, 4], [9, 16, 25]]).reshape(1, 2, 3, 1)
    for name, options, expected in RESIZED:
        wanted = np.float32(expected).reshape(1, 3, 2, 1)
        yield Case(f"FlexResize{name}", (image, ints(3, 2)), (wanted,), 1, options)


#: what TensorFlow 2.21 makes of six squares in a column by a kernel, which may be as wide as the image becomes smaller
SCALED = [
    ("triangle", True, [0.33333, 4.5, 16.5]),
    ("keyscubic", True, [0.0, 3.90909, 17.0]),
    ("mitchellcubic", True, [0.30769, 4.38567, 16.46667]),
    ("gaussian", True, [0.65899, 4.92431, 15.825]),
    ("lanczos3", True, [0.0, 3.22089, 17.55822]),
    ("lanczos3", False, [0.0, 4.0, 16.0]),
]


def scales() -> Iterator[Case]:
    squares = np.square(np.arange(6, dtype=np.float32)).reshape(1, 6, 1, 1)
    operands = (squares, ints(3, 1), np.float32([0.5, 1]), np.float32([0.25, 0]))
    for kernel, antialias, expected in SCALED:
        wanted = np.float32(expected).reshape(1, 3, 1, 1)
        yield Case("FlexScaleAndTranslate", operands, (wanted,), 1, {"kernel_type": kernel, "antialias": antialias})


def suppression() -> Iterator[Case]:
    boxes = np.float32([[0, 0, 2, 2], [0.1, 0, 2.1, 2], [1, 1, 4, 3], [3, 0, 5, 2.5], [3.2, 0.2, 5, 2.5]])
    scores = np.float32([0.5, 0.9, 0.3, 0.6, 0.7])
    four, half, least = np.array(4, np.int32), np.array(0.5, np.float32), np.array(0.4, np.float32)
    yield Case("FlexNonMaxSuppressionV2", (boxes, scores, four, half), (ints(1, 4, 2),), 2)
    yield Case("FlexNonMaxSuppressionV3", (boxes, scores, four, half, least), (ints(1, 4),), 2)
    for padded, wanted in ((True, ints(1, 4, 0, 0)), (False, ints(1, 4))):
        operands = boxes, scores, four, half, least
        options = {"pad_to_max_output_size": padded}
        yield Case("FlexNonMaxSuppressionV4", operands, (wanted, np.array(2, np.int32)), 2, options)
    two, three = np.array(2, np.int32), np.array(3, np.int32)
    both = np.stack([scores, 1 - scores], 1)[None]
    zero = np.zeros(4, np.float32)
    clipped = np.clip(boxes, 0, 1)
    for q, padded, clip in itertools.product((1, 2), (True, False), (True, False)):
        seen = clipped if clip else boxes
        # Of the first class 1 and 4 are kept, of the second 2 and 0; the best three of these stand.
        chosen = [(0.9, 1, 0), (0.7, 4, 0), (0.7, 2, 1)]
        total = np.array(6, np.int32) if not padded else three
        rows = [*chosen, (0.5, 0, 1)][: int(total)]
        more = [zero] * (int(total) - len(rows))
        wanted = (
            np.stack([*(seen[box] for _, box, _ in rows), *more])[None],
            np.float32([[*(score for score, _, _ in rows), *([0] * len(more))]]),
            np.float32([[*(kind for _, _, kind in rows), *([0] * len(more))]]),
            np.int32([len(rows)]),
        )
        operands = np.repeat(boxes[None, :, None], q, 2), both, two, total, half, least
        options = {"pad_per_class": padded, "clip_boxes": clip}
        yield Case("FlexCombinedNonMaxSuppression", operands, wanted, 2, options)


def reflections() -> Iterator[Case]:
    x = numbers(2, 4, 3)
    parts = [np.linalg.qr(one) for one in x]
    yield Case("FlexQr", (x,), (np.stack([q for q, _ in parts]), np.stack([r for _, r in parts])))
    values = numbers(2, 3)
    yield Case("FlexDiag", (values,), (np.diag(values.ravel()).reshape(2, 3, 2, 3),))
    yield Case("FlexDiagPart", (np.diag(values.ravel()).reshape(2, 3, 2, 3),), (values,))


def projections() -> Iterator[Case]:
    """As TensorFlow 2.21 has them."""
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    turn = np.float32([[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0, 0]])
    wanted = np.float32([[1.1, 1.6, 2.1], [5.6, 6.1, 6.6]]).reshape(1, 2, 3, 1)
    options = {"interpolation": "BILINEAR", "fill_mode": "CONSTANT"}
    yield Case(
        "FlexImageProjectiveTransformV3", (x, turn, ints(2, 3), np.array(0.5, np.float32)), (wanted,), 1, options
    )
    overlaps, scores = np.float32([[1, 0.6, 0.1], [0.6, 1, 0.2], [0.1, 0.2, 1]]), np.float32([0.5, 0.9, 0.3])
    bounds = np.array(3, np.int32), np.array(0.5, np.float32), np.array(0, np.float32)
    yield Case("FlexNonMaxSuppressionWithOverlaps", (overlaps, scores, *bounds), (ints(1, 2),), 2)


CASES = [
    *reflections(),
    *projections(),
    *bands(),
    *systems(),
    *running(),
    *images(),
    *sizes(),
    *scales(),
    *suppression(),
]


pytestmark = pytest.mark.usefixtures("counted")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_numpy_says(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


@pytest.mark.parametrize("file", ["flex_matrices.rules", "flex_images.rules"])
def test_every_operator_that_rules_are_about_has_a_case(file: str) -> None:
    assert operators(file) and operators(file) <= {case.operator for case in CASES}

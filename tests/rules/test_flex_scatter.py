"""Operators of TensorFlow itself about scattered maxima, sorted rows and bits, as numpy has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from nnrewrite.engine.dialects.operators import Catalogue

from .flex import Case, agree, ints, numbers, operators


def scatters() -> Iterator[Case]:
    x, at, new = numbers(4, 3), ints([[2], [0], [2]]), numbers(3, 3)
    for word, function, sign in (
        ("Add", np.add, 1),
        ("Sub", np.add, -1),
        ("Max", np.maximum, 1),
        ("Min", np.minimum, 1),
    ):
        wanted = x.copy()
        function.at(wanted, at[:, 0], sign * new)
        yield Case(f"FlexTensorScatter{word}", (x, at, new), (wanted,), 3)


def rows() -> Iterator[Case]:
    x = np.float32([[1, 3, 2, 3], [9, 8, 7, 6], [np.nan, 1, 2, 3]])
    found = np.array([True, False, False])
    yield Case("FlexInTopKV2", (x, ints(3, 2, 0), np.array(2, np.int32)), (found,), 2)
    ordered, values = np.sort(numbers(2, 5)), numbers(2, 3)
    values[0, 0] = ordered[0, 2]
    for word, side in (("Lower", "left"), ("Upper", "right")):
        wanted = np.stack([np.searchsorted(r, v, side) for r, v in zip(ordered, values, strict=True)])
        yield Case(f"Flex{word}Bound", (ordered, values), (wanted.astype(np.int32),), 2)


def bits() -> Iterator[Case]:
    x, y = ints(5, -3, 77), ints(1, 4, 2)
    yield Case("FlexInvert", (x,), (~x,))
    yield Case("FlexBitwiseXor", (x, y), (x ^ y,), 2)
    yield Case("FlexLeftShift", (x, y), (x << y,), 2)
    yield Case("FlexRightShift", (x, y), (x >> y,), 2)


def counts_of_bits() -> Iterator[Case]:
    x = ints(0, -1, 77, 2**31 - 1)
    yield Case("FlexPopulationCount", (x,), (np.array([0, 32, 4, 31], np.uint8),))


def sparse() -> Iterator[Case]:
    at, values, b = np.int64([[0, 1], [2, 3], [0, 1]]), numbers(3), numbers(4, 2)
    dense = np.zeros((3, 4), np.float32)
    np.add.at(dense, (at[:, 0], at[:, 1]), values)
    yield Case("FlexSparseTensorDenseMatMul", (at, values, np.int64([3, 4]), b), (dense @ b,), 2)


def coarse() -> Iterator[Case]:
    x, least, most = (
        np.float32([[0.3, -0.8, 1.2], [0.111, 0.5, 7.0]]),
        np.float32([-1, -0.3, 0]),
        np.float32([1, 0.7, 6]),
    )
    wanted = np.float32([[0.29803923, -0.3019608, 1.2], [0.10980393, 0.5019608, 6.0]])  # TensorFlow 2.21
    yield Case("FlexFakeQuantWithMinMaxVarsPerChannel", (x, least, most), (wanted,))


def texts() -> Iterator[Case]:
    words, parts = np.array(["a,,b", "", "c"]), np.array(["a", "", "b", "", "c"])
    places = np.int64([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]])
    separator = np.array(b",", object)
    yield Case("FlexStringSplitV2", (words, separator), (places, parts, np.int64([3, 3])))
    nothing = (np.int64([[0, 0]]), np.array([""]), np.int64([1, 1]))
    yield Case("FlexStringSplitV2", (np.array([""]), separator), nothing)
    blanks = (np.int64([[0, 0], [0, 1]]), np.array(["a", "b"]), np.int64([2, 2]))
    yield Case("FlexStringSplitV2", (np.array([" a  b", ""]), np.array(b"", object)), blanks)
    yield Case("FlexStringJoin", (words, words), (np.array(["a,,b-a,,b", "-", "c-c"]),), 2, {"N": 2, "separator": "-"})


CASES = [*scatters(), *rows(), *bits(), *counts_of_bits(), *sparse(), *coarse(), *texts()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_numpy_says(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


def test_text_is_matched_as_a_whole(catalogue: Catalogue) -> None:
    words = np.array(["ab", "aB", ""])
    options = {"pattern": "[a-z]+"}
    agree(Case("FlexStaticRegexFullMatch", (words,), (np.array([True, False, False]),), 1, options), catalogue)


def test_every_operator_that_rules_are_about_has_a_case() -> None:
    assert operators("flex_scatter.rules") - {"FlexStaticRegexFullMatch"} <= {case.operator for case in CASES}

"""Operators of TensorFlow itself about sparse tensors and about how sums change, as numpy has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from nnrewrite.engine.dialects.operators import Catalogue

from .flex import Array, Case, agree, ints, numbers, operators


def sparse() -> Iterator[Case]:
    at, x, extents = np.int64([[2, 0], [0, 1], [2, 1]]), np.float32([1, -2, 3]), np.int64([3, 2])
    dense = np.zeros((3, 2), np.float32)
    dense[tuple(at.T)] = x
    order = [1, 0, 2]
    yield Case("FlexSparseReorder", (at, x, extents), (at[order], x[order]), 2)
    at, x = at[order], x[order]
    ends = np.int64([1, 0]), np.int64([4, 1])
    yield Case("FlexSparseSlice", (at, x, extents, *ends), (np.int64([[1, 0]]), np.float32([1]), np.int64([2, 1])), 2)
    along = ints([1])
    yield Case("FlexSparseReduceSum", (at, x, extents, along), (dense.sum(1),), 2)
    yield Case("FlexSparseReduceMax", (at, x, extents, along), (np.float32([-2, 0, 3]),), 2)
    other = numbers(3, 2)
    yield Case("FlexSparseTensorDenseAdd", (at, x, extents, other), (dense + other,), 2)
    there = other[tuple(at.T)]
    for word, found in (("Mul", x * there), ("Div", x / there), ("Add", x + there)):
        yield Case(f"FlexSparseDenseCwise{word}", (at, x, extents, other), (found,), 2)
    b_at, b = np.int64([[0, 1], [1, 1]]), np.float32([2, 5])
    both = np.int64([[0, 1], [1, 1], [2, 0], [2, 1]])
    least = np.array(0.5, np.float32)
    yield Case(
        "FlexSparseAdd", (at, x, extents, b_at, b, extents, least), (both[1:], np.float32([5, 1, 3]), extents), 2
    )
    for word, found in (("Maximum", [2, 5, 1, 3]), ("Minimum", [-2, 0, 0, 0])):
        yield Case(f"FlexSparseSparse{word}", (at, x, extents, b_at, b, extents), (both, np.float32(found)), 2)
    places = np.int64([[0, 1], [0, 3], [1, 3], [2, 0], [2, 1]])
    options = {"concat_dim": 1, "N": 2}
    joined = (places, np.float32([-2, 2, 5, 1, 3]), np.int64([3, 4]))
    yield Case("FlexSparseConcat", (at, b_at, x, b, extents, extents), joined, 1, options)
    yield Case("FlexSparseToDense", (at, extents, x, np.array(0, np.float32)), (dense,), 1)


def functions() -> Iterator[Case]:
    x, g = numbers(3, 4, least=-8, most=8), numbers(3, 4)
    up = (x > 0).astype(np.float32)
    yield Case("FlexReluGrad", (g, x), (g * up,), 2)
    yield Case("FlexRelu6Grad", (g, x), (g * up * (x < 6),), 2)
    yield Case("FlexLeakyReluGrad", (g, x), (np.where(x > 0, g, g * np.float32(0.2)),), 2, {"alpha": 0.2})
    yield Case("FlexSoftplusGrad", (g, x), (g / (1 + np.exp(-x)),), 2)
    yield Case("FlexSoftsignGrad", (g, x), (g / (1 + np.abs(x)) ** 2,), 2)
    y = numbers(3, 4, least=-1, most=1)
    yield Case("FlexEluGrad", (g, y), (np.where(y < 0, g * (y + 1), g),), 2)
    s, a = np.float32(1.0507009873554805), np.float32(1.7580993408473768)
    yield Case("FlexSeluGrad", (g, y), (np.where(y < 0, g * (y + a), g * s),), 2)
    ways: dict[str, Callable[[Array], Array]] = {
        "Sigmoid": lambda y: y * (1 - y), "Tanh": lambda y: 1 - y * y, "Sqrt": lambda y: 0.5 / y,
        "Rsqrt": lambda y: -0.5 * y**3, "Reciprocal": lambda y: -y * y, "Inv": lambda y: -y * y,
    }  # fmt: skip
    for word, function in ways.items():
        z = numbers(3, 4, least=0.5, most=1)
        yield Case(f"Flex{word}Grad", (z, g), ((g * function(z)).astype(np.float32),), 2)
    yield Case("FlexBiasAddGrad", (g,), (g.sum(0),))


def windows() -> Iterator[Case]:
    options = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    x, g = (
        np.float32([[5, 5, 1], [2, 0, 3], [7, 8, 9]]).reshape(1, 3, 3, 1),
        np.float32([1, 2, 3, 4]).reshape(1, 2, 2, 1),
    )
    most = np.float32([[5, 3], [8, 9]]).reshape(1, 2, 2, 1)
    back = np.float32([[1, 0, 0], [0, 0, 2], [0, 3, 4]]).reshape(1, 3, 3, 1)
    yield Case("FlexMaxPoolGrad", (x, most, g), (back,), 3, options)
    at = np.int64([0, 5, 7, 8]).reshape(1, 2, 2, 1)
    yield Case("FlexMaxPoolGradWithArgmax", (x, g, at), (back,), 2, options)
    mean = np.float32([[0.25, 0.25, 1], [0.25, 0.25, 1], [1.5, 1.5, 4]]).reshape(1, 3, 3, 1)
    yield Case("FlexAvgPoolGrad", (ints(1, 3, 3, 1), g[..., :]), (mean,), 0, options)
    taken = np.float32([[0, 0, 0, 0], [0, 1, 0, 2], [0, 3, 0, 4]])
    ends = ints([3, 4]), ints([1, 1]), ints([3, 4]), ints([1, 2])
    yield Case("FlexStridedSliceGrad", (*ends, g.reshape(2, 2)), (taken,), 0)
    g = numbers(4, 6)
    for mode in ("REFLECT", "SYMMETRIC"):
        places = np.pad(np.arange(6).reshape(2, 3), [[1, 1], [2, 1]], mode.lower())
        wanted = np.zeros(6, np.float32)
        np.add.at(wanted, places.ravel(), g.ravel())
        yield Case("FlexMirrorPadGrad", (g, ints([[1, 1], [2, 1]])), (wanted.reshape(2, 3),), 1, {"mode": mode})
    g = numbers(1, 4, 4, 1)
    halves = {"align_corners": False, "half_pixel_centers": False}
    near = g.reshape(2, 2, 2, 2).sum((1, 3)).reshape(1, 2, 2, 1)
    yield Case("FlexResizeNearestNeighborGrad", (g, ints(2, 2)), (near,), 1, halves)
    weights = np.float32([[1, 0], [0.5, 0.5], [0, 1], [0, 1]])
    linear = (weights.T @ g[0, :, :, 0] @ weights).reshape(1, 2, 2, 1)
    yield Case("FlexResizeBilinearGrad", (g, np.zeros((1, 2, 2, 1), np.float32)), (linear,), 1, halves)


def filters() -> Iterator[Case]:
    x, g = numbers(2, 3, 3, 2), numbers(2, 2, 2, 3)
    once = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    wanted = np.stack([np.einsum("nijc,nijd->cd", x[:, i : i + 2, j : j + 2], g) for i in (0, 1) for j in (0, 1)])
    yield Case("FlexConv2DBackpropFilter", (x, ints(2, 2, 2, 3), g), (wanted.reshape(2, 2, 2, 3),), 1, once)
    w, g = numbers(2, 2, 2, 1), numbers(2, 2, 2, 2)
    spread = np.zeros((2, 3, 3, 2), np.float32)
    for i, j in np.ndindex(2, 2):
        spread[:, i : i + 2, j : j + 2] += g * w[i, j, :, 0]
    yield Case("FlexDepthwiseConv2dNativeBackpropInput", (ints(2, 3, 3, 2), w, g), (spread,), 0, once)
    parts = (ints(0, 0), ints(0, 3), ints(0, 7))
    yield Case("FlexConcatOffset", (np.array(1, np.int32), ints(2, 3), ints(2, 4), ints(2, 1)), parts, 0, {"N": 3})


def statistics() -> Iterator[Case]:
    g, x, gain = numbers(2, 2, 3, 2), numbers(2, 2, 3, 2), numbers(2)
    mean, variance = numbers(2), numbers(2, least=0.5)
    for training in (True, False):
        m, v = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (mean, variance)
        root = np.sqrt(v + np.float32(0.001))
        normal = (x - m) / root
        over = (0, 1, 2)
        z = g - g.mean(over) - normal * (g * normal).mean(over) if training else g
        wanted = (z * gain / root, (g * normal).sum(over), g.sum(over))
        options = {"epsilon": 0.001, "is_training": training}
        yield Case("FlexFusedBatchNormGradV3", (g, x, gain, mean, variance, mean), wanted, 2, options)


CASES = [*sparse(), *functions(), *windows(), *filters(), *statistics()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_numpy_says(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


@pytest.mark.parametrize("file", ["flex_sparse.rules", "flex_gradients.rules"])
def test_every_operator_that_rules_are_about_has_a_case(file: str) -> None:
    found = {operator for operator in operators(file) if operator.startswith("Flex")}
    assert found and found <= {case.operator for case in CASES}

"""Operators of TensorFlow itself that become TensorFlow Lite's own or one of ONNX, as numpy has them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from nnrewrite.engine.base.errors import UnsupportedError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import flexbuffer_reader, nodedef, option

from .flex import Array, Case, agree, ints, numbers, one, operators, two


def elementwise() -> Iterator[Case]:
    x, y = numbers(2, 3, 4), numbers(3, 4)
    positive, small = numbers(2, 3, least=0.1), numbers(2, 3, least=-0.9, most=0.9)
    erf = np.vectorize(math.erf, otypes=[np.float32])
    for name, function in {
        "Abs": np.abs, "Ceil": np.ceil, "Cos": np.cos, "Exp": np.exp, "Floor": np.floor, "Neg": np.negative,
        "Round": np.round, "Rint": np.rint, "Sin": np.sin, "Square": np.square, "Tanh": np.tanh, "Sign": np.sign,
        "ZerosLike": np.zeros_like, "Sinh": np.sinh, "Cosh": np.cosh, "Tan": np.tan, "Atan": np.arctan,
        "Asinh": np.arcsinh, "Expm1": np.expm1, "Erf": erf, "Identity": np.array,
        "Erfc": lambda x: 1 - erf(x), "Reciprocal": lambda x: 1 / x, "Inv": lambda x: 1 / x,
        "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Relu": lambda x: np.maximum(x, 0),
        "Relu6": lambda x: np.clip(x, 0, 6), "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
        "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)),
        "Selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    }.items():  # fmt: skip
        yield one(f"Flex{name}", function, x)
    for name, function in {
        "Log": np.log,
        "Sqrt": np.sqrt,
        "Log1p": np.log1p,
        "Rsqrt": lambda x: 1 / np.sqrt(x),
    }.items():
        yield one(f"Flex{name}", function, positive)
    for name, function in {"Asin": np.arcsin, "Acos": np.arccos, "Atanh": np.arctanh}.items():
        yield one(f"Flex{name}", function, small)
    yield one("FlexAcosh", np.arccosh, numbers(2, 3, least=1.1))
    strange = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    for name, function in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}.items():
        yield one(f"Flex{name}", function, strange)
    flags = np.array([True, False])
    yield one("FlexLogicalNot", np.logical_not, flags)
    yield one("FlexWhere", lambda x: np.argwhere(x).astype(np.int64), np.array([[True, False], [True, True]]))
    yield one("FlexMatrixDeterminant", np.linalg.det, numbers(2, 3, 3))
    for name, function in {
        "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide, "Div": np.divide,
        "Maximum": np.maximum, "Minimum": np.minimum, "SquaredDifference": lambda x, y: (x - y) ** 2,
        "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Greater": np.greater, "GreaterEqual": np.greater_equal,
        "Less": np.less, "LessEqual": np.less_equal, "Atan2": np.arctan2,
    }.items():  # fmt: skip
        yield two(f"Flex{name}", function, x, y)
    yield two("FlexPow", np.power, positive, numbers(3))
    yield two("FlexLogicalAnd", np.logical_and, flags, np.array([True, True]))
    yield two("FlexLogicalOr", np.logical_or, flags, np.array([True, False]))
    a, b = ints([1, 2, 3], [7, 8, 9]), ints(1, 5, 3)
    yield two("FlexEqual", np.equal, a, b)
    yield two("FlexNotEqual", np.not_equal, a, b)
    yield two("FlexBitwiseAnd", np.bitwise_and, a, b)
    yield two("FlexBitwiseOr", np.bitwise_or, a, b)
    zeros = np.array([[0, 1, 2], [0, 0, 5]], np.float32)
    yield two("FlexXdivy", lambda x, y: np.where(x == 0, 0, x / np.where(y == 0, 1, y)), zeros, np.float32([0, 2, 4]))
    yield two("FlexXlogy", lambda x, y: x * np.log(np.where(y == 0, 1, y)), zeros, np.float32([0, 2, 4]))
    yield two(
        "FlexMulNoNan", lambda x, y: np.where(y == 0, 0, x), np.full((2, 3), 3, np.float32), np.float32([0, 1, 1])
    )
    yield two("FlexDivNoNan", lambda x, y: np.float32([0, 4, 2]), np.full(3, 4, np.float32), zeros[0])
    yield two("FlexBiasAdd", np.add, numbers(1, 2, 3, 4), numbers(4))
    for name in ("Select", "SelectV2"):
        side, p, q = x > 0, x, numbers(2, 3, 4)
        yield Case(f"Flex{name}", (side, p, q), (np.where(side, p, q),), given=3)
    yield Case("FlexLeakyRelu", (x,), (np.where(x > 0, x, 0.5 * x),), options={"alpha": 0.5})
    yield one("FlexSoftmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), x)
    yield one("FlexLogSoftmax", lambda x: np.log(np.exp(x) / np.exp(x).sum(-1, keepdims=True)), x)
    yield Case("FlexCast", (x,), (x.astype(np.int32),), options={"Truncate": False})
    yield Case("FlexAddN", (x, x + 1), (2 * x + 1,), given=2, options={"N": 2})
    yield Case("FlexCumsum", (x, np.array(1, np.int32)), (np.cumsum(x, 1),))


def rearranging() -> Iterator[Case]:
    x = numbers(4, 5)
    for name, function in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min, "Prod": np.prod}.items():
        for kept in (True, False):
            wanted = np.asarray(function(x, axis=1, keepdims=kept))
            yield Case(f"Flex{name}", (x, np.array([1], np.int32)), (wanted,), options={"keep_dims": kept})
    yield Case("FlexAny", (x > 1, np.array([0], np.int32)), (np.any(x > 1, 0),))
    yield Case("FlexAll", (x > -1, np.array([0], np.int32)), (np.all(x > -1, 0),))
    for first, second, ones in (
        ((1, 3), (4, 2, 3), ((0, 1), ())),
        ((1, 1), (1,), ((0, 1), (0, 1))),
        ((1, 2, 1), (1, 1, 2), ((0, 2), (0, 1))),
        ((2, 1), (2, 1), ((), ())),
    ):
        axes = tuple(np.array(one, np.int32) for one in ones)
        yield Case("FlexBroadcastGradientArgs", (ints(first), ints(second)), axes, given=2)
    yield Case("FlexBroadcastTo", (x, ints(2, 4, 5)), (np.broadcast_to(x, (2, 4, 5)),))
    yield Case("FlexTile", (x, ints(2, 1)), (np.tile(x, (2, 1)),))
    yield Case("FlexTranspose", (x, ints(1, 0)), (x.T,))
    yield Case("FlexExpandDims", (x, np.array(1, np.int32)), (x[:, None],))
    yield Case("FlexFill", (ints(2, 3), np.array(7, np.float32)), (np.full((2, 3), 7, np.float32),), given=0)
    yield Case("FlexReshape", (x, ints(2, -1)), (x.reshape(2, -1),))
    yield Case("FlexReverseV2", (x, np.array([1], np.int32)), (x[:, ::-1],))
    yield Case("FlexPad", (x, ints([1, 0], [0, 2])), (np.pad(x, [(1, 0), (0, 2)]),))
    seven = np.array(7, np.float32)
    yield Case("FlexPadV2", (x, ints([1, 0], [0, 2]), seven), (np.pad(x, [(1, 0), (0, 2)], constant_values=7),))
    for mode, name in (("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")):
        wanted = np.pad(x, [(1, 0), (0, 2)], mode=name)  # type: ignore[call-overload]
        yield Case("FlexMirrorPad", (x, ints([1, 0], [0, 2])), (wanted,), options={"mode": mode})
    yield Case("FlexSlice", (x, ints(1, 0), ints(2, -1)), (x[1:3],))
    yield Case(
        "FlexRange", (np.array(1, np.int32), np.array(9, np.int32), np.array(3, np.int32)), (ints(1, 4, 7),), given=0
    )
    image = numbers(1, 4, 6, 2)
    blocks = image.reshape(1, 2, 2, 3, 2, 2).transpose(2, 4, 0, 1, 3, 5).reshape(4, 2, 3, 2)
    yield Case("FlexSpaceToBatchND", (image, ints(2, 2), ints([0, 0], [0, 0])), (blocks,))
    yield Case("FlexBatchToSpaceND", (blocks, ints(2, 2), ints([0, 0], [0, 0])), (image,))
    yield Case("FlexConcatV2", (x, x + 1, np.array(1, np.int32)), (np.hstack([x, x + 1]),), 2, {"N": 2})
    yield Case("FlexPack", (x, x + 1), (np.stack([x, x + 1], 1),), 2, {"N": 2, "axis": 1})
    yield Case("FlexUnpack", (x,), tuple(x[:, i] for i in range(5)), 1, {"num": 5, "axis": 1})
    masks = {"begin_mask": 1, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 2}
    yield Case("FlexStridedSlice", (x, ints(1, 2), ints(4, 3), ints(2, 1)), (x[:4:2, 2],), options=masks)
    yield Case("FlexSqueeze", (x[:, None],), (x,), options={"squeeze_dims": [1]})
    yield Case("FlexGatherV2", (x, ints(3, 0), np.array(1, np.int32)), (x[:, [3, 0]],), options={"batch_dims": 0})
    yield Case("FlexGatherNd", (x, ints([3, 0], [1, 1])), (x[[3, 1], [0, 1]],))
    scattered = np.zeros_like(x)
    scattered[[2, 0]] = x[:2]
    yield Case("FlexScatterNd", (ints([[2], [0]]), x[:2], ints(4, 5)), (scattered,), given=2)
    updated = x.copy()
    updated[[2, 0]] = 1
    yield Case("FlexTensorScatterUpdate", (x, ints([[2], [0]]), np.ones((2, 5), np.float32)), (updated,), given=3)
    hot = np.where(np.arange(4) == np.array([[2], [0]]), np.float32(5), np.float32(-1))
    switched = np.array(5, np.float32), np.array(-1, np.float32)
    yield Case("FlexOneHot", (ints(2, 0), np.array(4, np.int32), *switched), (hot,), 1, {"axis": -1})
    p, q = numbers(2, 3, 4), numbers(2, 5, 4)
    yield Case("FlexBatchMatMulV2", (p, q), (p @ q.transpose(0, 2, 1),), 2, {"adj_x": False, "adj_y": True})
    blocks = np.arange(2 * 3 * 4, dtype=np.float32).reshape(1, 2, 3, 4)
    apart = blocks.reshape(1, 2, 3, 2, 2, 1).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 6, 1)
    yield Case("FlexDepthToSpace", (blocks,), (apart,), 1, {"block_size": 2, "data_format": "NHWC"})
    yield Case("FlexSpaceToDepth", (apart,), (blocks,), 1, {"block_size": 2, "data_format": "NHWC"})
    even, one_axis = numbers(2, 4), np.array(1, np.int32)
    yield Case("FlexSplit", (one_axis, even), (even[:, :2], even[:, 2:]), 2, {"num_split": 2})
    yield Case("FlexSplitV", (even, ints(1, 3), one_axis), (even[:, :1], even[:, 1:]), 1, {"num_split": 2})
    yield Case("FlexOnesLike", (x,), (np.ones_like(x),))
    yield Case("FlexEinsum", (x, x), (np.einsum("ij,kj->ki", x, x),), 2, {"equation": "ij,kj->ki", "N": 2})
    yield Case("FlexMatMul", (x, x), (x.T @ x,), 2, {"transpose_a": True, "transpose_b": False})
    best = np.argsort(-x, axis=1)[:, :2]
    yield Case("FlexTopKV2", (x, np.array(2, np.int32)), (np.take_along_axis(x, best, 1), best.astype(np.int32)))
    yield Case("FlexRoll", (x, ints(2, -1), ints(1, 0)), (np.roll(x, (2, -1), (1, 0)),))


def windows() -> Iterator[Case]:
    image = numbers(2, 7, 6, 3)
    mean = image.mean((1, 2), keepdims=True)
    yield Case("FlexAdjustContrastv2", (image, np.array(1.5, np.float32)), ((image - mean) * 1.5 + mean,), given=2)
    statistics = (numbers(3), numbers(3), numbers(3), numbers(3, least=0.5))
    scale, offset, average, variance = statistics
    normal = (image - average) / np.sqrt(variance + np.float32(0.01)) * scale + offset
    yield Case("FlexFusedBatchNormV3", (image, *statistics), (normal,), 1, {"epsilon": 0.01, "is_training": False})
    for padding in ("SAME", "VALID"):
        found = patches(image, 3, 2, (2, 1), (1, 2), padding)
        asked = {"ksizes": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
        yield Case("FlexExtractImagePatches", (image,), (found.reshape(*found.shape[:3], -1),), options=asked)
        found = patches(image, 2, 3, (2, 1), (1, 1), padding)
        added, places = numbers(3, 2, 3), {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
        grown = patches(image, 3, 2, (2, 1), (1, 2), padding, -np.inf) + added.reshape(6, 3)
        yield Case("FlexDilation2D", (image, added), (grown.max(3),), options=places)
        asked = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": padding, "data_format": "NHWC"}
        yield Case(
            "FlexAvgPool", (image,), (np.nanmean(patches(image, 2, 3, (2, 1), (1, 1), padding, np.nan), 3),), 1, asked
        )
        deep = {**asked, "ksize": [1, 1, 2, 3, 1], "strides": [1, 1, 2, 1, 1], "data_format": "NDHWC"}
        lowest = patches(image, 2, 3, (2, 1), (1, 1), padding, -np.inf).max(3)
        yield Case("FlexMaxPool", (image,), (lowest,), 1, asked)
        yield Case("FlexMaxPool3D", (image[None],), (lowest[None],), 1, deep)
        yield Case(
            "FlexAvgPool3D",
            (image[None],),
            (np.nanmean(patches(image, 2, 3, (2, 1), (1, 1), padding, np.nan), 3)[None],),
            1,
            deep,
        )
        weights = numbers(2, 3, 3, 4)
        wanted = np.einsum("nhwkc,kco->nhwo", found, weights.reshape(6, 3, 4))
        conv = {"strides": [1, 2, 1, 1], "padding": padding, "data_format": "NHWC", "dilations": [1, 1, 1, 1]}
        yield Case("FlexConv2D", (image, weights), (wanted,), 1, conv)
        apart = np.einsum("nhwkc,kcm->nhwcm", found, weights.reshape(6, 3, 4))
        apart = apart.reshape(*wanted.shape[:3], 12)
        yield Case("FlexDepthwiseConv2dNative", (image, weights), (apart,), 1, conv)


def patches(
    x: Array, height: int, width: int, strides: tuple[int, int], rates: tuple[int, int], padding: str, fill: float = 0
) -> Array:
    """Windows of [N, H, W, C] as [N, H', W', places, C], padded as TensorFlow does."""
    reach = (height - 1) * rates[0], (width - 1) * rates[1]
    if padding == "SAME":
        sizes = [-(-extent // stride) for extent, stride in zip(x.shape[1:3], strides, strict=True)]
        more = [max(0, (n - 1) * s + r + 1 - e) for n, s, r, e in zip(sizes, strides, reach, x.shape[1:3], strict=True)]
        x = np.pad(x, [(0, 0), *((m // 2, m - m // 2) for m in more), (0, 0)], constant_values=fill)
    rows, columns = ((x.shape[i + 1] - reach[i] - 1) // strides[i] + 1 for i in (0, 1))
    return np.stack(
        [
            x[:, i * rates[0] :: strides[0], j * rates[1] :: strides[1]][:, :rows, :columns]
            for i, j in itertools.product(range(height), range(width))
        ],
        axis=3,
    )


def several() -> Iterator[Case]:
    x, y = numbers(2, 3), numbers(1, 3)
    yield Case("FlexShapeN", (x, y), (ints(2, 3), ints(1, 3)), 2, {"N": 2})
    yield Case("FlexIdentityN", (x, y), (x, y), 2)
    yield Case("FlexParallelConcat", (x, y), (np.concatenate([x, y]),), 2, {"N": 2})
    ends = np.array(-0.5, np.float32), np.array(0.7, np.float32)
    yield Case("FlexClipByValue", (x, *ends), (x.clip(*ends),))


CASES = [*elementwise(), *several(), *rearranging(), *windows()]


pytestmark = pytest.mark.usefixtures("counted")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_numpy_says(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


@pytest.mark.slow
def test_every_operator_that_rules_are_about_has_a_case() -> None:
    assert operators("flex.rules") <= {case.operator for case in CASES}


# ---- options, as TensorFlow writes them


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """The wire format of a protobuf message, for short lengths and small numbers."""
    parts = [
        bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value
        for number, value in fields
    ]
    return b"".join(parts)


def node(**attributes: bytes) -> bytes:
    entries = [message((1, name.encode()), (2, value)) for name, value in attributes.items()]
    return message((1, b"name"), (2, b"AvgPool"), *((5, entry) for entry in entries))


NODE = node(
    padding=message((2, b"SAME")),
    ksize=message((1, message((3, 1), (3, 2)))),
    keep=message((5, 1)),
    T=message((6, 1)),
    shape=message((7, message((2, message((1, 3))), (2, message((1, 4)))))),
    anything=message((7, message((3, 1)))),
    _class=message((2, b"x")),
)


def test_a_node_of_tensorflow_has_its_attributes_but_no_types_and_no_notes() -> None:
    assert nodedef.read_attributes(NODE) == {"keep": True, "ksize": [1, 2], "padding": "SAME", "shape": [3, 4]}


def test_options_of_tensorflow_are_read_from_a_vector_of_a_name_and_a_node() -> None:
    name = b"AvgPool"
    blobs = bytes([len(name)]) + name + b"\0" + bytes([len(NODE)]) + NODE + b"\0"
    first, second = 1, len(name) + 3
    start = len(blobs) + 1
    vector = bytes([2, start - first, start + 1 - second, 5 << 2, 5 << 2])
    raw = memoryview(blobs + vector + bytes([4, 10 << 2, 1]))
    assert flexbuffer_reader.read_blobs(raw) == [name, NODE]
    assert option.read_custom_options(raw)["padding"] == "SAME"


@pytest.mark.parametrize("cut", range(1, len(NODE), 7))
def test_a_damaged_node_has_no_attributes_or_fewer(cut: int) -> None:
    try:
        assert nodedef.read_attributes(NODE[:cut]).keys() <= {"keep", "ksize", "padding", "shape"}
    except nodedef.NodeDefError as error:
        assert "NodeDef" in str(error)


# ---- kept under their own names


@pytest.mark.parametrize("axis", [0, 1], ids=["axis 0", "axis 1"])
def test_an_operator_kept_under_its_own_name_is_the_one_with_the_prefix(axis: int, catalogue: Catalogue) -> None:
    x = numbers(4, 5)
    types = {"T": 0, "Tshift": 4, "Taxis": 4}
    at_run_time = Case("Roll", (x, ints(2), ints(axis)), (np.roll(x, 2, axis),), given=3, options=types)
    agree(at_run_time, catalogue)
    agree(replace(at_run_time, given=1), catalogue)


def test_pools_that_skip_what_lies_between_their_windows(catalogue: Catalogue) -> None:
    x = numbers(1, 16, 15, 14, 1)
    options = {"ksize": [1] * 5, "strides": [1, 2, 1, 2, 1], "padding": "SAME", "data_format": "NDHWC", "T": 0}
    agree(Case("MaxPool3D", (x,), (x[:, ::2, :, ::2],), options=options), catalogue)


def test_types_of_indices_are_no_options_of_operators_under_their_own_names(catalogue: Catalogue) -> None:
    x = numbers(4, 5)
    operands = (x, ints(1, 0), ints(3, 5), ints(1, 2))
    agree(Case("StridedSlice", operands, (x[1:3, ::2],), given=1, options={"T": 0, "Index": 2}), catalogue)


def test_an_option_that_no_rule_knows_is_still_told(catalogue: Catalogue) -> None:
    x = numbers(4, 5)
    with pytest.raises(UnsupportedError, match="option mystery is 1"):
        agree(Case("Roll", (x, ints(2), ints(0)), (x,), options={"mystery": 1}), catalogue)

"""Operators by which networks are trained to be quantized, held against what the packages that write them compute.

No runtime has kernels for them: the formulas are those of the packages qonnx 1.0 and mct-quantizers 1.7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as helper
import pytest
from nnrewrite import UnsupportedError
from nnrewrite.verify import Interpreter

pytestmark = pytest.mark.slow

Array = npt.NDArray[Any]
QONNX, TOOLKIT = "qonnx.custom_op.general", "mct_quantizers"
LAST, FORMER = "qonnx.custom_op.channels_last", ("onnx.brevitas", "finn.custom_op.general")
ROUNDINGS: dict[str, Any] = {"ROUND": np.round, "round": np.round, "FLOOR": np.floor, "CEIL": np.ceil}
X = np.random.default_rng(7).normal(scale=2, size=(2, 3, 4, 4)).astype(np.float32)


def make(nodes: list[onnx.NodeProto], constants: Mapping[str, Any]) -> bytes:
    ends = [helper.make_tensor_value_info("x", 1, X.shape), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:])
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in constants.items())
    domains = dict.fromkeys((node.domain for node in nodes if node.domain), 1)
    imports = [helper.make_opsetid("", 18), *(helper.make_opsetid(domain, at) for domain, at in domains.items())]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString())


def require(data: bytes, wanted: Array, interpreter: Interpreter, slack: float = 1e-5) -> Counter[str]:
    """Hold both forms of a model against numbers; the operators in TensorFlow Lite."""
    import onnxruntime

    standard = nnrewrite.convert(data, rules=("onnx2onnx", "standard"))
    session = onnxruntime.InferenceSession(standard.SerializeToString(), providers=["CPUExecutionProvider"])
    lite = nnrewrite.rewrite(data, to="tflite")
    ((found,),) = interpreter.run(lite.encoded.encode(), [[X]])  # type: ignore[attr-defined]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], wanted, atol=slack)
    np.testing.assert_allclose(found, wanted, atol=slack)
    return Counter(lite.report.target_operators)


def ends_of(bits: int, signed: int, narrow: int) -> tuple[int, int]:
    if signed:
        return narrow - (1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow


def quantize(x: Array, s: Any, z: float, bits: int, signed: int, narrow: int, mode: str) -> Array:
    rounded: Array = (ROUNDINGS[mode](np.clip(x / s + z, *ends_of(bits, signed, narrow))) - z) * s
    return rounded


@pytest.mark.parametrize("name", ["Quant", "IntQuant"])
@pytest.mark.parametrize(
    ("bits", "signed", "narrow", "zero", "mode", "channels"),
    [
        (8, 1, 0, 0, "ROUND", False),
        (8, 1, 1, 0, "ROUND", True),
        (4, 0, 0, 0, "ROUND", False),
        (3, 1, 1, 0, "round", True),
        (8, 0, 0, 112, "ROUND", False),
        (12, 0, 0, 700, "ROUND", False),
        (6, 1, 0, 0, "FLOOR", False),
        (20, 1, 0, 0, "ROUND", False),
    ],
)
def test_numbers_are_rounded_to_a_grid(
    name: str, bits: int, signed: int, narrow: int, zero: int, mode: str, channels: bool, interpreter: Interpreter
) -> None:
    s: Any = np.array([[[0.031]], [[0.27]], [[0.0123]]], np.float32) if channels else np.float32(0.017)
    options: dict[str, Any] = {"signed": signed, "narrow": narrow, "rounding_mode": mode}
    data = make(
        [helper.make_node(name, ["x", "s", "z", "b"], ["y"], domain=QONNX, **options)],
        {"s": s, "z": np.float32(zero), "b": np.float32(bits)},
    )
    require(data, quantize(X, s, zero, bits, signed, narrow, mode), interpreter)


def test_numbers_become_their_sign(interpreter: Interpreter) -> None:
    data = make([helper.make_node("BipolarQuant", ["x", "s"], ["y"], domain=QONNX)], {"s": np.float32(0.3)})
    require(data, np.where(X >= 0, np.float32(0.3), np.float32(-0.3)), interpreter)


@pytest.mark.parametrize("domain", FORMER)
def test_operators_are_the_same_under_the_domains_that_they_had(domain: str, interpreter: Interpreter) -> None:
    given = {"s": np.float32(0.3), "z": np.float32(0), "b": np.float32(4)}
    options: dict[str, Any] = {"domain": domain, "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    nodes = [
        helper.make_node("Quant", [*"xszb"], ["q"], **options),
        helper.make_node("BipolarQuant", ["q", "s"], ["y"], domain=domain),
    ]
    wanted = np.where(quantize(X, 0.3, 0, 4, 1, 0, "ROUND") >= 0, np.float32(0.3), np.float32(-0.3))
    require(make(nodes, given), wanted, interpreter)


@pytest.mark.parametrize("domain", [QONNX, "finn.custom_op.general"])
@pytest.mark.parametrize(
    ("channels", "steps", "layout"), [(3, 4, "NCHW"), (1, 7, "NCHW"), (3, 1, "NCHW"), (4, 3, "NHWC")]
)
def test_thresholds_that_are_reached_are_counted(
    domain: str, channels: int, steps: int, layout: str, interpreter: Interpreter
) -> None:
    thresholds = np.sort(np.random.default_rng(2).normal(size=(channels, steps)), -1).astype(np.float32)
    thresholds[0, 0] = X[0, 0, 0, 0]  # which is reached
    options: dict[str, Any] = {"out_dtype": "INT4", "out_scale": 0.5, "out_bias": -1.0, "data_layout": layout}
    node = helper.make_node("MultiThreshold", ["x", "t"], ["y"], domain=domain, **options)
    along = thresholds.reshape(channels, 1, 1, steps) if layout == "NCHW" else thresholds
    wanted = (X[..., None] >= along).sum(-1).astype(np.float32) * np.float32(0.5) - 1
    require(make([node], {"t": thresholds}), wanted, interpreter)


def test_channels_that_stand_last_are_computed_as_those_that_stand_first(interpreter: Interpreter) -> None:
    import onnxruntime

    rng = np.random.default_rng(4)
    weights, of_four = rng.normal(size=(4, 2, 2, 4)), np.abs(rng.normal(size=(4, 4))) + 0.1
    kept = {"b": of_four[0], "m": of_four[1], "v": of_four[2], "g": of_four[3]}
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [1, 0, 0, 0]}

    def list_nodes(domain: str, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Conv", [x, "w", "b"], ["c"], domain=domain, dilations=[1, 1], group=1, **window),
            helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"], domain=domain, epsilon=1e-3),
            helper.make_node("MaxPool", ["n"], [y], domain=domain, kernel_shape=[2, 1], strides=[1, 1]),
        ]

    first = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        *list_nodes("", "t", "p"),
        helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    session = onnxruntime.InferenceSession(make(first, {**kept, "w": weights.transpose(0, 3, 1, 2)}))
    operators = require(
        make(list_nodes(LAST, "x", "y"), {**kept, "w": weights}), session.run(None, {"x": X})[0], interpreter
    )
    assert not operators["TRANSPOSE"]


def test_bits_of_codes_are_left_out(interpreter: Interpreter) -> None:
    given = {"s": np.float32(0.125), "z": np.float32(0), "b": np.float32(10), "t": np.float32(0.5), "n": np.float32(4)}
    node = helper.make_node("Trunc", [*"xszbtn"], ["y"], domain=QONNX, rounding_mode="FLOOR", signed=1, narrow=0)
    wanted = np.floor(np.clip(np.round(X / 0.125) / 4, -8, 7)) * 0.5
    require(make([node], given), wanted, interpreter)
    node = helper.make_node("Trunc", [*"xszbn"], ["y"], domain=QONNX, rounding_mode="FLOOR")
    wanted = np.floor(np.round(X / 0.125) / 64) * 0.125
    require(make([node], given), wanted, interpreter)


def test_a_layer_between_grids_computes_with_codes(interpreter: Interpreter) -> None:
    weights = np.random.default_rng(3).normal(size=(4, 3, 3, 3)).astype(np.float32)
    given = {"w": weights, "s": np.float32(0.05), "t": np.float32(0.02), "u": np.float32(0.3)}
    given |= {"z": np.float32(0), "b": np.float32(8)}
    options: dict[str, Any] = {"domain": QONNX, "signed": 1, "narrow": 1, "rounding_mode": "ROUND"}
    nodes = [
        helper.make_node("Quant", ["x", "s", "z", "b"], ["xq"], **options),
        helper.make_node("Quant", ["w", "t", "z", "b"], ["wq"], **options),
        helper.make_node("Conv", ["xq", "wq"], ["c"]),
        helper.make_node("Quant", ["c", "u", "z", "b"], ["y"], **options),
    ]
    made = nnrewrite.rewrite(make(nodes, given), to="tflite")
    assert Counter(made.report.target_operators)["DEQUANTIZE"] == 1


@pytest.mark.parametrize("name", ["ActivationPOTQuantizer", "ActivationSymmetricQuantizer"])
@pytest.mark.parametrize(("bits", "signed"), [(8, 1), (8, 0), (4, 1)])
def test_activations_are_rounded_up_to_a_threshold(name: str, bits: int, signed: int, interpreter: Interpreter) -> None:
    options: dict[str, Any] = {"threshold": 2.0, "signed": signed, "num_bits": bits, "mctq_version": "1.7.0"}
    s = np.float32(2.0 / (1 << (bits - signed)))
    data = make([helper.make_node(name, ["x"], ["y"], domain=TOOLKIT, **options)], {})
    require(data, quantize(X, s, 0, bits, signed, 0, "ROUND"), interpreter)


@pytest.mark.parametrize("name", ["WeightsPOTQuantizer", "WeightsSymmetricQuantizer"])
def test_weights_are_rounded_up_to_a_threshold_for_each_channel(name: str, interpreter: Interpreter) -> None:
    options: dict[str, Any] = {"signed": 1, "num_bits": 8, "per_channel": 1, "channel_axis": 1, "mctq_version": "1.7.0"}
    thresholds = np.array([1.5, 2.5, 0.7], np.float32)
    nodes = [
        helper.make_node(name, ["w", "t"], ["r"], domain=TOOLKIT, **options),
        helper.make_node("Mul", ["x", "r"], ["y"]),
    ]
    wanted = X * quantize(X, thresholds.reshape(3, 1, 1) / 128, 0, 8, 1, 0, "ROUND")
    require(make(nodes, {"w": X, "t": thresholds}), wanted, interpreter)


def test_another_rounding_is_refused_by_its_name() -> None:
    options: dict[str, Any] = {"signed": 1, "narrow": 0, "rounding_mode": "HALF_UP"}
    given = {"s": np.float32(0.5), "z": np.float32(0), "b": np.float32(8)}
    data = make([helper.make_node("Quant", ["x", "s", "z", "b"], ["y"], domain=QONNX, **options)], given)
    with pytest.raises(UnsupportedError, match="it rounds by HALF_UP"):
        nnrewrite.rewrite(data, to="tflite")

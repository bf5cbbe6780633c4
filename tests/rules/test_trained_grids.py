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

Array = npt.NDArray[Any]
QONNX, TOOLKIT = "qonnx.custom_op.general", "mct_quantizers"
ROUNDINGS: dict[str, Any] = {"ROUND": np.round, "round": np.round, "FLOOR": np.floor, "CEIL": np.ceil}
X = np.random.default_rng(7).normal(scale=2, size=(2, 3, 4, 4)).astype(np.float32)


def make(nodes: list[onnx.NodeProto], constants: Mapping[str, Any]) -> bytes:
    ends = [helper.make_tensor_value_info("x", 1, X.shape), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:])
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in constants.items())
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(QONNX, 2), helper.make_opsetid(TOOLKIT, 1)]
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

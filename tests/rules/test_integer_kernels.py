"""Graphs with QuantizeLinear and DequantizeLinear around each operator run in the integer kernels of TensorFlow Lite."""

from __future__ import annotations

from collections import Counter
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as helper
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.verify import Interpreter
from nnrewrite.verify.interpreter import Kernels

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16}
#: operator, options, extents of the input and of the weights, the axis of their scales, the kernel, what it yields
CASES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], int, str]] = {
    "conv": ("Conv", {"pads": [1, 1, 1, 1]}, (1, 3, 6, 6), (4, 3, 3, 3), 0, "CONV_2D"),
    "asymmetric": ("Conv", {"pads": [1, 0, 2, 1], "strides": [2, 2]}, (1, 3, 6, 6), (4, 3, 3, 3), 0, "PAD CONV_2D"),
    "depthwise": ("Conv", {"group": 4}, (1, 4, 6, 6), (4, 1, 3, 3), 0, "DEPTHWISE_CONV_2D"),
    "rows": ("Conv", {}, (1, 4, 9), (5, 4, 3), 0, "CONV_2D"),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, (1, 3, 4, 4), (3, 4, 2, 2), 1, "TRANSPOSE_CONV"),
    "gemm": ("Gemm", {"transB": 1}, (3, 8), (5, 8), 0, "FULLY_CONNECTED"),
    "product": ("MatMul", {}, (2, 3, 8), (8, 5), 1, "FULLY_CONNECTED"),
}
#: operators of real numbers alone, with constants behind their operand
PLAIN: dict[str, tuple[str, dict[str, Any], tuple[int, ...], list[npt.NDArray[Any]], str]] = {
    "max": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 3, 6, 6), [], "MAX_POOL_2D"),
    "average": ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 3, 6, 6), [], "AVERAGE_POOL_2D"),
    "global": ("GlobalAveragePool", {}, (1, 3, 6, 6), [], "MEAN"),
    "softmax": ("Softmax", {}, (3, 7), [], "SOFTMAX"),
    "sigmoid": ("Sigmoid", {}, (3, 7), [], "LOGISTIC"),
    "tanh": ("Tanh", {}, (3, 7), [], "TANH"),
    "leaky": ("LeakyRelu", {"alpha": 0.1}, (3, 7), [], "LEAKY_RELU"),
    "reshape": ("Reshape", {}, (3, 8), [np.array([2, 12])], "RESHAPE"),
    "transpose": ("Transpose", {"perm": [1, 0]}, (3, 8), [], "TRANSPOSE"),
    "scalar": ("Mul", {}, (3, 8), [np.float32(0.5)], "MUL"),
}


def quantize(name: str, scale: float, zero: int, kind: type, nodes: list[Any], constants: dict[str, Any]) -> str:
    """A value put on a grid and read off it, by two more nodes."""
    constants[f"{name}s"], constants[f"{name}z"] = np.float32(scale), kind(zero)
    nodes.append(helper.make_node("QuantizeLinear", [name, f"{name}s", f"{name}z"], [f"{name}q"]))
    nodes.append(helper.make_node("DequantizeLinear", [f"{name}q", f"{name}s", f"{name}z"], [f"{name}r"]))
    return f"{name}r"


def build(nodes: list[Any], inputs: dict[str, tuple[int, ...]], output: str, constants: dict[str, Any]) -> bytes:
    """A model of float inputs and one output."""
    given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n, shape in inputs.items()]
    graph = helper.make_graph(nodes, "m", given, [helper.make_empty_tensor_value_info(output)])
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def check(model: bytes, step: float, kernels: str, interpreter: Interpreter, steps: int = 1) -> None:
    """Outputs are at most some steps apart, and all but the borders are the kernels that are named."""
    import onnxruntime

    options = onnxruntime.SessionOptions()  # its own integer kernels saturate on some processors
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(5)
    feeds = {i.name: random.uniform(-1.5, 1.5, i.shape).astype(np.float32) for i in session.get_inputs()}
    (wanted,) = session.run(None, feeds)
    made = nnrewrite.rewrite(model, to="tflite")
    assert isinstance(made.encoded, Encoded)
    ((found,),) = interpreter.run(made.encoded.data(), [list(feeds.values())], Kernels.DEFAULT)
    assert wanted.shape == found.shape
    assert np.abs(wanted - found).max() <= step * (steps + 0.01)
    borders = Counter({"QUANTIZE": len(feeds), "DEQUANTIZE": 1})
    movers = {"TRANSPOSE", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "QUANTIZE"}
    left = Counter(made.report.target_operators) - borders
    assert set(kernels.split()) <= set(made.report.target_operators)
    assert set(left) - set(kernels.split()) <= movers


def grid(kind: str, scale: float) -> tuple[float, int]:
    """A scale and a zero point of a type: 16 bits are finer, and centred."""
    return (scale / 200, 0) if kind == "i16" else (scale, 131 if kind == "u8" else 3)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_layers_with_weights_compute_with_codes(name: str, kind: str, relu: bool, interpreter: Interpreter) -> None:
    operator, options, extents, weights, axis, kernel = CASES[name]
    random = np.random.default_rng(3)
    nodes: list[Any] = []
    constants: dict[str, Any] = {
        "w": random.integers(-127, 128, weights).astype(np.int8),
        "ws": random.uniform(0.002, 0.01, weights[axis]).astype(np.float32),
        "wz": np.zeros(weights[axis], np.int8),
        "b": random.uniform(-1, 1, weights[axis]).astype(np.float32),
    }
    real = quantize("x", *grid(kind, 0.0123), TYPES[kind], nodes, constants)
    nodes.append(helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=axis))
    bias = ["b"] if operator != "MatMul" else []
    nodes.append(helper.make_node(operator, [real, "wr", *bias], ["y" if not relu else "t"], **options))
    if relu:
        nodes.append(helper.make_node("Relu", ["t"], ["y"]))
    scale, zero = grid(kind, 0.0457)
    quantize("y", scale, zero, TYPES[kind], nodes, constants)
    check(build(nodes, {"x": extents}, "yr", constants), scale, kernel, interpreter)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", PLAIN)
def test_functions_and_moves_compute_with_codes(name: str, kind: str, interpreter: Interpreter) -> None:
    operator, options, extents, more, kernel = PLAIN[name]
    nodes: list[Any] = []
    constants: dict[str, Any] = {f"c{i}": array for i, array in enumerate(more)}
    scale, zero = grid(kind, 0.0123)
    real = quantize("x", scale, zero, TYPES[kind], nodes, constants)
    nodes.append(helper.make_node(operator, [real, *constants.keys() & {"c0"}], ["y"], **options))
    quantize("y", scale, zero, TYPES[kind], nodes, constants)
    check(build(nodes, {"x": extents}, "yr", constants), scale, kernel, interpreter)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("operator", "kernel"), [("Add", "ADD"), ("Mul", "MUL"), ("Sub", "SUB"), ("Concat", "CONCATENATION")])
def test_two_operands_on_grids_of_their_own(operator: str, kernel: str, kind: str, interpreter: Interpreter) -> None:
    nodes: list[Any] = []
    constants: dict[str, Any] = {}
    a = quantize("a", *grid(kind, 0.0123), TYPES[kind], nodes, constants)
    b = quantize("b", *grid(kind, 0.0177), TYPES[kind], nodes, constants)
    nodes.append(helper.make_node(operator, [a, b], ["y"], **({"axis": 1} if operator == "Concat" else {})))
    scale, zero = grid(kind, 0.0251)
    quantize("y", scale, zero, TYPES[kind], nodes, constants)
    check(build(nodes, {"a": (2, 3), "b": (2, 3)}, "yr", constants), scale, kernel, interpreter)

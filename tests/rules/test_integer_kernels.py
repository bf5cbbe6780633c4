"""Graphs of QuantizeLinear and DequantizeLinear run in the integer kernels of TensorFlow Lite."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.helper as helper
import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.engine.base.quantization import read_quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.grids import find_grids_of_channels
from nnrewrite.frontends import tflite_reader
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels

pytestmark = pytest.mark.slow

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16}
#: operator, options, extents of the input and of the weights, the axis of their scales, the kernel
LAYERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], int, str]] = {
    "conv": ("Conv", {"pads": [1, 1, 1, 1]}, (1, 3, 6, 6), (4, 3, 3, 3), 0, "CONV_2D"),
    "asymmetric": ("Conv", {"pads": [1, 0, 2, 1], "strides": [2, 2]}, (1, 3, 6, 6), (4, 3, 3, 3), 0, "PAD CONV_2D"),
    "depthwise": ("Conv", {"group": 4}, (1, 4, 6, 6), (4, 1, 3, 3), 0, "DEPTHWISE_CONV_2D"),
    "rows": ("Conv", {}, (1, 4, 9), (5, 4, 3), 0, "CONV_2D"),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, (1, 3, 4, 4), (3, 4, 2, 2), 1, "TRANSPOSE_CONV"),
    "gemm": ("Gemm", {"transB": 1}, (3, 8), (5, 8), 0, "FULLY_CONNECTED"),
    "product": ("MatMul", {}, (2, 3, 8), (8, 5), 1, "FULLY_CONNECTED"),
}
#: operator, options, extents of the input, constants behind it, the kernel
FUNCTIONS: dict[str, tuple[str, dict[str, Any], tuple[int, ...], list[Any], str]] = {
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
    "shifted": ("Sub", {}, (3, 8), [np.float32(0.5)], "SUB"),
}
#: operators of two operands, each with its kernel
PAIRS = {"Add": "ADD", "Mul": "MUL", "Sub": "SUB", "Concat": "CONCATENATION"}


class Model:
    """A model that grows branch by branch: each puts its inputs on grids, computes, and puts its result on one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, tuple[int, ...]] = {}
        #: outputs, each with a step of its codes
        self.outputs: dict[str, float] = {}
        self.constants: dict[str, Any] = {}

    def quantize(self, name: str, scale: float) -> str:
        """A value put on a grid and read off it; 16 bits are finer, and centred."""
        scale, zero = (scale / 200, 0) if self.kind == "i16" else (scale, 131 if self.kind == "u8" else 3)
        self.constants |= {f"{name}_s": np.float32(scale), f"{name}_z": TYPES[self.kind](zero)}
        self.nodes.append(helper.make_node("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [f"{name}_r"]))
        self.outputs[f"{name}_r"] = scale
        return f"{name}_r"

    def read(self, name: str, extents: tuple[int, ...], scale: float = 0.0123) -> str:
        """An input on a grid."""
        self.inputs[name] = extents
        found = self.quantize(name, scale)
        del self.outputs[found]
        return found

    def layer(self, name: str, relu: bool) -> None:
        """A layer with weights that have a scale for each channel."""
        operator, options, extents, shape, axis, _ = LAYERS[name]
        random = np.random.default_rng(3)
        channels = shape[axis]
        self.constants |= {
            f"{name}_w": random.integers(-127, 128, shape).astype(np.int8),
            f"{name}_ws": random.uniform(0.002, 0.01, channels).astype(np.float32),
            f"{name}_wz": np.zeros(channels, np.int8),
            f"{name}_b": random.uniform(-1, 1, channels).astype(np.float32),
        }
        operands = [self.read(f"{name}_x", extents), f"{name}_wr"]
        operands += [f"{name}_b"] if operator != "MatMul" else []
        weights = [f"{name}_w", f"{name}_ws", f"{name}_wz"]
        self.nodes.append(helper.make_node("DequantizeLinear", weights, [f"{name}_wr"], axis=axis))
        self.nodes.append(helper.make_node(operator, operands, [f"{name}_t" if relu else f"{name}_y"], **options))
        if relu:
            self.nodes.append(helper.make_node("Relu", [f"{name}_t"], [f"{name}_y"]))
        self.quantize(f"{name}_y", 0.0457)

    def function(self, name: str) -> None:
        """An operator of one operand on the grid of its result."""
        operator, options, extents, more, _ = FUNCTIONS[name]
        self.constants |= {f"{name}_c{place}": array for place, array in enumerate(more)}
        operands = [self.read(f"{name}_x", extents), *(f"{name}_c{place}" for place in range(len(more)))]
        self.nodes.append(helper.make_node(operator, operands, [f"{name}_y"], **options))
        self.quantize(f"{name}_y", 0.0123)

    def pair(self, name: str) -> None:
        """An operator of two operands and a result on three grids."""
        operands = [self.read(f"{name}_a", (2, 3)), self.read(f"{name}_b", (2, 3), 0.0177)]
        options: dict[str, Any] = {"axis": 1} if name == "Concat" else {}
        self.nodes.append(helper.make_node(name, operands, [f"{name}_y"], **options))
        self.quantize(f"{name}_y", 0.0251)

    def serialize(self) -> bytes:
        """The model as a file."""
        given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n, shape in self.inputs.items()]
        wanted = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "m", given, wanted)
        arrays = self.constants.items()
        graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model).SerializeToString()


def assert_converted_alike(graph: onnx.GraphProto, constants: Mapping[str, Any], interpreter: Interpreter) -> None:
    """A graph of opset 18 with some constants computes the same as TensorFlow Lite."""
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    made = nnrewrite.rewrite(model, to="tflite").encoded
    assert isinstance(made, Encoded)
    verdict = compare_models(model, made.encode(), interpreter=interpreter)
    assert verdict.passed, verdict.differences


def check(model: Model, kernels: set[str], interpreter: Interpreter, reach: float = 1.5, inner: int = 0) -> None:
    """All outputs are at most a step apart, and nothing but the ends and `inner` operators computes with real numbers;
    inputs are up to `reach`."""
    import onnxruntime

    data = model.serialize()
    options = onnxruntime.SessionOptions()  # its own integer kernels saturate on some processors
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(5)
    feeds = {name: random.uniform(-reach, reach, shape).astype(np.float32) for name, shape in model.inputs.items()}
    wanted = session.run(None, feeds)
    made = nnrewrite.rewrite(data, to="tflite")
    assert isinstance(made.encoded, Encoded)
    (found,) = interpreter.run(made.encoded.encode(), [list(feeds.values())], Kernels.DEFAULT)
    for (name, step), a, b in zip(model.outputs.items(), wanted, found, strict=True):
        assert a.shape == b.shape, name
        assert np.abs(a - b).max() <= step * 1.01, name
    operators = Counter(made.report.target_operators)
    assert operators["DEQUANTIZE"] == len(model.outputs) + inner
    assert set(operators) >= kernels
    assert set(operators) - kernels <= {"QUANTIZE", "DEQUANTIZE", "TRANSPOSE", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}


@pytest.mark.parametrize("kind", TYPES)
def test_layers_with_weights_compute_with_codes(kind: str, interpreter: Interpreter) -> None:
    model = Model(kind)
    for place, name in enumerate(LAYERS):
        model.layer(name, relu=place % 2 == 0)
    check(model, {word for layer in LAYERS.values() for word in layer[-1].split()}, interpreter)


def test_codes_that_are_read_by_another_grid_behind_a_move_are_moved_on_their_own(interpreter: Interpreter) -> None:
    model = Model("i8")
    pair = [model.read("a", (1, 4, 4, 4)), model.read("b", (1, 4, 4, 4))]
    model.nodes.append(helper.make_node("Add", pair, ["sum"]))
    model.nodes.append(helper.make_node("DepthToSpace", [model.quantize("sum", 0.03125)], ["deep"], blocksize=2))
    model.nodes.append(helper.make_node("Mul", [model.quantize("deep", 0.03125), "half"], ["y"]))
    model.quantize("y", 0.015625)
    model.constants |= {"c": np.int8(64), "c_s": np.float32(0.0078125), "c_z": np.int8(0)}
    model.nodes.insert(0, helper.make_node("DequantizeLinear", ["c", "c_s", "c_z"], ["half"]))
    model.outputs = {"y_r": 0.015625}
    check(model, {"ADD", "DEPTH_TO_SPACE"}, interpreter)


def test_the_square_of_transposed_codes_is_no_wrong_number_of_the_delegate(interpreter: Interpreter) -> None:
    model = Model("i8")
    read = model.read("x", (1, 4, 4, 10))
    model.nodes.append(helper.make_node("Transpose", [read], ["turned"], perm=[0, 3, 1, 2]))
    model.nodes.append(helper.make_node("MatMul", ["turned", "turned"], ["y"]))
    model.quantize("y", 0.0457)
    model.constants |= {"x_z": np.int8(0), "y_z": np.int8(0)}
    check(model, {"BATCH_MATMUL"}, interpreter)


@pytest.mark.parametrize("kind", TYPES)
def test_functions_pairs_and_moves_compute_with_codes(kind: str, interpreter: Interpreter) -> None:
    model = Model(kind)
    for name in FUNCTIONS:
        model.function(name)
    for name in PAIRS:
        model.pair(name)
    check(model, {*(one[-1] for one in FUNCTIONS.values()), *PAIRS.values()}, interpreter)


def test_codes_that_are_read_by_another_grid_mean_what_it_says(interpreter: Interpreter) -> None:
    model = Model("i8")
    real = model.read("x", (2, 3))
    model.constants |= {"s": np.float32(0.5), "z": np.int8(-7)}
    model.nodes.append(helper.make_node("DequantizeLinear", ["x_q", "s", "z"], ["other"]))
    model.nodes.append(helper.make_node("Add", [real, "other"], ["y"]))
    model.quantize("y", 0.6)
    check(model, {"ADD"}, interpreter)


def test_codes_of_any_extents_may_be_read_by_another_grid_than_they_are_written_by(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["other"]),
        helper.make_node("Add", ["r", "other"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "u", "z"], ["aq"]),
        helper.make_node("DequantizeLinear", ["aq", "u", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.02), "t": np.float32(0.01), "u": np.float32(0.03), "z": np.int8(-7)}
    ends = [[helper.make_tensor_value_info(name, 1, ["rows", "columns", 4])] for name in "xy"]
    graph = helper.make_graph(nodes, "m", *ends)
    assert_converted_alike(graph, constants, interpreter)


def test_a_channel_of_next_to_no_weights_computes_with_codes(interpreter: Interpreter) -> None:
    """Its bias is the end of 32 bits, which real numbers round to one beyond."""
    model = Model("i8")
    model.layer("conv", relu=False)
    model.constants["conv_ws"][1] = 1e-19
    step = np.float32(0.0123) * model.constants["conv_ws"]
    steps = np.rint(model.constants["conv_b"] / step.astype(np.float64))
    model.constants |= {"conv_bq": np.clip(steps, -(2**31), 2**31 - 1).astype(np.int32), "conv_bs": step}
    place = next(place for place, node in enumerate(model.nodes) if node.op_type == "Conv")
    model.nodes[place].input[2] = "conv_br"
    model.nodes.insert(place, helper.make_node("DequantizeLinear", ["conv_bq", "conv_bs"], ["conv_br"], axis=0))
    check(model, {"CONV_2D"}, interpreter)


@pytest.mark.parametrize("name", ["conv", "depthwise", "product"])
def test_weights_that_were_rounded_to_grids_are_codes_though_no_form_says_so(
    name: str, interpreter: Interpreter
) -> None:
    """As the Model Compression Toolkit writes them, down to the code -128."""
    model = Model("i8")
    model.layer(name, relu=True)
    codes, scales = model.constants[f"{name}_w"], model.constants[f"{name}_ws"]
    codes.flat[np.argmin(codes)] = -128
    axis = LAYERS[name][4]
    model.constants[f"{name}_wr"] = codes * scales.reshape([-1 if i == axis else 1 for i in range(codes.ndim)])
    model.nodes = [node for node in model.nodes if f"{name}_wr" not in node.output]
    check(model, {LAYERS[name][5]}, interpreter)


def test_codes_of_weights_stay_where_a_normalization_is_a_factor_of_each_channel(interpreter: Interpreter) -> None:
    """As Brevitas writes its layers."""
    model = Model("i8")
    model.layer("conv", relu=True)
    relu = next(place for place, node in enumerate(model.nodes) if node.op_type == "Relu")
    random = np.random.default_rng(1)
    statistics = {f"n{i}": random.uniform(0.4, 1.6, 4).astype(np.float32) for i in range(4)}
    statistics["n0"][1] *= -1
    model.constants |= statistics
    model.nodes.insert(relu, helper.make_node("BatchNormalization", ["conv_t", *statistics], ["normal"]))
    model.nodes[relu + 1].input[0] = "normal"
    check(model, {"CONV_2D"}, interpreter)


def test_weights_that_lie_on_no_grid_stay_real() -> None:
    assert find_grids_of_channels(np.random.default_rng(2).normal(size=(4, 40)).astype(np.float32), 0) is None


def test_grids_of_many_weights_are_sought_by_few_of_them() -> None:
    """All of the weights were looked at for each of 128 steps where those that stand first are zeros, in 4 s."""
    numbers = np.random.default_rng(2).normal(size=(2048, 2048)).astype(np.float32)
    numbers[:, :64] = 0
    begun = time.process_time()
    assert find_grids_of_channels(numbers, 0) is None
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("kind", [onnx.TensorProto.UINT16, onnx.TensorProto.INT16, onnx.TensorProto.UINT4])
def test_codes_without_kernels_are_numbers_rounded_at_once(kind: int, interpreter: Interpreter) -> None:
    """As AIMET writes activations of 16 bits off the middle; TensorFlow Lite Micro has no kernel for that either."""
    scale, zero = (0.25, 7) if kind == onnx.TensorProto.UINT4 else (0.0003, 9000)
    form = ["s", "z"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *form], ["q"]),
        helper.make_node("DequantizeLinear", ["q", *form], ["r"]),
        helper.make_node("Elu", ["r"], ["e"]),
        helper.make_node("QuantizeLinear", ["e", *form], ["p"]),
        helper.make_node("DequantizeLinear", ["p", *form], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 9]) for name in "xy"]
    constants = [
        helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [scale]),
        helper.make_tensor("z", kind, [], [zero]),
    ]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], constants)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    made = nnrewrite.rewrite(data, to="tflite")
    assert Counter(made.report.target_operators) == {"FAKE_QUANT": 2, "ELU": 1}
    for one in (made, nnrewrite.rewrite(data, to="tflite", target="tflm")):
        assert isinstance(one.encoded, Encoded)
        assert compare_models(data, one.encoded.encode()).passed
    assert "FAKE_QUANT" not in one.report.target_operators
    assert sum(Counter(one.report.target_operators).values()) == 13


def test_weights_that_are_turned_with_their_channels_compute_with_codes(interpreter: Interpreter) -> None:
    """As PyTorch's linear layers hold them."""
    model = Model("i8")
    model.layer("product", relu=False)
    model.constants["product_w"] = model.constants["product_w"].T.copy()
    place = next(place for place, node in enumerate(model.nodes) if node.op_type == "MatMul")
    model.nodes[place - 1].attribute[0].i = 0
    model.nodes[place].input[1] = "turned"
    model.nodes.insert(place, helper.make_node("Transpose", ["product_wr"], ["turned"], perm=[1, 0]))
    check(model, {"FULLY_CONNECTED"}, interpreter)


def test_rows_of_a_table_of_codes_stay_codes_whatever_reads_them() -> None:
    graph = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (int64[3] i) => (int8[5, 2] y)
        <int8[4, 4] table = {1,2,3,4, 5,6,7,8, 9,10,11,12, 13,14,15,16}, int8[4, 2] w = {1,2,3,4, 5,6,7,8},
         float s = {0.5}, int8 z = {0}, int64[1] none = {0}, int64[1] two = {2}> {
        rows = Gather(table, i)
        r = DequantizeLinear(rows, s, z)
        first = Slice(r, none, two, none)
        all = Concat <axis = 0> (r, first)
        weights = DequantizeLinear(w, s, z)
        product = MatMul(all, weights)
        y = QuantizeLinear(product, s, z)
    }""")
    found = nnrewrite.rewrite(graph.SerializeToString(), to="tflite").report.target_operators
    assert "DEQUANTIZE" not in found and "QUANTIZE" not in found


def test_activations_with_a_grid_for_each_channel_compute_with_codes(interpreter: Interpreter) -> None:
    """As NNCF writes what goes into depthwise convolutions, up to the upper end of the activation before."""
    model = Model("u8")
    model.layer("conv", relu=False)
    model.layer("depthwise", relu=True)
    scales = np.array([0.0231, 0.0117, 0.0203, 0.0008], np.float32)
    zeros = np.zeros(4, np.uint8)
    model.constants |= {"steps": scales, "zeros": zeros, "least": np.float32(0), "most": np.float32(6)}
    first = next(place for place, node in enumerate(model.nodes) if "conv_y_q" in node.output)
    clip = helper.make_node("Clip", ["conv_y", "least", "most"], ["clipped"])
    pair = [
        helper.make_node("QuantizeLinear", ["clipped", "steps", "zeros"], ["conv_y_q"], axis=1),
        helper.make_node("DequantizeLinear", ["conv_y_q", "steps", "zeros"], ["between"], axis=1),
    ]
    model.nodes[first : first + 2] = [clip, *pair]
    del model.outputs["conv_y_r"]
    layer = next(place for place, node in enumerate(model.nodes) if list(node.output) == ["depthwise_t"])
    model.nodes[layer].input[0] = "between"
    model.nodes = [node for node in model.nodes if not node.output[0].startswith("depthwise_x")]
    del model.inputs["depthwise_x"]
    check(model, {"CONV_2D", "DEPTHWISE_CONV_2D"}, interpreter)


def test_codes_of_few_bits_are_cut_off_on_the_side_where_their_type_goes_on() -> None:
    """As Brevitas writes activations of 4 bits."""
    model = Model("u8")
    model.read("x", (2, 3))
    clip = helper.make_node("Clip", ["x_q", "least", "most"], ["clipped"])
    model.nodes.insert(1, clip)
    model.nodes[2].input[0] = "clipped"
    model.outputs["x_r"] = 0.0123
    model.constants |= {"least": np.uint8(0), "most": np.uint8(15)}
    made = nnrewrite.rewrite(model.serialize(), to="tflite")
    assert Counter(made.report.target_operators) == {"QUANTIZE": 1, "MINIMUM": 1, "DEQUANTIZE": 1}


def test_quotients_are_real_as_their_kernel_for_codes_is_slow(interpreter: Interpreter) -> None:
    model = Model("i8")
    model.pair("Div")
    made = nnrewrite.rewrite(model.serialize(), to="tflite")
    assert Counter(made.report.target_operators) == {"QUANTIZE": 3, "DEQUANTIZE": 3, "DIV": 1}


@pytest.mark.parametrize(
    ("kind", "scales"),
    [
        ("i8", (1e-6, 1e34, 1e34)),
        ("i8", (0.04, 1e36, 1e36)),
        ("i8", (1.0, 1.0, 1e-6)),
        ("i16", (200.0, 200.0, 0.01)),
    ],
)
def test_sums_of_steps_too_far_apart_or_too_large_are_real_as_their_kernel_aborts(
    kind: str, scales: tuple[float, float, float], interpreter: Interpreter
) -> None:
    """As where a mask of the least number is added to scores."""
    model = Model(kind)
    operands = [model.read("a", (2, 3), scales[0]), model.read("b", (2, 3), scales[1])]
    model.nodes.append(helper.make_node("Add", operands, ["y"]))
    model.quantize("y", scales[2])
    made = nnrewrite.rewrite(model.serialize(), to="tflite")
    assert Counter(made.report.target_operators) == {"QUANTIZE": 3, "DEQUANTIZE": 3, "ADD": 1}
    assert isinstance(made.encoded, Encoded)
    assert interpreter.run(made.encoded.encode(), [[np.zeros(shape, np.float32) for shape in model.inputs.values()]])


def test_softmax_of_codes_of_16_bits_is_real_where_their_differences_overflow() -> None:
    model = Model("i16")
    model.nodes.append(helper.make_node("Softmax", [model.read("x", (3, 7), 2000.0)], ["y"]))
    model.quantize("y", 0.0061)
    made = nnrewrite.rewrite(model.serialize(), to="tflite")
    assert Counter(made.report.target_operators) == {"QUANTIZE": 2, "DEQUANTIZE": 2, "SOFTMAX": 1}


@pytest.mark.parametrize(
    ("operator", "scale", "zero", "reach"),
    [
        ("LogSoftmax", 0.007, 127, 1.5),
        ("LogSoftmax", 0.12, 127, 25.0),
        ("Softmax", 0.0015, -128, 0.2),
        ("Tanh", 0.002, 0, 0.2),
    ],
)
def test_results_are_real_where_the_grid_that_a_kernel_writes_is_coarse_or_ends_too_early(
    operator: str, scale: float, zero: int, reach: float, interpreter: Interpreter
) -> None:
    """Logarithms of softmax are written in sixteenths down to -16, whatever steps are asked for."""
    model = Model("i8")
    model.nodes.append(helper.make_node(operator, [model.read("x", (3, 7), reach / 100)], ["y"]))
    model.quantize("y", scale)
    model.constants["y_z"] = np.int8(zero)
    check(model, {operator.upper().replace("LOGS", "LOG_S"), "QUANTIZE", "DEQUANTIZE"}, interpreter, reach, inner=1)


def test_codes_are_signed_where_weights_are_and_one_scale_names_the_first_axis(catalogue: Catalogue) -> None:
    """XNNPACK takes no other axis of one scale, and is faster with signed codes; what goes in and out is as it was."""
    constants = {
        "s": np.float32(0.05),
        "z": np.uint8(128),
        "w": np.arange(-27, 27).astype(np.int8).reshape(6, 1, 3, 3),
        "ws": np.float32(0.02),
        "wz": np.int8(0),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"]),
        helper.make_node("Conv", ["xr", "wr"], ["c"], group=6),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["y"]),
    ]
    sizes = {"x": 5, "y": 3}
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, [1, 6, n, n]) for name, n in sizes.items()]
    arrays = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made = nnrewrite.rewrite(model.SerializeToString(), to="tflite")
    assert isinstance(made.encoded, Encoded)
    read = tflite_reader.read(made.encoded.encode(), catalogue)
    (layer,) = [node for node in read.graph if node.op_type == "DEPTHWISE_CONV_2D"]
    grids = [read_quantization(value) for value in layer.inputs[:2] if value is not None]
    assert [value.dtype for value in layer.inputs[:2] if value is not None] == [ir.DataType.INT8] * 2
    assert [grid is not None and grid.axis for grid in grids] == [0, 0]
    assert [value.dtype for value in (*read.graph.inputs, *read.graph.outputs)] == [ir.DataType.UINT8] * 2


def test_pads_of_several_grids_may_share_the_code_that_they_put(interpreter: Interpreter) -> None:
    nodes, constants = list[onnx.NodeProto](), {"z": np.uint8(3), "p": np.array([0, 0, 1, 0, 0, 2])}
    for name, scale in (("a", 0.02), ("b", 0.05)):
        constants[f"{name}s"] = np.float32(scale)
        nodes += [
            helper.make_node("QuantizeLinear", [name, f"{name}s", "z"], [f"{name}q"]),
            helper.make_node("Pad", [f"{name}q", "p", "z"], [f"{name}p"]),
            helper.make_node("DequantizeLinear", [f"{name}p", f"{name}s", "z"], [f"{name}y"]),
        ]
    ends = [helper.make_tensor_value_info(name, 1, [2, 3, 4]) for name in "ab"]
    graph = helper.make_graph(nodes, "m", ends, [helper.make_empty_tensor_value_info(f"{name}y") for name in "ab"])
    assert_converted_alike(graph, constants, interpreter)

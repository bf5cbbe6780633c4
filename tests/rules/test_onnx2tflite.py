"""Operators of ONNX as those of TensorFlow Lite: small models, run by ONNX Runtime and by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as helper
import onnx.parser
import pytest
from nnrewrite import UnsupportedError
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends import tflite_reader
from nnrewrite.verify import Interpreter
from nnrewrite.verify.interpreter import Kernels

Arrays = Sequence[npt.NDArray[Any]]
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def draw(*extents: int, low: float = -1.0, high: float = 1.0) -> npt.NDArray[np.float32]:
    """Numbers that are the same in each run."""
    return np.random.default_rng(len(extents)).uniform(low, high, extents).astype(np.float32)


def make(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, npt.NDArray[Any]],
    outputs: Sequence[str],
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
    opset: int = 21,
    free: bool = False,
) -> onnx.ModelProto:
    """A model of some nodes; with `free` the first extent of each input has a name instead of a number."""
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), ["n", *a.shape[1:]] if free else a.shape
        )
        for name, a in inputs.items()
    ]
    wanted = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "model", given, wanted)
    graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in (constants or {}).items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def convert(model: onnx.ModelProto) -> bytes:
    """The model as a TensorFlow Lite file."""
    encoded = nnrewrite.rewrite(model.SerializeToString(), to="tflite").encoded
    assert isinstance(encoded, Encoded)
    return encoded.encode()


def operators(model: onnx.ModelProto, **options: str) -> set[str]:
    """The operators of the converted model."""
    return set(nnrewrite.rewrite(model.SerializeToString(), to="tflite", **options).report.target_operators)


def run_both(
    model: onnx.ModelProto, feeds: Mapping[str, npt.NDArray[Any]], interpreter: Interpreter
) -> tuple[Arrays, Arrays]:
    """What ONNX Runtime yields of a model, and what the interpreter yields of the converted one."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(feeds))
    (found,) = interpreter.run(convert(model), [list(feeds.values())], Kernels.DEFAULT)
    return wanted, found


def agree(
    model: onnx.ModelProto, feeds: Mapping[str, npt.NDArray[Any]], interpreter: Interpreter, tolerance: float = 1e-4
) -> None:
    """Check types, shapes and numbers of all outputs."""
    wanted, found = run_both(model, feeds, interpreter)
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=tolerance, atol=tolerance)


IMAGE = draw(1, 4, 7, 9)
ELEMENTWISE = (
    "Abs Ceil Cos Exp Floor Neg Sin Tanh Sigmoid Relu Round Sqrt Log Erf "
    "Softplus Softsign Elu Selu Gelu Mish HardSwish HardSigmoid LeakyRelu Reciprocal Atan Sinh Celu Sign"
)


@pytest.mark.slow
@pytest.mark.parametrize("operator", ELEMENTWISE.split())
def test_functions_of_one_number_are_computed_alike(operator: str, interpreter: Interpreter) -> None:
    x = draw(2, 3, 4, low=0.1, high=2.0)
    opset = 22 if operator != "Gelu" else 20
    agree(make([helper.make_node(operator, ["x"], ["y"])], {"x": x}, ["y"], opset=opset), {"x": x}, interpreter)


@pytest.mark.parametrize(
    "operator", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Less", "Equal", "GreaterOrEqual"]
)
def test_operands_are_broadcast(operator: str, interpreter: Interpreter) -> None:
    a, b = draw(2, 3, 4, low=0.1, high=2.0), draw(3, 1, low=0.1, high=2.0)
    agree(make([helper.make_node(operator, ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"]), {"a": a, "b": b}, interpreter)


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({"pads": [1, 1, 1, 1]}, (6, 4, 3, 3)),
        ({"pads": [0, 1, 2, 0], "strides": [2, 1]}, (6, 4, 3, 3)),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (6, 4, 3, 3)),
        ({"auto_pad": "SAME_LOWER"}, (6, 4, 2, 2)),
        ({"dilations": [2, 2]}, (6, 4, 3, 3)),
        ({"group": 4, "pads": [1, 1, 1, 1]}, (8, 1, 3, 3)),
        ({"group": 2}, (6, 2, 3, 3)),
    ],
)
@pytest.mark.parametrize("free", [False, True])
def test_convolutions(options: dict[str, Any], weights: tuple[int, ...], free: bool, interpreter: Interpreter) -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **options)
    model = make([node], {"x": IMAGE}, ["y"], {"w": draw(*weights), "b": draw(weights[0])}, free=free)
    agree(model, {"x": IMAGE}, interpreter)


@pytest.mark.parametrize(
    "options",
    [
        {"strides": [2, 2]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        {"dilations": [2, 2]},
        {"group": 2, "strides": [1, 2]},
    ],
)
def test_transposed_convolutions(options: dict[str, Any], interpreter: Interpreter) -> None:
    outputs = 3
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **options)
    model = make([node], {"x": IMAGE}, ["y"], {"w": draw(4, outputs, 3, 3)})
    agree(model, {"x": IMAGE}, interpreter)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 2], "dilations": [2, 2]},
    ],
)
def test_pools(operator: str, options: dict[str, Any], interpreter: Interpreter) -> None:
    agree(make([helper.make_node(operator, ["x"], ["y"], **options)], {"x": IMAGE}, ["y"]), {"x": IMAGE}, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("how", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("sizes", [[1, 4, 14, 18], [1, 4, 5, 4]])
def test_images_in_other_sizes(mode: str, how: str, sizes: list[int], interpreter: Interpreter) -> None:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=how)
    agree(make([node], {"x": IMAGE}, ["y"], {"s": np.array(sizes)}), {"x": IMAGE}, interpreter)


@pytest.mark.parametrize(
    "operator", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"]
)
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("opset", [11, 13, 21])
def test_reductions_of_all_opsets(operator: str, keep: int, opset: int, interpreter: Interpreter) -> None:
    newer = opset >= 18 or (operator == "ReduceSum" and opset >= 13)
    options = {} if newer else {"axes": [1, -1]}
    node = helper.make_node(operator, ["x", "a"] if newer else ["x"], ["y"], keepdims=keep, **options)
    agree(
        make([node], {"x": IMAGE}, ["y"], {"a": np.array([1, -1])} if newer else {}, opset), {"x": IMAGE}, interpreter
    )


SHAPED: dict[str, Callable[[], tuple[Sequence[onnx.NodeProto], Mapping[str, npt.NDArray[Any]]]]] = {
    "Reshape": lambda: ([helper.make_node("Reshape", ["x", "c"], ["y"])], {"c": np.array([0, -1, 3])}),
    "Transpose": lambda: ([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 3, 1])], {}),
    "Concat": lambda: ([helper.make_node("Concat", ["x", "x"], ["y"], axis=-1)], {}),
    "Split": lambda: ([helper.make_node("Split", ["x", "c"], ["y", "z"], axis=1)], {"c": np.array([1, 3])}),
    "Slice": lambda: (
        [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {"b": np.array([-1, 1]), "e": np.array([-99, 8]), "a": np.array([2, 3]), "s": np.array([-2, 3])},
    ),
    "Pad": lambda: (
        [helper.make_node("Pad", ["x", "c"], ["y"], mode="reflect")],
        {"c": np.array([0, 0, 1, 2, 0, 0, 0, 1])},
    ),
    "Gather": lambda: ([helper.make_node("Gather", ["x", "c"], ["y"], axis=2)], {"c": np.array([[-1, 0], [3, 2]])}),
    "Expand": lambda: ([helper.make_node("Expand", ["x", "c"], ["y"])], {"c": np.array([2, 1, 1, 1])}),
    "Tile": lambda: ([helper.make_node("Tile", ["x", "c"], ["y"])], {"c": np.array([1, 2, 1, 3])}),
    "TopK": lambda: ([helper.make_node("TopK", ["x", "c"], ["y", "z"], axis=2, largest=0)], {"c": np.array([3])}),
    "ArgMax": lambda: ([helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], {}),
    "Softmax": lambda: ([helper.make_node("Softmax", ["x"], ["y"], axis=1)], {}),
    "Trilu": lambda: ([helper.make_node("Trilu", ["x"], ["y"], upper=0)], {}),
    "DepthToSpace": lambda: ([helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD")], {}),
    "CumSum": lambda: ([helper.make_node("CumSum", ["x", "c"], ["y"], reverse=1)], {"c": np.array(2)}),
    "LayerNormalization": lambda: ([helper.make_node("LayerNormalization", ["x", "c"], ["y"])], {"c": draw(9)}),
    "InstanceNormalization": lambda: (
        [helper.make_node("InstanceNormalization", ["x", "c", "c"], ["y"])],
        {"c": draw(4)},
    ),
}


@pytest.mark.parametrize("operator", SHAPED)
def test_elements_are_moved_as_asked(operator: str, interpreter: Interpreter) -> None:
    nodes, constants = SHAPED[operator]()
    agree(make(nodes, {"x": IMAGE}, list(nodes[0].output), constants), {"x": IMAGE}, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("free", [False, True])
def test_recurrent_layers(operator: str, gates: int, direction: str, free: bool, interpreter: Interpreter) -> None:
    count, size = 2 if direction == "bidirectional" else 1, 5
    x = draw(4, 2, 3)
    constants = {
        "w": draw(count, gates * size, 3),
        "r": draw(count, gates * size, size),
        "b": draw(count, 2 * gates * size),
    }
    node = helper.make_node(operator, ["x", "w", "r", "b"], ["y", "h"], hidden_size=size, direction=direction)
    model = make([node], {"x": x}, ["y", "h"], constants, free=free)
    agree(model, {"x": x}, interpreter)
    data = convert(model)
    first, second = interpreter.run(data, [[x], [x]], Kernels.DEFAULT, keep=True)
    np.testing.assert_array_equal(first[0], second[0])  # no state is left from the call before


def test_loops_and_branches(interpreter: Interpreter) -> None:
    x = draw(2, 3)

    def info(name: str, kind: int, shape: Sequence[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "x"], ["w"]),
            helper.make_node("Identity", ["go"], ["still"]),
        ],
        "body",
        [info("i", INT64, []), info("go", onnx.TensorProto.BOOL, []), info("v", FLOAT, [2, 3])],
        [info("still", onnx.TensorProto.BOOL, []), info("w", FLOAT, [2, 3])],
    )
    then = helper.make_graph([helper.make_node("Neg", ["z"], ["t"])], "then", [], [info("t", FLOAT, [2, 3])])
    other = helper.make_graph([helper.make_node("Mul", ["z", "x"], ["o"])], "other", [], [info("o", FLOAT, [2, 3])])
    nodes = [
        helper.make_node("Loop", ["n", "", "x"], ["z"], body=body),
        helper.make_node("ReduceSum", ["z"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    constants = {"n": np.array(3), "zero": np.array(0, np.float32)}
    model = make(nodes, {"x": x}, ["y"], constants)
    agree(model, {"x": x}, interpreter)
    agree(model, {"x": -x}, interpreter)
    assert {"WHILE", "IF"} <= operators(model)


def test_a_network_has_transposes_at_its_ends_alone(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "s", "s", "s", "v"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "w"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "c"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "m"], ["y"]),
    ]
    constants = {"w": draw(4, 4, 3, 3), "s": draw(4), "v": draw(4, low=0.5), "m": draw(4, 2)}
    model = make(nodes, {"x": IMAGE}, ["y"], constants)
    agree(model, {"x": IMAGE}, interpreter)
    report = nnrewrite.rewrite(model.SerializeToString(), to="tflite").report
    assert report.permutations == 1
    assert "MUL" not in report.target_operators  # the factors are in the weights
    assert "RELU" not in report.target_operators  # the activation is in the convolution


def test_channels_of_images_of_any_size_are_known_and_same_pads_stay_with_the_kernel(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["a", "", "scales"], ["b"], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
        helper.make_node("Conv", ["b", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]  # fmt: skip
    given = helper.make_tensor_value_info("x", FLOAT, ["n", 4, "h", "w"])
    graph = helper.make_graph(nodes, "model", [given], [helper.make_empty_tensor_value_info("y")])
    constants = {"w": draw(4, 4, 3, 3), "scales": np.array([1, 1, 2, 2], np.float32)}
    graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in constants.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    agree(model, {"x": IMAGE}, interpreter)
    assert "PAD" not in operators(model)
    made = tflite_reader.read(convert(model), load(), "made")
    (resize,) = (node for node in made.graph if node.op_type == "RESIZE_NEAREST_NEIGHBOR")
    assert resize.outputs[0].shape is not None and resize.outputs[0].shape[3] == 4


def test_names_types_and_free_sizes_are_kept(interpreter: Interpreter) -> None:
    x, i = draw(2, 3), np.array([[1, 0], [0, 2]])
    node = helper.make_node("GatherElements", ["features", "places"], ["picked"], axis=1)
    model = make([node], {"features": x, "places": i}, ["picked"])
    signature = interpreter.describe(convert(model), "serving_default")
    assert [(one.name, one.dtype) for one in signature.inputs] == [("features", "float32"), ("places", "int64")]
    assert [one.name for one in signature.outputs] == ["picked"]
    relu = make([helper.make_node("Relu", ["x"], ["y"])], {"x": x}, ["y"], free=True)
    assert interpreter.describe(convert(relu)).inputs[0].signature == (-1, 3)


def test_what_cannot_be_said_is_refused_all_at_once() -> None:
    pool = helper.make_node("MaxRoiPool", ["x", "areas"], ["z"], pooled_shape=[1, 1])
    nodes = [helper.make_node("Det", ["x"], ["y"]), pool]
    with pytest.raises(UnsupportedError) as caught:
        convert(make(nodes, {"x": draw(1, 2, 6, 6), "areas": draw(1, 5)}, ["y", "z"]))
    assert {refusal.operator for refusal in caught.value.refusals} == {"Det", "MaxRoiPool"}


def test_a_branch_after_which_the_model_would_fail_is_not_written(interpreter: Interpreter) -> None:
    x = draw(2, 3, 1)
    squeezed = helper.make_graph(
        [helper.make_node("Squeeze", ["x", "last"], ["s"])], "then", [], [helper.make_empty_tensor_value_info("s")]
    )
    kept = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["i"])], "else", [], [helper.make_empty_tensor_value_info("i")]
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "two"], ["extent"]),
        helper.make_node("Equal", ["extent", "one"], ["is_one"]),
        helper.make_node("If", ["is_one"], ["v"], then_branch=squeezed, else_branch=kept),
        helper.make_node("Gemm", ["v", "w"], ["y"]),  # which takes matrices alone
    ]
    constants = {"last": np.array([2]), "two": np.array([2]), "one": np.array([1]), "w": draw(3, 4)}
    model = make(nodes, {"x": x}, ["y"], constants)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "t"
    assert "IF" not in operators(model)
    agree(model, {"x": x}, interpreter)


@pytest.mark.parametrize(
    ("nodes", "kernel"),
    [
        ([("Equal", "x y", "e"), ("Not", "e", "z")], "NOT_EQUAL"),
        ([("Sub", "x y", "d"), ("Mul", "d d", "z")], "SQUARED_DIFFERENCE"),
        ([("Clip", "x zero one", "z")], "RELU_0_TO_1"),
    ],
)
def test_what_is_written_out_is_one_kernel(
    nodes: list[tuple[str, str, str]], kernel: str, interpreter: Interpreter
) -> None:
    made = [helper.make_node(operator, operands.split(), [result]) for operator, operands, result in nodes]
    constants = {"y": draw(2, 3), "zero": np.float32(0), "one": np.float32(1)}
    model = make(made, {"x": draw(2, 3, high=2.0)}, ["z"], {name: np.asarray(a) for name, a in constants.items()})
    assert operators(model) == {kernel}
    agree(model, {"x": draw(2, 3, high=2.0)}, interpreter)


def quantize_by_range(operator: str, bias: bool = False, **options: Any) -> list[onnx.NodeProto]:
    """The nodes that quantize x by its range and multiply it by the weights `w`, with codes of a bias or none."""
    codes = [helper.make_node("Add", ["p", "b"], ["sum"])] if bias else []
    return [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node(operator, ["q", "w", "z", "zero"], ["p"], **options),
        *codes,
        helper.make_node("Cast", ["sum" if bias else "p"], ["f"], to=1),
        helper.make_node("Mul", ["s", "scale"], ["by"]),
        helper.make_node("Mul", ["f", "by"], ["y"]),
    ]


SIGNED = np.random.default_rng(1).integers(-60, 61, (16, 5)).astype(np.int8)  # of which no sum of two saturates
UNSIGNED = np.random.default_rng(1).integers(0, 256, (16, 5)).astype(np.uint8)
EACH = np.array([0.01, 0.02, 0.01, 0.03, 0.01], np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", [np.array(0.01, np.float32), np.array(1.0, np.float32), EACH], ids=["one", "1", "each"]
)
@pytest.mark.parametrize(("weights", "zero"), [(SIGNED, 0), (SIGNED, 3), (UNSIGNED, 110), (UNSIGNED, 140)])
@pytest.mark.parametrize("shape", [(1, 16), (3, 16), (2, 3, 16)])
def test_products_of_activations_quantized_by_range_are_dense_layers(
    shape: tuple[int, ...], weights: npt.NDArray[Any], zero: int, scale: npt.NDArray[Any], interpreter: Interpreter
) -> None:
    constants = {"w": weights, "zero": np.array(zero, weights.dtype), "scale": np.asarray(scale)}
    x = draw(*shape)
    model = make(quantize_by_range("MatMulInteger"), {"x": x}, ["y"], constants)
    found = operators(model)
    assert "FULLY_CONNECTED" in found and "ROUND" not in found
    agree(model, {"x": x}, interpreter)


def test_a_single_row_quantized_by_its_range_is_one_dense_layer() -> None:
    constants = {"w": SIGNED, "zero": np.array(0, np.int8), "scale": np.array(0.01, np.float32)}
    model = make(quantize_by_range("MatMulInteger"), {"x": draw(1, 16)}, ["y"], constants)
    assert operators(model) == {"FULLY_CONNECTED"}
    # Kernels for microcontrollers take no real activations beside codes.
    assert all("ROUND" in operators(model, **options) for options in ({"target": "tflm"}, {"hybrid": "real"}))


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_convolutions_of_activations_quantized_by_range_have_codes_for_weights(
    samples: int, bias: bool, window: int, interpreter: Interpreter
) -> None:
    weights = np.random.default_rng(1).integers(0, 256, (4, 3, window, window)).astype(np.uint8)
    constants = {"w": weights, "zero": np.array(120, np.uint8), "scale": np.array(0.01, np.float32)}
    constants |= {"b": np.arange(4, dtype=np.int32).reshape(1, 4, 1, 1) * 1000} if bias else {}
    x = draw(samples, 3, 6, 7)
    model = make(quantize_by_range("ConvInteger", bias, pads=[1, 0, 1, 1]), {"x": x}, ["y"], constants)
    found = operators(model)
    assert "CONV_2D" in found and "ROUND" not in found
    agree(model, {"x": x}, interpreter)


def test_channels_by_themselves_of_codes_by_range_are_computed_with_real_numbers(interpreter: Interpreter) -> None:
    weights = np.random.default_rng(1).integers(0, 256, (3, 1, 3, 3)).astype(np.uint8)
    constants = {"w": weights, "zero": np.array(120, np.uint8), "scale": np.array(0.01, np.float32)}
    x = draw(1, 3, 6, 7)
    model = make(quantize_by_range("ConvInteger", group=3), {"x": x}, ["y"], constants)
    assert {"DEPTHWISE_CONV_2D", "ROUND"} <= operators(model)
    agree(model, {"x": x}, interpreter)


def test_steps_without_end_are_no_grid_of_a_kernel(interpreter: Interpreter) -> None:
    # ONNX Runtime's quantizer writes them for masks of minus infinity, and the interpreter dies of them in SOFTMAX.
    constants = {"s": np.array(np.inf, np.float32), "t": np.array(1 / 256, np.float32), "z": np.array(-128, np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Softmax", ["d"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "t", "z"], ["c"]),
    ]
    x = draw(2, 3)
    wanted, found = run_both(make(nodes, {"x": x}, ["d", "c"], constants), {"x": x}, interpreter)
    np.testing.assert_array_equal(found[0], wanted[0])  # no numbers; what codes they have is up to the runtime
    assert found[1].dtype == wanted[1].dtype


def test_nothing_but_zeros_is_quantized_by_a_step_of_one(interpreter: Interpreter) -> None:
    x = np.zeros((2, 3), np.float32)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    agree(make([node], {"x": x}, ["y", "s", "z"]), {"x": x}, interpreter)


def test_boxes_that_overlap_better_ones_are_left_out(interpreter: Interpreter) -> None:
    corners = np.random.default_rng(3).uniform(0, 4, (2, 8, 2))
    boxes = np.concatenate([corners, corners + 3], axis=2).astype(np.float32)
    scores = np.random.default_rng(4).permutation(48).reshape(2, 3, 8).astype(np.float32) / 48
    limits = {"most": np.array([3]), "overlap": np.array([0.3], np.float32), "least": np.array([0.2], np.float32)}
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])
    agree(
        make([node], {"boxes": boxes, "scores": scores}, ["y"], limits), {"boxes": boxes, "scores": scores}, interpreter
    )


def test_the_first_of_boxes_with_equal_codes_is_better(interpreter: Interpreter) -> None:
    corners = np.random.default_rng(3).uniform(0, 9, (2, 40, 2))
    boxes = np.concatenate([corners, corners + 2], axis=2).astype(np.float32)
    codes = np.random.default_rng(4).integers(100, 104, (2, 40, 2), np.uint8)
    limits = {"most": np.array([20]), "overlap": np.array([0.3], np.float32), "least": np.array([0.397], np.float32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["numbers"]),
        helper.make_node("Sigmoid", ["numbers"], ["chances"]),
        helper.make_node("Transpose", ["chances"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"]),
    ]
    constants = {**limits, "scale": np.array(0.25, np.float32), "zero": np.array(104, np.uint8)}
    feeds = {"boxes": boxes, "codes": codes}
    agree(make(nodes, feeds, ["y"], constants), feeds, interpreter)


@pytest.mark.parametrize("reduction", ["max", "min", "mul"])
@pytest.mark.parametrize("operator", ["ScatterND", "ScatterElements"])
def test_updates_to_one_place_are_joined(operator: str, reduction: str, interpreter: Interpreter) -> None:
    x = draw(3, 4)
    rows = np.array([[2], [0], [2]]) if operator == "ScatterND" else np.array([[2, 0, 1, 1], [2, 2, 1, 0]])
    updates = draw(3, 4, high=3.0) if operator == "ScatterND" else draw(2, 4, high=3.0)
    node = helper.make_node(operator, ["x", "i", "u"], ["y"], reduction=reduction)
    agree(make([node], {"x": x}, ["y"], {"i": rows, "u": updates}), {"x": x}, interpreter)


def forget_extents(model: onnx.ModelProto, axes: Sequence[int]) -> onnx.ModelProto:
    """The same model where only a run tells the extents of its inputs along some axes, and so of its outputs."""
    for value in model.graph.input:
        for axis in axes:
            value.type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("extents", [(5,), (5, 6)])
def test_transposed_convolutions_of_any_size(extents: tuple[int, ...], group: int, interpreter: Interpreter) -> None:
    x, weights, count = draw(1, 4, *extents), draw(4, 3, *[3] * len(extents)), len(extents)
    options = {"strides": [2] * count, "pads": [1] + [0] * (count - 1) + [1] * count, "group": group}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **options)
    model = make([node], {"x": x}, ["y"], {"w": weights})
    agree(forget_extents(model, range(2, 2 + count)), {"x": x}, interpreter)


def test_boxes_of_an_unknown_number_are_all_looked_at(interpreter: Interpreter) -> None:
    """Detectors that keep what scores well enough, and ask for as many boxes as there may ever be."""
    corners = np.random.default_rng(3).uniform(0, 4, (1, 8, 2))
    boxes = np.concatenate([corners, corners + 2], axis=2).astype(np.float32)
    scores = np.random.default_rng(4).permutation(8).reshape(1, 1, 8).astype(np.float32) / 8
    constants = {"most": np.array([2**63 - 1]), "overlap": np.array([0.3], np.float32)}
    nodes = [
        helper.make_node("Transpose", ["columns"], ["rows"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["rows", "scores", *constants], ["y"]),
    ]
    feeds = {"columns": boxes.transpose(0, 2, 1).copy(), "scores": scores}
    agree(forget_extents(make(nodes, feeds, ["y"], constants), [2]), feeds, interpreter)


def test_flatten_computes_extents_that_only_a_run_tells(interpreter: Interpreter) -> None:
    x = draw(2, 3, 4, 5)
    model = make([helper.make_node("Flatten", ["x"], ["y"], axis=2)], {"x": x}, ["y"])
    agree(forget_extents(model, [0, 2]), {"x": x}, interpreter)


def test_pads_may_be_computed(interpreter: Interpreter) -> None:
    x, pads = draw(2, 3), np.array([1, 0, 2, 1])
    model = make([helper.make_node("Pad", ["x", "pads"], ["y"])], {"x": x, "pads": pads}, ["y"])
    agree(model, {"x": x, "pads": pads}, interpreter)


def test_graphs_inside_graphs_read_what_those_around_them_compute(interpreter: Interpreter) -> None:
    def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        last = helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, [2, 3])
        return helper.make_graph(nodes, name, [], [last])

    inner = helper.make_node(
        "If",
        ["second"],
        ["chosen"],
        then_branch=branch("square", helper.make_node("Mul", ["u", "u"], ["squared"])),
        else_branch=branch("minus", helper.make_node("Neg", ["u"], ["negative"])),
    )
    outer = helper.make_node(
        "If",
        ["first"],
        ["y"],
        then_branch=branch("nested", helper.make_node("Exp", ["x"], ["u"]), inner),
        else_branch=branch("plain", helper.make_node("Abs", ["x"], ["absolute"])),
    )
    for first in (True, False):
        for second in (True, False):
            feeds = {"x": draw(2, 3), "first": np.array(first), "second": np.array(second)}
            agree(make([outer], feeds, ["y"]), feeds, interpreter)


def test_what_a_loop_collects_may_have_any_extents(interpreter: Interpreter) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Add", ["v", "x"], ["next"]),
            helper.make_node("Exp", ["next"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, ["n", 3]),
        ],
        [
            helper.make_tensor_value_info("again", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, ["n", 3]),
            helper.make_tensor_value_info("row", FLOAT, ["n", 3]),
        ],
    )
    loop = helper.make_node("Loop", ["turns", "", "x"], ["last", "rows"], body=body)
    feeds = {"x": draw(2, 3)}
    agree(make([loop], feeds, ["last", "rows"], {"turns": np.array(4, np.int64)}, free=True), feeds, interpreter)


def test_the_turn_of_a_loop_may_have_an_axis(interpreter: Interpreter) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Add", ["i", "one"], ["end"]),
            helper.make_node("Slice", ["x", "i", "end"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, [1]),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("again", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("row", FLOAT, [1, 3]),
        ],
    )
    loop = helper.make_node("Loop", ["turns", "go"], ["rows"], body=body)
    constants = {"turns": np.array(4, np.int64), "go": np.array(True), "one": np.array([1], np.int64)}
    feeds = {"x": draw(5, 3)}
    agree(make([loop], feeds, ["rows"], constants), feeds, interpreter)


@pytest.mark.parametrize(
    ("mode", "how", "expected"),
    [
        ("nearest", "tf_half_pixel_for_nn", "RESIZE_NEAREST_NEIGHBOR"),
        ("nearest", "asymmetric", "RESIZE_NEAREST_NEIGHBOR"),
        ("linear", "half_pixel", "RESIZE_BILINEAR"),
        ("cubic", "half_pixel", "RESHAPE"),
    ],
)
def test_images_grow_by_factors_of_single_precision(
    mode: str, how: str, expected: str, interpreter: Interpreter
) -> None:
    feeds = {"x": draw(1, 2, 5, 10)}
    words = {"mode": mode, "coordinate_transformation_mode": how, "nearest_mode": "floor"}
    nodes = [
        helper.make_node("Resize", ["x", "", "factors"], ["larger"], **words),
        helper.make_node("Shape", ["larger"], ["extents"]),
        helper.make_node("Relu", ["larger"], ["y"]),
    ]
    model = make(nodes, feeds, ["y", "extents"], {"factors": np.array([1, 1, 1.4, 1.8], np.float32)}, opset=18)
    agree(model, feeds, interpreter)
    assert expected in operators(model)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_part_of_an_image_is_told_in_a_run(mode: str, interpreter: Interpreter) -> None:
    feeds = {"x": draw(1, 2, 6, 7), "part": np.array([0, 0, 0.2, -0.3, 1, 1, 0.9, 0.7], np.float32)}
    words = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "nearest_mode": "floor"}
    nodes = [helper.make_node("Resize", ["x", "part", "", "sizes"], ["y"], extrapolation_value=0.5, **words)]
    for sizes in ([1, 2, 5, 9], [1, 2, 1, 4]):
        agree(make(nodes, feeds, ["y"], {"sizes": np.array(sizes, np.int64)}), feeds, interpreter)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_values_side_by_side_along_an_axis_of_their_own_are_packed(count: int, interpreter: Interpreter) -> None:
    feeds = {f"x{i}": draw(2, 3) for i in range(count)}
    nodes = [helper.make_node("Unsqueeze", [name, "axes"], [f"u{name}"]) for name in feeds]
    nodes.append(helper.make_node("Concat", [f"u{name}" for name in feeds], ["y"], axis=1))
    model = make(nodes, feeds, ["y"], {"axes": np.array([1], np.int64)})
    agree(model, feeds, interpreter)
    assert operators(model) == {"PACK"}


@pytest.mark.parametrize(("places", "expected"), [([0, 1, 2], "UNPACK"), ([2, -3, 1], "UNPACK"), ([0, 2], "GATHER")])
def test_all_rows_of_a_value_are_unpacked_at_once(places: list[int], expected: str, interpreter: Interpreter) -> None:
    feeds = {"x": draw(3, 2, 4)}
    names = [f"i{number}" for number in range(len(places))]
    nodes = [helper.make_node("Gather", ["x", name], [f"y{name}"]) for name in names]
    constants = {name: np.array(place, np.int64) for name, place in zip(names, places, strict=True)}
    model = make(nodes, feeds, [f"y{name}" for name in names], constants)
    agree(model, feeds, interpreter)
    assert operators(model) == {expected}


def test_rows_are_picked_from_a_table_of_any_size(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("ArgMax", ["f"], ["i"], axis=1, keepdims=0),
        helper.make_node("Gather", ["table", "i"], ["place"]),
        helper.make_node("Gather", ["table", "place"], ["row"]),
        helper.make_node("Gather", ["x", "row"], ["y"]),
    ]
    feeds, table = {"f": draw(3, 9), "x": draw(7, 2)}, np.arange(2_200_000) % 7
    agree(make(nodes, feeds, ["y"], {"table": table}), feeds, interpreter)


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "bqd,bkd->bqk", "bij,bjk->kb", "bij,bjk"])
def test_sums_by_letters_are_products_of_matrices(equation: str, interpreter: Interpreter) -> None:
    feeds = {"a": draw(2, 3, 4), "b": draw(2, 5, 4) if "kd" in equation else draw(2, 4, 5)}
    model = make([helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)], feeds, ["y"])
    agree(model, feeds, interpreter)
    assert "BATCH_MATMUL" in operators(model)


@pytest.mark.parametrize(
    "equation", ["ij,jk,kl->li", "ij,jk,kl", "ij,j,kj->ik", "i,j,k->kij", "ij,jk,kl,lm->im", "...ij,...jk,kl->...il"]
)
def test_sums_by_letters_of_several_operands_are_products_of_two_at_a_time(
    equation: str, interpreter: Interpreter
) -> None:
    extents = {"i": 2, "j": 3, "k": 4, "l": 5, "m": 6, ".": 7}
    listed = equation.split("->")[0].replace("...", ".").split(",")
    feeds = {f"x{place}": draw(*(extents[letter] for letter in letters)) for place, letters in enumerate(listed)}
    model = make([helper.make_node("Einsum", [*feeds], ["y"], equation=equation)], feeds, ["y"])
    agree(model, feeds, interpreter)


def test_random_numbers_are_in_their_range(interpreter: Interpreter) -> None:
    node = helper.make_node("RandomUniformLike", ["x"], ["y"], low=2.0, high=3.0)
    x = draw(40, 50)
    [found] = interpreter.run(convert(make([node], {"x": x}, ["y"])), [[x]])[0]
    assert found.shape == x.shape
    assert 2.0 <= found.min() < 2.1 < 2.9 < found.max() <= 3.0


def test_half_precision_is_computed_in_single_precision(interpreter: Interpreter) -> None:
    x = draw(2, 6).astype(np.float16)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("LayerNormalization", ["c", "s"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    constants = {"w": draw(6, 300) * 100, "b": draw(300) * 100, "s": draw(300)}  # whose squares overflow
    model = make(nodes, {"x": x}, ["y"], {name: a.astype(np.float16) for name, a in constants.items()})
    agree(model, {"x": x}, interpreter, tolerance=2e-3)
    assert nnrewrite.rewrite(model.SerializeToString(), to="tflite").report.target_operators["CAST"] == 2


def test_operators_of_half_precision_with_several_results_are_computed_in_single(interpreter: Interpreter) -> None:
    x = draw(4, 6).astype(np.float16)
    nodes = [
        helper.make_node("Split", ["x", "parts"], ["a", "b"], axis=1),
        helper.make_node("Mul", ["a", "factor"], ["y"]),
        helper.make_node("Neg", ["b"], ["z"]),
    ]
    constants = {"parts": np.array([2, 4]), "factor": np.array(2, np.float16)}
    model = make(nodes, {"x": x}, ["y", "z"], constants)
    agree(model, {"x": x}, interpreter, tolerance=2e-3)
    assert nnrewrite.rewrite(model.SerializeToString(), to="tflite").report.target_operators["CAST"] == 3


@pytest.mark.parametrize("opset", [11, 13, 17, 18])
def test_parts_of_equal_size_are_as_many_as_there_are_results(interpreter: Interpreter, opset: int) -> None:
    counted = {"num_outputs": 3} if opset >= 18 else {}
    split = helper.make_node("Split", ["x"], ["a", "b", "y"], axis=1, **counted)
    x = draw(2, 6)
    agree(make([split], {"x": x}, ["a", "y"], opset=opset), {"x": x}, interpreter)


def test_sequences_of_a_known_number_of_values_are_these_values(interpreter: Interpreter) -> None:
    x = draw(4, 6)
    constants = {"three": np.array(3), "parts": np.array([1, 2, 3]), "first": np.array(0), "last": np.array(-1)}
    even = helper.make_node("SplitToSequence", ["x", "three"], ["q"], axis=1)
    uneven = helper.make_node("SplitToSequence", ["x", "parts"], ["q"], axis=1)
    single = helper.make_node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0)
    built = [
        helper.make_node("SequenceEmpty", [], ["e"], dtype=1),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("SequenceInsert", ["e", "x"], ["one"]),
        helper.make_node("SequenceInsert", ["one", "n", "first"], ["q"]),
    ]
    at = [helper.make_node("SequenceAt", ["q", "last"], ["y"])]
    fewer = [
        helper.make_node("SequenceErase", ["q", "first"], ["r"]),
        helper.make_node("ConcatFromSequence", ["r"], ["y"], axis=-1),
    ]
    stacked = [helper.make_node("ConcatFromSequence", ["q"], ["y"], axis=1, new_axis=1)]
    length = [helper.make_node("SequenceLength", ["q"], ["n_q"]), helper.make_node("Mul", ["x", "c"], ["y"])]
    length.insert(1, helper.make_node("Cast", ["n_q"], ["c"], to=1))
    for made in ([even], [uneven], [single], built):
        for read in (at, fewer, length):
            agree(make([*made, *read], {"x": x}, ["y"], constants), {"x": x}, interpreter)
    for made in ([even], [single], built):
        agree(make([*made, *stacked], {"x": x}, ["y"], constants), {"x": x}, interpreter)


def test_functions_of_the_standard_are_made_of_what_rules_are_about() -> None:
    window = make([helper.make_node("HannWindow", ["n"], ["y"])], {"n": np.array(8, np.int32)}, ["y"])
    assert "RANGE" in operators(window) and "WHILE" not in operators(window)


def test_a_cast_of_half_precision_to_itself_ends(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=int(onnx.TensorProto.FLOAT16)),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    x = draw(2, 3).astype(np.float16)
    (got,) = interpreter.run(convert(make(nodes, {"x": x}, ["y"])), [[x]])[0]
    np.testing.assert_allclose(got, -np.exp(x), rtol=2e-3)


def test_all_that_the_delegate_can_take_has_the_form_that_it_takes(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("HardSigmoid", ["a"], ["b"]),
        helper.make_node("Slice", ["b", "one", "end", "axis"], ["c"]),
        helper.make_node("Unsqueeze", ["c", "axis"], ["d"]),
        helper.make_node("Expand", ["d", "to"], ["e"]),
        helper.make_node("Pow", ["e", "two"], ["y"]),
    ]
    constants = {
        "w": draw(4, 3, 1, 1),
        "one": np.array([1]),
        "end": np.array([3]),
        "axis": np.array([2]),
        "to": np.array([1, 4, 5, 2, 6]),
        "two": np.array(2, np.float32),
    }
    x = draw(1, 3, 5, 6)
    model = make(nodes, {"x": x}, ["y"], constants)
    agree(model, {"x": x}, interpreter)
    left = {"EXPAND_DIMS", "SQUEEZE", "RELU_0_TO_1", "BROADCAST_TO", "POW"}
    assert not left & operators(model)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "ReduceSum", "ReduceMax", "Concat", "Split", "MatMul"])
def test_axes_beyond_those_that_the_delegate_takes_are_joined(
    operator: str, free: bool, interpreter: Interpreter
) -> None:
    """As networks of optical flow weigh nine neighbours of each point within patches of patches."""
    x = draw(1, 2, 9, 2, 2, 3, 3)
    operands = {"Concat": ["x", "x"], "MatMul": ["x", "x"]}.get(operator, ["x"])
    results = ["y", "z"] if operator == "Split" else ["y"]
    options: dict[str, Any] = {"axis": 2} if operator in ("Softmax", "LogSoftmax", "Concat") else {}
    options |= {"axis": 3, "num_outputs": 2} if operator == "Split" else {}
    options |= {"keepdims": 0} if operator.startswith("Reduce") else {}
    constants = {"axes": np.int64([2, 3])} if operator.startswith("Reduce") else {}
    node = helper.make_node(operator, [*operands, *constants], results, **options)
    agree(make([node], {"x": x}, results, constants, free=free), {"x": x}, interpreter)


def test_free_extents_of_two_names_along_many_axes_may_differ(interpreter: Interpreter) -> None:
    a, b = draw(3, 2, 1, 2, 3, 4), draw(1, 2, 1, 2, 4, 5)
    model = make([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"], free=True)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "m"
    del model.graph.value_info[:], model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    agree(model, {"a": a, "b": b}, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("behind", [[1] * 7, [0, 0, 0, 0, 0, 1, 2], [0, 2, 0, 0, 1, 0, 0]])
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_more_axes_than_the_kernel_takes_are_padded_some_at_a_time(
    mode: str, behind: list[int], free: bool, interpreter: Interpreter
) -> None:
    x = draw(2, 3, 2, 2, 2, 3, 3)
    node = helper.make_node("Pad", ["x", "pads", *(["by"] if mode == "constant" else [])], ["y"], mode=mode)
    constants = {"pads": np.int64([0, 0, 0, 0, 0, 1, 0, *behind]), "by": np.float32(1.5)}
    agree(make([node], {"x": x}, ["y"], constants, free=free), {"x": x}, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("reduction", ["max", "min", "mul"])
def test_what_is_put_to_one_place_is_joined_in_any_number(
    reduction: str, operator: str, kind: type[np.number[Any]], free: bool, interpreter: Interpreter
) -> None:
    """As graph networks take the greatest of what neighbours send."""
    random = np.random.default_rng(0)
    x, u = (random.integers(-2, 3, shape).astype(kind) for shape in ([20, 3, 4], [60, 3, 4]))
    i = random.integers(-5, 20, [60, 3, 4] if operator == "ScatterElements" else [60, 1])
    if kind is np.float32:
        x[:10] = -np.inf if reduction == "max" else np.inf if reduction == "min" else 1.5
    node = helper.make_node(operator, ["x", "i", "u"], ["y"], reduction=reduction)
    feeds = {"x": x, "i": i, "u": u}
    agree(make([node], feeds, ["y"], free=free), feeds, interpreter)


@pytest.mark.parametrize("other", [[3, 1, 5], [1], [], [1, 1, 5]])
@pytest.mark.parametrize("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bits_of_integers_of_64_are_those_of_their_words(
    operator: str, other: list[int], interpreter: Interpreter
) -> None:
    """As tables of features in space are found by products with large primes."""
    random, ends = np.random.default_rng(0), np.iinfo(np.int64)
    a, b = (random.integers(ends.min, ends.max, shape) for shape in ([3, 4, 5], other))
    a[0, 0] = [ends.min, ends.max, -1, 0, 2**32 - 1]
    agree(make([helper.make_node(operator, ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"]), {"a": a, "b": b}, interpreter)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_low_bits_of_an_integer_are_a_remainder(dtype: type[np.signedinteger[Any]]) -> None:
    for mask in (0, 7, 2**30 - 1):
        node = helper.make_node("BitwiseAnd", ["a", "mask"], ["y"])
        model = make([node], {"a": np.array([5, -6], dtype)}, ["y"], {"mask": np.array(mask, dtype)})
        assert operators(model) == {"FLOOR_MOD"}


def test_products_of_matrices_along_many_axes_run_in_all_kernels(interpreter: Interpreter) -> None:
    a, b = draw(1, 2, 1, 2, 3, 4), draw(1, 2, 1, 2, 4, 5)
    model = make([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    ((found,),) = interpreter.run(convert(model), [[a, b]], Kernels.REFERENCE)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("step", [2**31, 2**32 + 1, 2**63 - 1, -(2**31), -(2**32) - 1, -(2**63)])
def test_a_step_beyond_what_32_bits_hold_takes_one_element(step: int, free: bool, interpreter: Interpreter) -> None:
    x = draw(3, 2)
    bounds = {"b": [1], "e": [2**63 - 1] if step > 0 else [-(2**63)], "a": [0], "s": [step]}
    constants = {name: np.int64(numbers) for name, numbers in bounds.items()}
    model = make([helper.make_node("Slice", ["x", *bounds], ["y"])], {"x": x}, ["y"], constants, free=free)
    agree(model, {"x": x}, interpreter)


def test_a_slice_of_any_extent_up_to_before_its_begin_is_empty(interpreter: Interpreter) -> None:
    x = draw(3, 2)
    constants = {"b": np.int64([-1]), "e": np.int64([-(2**63)]), "a": np.int64([0]), "s": np.int64([2])}
    model = make([helper.make_node("Slice", ["x", *constants], ["y"])], {"x": x}, ["y"], constants, free=True)
    agree(model, {"x": x}, interpreter)


def test_a_line_between_codes_is_made_of_what_the_delegate_takes(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["a", "s", "z"], ["b"]),
        helper.make_node("HardSigmoid", ["b"], ["c"], alpha=1 / 6, beta=0.5),
        helper.make_node("QuantizeLinear", ["c", "t", "k"], ["d"]),
        helper.make_node("DequantizeLinear", ["d", "t", "k"], ["y"]),
    ]
    constants = {
        "s": np.array(0.0625, np.float32),
        "z": np.array(3, np.int8),
        "t": np.array(1 / 256, np.float32),
        "k": np.array(-128, np.int8),
    }
    x = draw(1, 3, 5, 6, low=-5, high=5)
    model = make(nodes, {"x": x}, ["y"], constants)
    agree(model, {"x": x}, interpreter, 1.01 / 256)
    assert operators(model) == {"QUANTIZE", "MUL", "ADD", "DEQUANTIZE"}


@pytest.mark.parametrize(("layer", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers_of_one_step_are_no_loops(layer: str, gates: int, interpreter: Interpreter) -> None:
    node = helper.make_node(layer, ["x", "w", "r", "b"], ["y", "h"], hidden_size=5)
    constants = {"w": draw(1, gates * 5, 4), "r": draw(1, gates * 5, 5), "b": draw(1, gates * 10)}
    x = draw(1, 2, 4)
    model = make([node], {"x": x}, ["y", "h"], constants)
    agree(model, {"x": x}, interpreter)
    assert "WHILE" not in operators(model)


def test_weights_of_half_precision_stay_of_half_the_size(interpreter: Interpreter) -> None:
    weights = draw(64, 48).astype(np.float16)
    x = draw(2, 64).astype(np.float16)
    model = make([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, ["y"], {"w": weights})
    agree(model, {"x": x}, interpreter, tolerance=2e-3)
    assert len(convert(model)) < 2 * weights.nbytes
    single = make([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": draw(2, 64)}, ["y"], {"w": draw(64, 48)})
    assert "DEQUANTIZE" not in operators(single)


def test_keys_are_turned_by_the_kernel_and_not_apart_from_queries(interpreter: Interpreter) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Reshape", ["a", "parts"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[2, 0, 3, 1, 4]),
        helper.make_node("Split", ["c"], ["q", "k", "v"], axis=0, num_outputs=3),
        *[helper.make_node("Squeeze", [name, "first"], [f"{name}s"]) for name in "qkv"],
        helper.make_node("Transpose", ["ks"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("Mul", ["kt", "scale"], ["kc"]),
        helper.make_node("MatMul", ["qs", "kc"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "vs"], ["y"]),
    ]
    parts, first, scale = np.array([1, 6, 3, 2, 4]), np.array([0]), np.array(0.5, np.float32)
    x = draw(1, 6, 8)
    model = make(nodes, {"x": x}, ["y"], {"w": draw(8, 24), "parts": parts, "first": first, "scale": scale})
    agree(model, {"x": x}, interpreter)
    assert nnrewrite.rewrite(model.SerializeToString(), to="tflite").report.target_operators["TRANSPOSE"] == 1


@pytest.mark.parametrize(("kernel", "turned"), [(1, 0), (3, 2)])
def test_a_kernel_of_one_element_takes_rows_and_columns_in_either_order(
    kernel: int, turned: int, interpreter: Interpreter
) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["a", "parts"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3]),
        helper.make_node("Softmax", ["c"], ["d"], axis=1),
        helper.make_node("Conv", ["d", "w"], ["e"], pads=[kernel // 2] * 4),
        helper.make_node("Reshape", ["e", "boxes"], ["f"]),
        helper.make_node("Transpose", ["f"], ["y"], perm=[0, 2, 1]),
    ]
    parts, boxes = np.array([1, 4, 16, 5]), np.array([1, 4, 5])
    x = draw(1, 5, 64)
    model = make(nodes, {"x": x}, ["y"], {"w": draw(1, 16, kernel, kernel), "parts": parts, "boxes": boxes})
    agree(model, {"x": x}, interpreter)
    assert (
        nnrewrite.rewrite(model.SerializeToString(), to="tflite").report.target_operators.get("TRANSPOSE", 0) == turned
    )


def test_an_input_that_begins_with_what_the_call_before_yielded_is_a_variable(interpreter: Interpreter) -> None:
    state = np.array([1, 2, 3], np.float32)
    given = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("x", "sum")]
    wanted = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("y", "sum_out")]
    nodes = [helper.make_node("Add", ["x", "sum"], ["sum_out"]), helper.make_node("Neg", ["sum_out"], ["y"])]
    graph = helper.make_graph(nodes, "model", given, wanted, [onnx.numpy_helper.from_array(state, "sum")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    data, ones = convert(model), np.ones(3, np.float32)
    assert [tensor.name for tensor in interpreter.describe(data).inputs] == ["x"]
    found = interpreter.run(data, [[ones]] * 3, Kernels.DEFAULT, keep=True)
    for call, (negated,) in enumerate(found):
        np.testing.assert_allclose(negated, -state - 1 - call)


def test_a_variable_that_is_an_output_as_well_goes_on_from_call_to_call(interpreter: Interpreter) -> None:
    given = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("x", "sum")]
    wanted = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("y", "sum_out")]
    nodes = [helper.make_node("Add", ["x", "sum"], ["y"]), helper.make_node("Identity", ["y"], ["sum_out"])]
    begins = onnx.numpy_helper.from_array(np.zeros(3, np.float32), "sum")
    model = helper.make_model(
        helper.make_graph(nodes, "model", given, wanted, [begins]),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    ones = np.ones(3, np.float32)
    found = interpreter.run(convert(model), [[ones]] * 3, Kernels.DEFAULT, keep=True)
    assert [list(total) for (total,) in found] == [[1] * 3, [2] * 3, [3] * 3]


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_channels(p: int, interpreter: Interpreter) -> None:
    agree(
        make([helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)], {"x": draw(2, 3, 4, 5)}, ["y"]),
        {"x": draw(2, 3, 4, 5)},
        interpreter,
    )


def test_zeros_of_a_longer_shape_are_extents_that_a_run_decides(interpreter: Interpreter) -> None:
    x, to = draw(2, 3, 8), np.array([0, 0, 2, -1], np.int64)
    given = [helper.make_tensor_value_info("x", FLOAT, ["n", "m", 8])]
    node = helper.make_node("Reshape", ["x", "to"], ["y"])
    graph = helper.make_graph([node], "heads", given, [helper.make_tensor_value_info("y", FLOAT, None)])
    graph.initializer.append(onnx.numpy_helper.from_array(to, "to"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (found,) = interpreter.run(convert(model), [[x]], Kernels.OPTIMIZED)[0]
    np.testing.assert_array_equal(found, x.reshape(2, 3, 2, 4))


def test_rows_are_picked_from_each_sample_by_itself(interpreter: Interpreter) -> None:
    x, places = draw(2, 5, 3), np.array([[[4], [0]], [[1], [-1]]], np.int64)
    node = helper.make_node("GatherND", ["x", "places"], ["y"], batch_dims=1)
    agree(make([node], {"x": x, "places": places}, ["y"], free=True), {"x": x, "places": places}, interpreter)


@pytest.mark.parametrize(
    ("scale", "options", "said"),
    [
        ((4, 1, 1), {"axis": 0}, "the scale has 3 axes, where it can have one"),
        ((4, 3), {"axis": 1, "block_size": 4}, "the scale does not have one number for each block of 4"),
        ((2, 6), {"axis": 0, "block_size": 4}, "the scale does not have one number for each block of 4"),
    ],
)
def test_scales_that_do_not_fit_what_they_scale_are_refused(
    scale: Sequence[int], options: Mapping[str, int], said: str
) -> None:
    x, codes = draw(2, 4), np.ones((4, 6), np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scale"], ["w"], **options),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    constants = {"codes": codes, "scale": np.full(scale, 0.5, np.float32)}
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", FLOAT, [2, 6])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    with pytest.raises(UnsupportedError, match=said):
        convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


@pytest.mark.parametrize("moved", [0, 2**62])
@pytest.mark.parametrize("by", [[2**31], [-(2**31) - 1], [2**31, 1, -7], [2**40 + 3, 3, 2**62], [8192]])
def test_integers_beyond_32_bits_are_divided_as_they_are(moved: int, by: list[int], interpreter: Interpreter) -> None:
    rng = np.random.default_rng(0)
    b = np.array(by, np.int64)
    x = rng.integers(-(2**61), 2**61, (500, 3)) >> rng.integers(31 if by == [8192] and not moved else 0, 61, (500, 3))
    x[:40] = b * rng.integers(-1, 2, (40, 3)) // (1 if not moved else 4)
    nodes = [helper.make_node("Add", ["x", "c"], ["a"]), helper.make_node("Div", ["a", "b"], ["y"])]
    wanted, found = run_both(
        make(nodes, {"x": x}, ["y"], {"b": b, "c": np.array(moved, np.int64)}), {"x": x}, interpreter
    )
    np.testing.assert_array_equal(found, wanted)


def test_a_gelu_with_a_grid_behind_each_step_is_one_of_codes(interpreter: Interpreter) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (int8[2, 128] q) => (float[2, 128] y)
        <float c = {0.03}, int8 b = {-5}, float root = {1.41421356}, float one = {1.0}, float half = {0.025},
         float u = {0.05}, int8 k = {-80}, float s = {0.0078125}, int8 i = {0}, float t = {0.0079}, int8 j = {-128}> {
          x = DequantizeLinear(q, c, b)
          d = Div(x, root)
          e = Erf(d)
          eq = QuantizeLinear(e, s, i)
          ed = DequantizeLinear(eq, s, i)
          a = Add(ed, one)
          aq = QuantizeLinear(a, t, j)
          ad = DequantizeLinear(aq, t, j)
          m = Mul(x, ad)
          mq = QuantizeLinear(m, u, k)
          y = DequantizeLinear(mq, half, k)
        }""")
    codes = np.arange(-128, 128, dtype=np.int8).reshape(2, 128)
    [wanted], [found] = run_both(model, {"q": codes}, interpreter)
    assert np.abs(found - wanted).max() <= 0.025 * 1.001  # a step
    assert "GELU" in operators(model) and "TANH" not in operators(model)


def test_views_to_a_shape_that_a_run_computes_keep_no_order_of_axes(interpreter: Interpreter) -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[b, 2, h, w] x) => (float[b, n, 4] y) <float[4, 2, 1, 1] k = {1, 2, -1, 3, 0.5, 1, 2, -2}> {
          c = Conv(x, k)
          s = Shape <start = 0, end = 2> (c)
          rest = Constant <value_ints = [-1]> ()
          to = Concat <axis = 0> (s, rest)
          rows = Reshape(c, to)
          turned = Transpose <perm = [0, 2, 1]> (rows)
          parts = Softmax <axis = 2> (turned)
          back = Transpose <perm = [0, 2, 1]> (parts)
          all = Shape(c)
          image = Reshape(back, all)
          sum = Add(image, c)
          sums = Reshape(sum, to)
          y = Transpose <perm = [0, 2, 1]> (sums)
        }""")
    x = np.random.default_rng(1).standard_normal((2, 2, 3, 5)).astype(np.float32)
    [wanted], [found] = run_both(model, {"x": x}, interpreter)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert nnrewrite.rewrite(model.SerializeToString(), to="tflite").report.permutations == 1  # of the input

"""Each tensor is compared from the same numbers: right models raise no alarm, and of wrong ones the fault is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nnrewrite import convert
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.ops_files import load
from onnx import numpy_helper

pytest.importorskip("ai_edge_litert")

from nnrewrite.fuzz.sketch import Case, Step, Value, encode
from nnrewrite.verify import Interpreter, Kernels, Tensor, compare_models
from nnrewrite.verify.comparison import compare
from nnrewrite.verify.forms import Numbers, list_forms
from nnrewrite.verify.layers import Step as Compared
from nnrewrite.verify.layers import compare_layers, find_divergence, find_suspect

pytestmark = pytest.mark.slow


def grid(*scales: float, zero: int = 0, axis: int = 0) -> Quantization:
    return Quantization(np.array(scales, np.float32), np.full(len(scales), zero, np.int64), axis)


def network(dtype: str | None) -> bytes:
    """A convolution with a fused activation, a pool, an image flattened, a product of matrices and scores.

    Of codes of a type, or of real numbers.
    """
    catalogue, random = load(), np.random.default_rng(7)
    operators = catalogue.find_dialect("tflite").operators
    middle = 128 if dtype == "UINT8" else 0

    def value(name: str, shape: tuple[int, ...], scale: float, zero: int = 0, constant: bool = False) -> Value:
        content = random.normal(size=shape).astype(np.float32)
        if dtype is None:
            return Value(name, ir.DataType.FLOAT, content * np.float32(0.3), constant)
        weights = constant and len(shape) > 1
        low, high = np.iinfo(dtype.lower()).min, np.iinfo(dtype.lower()).max
        codes = np.clip(np.rint(content * 40) + middle, low, high)
        if constant and not weights:
            return Value(name, ir.DataType.INT32, np.rint(content * 900).astype(np.int32), True, grid(scale))
        known = grid(scale, zero=middle if weights else zero + middle)
        return Value(name, ir.DataType[dtype], codes.astype(dtype.lower()), constant, known)

    x = value("x", (1, 8, 6, 3), 0.05)
    w, b = value("w", (4, 3, 3, 3), 0.002, constant=True), value("b", (4,), 0.0001, constant=True)
    convolved = value("convolved", (1, 8, 6, 4), 0.024, -128)
    pooled, flat = value("pooled", (1, 4, 3, 4), 0.024, -128), value("flat", (1, 48), 0.024, -128)
    v, c = value("v", (10, 48), 0.002, constant=True), value("product/bias", (10,), 0.000048, constant=True)
    product = value("product", (1, 10), 0.05, 11)
    scores = value("scores", (1, 10), 1 / 256, -128)
    extents = Value("extents", ir.DataType.INT32, np.array([1, 48], np.int32), True)
    pool = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    strides = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU6"}
    steps = (
        Step(operators["CONV_2D"], (x, w, b), strides, (convolved,)),
        Step(operators["MAX_POOL_2D"], (convolved,), pool, (pooled,)),
        Step(operators["RESHAPE"], (pooled, extents), {}, (flat,)),
        Step(operators["FULLY_CONNECTED"], (flat, v, c), {}, (product,)),
        Step(operators["SOFTMAX"], (product,), {"beta": 1.0}, (scores,)),
    )
    return encode(Case("network", steps), catalogue)


NAMES = ["convolved", "pooled", "flat", "product", "scores"]
TYPES = [None, "INT8", "UINT8"]


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
@pytest.mark.parametrize("dtype", TYPES)
def test_no_tensor_of_a_right_model_differs(dtype: str | None, target: str, interpreter: Interpreter) -> None:
    source = network(dtype)
    steps = compare_layers(source, convert(source, target=target).SerializeToString(), interpreter)
    assert [step.comparison.name for step in steps] == NAMES
    assert find_divergence(steps) is None


@pytest.mark.parametrize("options", [{"exact": True}, {"float": True}, {"float_io": True}, {"layout": "target"}])
def test_options_raise_no_alarm(options: dict[str, object], interpreter: Interpreter) -> None:
    source = network("INT8")
    steps = compare_layers(source, convert(source, **options).SerializeToString(), interpreter)
    assert {"convolved", "product", "scores"} <= {step.comparison.name for step in steps}
    assert find_divergence(steps) is None


Spoil = Callable[[onnx.ModelProto, onnx.NodeProto], None]


def scale(place: int) -> Spoil:
    """Stretch a constant that a node reads."""

    def spoil(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        constants = {tensor.name: tensor for tensor in model.graph.initializer}
        array = numpy_helper.to_array(constants[node.input[place]])
        model.graph.initializer.append(numpy_helper.from_array((array * array.dtype.type(2)).astype(array.dtype), "s"))
        node.input[place] = "s"

    return spoil


def leave_out(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
    """Let a node pass on what it reads."""
    del node.attribute[:], node.input[1:]
    node.op_type = "Identity"


def another_axis(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
    node.attribute[0].i = 0


@pytest.mark.parametrize(
    ("dtype", "kind", "spoil", "operator"),
    [
        (None, "Conv", scale(1), "CONV_2D@0:0"),
        (None, "Clip", leave_out, "CONV_2D@0:0"),
        (None, "Gemm", scale(2), "FULLY_CONNECTED@0:3"),
        (None, "Softmax", another_axis, "SOFTMAX@0:4"),
        ("INT8", "Softmax", another_axis, "SOFTMAX@0:4"),
        ("UINT8", "Softmax", another_axis, "SOFTMAX@0:4"),
    ],
)
def test_the_operator_and_the_node_of_a_fault_are_named(
    dtype: str | None, kind: str, spoil: Spoil, operator: str, interpreter: Interpreter
) -> None:
    source = network(dtype)
    model = convert(source, target="portable")
    node = next(node for node in model.graph.node if node.op_type == kind)
    spoil(model, node)
    steps = compare_layers(source, model.SerializeToString(), interpreter)
    assert [step.operator for step in steps if not step.comparison.verdict.passed] == [operator]
    first = find_divergence(steps)
    assert first is not None
    assert node.output[0] in [output for one in first.nodes for output in one.output]


def test_an_order_of_axes_that_shows_in_a_later_shape_is_named(interpreter: Interpreter) -> None:
    catalogue = load()
    operators, axes = catalogue.find_dialect("tflite").operators, (1, 4, 3, 2)
    content = np.linspace(-1, 1, 24, dtype=np.float32).reshape(axes)
    x, z, s, m = (Value(name, ir.DataType.FLOAT, content) for name in "xzsm")
    c = Value("c", ir.DataType.FLOAT, np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1), True)
    steps = (
        Step(operators["ABS"], (x,), {}, (z,)),
        Step(operators["NEG"], (z,), {}, (s,)),
        Step(operators["ADD"], (s, c), {}, (m,)),
    )
    source = encode(Case("turned", steps), catalogue)
    nodes = [
        onnx.helper.make_node("Abs", ["x"], ["z/Abs"]),
        onnx.helper.make_node("Transpose", ["z/Abs"], ["z"], perm=[1, 0, 2, 3]),
        onnx.helper.make_node("Neg", ["z"], ["s"]),
        onnx.helper.make_node("Add", ["s", "c"], ["m"]),
    ]
    sides = [("x", axes), ("m", None)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in sides]
    graph = onnx.helper.make_graph(nodes, "turned", ends[:1], ends[1:], [numpy_helper.from_array(c.content, "c")])
    opsets = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    first = find_divergence(compare_layers(source, model.SerializeToString(), interpreter))
    assert first is not None
    assert first.operator == "ADD@0:2"
    assert nodes[1] in first.nodes


def test_a_constant_that_is_named_like_a_tensor_does_not_stand_for_it(interpreter: Interpreter) -> None:
    source = network("INT8")
    model = convert(source, target="portable")
    gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
    weights = next(node for node in model.graph.node if node.output[0] == gemm.input[1])
    for time in range(4):
        scale(1)(model, weights)
        model.graph.initializer[-1].name = weights.input[1] = f"s{time}"
    first = find_divergence(compare_layers(source, model.SerializeToString(), interpreter))
    assert first is not None
    assert first.operator == "FULLY_CONNECTED@0:3"
    assert weights.output[0] in [output for one in first.nodes for output in one.output]


@pytest.mark.parametrize("place", [1, 4, 6, 9])
@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_a_wrong_scale_is_named_wherever_it_is(place: int, target: str, interpreter: Interpreter) -> None:
    source = network("INT8")
    model = convert(source, target=target)
    readers = [node for node in model.graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    node = readers[place % len(readers)]
    scale(1)(model, node)
    if compare_models(source, model.SerializeToString(), interpreter=interpreter).passed:
        pytest.skip("the outputs are none the worse for it")
    first = find_divergence(compare_layers(source, model.SerializeToString(), interpreter))
    assert first is not None
    assert node.output[0] in [output for one in first.nodes for output in one.output]


def pooled_16() -> bytes:
    """A pool of 16 bits, which is computed with codes held on another scale, of which sums are exact."""
    catalogue = load()
    operators = catalogue.find_dialect("tflite").operators
    content = np.linspace(-0.9, 0.9, 16, dtype=np.float32).reshape(1, 2, 4, 2)

    def value(name: str, scale: float | None, shape: tuple[int, ...]) -> Value:
        numbers = np.resize(content, shape)
        if scale is None:
            return Value(name, ir.DataType.FLOAT, numbers)
        return Value(name, ir.DataType.INT16, np.rint(numbers / scale).astype(np.int16), False, grid(scale))

    x, y = value("x", None, content.shape), value("y", None, (1, 1, 2, 2))
    codes, pooled = value("codes", 3.046e-5, content.shape), value("pooled", 3.046e-5, (1, 1, 2, 2))
    pool = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    steps = (
        Step(operators["QUANTIZE"], (x,), {}, (codes,)),
        Step(operators["AVERAGE_POOL_2D"], (codes,), pool, (pooled,)),
        Step(operators["DEQUANTIZE"], (pooled,), {}, (y,)),
    )
    return encode(Case("pooled", steps), catalogue)


def test_codes_held_on_another_scale_in_between_raise_no_alarm(interpreter: Interpreter) -> None:
    source = pooled_16()
    model = convert(source)
    assert compare_models(source, model.SerializeToString(), interpreter=interpreter).passed
    steps = compare_layers(source, model.SerializeToString(), interpreter)
    assert [step.comparison.name for step in steps] == ["codes", "pooled", "y"]
    assert find_divergence(steps) is None
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            wrong = onnx.ModelProto()
            wrong.CopyFrom(model)
            scale(1)(wrong, next(one for one in wrong.graph.node if one.output == node.output))
            first = find_divergence(compare_layers(source, wrong.SerializeToString(), interpreter))
            assert first is not None
            assert node.output[0] in [output for one in first.nodes for output in one.output]


def test_what_needs_most_of_what_it_may_be_off_by_is_suspected() -> None:
    tensor, want = Tensor("t", "float32", (2,), (2,)), np.ones(2, np.float32)
    off = [(0.0, 0.0), (0.1, 0.2), (0.3, 0.2), (0.4, 0.3)]
    compared = [compare(tensor, want, want + np.float32(error), Kernels.DEFAULT, spread) for error, spread in off]
    steps = [Compared(f"{place}", comparison) for place, comparison in enumerate(compared)]
    assert find_divergence(steps) is None
    assert find_suspect(steps) is steps[2]
    assert find_suspect(steps[:1]) is None
    codes, known = np.arange(4, dtype=np.int8), Tensor("t", "int8", (4,), (4,), (0.5,), (0,))
    few, many = (compare(known, codes, codes + np.int8([1, end, end, 0]), Kernels.DEFAULT) for end in (0, 1))
    close = [steps[0], Compared("few", few), Compared("many", many)]
    assert find_suspect(close) is close[2]
    assert find_suspect([*close, steps[1]]) is steps[1]


def test_what_is_not_quantized_any_more_is_held_to_real_numbers(interpreter: Interpreter) -> None:
    source = network("INT8")
    model = convert(source, float=True)
    right = compare_models(source, model.SerializeToString(), interpreter=interpreter)
    assert right.passed
    assert right.unquantized
    gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
    weights = next(tensor for tensor in model.graph.initializer if tensor.name == gemm.input[1])
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * np.float32(1.01), weights.name))
    wrong = compare_models(source, model.SerializeToString(), interpreter=interpreter)
    assert not wrong.passed


def test_codes_that_are_meant_stay_codes_beside_real_numbers(
    single: Callable[..., bytes], interpreter: Interpreter
) -> None:
    x = ("INT8", [2, 3], grid(0.05, zero=-3))
    source = single("CAST", {"x": x}, [("INT32", [2, 3])], in_data_type="INT8", out_data_type="INT32")
    result = compare_models(source, convert(source, float=True).SerializeToString(), interpreter=interpreter)
    assert result.passed
    assert result.comparisons[0].differing == 0


@pytest.mark.parametrize(
    ("dtype", "shape", "numbers"),
    [
        (np.int8, (1, 4, 5, 3), Numbers.SAME),
        (np.uint8, (1, 3, 4, 5), Numbers.SHIFTED),
        (np.float32, (3, 4, 5), Numbers.REAL),
        (np.float32, (1, 60), Numbers.REAL),
    ],
)
def test_a_form_gives_back_what_it_takes(dtype: type, shape: tuple[int, ...], numbers: Numbers) -> None:
    tensor = Tensor("t", "int8", (1, 4, 5, 3), (1, 4, 5, 3), (0.5,), (3,))
    array = np.random.default_rng(0).integers(-128, 128, tensor.shape, dtype=np.int8)
    found = list_forms(tensor, array, np.zeros(shape, dtype))
    assert {form.numbers for form in found} == {numbers}
    for form in found:
        held = form.encode(array)
        assert (held.shape, held.dtype) == (shape, np.dtype(dtype))
        np.testing.assert_array_equal(form.decode(held), array)
        assert not form.is_exceeded(held)


@pytest.mark.parametrize(("dtype", "beyond"), [(np.int32, 300), (np.int64, -200), (np.int16, 128)])
def test_integers_beyond_the_codes_are_no_codes(dtype: type, beyond: int) -> None:
    tensor = Tensor("t", "int8", (2,), (2,), (0.5,), (3,))
    codes, value = np.array([5, -128], np.int8), np.array([5, -128], dtype)
    [form] = list_forms(tensor, codes, value)
    assert not form.is_exceeded(value)
    np.testing.assert_array_equal(form.decode(value), codes)
    value[1] = beyond
    assert form.is_exceeded(value)
    assert form.decode(value).tolist() == [5, 127 if beyond > 0 else -128]


def test_a_value_of_other_extents_or_type_has_no_form() -> None:
    tensor = Tensor("t", "float32", (2, 3), (2, 3))
    array = np.zeros((2, 3), np.float32)
    assert list_forms(tensor, array, np.zeros((2, 4), np.float32)) == []
    assert list_forms(tensor, array, np.zeros((2, 3), np.int64)) == []

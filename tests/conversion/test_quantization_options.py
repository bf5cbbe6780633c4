"""What may be asked for of quantized models: a float interface, no quantization, signedness, half precision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner
from nnrewrite.cli import dispatch
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter, Kernels, Runtime, compare_models
from onnx import TensorProto

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
PAIR = {"QuantizeLinear", "DequantizeLinear"}


def grid(scale: float, zero: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))


X, Y = grid(0.05, -3), grid(0.1, 7)


@pytest.fixture
def convolution(single: Callable[..., bytes]) -> bytes:
    """An int8 convolution with weights scaled per channel and a bias."""
    scales = np.array([0.02, 0.03, 0.01, 0.04], np.float32)
    weights = RNG.integers(-127, 128, (4, 3, 3, 2), dtype=np.int8), Quantization(scales, np.zeros(4, np.int64))
    bias = RNG.integers(-500, 500, 4, dtype=np.int32), Quantization(scales * X.scale, np.zeros(4, np.int64))
    x, y = ("INT8", [1, 5, 6, 2], X), ("INT8", [1, 5, 6, 4], Y)
    return single("CONV_2D", {"x": x, "w": weights, "b": bias}, [y], stride_h=1, stride_w=1)


def run(model: onnx.ModelProto, *feeds: np.ndarray) -> list[np.ndarray]:
    runtime = Runtime(model.SerializeToString(), precise=True)
    return [*runtime.evaluate(dict(zip(runtime.inputs, feeds, strict=True))).values()]


def types(model: onnx.ModelProto) -> tuple[list[int], list[int]]:
    ends = model.graph.input, model.graph.output
    return tuple([value.type.tensor_type.elem_type for value in values] for values in ends)  # type: ignore[return-value]


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def codes(shape: tuple[int, ...] = (1, 5, 6, 2)) -> np.ndarray:
    return RNG.integers(-128, 128, shape, dtype=np.int8)


def real(integers: np.ndarray, known: Quantization) -> np.ndarray:
    return ((integers.astype(np.float32) - known.zero_point[0]) * known.scale[0]).astype(np.float32)


def expected(source: bytes, interpreter: Interpreter, *feeds: np.ndarray) -> list[np.ndarray]:
    [arrays] = interpreter.run(source, [list(feeds)], Kernels.DEFAULT)
    return list(arrays)


@pytest.mark.parametrize("target", ["portable", "onnxruntime"])
def test_a_float_interface_quantizes_what_comes_in(convolution: bytes, interpreter: Interpreter, target: str) -> None:
    model = nnrewrite.convert(convolution, float_io=True, target=target)
    assert types(model) == ([TensorProto.FLOAT], [TensorProto.FLOAT])
    x = codes()
    [want], [got] = expected(convolution, interpreter, x), run(model, real(x, X))
    assert np.abs(real(want, Y) - got).max() < 1e-5
    [name] = [value.name for value in nnrewrite.convert(convolution).graph.input]
    assert [value.name for value in model.graph.input] == [name]


@pytest.mark.parametrize("through", [[], ["onnx"], ["onnx", "onnx"]])
def test_a_float_interface_is_put_around_models_of_every_format(
    convolution: bytes, interpreter: Interpreter, tmp_path: Path, through: list[str]
) -> None:
    x, source, result = codes(), convolution, tmp_path / "real.tflite"
    [want] = expected(convolution, interpreter, x)
    for place, to in enumerate(through):
        path = tmp_path / f"{place}.{to}"
        converted = nnrewrite.rewrite(source, to=to, float_io=place > 0)
        converted.save(path)
        source = path.read_bytes()
        [got] = run(onnx.load(path), real(x, X) if place else x)
        np.testing.assert_array_equal(got, real(want, Y) if place else want)
        assert [value.name for value in onnx.load(path).graph.output] == ["output_0"]
        assert types(onnx.load(path)) == ([TensorProto.FLOAT if place else TensorProto.INT8],) * 2
    nnrewrite.rewrite(source, to="tflite", float_io=True).save(result)
    [got] = expected(result.read_bytes(), interpreter, real(x, X))
    np.testing.assert_allclose(got, real(want, Y), atol=1e-6)
    assert {"QUANTIZE", "DEQUANTIZE"} <= {*nnrewrite.rewrite(result).report.source_operators}


@pytest.mark.parametrize("to", ["torch", "keras"])
def test_code_of_a_quantized_model_takes_real_numbers_in_any_case(convolution: bytes, tmp_path: Path, to: str) -> None:
    texts = []
    for place, asked in enumerate((False, True)):
        nnrewrite.rewrite(convolution, to=to, float_io=asked).save(tmp_path / f"{place}")
        texts.append((tmp_path / f"{place}" / "model.py").read_text())
    assert texts[0] == texts[1]


def test_integers_that_stand_for_no_real_numbers_stay_at_a_float_interface() -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    graph = onnx.helper.make_graph(
        [node], "g", [value("x", TensorProto.UINT8, [4])], [value("y", TensorProto.FLOAT, [4])]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    made = nnrewrite.rewrite(model.SerializeToString(), float_io=True).model
    assert types(made) == ([TensorProto.UINT8], [TensorProto.FLOAT])


def test_an_output_that_is_listed_twice_is_renamed_once_at_a_float_interface() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (int8[4] q, int8[4] q)'
        " <float s = {0.5}, int8 z = {3}> { q = QuantizeLinear(x, s, z) }"
    )
    real = nnrewrite.rewrite(made.SerializeToString(), float_io=True).model
    assert [node.output[0] for node in real.graph.node] == ["q/codes", "q"]
    assert types(real) == ([TensorProto.FLOAT], [TensorProto.FLOAT] * 2)


def test_nothing_is_put_around_a_model_that_is_no_longer_quantized(convolution: bytes) -> None:
    plain, both = (nnrewrite.convert(convolution, float=True, float_io=asked) for asked in (False, True))
    assert [node.op_type for node in plain.graph.node] == [node.op_type for node in both.graph.node]


@pytest.mark.parametrize("to", ["onnx", "tflite"])
def test_inputs_of_32_bits_cannot_be_made_real(single: Callable[..., bytes], to: str) -> None:
    source = single("QUANTIZE", {"x": ("INT32", [4], grid(0.5, 0))}, [("INT8", [4], grid(0.25, 0))])
    with pytest.raises(nnrewrite.RewriteError, match="x: real numbers cannot be quantized to INT32"):
        nnrewrite.rewrite(source, to=to, float_io=True)


@pytest.mark.parametrize("opset", [13, 18, 25])
def test_float_leaves_no_quantization(convolution: bytes, interpreter: Interpreter, opset: int) -> None:
    model = nnrewrite.convert(convolution, float=True, opset=opset)
    assert not operators(model) & PAIR
    assert types(model) == ([TensorProto.FLOAT], [TensorProto.FLOAT])
    assert {tensor.data_type for tensor in model.graph.initializer} <= {TensorProto.FLOAT, TensorProto.INT64}
    x = codes()
    [want], [got] = expected(convolution, interpreter, x), run(model, real(x, X))
    inside = (want > -128) & (want < 127)
    assert inside.sum() > 20
    assert np.abs(real(want, Y) - got)[inside].max() <= 0.51 * Y.scale[0]


def test_float_leaves_a_tensorflow_lite_model_without_quantization(
    convolution: bytes, interpreter: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "real.tflite"
    nnrewrite.rewrite(convolution, to="tflite", float=True).save(path)
    x = codes()
    [want], [got] = expected(convolution, interpreter, x), expected(path.read_bytes(), interpreter, real(x, X))
    inside = (want > -128) & (want < 127)
    assert inside.sum() > 20
    assert np.abs(real(want, Y) - got)[inside].max() <= 0.51 * Y.scale[0]
    made = nnrewrite.rewrite(path).report.source_operators
    assert not {*made} & {"QUANTIZE", "DEQUANTIZE"} and made["CONV_2D"] == 1
    found = compare_models(convolution, path.read_bytes(), interpreter=interpreter)
    assert found.passed and found.unquantized


@pytest.mark.parametrize("between", ["QUANTIZE", "DEQUANTIZE"])
def test_float_leaves_no_conversion_in_a_tensorflow_lite_model(
    single: Callable[..., bytes], tmp_path: Path, between: str
) -> None:
    ends = [("INT8", [4], X), ("INT8", [4], Y) if between == "QUANTIZE" else ("FLOAT32", [4])]
    path = tmp_path / "real.tflite"
    nnrewrite.rewrite(single(between, {"x": ends[0]}, [ends[1]]), to="tflite", float=True).save(path)
    assert not {"QUANTIZE", "DEQUANTIZE"} & {*nnrewrite.rewrite(path).report.source_operators}


def test_codes_that_are_meant_stay_codes_of_a_tensorflow_lite_model_without_quantization(
    single: Callable[..., bytes], interpreter: Interpreter, tmp_path: Path
) -> None:
    source = single("CAST", {"x": ("INT8", [4], X)}, [("INT32", [4])], in_data_type="INT8", out_data_type="INT32")
    nnrewrite.rewrite(source, to="tflite", float=True).save(tmp_path / "real.tflite")
    x = np.int8([-128, -3, 5, 127])
    [got] = expected((tmp_path / "real.tflite").read_bytes(), interpreter, real(x, X))
    assert got.tolist() == x.tolist()


def test_float_takes_types_that_the_opset_cannot_quantize_to(single: Callable[..., bytes]) -> None:
    fine = grid(0.001, 0)
    source = single("ADD", {"a": ("INT16", [3], fine), "b": ("INT16", [3], fine)}, [("INT16", [3], fine)])
    with pytest.raises(nnrewrite.RewriteError, match="opset 21"):
        nnrewrite.convert(source, opset=13)
    [got] = run(nnrewrite.convert(source, opset=13, float=True), np.float32([1, 2, 3]), np.float32([4, 5, 6]))
    assert got.tolist() == [5, 7, 9]


def test_float_quantizes_where_integers_are_meant(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    x = ("INT8", [2, 3], X)
    source = single("CAST", {"x": x}, [("INT32", [2, 3])], in_data_type="INT8", out_data_type="INT32")
    integers = codes((2, 3))
    [want] = expected(source, interpreter, integers)
    [got] = run(nnrewrite.convert(source, float=True), real(integers, X))
    np.testing.assert_array_equal(got, want)


def test_float_reads_extents_off_real_numbers(single: Callable[..., bytes]) -> None:
    source = single("SHAPE", {"x": ("INT8", [None, 3], X)}, [("INT32", [2])])
    model = nnrewrite.convert(source, float=True)
    assert not operators(model) & PAIR
    assert run(model, np.zeros((4, 3), np.float32))[0].tolist() == [4, 3]


@pytest.mark.parametrize(
    ("asked", "made"), [(None, TensorProto.UINT8), ("int8", TensorProto.INT8), ("uint8", TensorProto.UINT8)]
)
def test_activations_have_the_signedness_asked_for(
    catalogue: Any, interpreter: Interpreter, asked: str | None, made: int
) -> None:
    source = chain(catalogue)
    model = nnrewrite.convert(source, activations=asked)
    assert types(model) == ([TensorProto.INT8], [TensorProto.INT8])
    zeros = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    written = [zeros[node.input[2]] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert set(written[:-1]) == {made} and written[-1] == TensorProto.INT8
    x = codes((2, 3))
    [got], [want] = run(model, x), expected(source, interpreter, x)
    assert np.abs(got.astype(int) - want).max() <= 1  # the kernel of RELU rounds twice
    np.testing.assert_array_equal(got, run(nnrewrite.convert(source, target="portable"), x)[0])


@pytest.mark.thorough
def test_activations_of_a_portable_model_stay_unless_asked_for(catalogue: Any) -> None:
    source = chain(catalogue)
    zeros = {tensor.data_type for tensor in nnrewrite.convert(source, target="portable").graph.initializer}
    assert TensorProto.UINT8 not in zeros
    asked = nnrewrite.convert(source, target="portable", activations="uint8")
    assert TensorProto.UINT8 in {tensor.data_type for tensor in asked.graph.initializer}


def chain(catalogue: Any) -> bytes:
    """Two quantized operators after each other."""
    import onnx_ir as ir
    from nnrewrite.backends.probe import make_operator_model
    from nnrewrite.backends.tflite_writer import write

    model = make_operator_model(
        catalogue, "LOGISTIC", {"x": ("INT8", [2, 3], X)}, [("INT8", [2, 3], grid(1 / 256, -128))]
    )
    [between] = model.graph.outputs
    node = ir.Node("tflite", "RELU", [between], num_outputs=1, name="relu")
    [result] = node.outputs
    result.type, result.shape, result.name = between.type, between.shape, "result"
    result.meta["quantization"] = grid(0.0117, -100)
    model.graph.append(node)
    model.graph.outputs[0] = result
    return write(model, catalogue)


def test_half_precision_weights_are_kept_where_asked_for(catalogue: Any, interpreter: Interpreter) -> None:
    import onnx_ir as ir
    from nnrewrite.backends.probe import make_operator_model
    from nnrewrite.backends.tflite_writer import write

    weights = RNG.normal(size=(4, 3, 3, 2)).astype(np.float16)
    model = make_operator_model(catalogue, "DEQUANTIZE", {"w": weights}, [("FLOAT32", [4, 3, 3, 2])])
    [w] = model.graph.outputs
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 5, 6, 2]))
    zeros = ir.tensor(np.zeros(4, np.float32), name="b")
    b = ir.Value(name="b", type=x.type, shape=ir.Shape([4]), const_value=zeros)
    model.graph.register_initializer(b)
    node = ir.Node("tflite", "CONV_2D", [x, w, b], num_outputs=1, name="conv")
    node.attributes.add(ir.AttrInt64("stride_h", 1))
    node.attributes.add(ir.AttrInt64("stride_w", 1))
    slopes = RNG.uniform(-1, 2, size=(1, 1, 4)).astype(np.float16)
    a = ir.Value(name="a", type=ir.TensorType(ir.DataType.FLOAT16), shape=ir.Shape([1, 1, 4]))
    a.const_value = ir.tensor(slopes, name="a")
    model.graph.register_initializer(a)
    real = ir.Node("tflite", "DEQUANTIZE", [a], num_outputs=1, name="slopes")
    real.outputs[0].type, real.outputs[0].shape, real.outputs[0].name = x.type, a.shape, "slopes"
    node.outputs[0].type, node.outputs[0].shape, node.outputs[0].name = x.type, ir.Shape([1, 5, 6, 4]), "conv"
    last = ir.Node("tflite", "PRELU", [node.outputs[0], real.outputs[0]], num_outputs=1, name="prelu")
    [y] = last.outputs
    y.type, y.shape, y.name = x.type, ir.Shape([1, 5, 6, 4]), "y"
    model.graph.extend([node, real, last])
    model.graph.inputs.append(x)
    model.graph.outputs[0] = y
    source = write(model, catalogue)
    folded, kept = nnrewrite.convert(source), nnrewrite.convert(source, keep_float16=True)
    assert {tensor.data_type for tensor in folded.graph.initializer} == {TensorProto.FLOAT}
    halves = [tensor for tensor in kept.graph.initializer if tensor.data_type == TensorProto.FLOAT16]
    assert [len(tensor.dims) for tensor in halves] == [4]  # slopes become weights of another convolution
    assert [node.op_type for node in kept.graph.node].count("Transpose") == 2  # of the image, not of the weights
    feed = RNG.normal(size=(1, 5, 6, 2)).astype(np.float32)
    for made in (folded, kept):
        np.testing.assert_allclose(run(made, feed)[0], expected(source, interpreter, feed)[0], atol=1e-4)


@pytest.mark.parametrize("target", ["portable", "onnxruntime"])
@pytest.mark.parametrize(("kind", "zero"), [("INT8", 3), ("INT8", -128), ("UINT8", 131), ("INT16", 0)])
def test_averages_round_halves_as_the_kernels_do(
    single: Callable[..., bytes], interpreter: Interpreter, kind: str, zero: int, target: str
) -> None:
    same, limits = grid(0.0371, zero), np.iinfo(kind.lower())
    for size, padding in ((2, "SAME"), (4, "VALID"), (3, "SAME")):
        extents = [1, 12 - size + 1, 12 - size + 1, 3] if padding == "VALID" else [1, 12, 12, 3]
        window = {"filter_height": size, "filter_width": size, "stride_h": 1, "stride_w": 1, "padding": padding}
        source = single("AVERAGE_POOL_2D", {"x": (kind, [1, 12, 12, 3], same)}, [(kind, extents, same)], **window)
        x = RNG.integers(limits.min, limits.max + 1, (1, 12, 12, 3), dtype=kind.lower())
        [want] = expected(source, interpreter, x)
        np.testing.assert_array_equal(run(nnrewrite.convert(source, target=target), x)[0], want)


@pytest.mark.parametrize(("operator", "left"), [("ADD", {}), ("RESHAPE", {}), ("SUM", {"SUM": 1})])
def test_operators_that_exact_integers_do_not_cover_are_told(
    single: Callable[..., bytes], tmp_path: Path, operator: str, left: dict[str, int]
) -> None:
    others: dict[str, dict[str, Any]] = {
        "ADD": {"y": ("INT8", [2, 3], X)},
        "RESHAPE": {"extents": np.array([3, 2], np.int32)},
        "SUM": {"axes": np.array([1], np.int32)},
    }
    shape = {"ADD": [2, 3], "RESHAPE": [3, 2], "SUM": [2]}[operator]
    source = single(operator, {"x": ("INT8", [2, 3], X), **others[operator]}, [("INT8", shape, X)])
    assert nnrewrite.rewrite(source, exact=True).report.inexact == left
    assert nnrewrite.rewrite(source).report.inexact == {}
    (tmp_path / "m.tflite").write_bytes(source)
    asked = ["--rules", "tflite2onnx", "--exact", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "m.onnx")]
    told = CliRunner().invoke(dispatch.app, asked, prog_name="rewrite")
    assert told.exit_code == 0
    assert ("not exact" in told.output) == bool(left)

"""Inputs of other extents than the file says: shapes by name, and the batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.errors import CallError, UnsupportedError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.resize import RequestedShapes
from nnrewrite.frontends import tflite_reader
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, Kernels, compare_models

from ..engine.expressions.test_tables import value
from ..rules.test_loops import Block

pytestmark = pytest.mark.slow

Single = Callable[..., bytes]
F32 = "FLOAT32"


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def session(source: bytes | Path, **asked: Any) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(nnrewrite.convert(source, **asked).SerializeToString())


def run(source: bytes | Path, x: np.ndarray, **asked: Any) -> np.ndarray:
    runtime = session(source, **asked)
    [y] = runtime.run(None, {runtime.get_inputs()[0].name: x})
    return np.asarray(y)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


@pytest.fixture
def flat(single: Single) -> bytes:
    """A reshape that says the batch in its shape."""
    return single("RESHAPE", {"x": (F32, [1, 2, 3]), "to": ints(1, 6)}, [(F32, [1, 6])])


@pytest.mark.parametrize("batch", [4, "4", "dynamic"])
def test_a_reshape_to_a_constant_shape_takes_another_batch(flat: bytes, batch: int | str) -> None:
    x = noise(4, 2, 3)
    np.testing.assert_array_equal(run(flat, x, batch=batch), x.reshape(4, 6))
    assert session(flat, batch=batch).get_outputs()[0].shape == ["batch" if batch == "dynamic" else 4, 6]


@pytest.mark.parametrize(("batch", "first"), [(4, "4"), ("dynamic", "None")])
def test_what_stays_in_its_format_says_all_extents_that_are_known(
    flat: bytes, catalogue: Catalogue, batch: int | str, first: str
) -> None:
    made = read_bytes(nnrewrite.rewrite(flat, to="tflite", batch=batch).encoded)
    assert str(tflite_reader.read(made, catalogue).graph.outputs[0].shape) == f"[{first},6]"


def test_so_does_one_that_says_it_in_a_row_of_a_table(single: Single) -> None:
    to = np.array([[1, 6]], np.int32)
    source = single("RESHAPE", {"x": (F32, [1, 2, 3]), "to": to}, [(F32, [1, 6])])
    assert run(source, noise(5, 2, 3), batch="dynamic").shape == (5, 6)


@pytest.mark.parametrize("batch", [4, "dynamic"])
def test_an_operator_that_takes_one_sample_at_a_time_is_named(single: Single, batch: int | str) -> None:
    inputs = {"x": (F32, [1, 5, 3]), "m": (F32, [1, 4, 4])}
    source = single("TransformLandmarks", inputs, [(F32, [1, 5, 3])])
    with pytest.raises(nnrewrite.RewriteError, match=r"TransformLandmarks@0:0 forbids .* takes 1 sample at a time"):
        nnrewrite.convert(source, batch=batch)


@pytest.mark.parametrize("batch", [4, "dynamic"])
def test_a_node_that_makes_many_of_one_sample_is_named(single: Single, batch: int | str) -> None:
    source = single("BROADCAST_TO", {"x": (F32, [1, 2]), "to": ints(3, 2)}, [(F32, [3, 2])])
    with pytest.raises(nnrewrite.RewriteError, match=r"BROADCAST_TO@0:0 forbids .*\[3, 2\] of one sample"):
        nnrewrite.convert(source, batch=batch)


@pytest.mark.parametrize("axis", [0, -2])
def test_a_node_that_puts_samples_together_is_named(single: Single, axis: int) -> None:
    source = single("REDUCE_MAX", {"x": (F32, [1, 2]), "axes": ints(axis)}, [(F32, [2])])
    with pytest.raises(nnrewrite.RewriteError, match=r"REDUCE_MAX@0:0 forbids .* puts the samples together"):
        nnrewrite.convert(source, batch=4)
    one_axis = np.array(1, np.int32)
    across = single("REDUCE_MAX", {"x": (F32, [1, 2]), "axes": one_axis}, [(F32, [1])])
    assert run(across, noise(5, 2), batch="dynamic").shape == (5,)


def test_so_does_one_that_says_it_in_an_option(single: Single) -> None:
    source = single("RESHAPE", {"x": (F32, [1, 2, 3])}, [(F32, [1, 6])], new_shape=[1, 6])
    assert run(source, noise(5, 2, 3), batch="dynamic").shape == (5, 6)


def test_a_slice_takes_the_whole_of_a_dynamic_batch(single: Single) -> None:
    source = single("SLICE", {"x": (F32, [1, 4]), "begin": ints(0, 1), "size": ints(1, 2)}, [(F32, [1, 2])])
    x = noise(3, 4)
    np.testing.assert_array_equal(run(source, x, batch="dynamic"), x[:, 1:3])
    np.testing.assert_array_equal(run(source, x, batch=3), x[:, 1:3])


def test_a_node_that_merges_the_batch_is_named(single: Single) -> None:
    source = single("RESHAPE", {"x": (F32, [1, 6]), "to": ints(2, 3)}, [(F32, [2, 3])])
    with pytest.raises(nnrewrite.RewriteError, match=r"RESHAPE@0:0 forbids .*\[2, 3\]"):
        nnrewrite.convert(source, batch=4)


def test_a_node_that_keeps_the_batch_of_a_constant_is_named(single: Single) -> None:
    inputs = {"x": (F32, [1, 2]), "c": np.ones((1, 1), np.float32)}
    source = single("CONCATENATION", inputs, [(F32, [1, 3])], axis=1)
    for batch in (4, "dynamic"):
        with pytest.raises(nnrewrite.RewriteError, match=r"CONCATENATION.0.* forbids"):
            nnrewrite.convert(source, batch=batch)


def test_an_input_of_another_shape_is_what_the_interpreter_resizes_to(
    single: Single, interpreter: Interpreter, models_folder: Path
) -> None:
    pool = single(
        "AVERAGE_POOL_2D",
        {"x": (F32, [1, 6, 6, 2])},
        [(F32, [1, 3, 3, 2])],
        padding="SAME",
        stride_w=2,
        stride_h=2,
        filter_width=3,
        filter_height=3,
    )
    x = noise(2, 9, 5, 2)
    [[wanted]] = interpreter.run(pool, [[x]], Kernels.DEFAULT)
    found = run(pool, x, input_shape="x=2,9,5,2")
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    network = next(models_folder.rglob("mnist_cnn_fp32.tflite"))
    shape = session(network).get_inputs()[0].shape
    x = noise(3, *(extent for extent in shape[1:]))
    [[wanted]] = interpreter.run(network, [[x]], Kernels.DEFAULT)
    for batch in (3, "dynamic"):
        np.testing.assert_allclose(run(network, x, batch=batch), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"input_shape": "x"}, "is not an input with its shape"),
        ({"input_shape": "x=1,a"}, "is not an input with its shape"),
        ({"input_shape": ["x=1,2", "x=1,3"]}, "two shapes are asked for"),
        ({"input_shape": "z=1,2,3"}, "has no input z, only x"),
        ({"input_shape": "x=1,2"}, "has 3 dimensions, 2 are asked for"),
        ({"batch": "many"}, "is not a batch"),
        ({"batch": 0}, "has no elements: give 1 or more"),
        ({"batch": 1 << 63}, "the batch is above 9223372036854775807"),
        ({"batch": "9" * 5000}, "the batch is above 9223372036854775807"),
        ({"input_shape": f"x={1 << 63},2,3"}, "has an extent above 9223372036854775807"),
    ],
)
def test_what_cannot_be_asked_for_is_told(flat: bytes, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(CallError, match=message):
        nnrewrite.convert(flat, **asked)


def test_a_model_without_a_batch_has_none_to_change(single: Single) -> None:
    source = single("ABS", {"x": (F32, [])}, [(F32, [])])
    with pytest.raises(CallError, match="no input of the model has a batch"):
        nnrewrite.convert(source, batch=2)


def test_names_of_inputs_may_hold_an_equals_sign() -> None:
    assert RequestedShapes.parse(["a=b=1,2"]).shapes == {"a=b": (1, 2)}


def test_a_first_extent_that_has_a_name_is_a_batch() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> net (float[n, s] a, float[m, s] b, float[n] c) => (float[n] y)
      { d = Exp(a)  e = Neg(b)  y = Relu(c) }"""
    made = nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), batch=3).model
    firsts = [one.type.tensor_type.shape.dim[0] for one in made.graph.input]
    assert [first.dim_param or first.dim_value for first in firsts] == [3, "m", 3]


@pytest.mark.parametrize("target", [".onnx", ".tflite"])
@pytest.mark.parametrize("opset", [9, 18])
def test_shapes_that_a_model_computes_follow_another_batch(tmp_path: Path, opset: int, target: str) -> None:
    axes = (
        "a = Unsqueeze <axes = [0]> (n)"
        if opset < 13
        else "zero = Constant <value_ints = [0]> ()  a = Unsqueeze(n, zero)"
    )
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> net (float[1, 4, 3] x) => (float[1, 12] y) {{
      s = Shape(x)  first = Constant <value = int64 {{0}}> ()  n = Gather(s, first)  {axes}
      rest = Constant <value = int64[1] {{-1}}> ()  shape = Concat <axis = 0> (a, rest)
      t = Transpose <perm = [0, 2, 1]> (x)  z = Reshape(t, shape)  y = Mul(z, z) }}"""
    source = tmp_path / "net.onnx"
    source.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    made = tmp_path / f"made{target}"
    nnrewrite.rewrite(source, to=target, batch=2).save(made)
    found = compare_models(source, made)
    assert found.passed and found.comparisons[0].shape == (2, 12)


def dense_over_three_axes(catalogue: Catalogue) -> bytes:
    """A layer over the last of three axes as TensorFlow writes it for any number of samples: by extents of a run."""
    b = Block(value("x", "FLOAT", [None, 7, 8]))
    (x,) = b.inputs
    weights, bias = b.floats(4, 8), b.floats(4)
    extents = b.op("SHAPE", [x], [3], "INT32", out_type="INT32")
    samples = b.op("GATHER", [extents, b.constant([0, 1])], [2], "INT32", axis=0)
    rows = b.op("REDUCE_PROD", [samples, b.constant([0])], [1], "INT32", keep_dims=True)
    flat = b.op("RESHAPE", [x, b.op("CONCATENATION", [rows, b.constant([8])], [2], "INT32", axis=0)], [None, None])
    made = b.op("FULLY_CONNECTED", [flat, weights, bias], [None, 4])
    behind = b.op("CONCATENATION", [samples, b.constant([4])], [3], "INT32", axis=0)
    y = b.op("RESHAPE", [made, behind], [None, 7, 4])
    return write(ir.Model(b.graph([y], "main"), ir_version=10), catalogue)


def test_extents_that_a_model_asks_for_are_followed(catalogue: Catalogue, interpreter: Interpreter) -> None:
    source = dense_over_three_axes(catalogue)
    made = nnrewrite.rewrite(source)
    assert made.report.target_operators == {"MatMul": 1, "Add": 1}
    runtime = onnxruntime.InferenceSession(made.model.SerializeToString())
    for batch in (1, 3):
        x = noise(batch, 7, 8)
        [[expected]] = interpreter.run(source, [[x]], Kernels.OPTIMIZED)
        np.testing.assert_allclose(runtime.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


def test_extents_are_not_asked_of_what_is_between_codes() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (uint8[n, 2, h, 4] x) => (uint8[n, 2, h, 4] y, float[n, h] z)
      <float s = {0.5}, uint8 o = {3}, int64[2] at = {0, 2}, float one = {1}>
      { a = DequantizeLinear(x, s, o)  b = MaxPool<kernel_shape = [1, 1]>(a)  y = QuantizeLinear(b, s, o)
        e = Shape(b)  f = Gather(e, at)  z = Expand(one, f) }"""
    made = nnrewrite.convert(onnx.parser.parse_model(text).SerializeToString(), to="onnx")
    makers = {output: node.op_type for node in made.graph.node for output in node.output}
    asked = [node.input[0] for node in made.graph.node if node.op_type == "Shape"]
    assert asked
    assert not {makers.get(name) for name in asked} & {"MaxPool"}


@pytest.mark.parametrize("to", ["onnx", "tflite"])
@pytest.mark.parametrize("layer", ["Conv", "ConvTranspose"])
def test_channels_that_no_kernel_is_for_are_refused(layer: str, to: str) -> None:
    kernels = ", ".join(["1"] * 27)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,5,5] x) => (float[1,3,5,5] y)'
        f" <float[3,3,1,3] w = {{{kernels}}}> {{ y = {layer} <pads = [0, 1, 0, 1]> (x, w) }}"
    )
    assert nnrewrite.rewrite(model.SerializeToString(), to=to)
    with pytest.raises(UnsupportedError, match="x has 4 channels, and the kernels of w are for 3"):
        nnrewrite.rewrite(model.SerializeToString(), to=to, input_shape="x=1,4,5,5")


def test_a_model_that_is_refused_for_any_number_of_samples_is_told_where_one_would_do() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> net (float[n, 1, 4] x) => (float[k] y) {
        s = Squeeze(x) a = Constant<value_ints = [0]>() e = Constant<value_ints = [2]>() y = Slice(s, a, e, a) }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    with pytest.raises(UnsupportedError, match="help: --batch 1 converts it"):
        nnrewrite.rewrite(model, to="tflite")
    assert nnrewrite.rewrite(model, to="tflite", batch=1).encoded is not None
    other = onnx.parser.parse_model(text.replace("[n, 1", "[2, m"))
    with pytest.raises(UnsupportedError) as refused:
        nnrewrite.rewrite(other.SerializeToString(), to="tflite")
    assert "--batch" not in f"{refused.value}"

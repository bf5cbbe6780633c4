"""Quantized ONNX models as models of real numbers."""

from __future__ import annotations

from collections import Counter

import nnrewrite
import numpy as np
import onnx
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.verify import compare_models
from onnx import parser

pytestmark = pytest.mark.slow

GRID = "float s = {0.02}, float t = {0.01}, uint8 z = {0}, uint8 m = {128}, int8 n = {0}"
CODES = ", ".join(f"{code}" for code in range(-60, 60, 10))
WEIGHTS = f"int8[4,3] w = {{{CODES}}}, float[3] each = {{0.01, 0.02, 0.005}}, int8[3] none = {{0, 0, 0}}"


def make(body: str, inputs: str = "float[2,4] x", output: str = "float[2,3] y") -> bytes:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({output}) <{GRID}, {WEIGHTS}> {{ {body} }}'
    return bytes(parser.parse_model(text).SerializeToString())


def read(model: bytes) -> onnx.ModelProto:
    return nnrewrite.rewrite(model, to="onnx", float=True).model


def count(model: bytes) -> Counter[str]:
    return Counter(node.op_type for node in read(model).graph.node)


LAYER = (
    "q = QuantizeLinear(x, s, m) d = DequantizeLinear(q, s, m) v = DequantizeLinear<axis = 1>(w, each, none)"
    " p = MatMul(d, v) a = QuantizeLinear(p, t, z) y = DequantizeLinear(a, t, z)"
)


def test_weights_are_the_numbers_of_their_codes_and_grids_cut_off_at_their_ends() -> None:
    found = read(make(LAYER))
    assert Counter(node.op_type for node in found.graph.node) == {"Clip": 2, "MatMul": 1}
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in found.graph.initializer}
    [weights] = [one for one in stored.values() if one.shape == (4, 3)]
    wanted = np.arange(-60, 60, 10, dtype=np.float32).reshape(4, 3) * np.array([0.01, 0.02, 0.005], np.float32)
    np.testing.assert_array_equal(weights, wanted)
    ends = sorted(float(one) for one in stored.values() if one.shape == ())
    np.testing.assert_allclose(ends, [-2.56, 0.0, 2.54, 2.55], rtol=1e-6)


@pytest.mark.parametrize("opset", [13, 17, 20])
def test_models_of_real_numbers_are_written_in_opsets_before_those_of_the_rules_that_make_them(opset: int) -> None:
    model = onnx.load_from_string(make(LAYER))
    model.metadata_props.add(key="author", value="somebody")
    found = nnrewrite.convert(model.SerializeToString(), to="onnx", float=True, opset=opset)
    assert [one.version for one in found.opset_import if not one.domain] == [opset]
    assert Counter(node.op_type for node in found.graph.node) == {"Clip": 2, "MatMul": 1}
    assert ("author", "somebody") in [(one.key, one.value) for one in found.metadata_props]
    assert compare_models(model.SerializeToString(), found.SerializeToString()).passed


def test_what_rounding_to_codes_changes_is_no_difference() -> None:
    assert compare_models(make(LAYER), read(make(LAYER)).SerializeToString()).passed
    lite = nnrewrite.rewrite(make(LAYER), to="tflite", float=True).encoded
    assert isinstance(lite, Encoded) and compare_models(make(LAYER), lite.encode()).passed


def test_more_than_rounding_changes_is_a_difference() -> None:
    layer = LAYER.replace("t, z)", "t, m)")
    other = layer.replace("DequantizeLinear<axis = 1>(w, each, none)", "DequantizeLinear(w, s, n)")
    assert not compare_models(make(layer), read(make(other)).SerializeToString()).passed


def test_tensorflow_lite_has_no_codes_left() -> None:
    found = nnrewrite.rewrite(make(LAYER), to="tflite", float=True).report.target_operators
    assert "FULLY_CONNECTED" in found and not {"QUANTIZE", "DEQUANTIZE"} & set(found)


def test_what_ends_within_the_grid_anyway_is_not_cut_off() -> None:
    body = "a = Softmax(x) q = QuantizeLinear(a, t, z) y = DequantizeLinear(q, t, z)"
    assert count(make(body, output="float[2,4] y")) == {"Softmax": 1}


def test_codes_that_are_cut_off_and_moved_are_numbers_that_are() -> None:
    body = (
        "q = QuantizeLinear(x, t, n) c = Clip(q, low, high) u = Transpose<perm = [1, 0]>(c)"
        " d = DequantizeLinear(u, t, n) y = Relu(d)"
    )
    model = onnx.load_model_from_string(make(body, output="float[4,2] y"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(-8, np.int8), "low"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(7, np.int8), "high"))
    found = count(bytes(model.SerializeToString()))
    assert "Clip" in found and not {"QuantizeLinear", "DequantizeLinear"} & set(found)


def test_operators_over_codes_are_those_over_numbers() -> None:
    body = "q = QuantizeLinear(x, s, m) p = QLinearMatMul(q, s, m, w, each, none, t, z) y = DequantizeLinear(p, t, z)"
    assert count(make(body)) == {"Clip": 2, "MatMul": 1}


@pytest.mark.parametrize("scale", ["k = Mul(r, s)", "k = Identity(r)"])
def test_products_by_the_range_of_a_run_are_those_of_numbers(scale: str) -> None:
    body = f"q, r, o = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, o, n) f = Cast<to = 1>(i) {scale} y = Mul(f, k)"
    assert "MatMulInteger" not in count(make(body)) and "DynamicQuantizeLinear" not in count(make(body))


def test_inputs_and_outputs_that_are_codes_become_numbers() -> None:
    body = (
        "d = DequantizeLinear(x, s, m) v = DequantizeLinear<axis = 1>(w, each, none) p = MatMul(d, v)"
        " y = QuantizeLinear(p, t, z)"
    )
    model = make(body, "uint8[2,4] x", "uint8[2,3] y")
    found = read(model)
    kinds = {value.type.tensor_type.elem_type for value in (*found.graph.input, *found.graph.output)}
    assert kinds == {onnx.TensorProto.FLOAT}
    assert compare_models(model, found.SerializeToString()).passed


def test_one_axis_may_be_counted_from_either_end() -> None:
    body = "q = QuantizeLinear<axis = 1>(x, each, none) y = DequantizeLinear<axis = -1>(q, each, none)"
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(count(make(body, "float[2,3] x")))


def test_joined_codes_that_become_numbers_of_another_type_than_their_scale_stay() -> None:
    body = "q = QuantizeLinear(x, s, m) c = Concat<axis = 1>(q, q) y = DequantizeLinear<output_dtype = 10>(c, s, m)"
    model = make(body, output="float16[2,8] y").replace(b"\x10\x15", b"\x10\x17")
    [output] = read(model).graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16


def test_places_of_the_largest_codes_stay_beside_the_largest_numbers() -> None:
    body = "q = QuantizeLinear(x, s, m) p, at = MaxPool<kernel_shape = [2]>(q) y = DequantizeLinear(p, s, m)"
    model = make(body, "float[1,2,4] x", "float[1,2,3] y, int64[1,2,3] at")
    assert compare_models(model, read(model).SerializeToString()).passed


@pytest.mark.parametrize(
    ("moved", "output"),
    [
        ("Split<axis = 1, num_outputs = 2>(q)", "float[1,2,2,4] y"),
        ("Expand(q, twice)", "float[2,4,2,4] y"),
        ("DepthToSpace<blocksize = 2>(q)", "float[1,1,4,8] y"),
        ('Resize<mode = "nearest">(q, , larger)', "float[1,4,4,8] y"),
        ("Pad(q, around, n)", "float[1,4,4,4] y"),
        ("Pad(q, around)", "float[1,4,4,4] y"),
    ],
)
def test_codes_that_are_moved_between_kernels_of_codes_are_numbers(moved: str, output: str) -> None:
    """As models whose operators take codes have them, where no Dequantize and Quantize stand around each."""
    results = "u, rest" if moved.startswith("Split") else "u"
    model = onnx.load_model_from_string(
        make(
            f"q = QuantizeLinear(x, s, n) {results} = {moved} d = DequantizeLinear(u, s, n) y = Relu(d)",
            "float[1,4,2,4] x",
            output,
        )
    )
    extents = {"twice": np.array([2, 4, 2, 4]), "around": np.array([0, 0, 1, 0, 0, 0, 1, 0])}
    extents["larger"] = np.array([1, 1, 2, 2], np.float32)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(one, name) for name, one in extents.items())
    source = bytes(model.SerializeToString())
    found = read(source)
    assert not {"QuantizeLinear", "DequantizeLinear"} & {node.op_type for node in found.graph.node}
    assert compare_models(source, found.SerializeToString()).passed

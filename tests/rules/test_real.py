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

"""What rounding changes in an ONNX model is no difference of the model that is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from nnrewrite.verify.judgement import SENSITIVE
from nnrewrite.verify.perturbation import perturb_inputs, perturb_model
from nnrewrite.verify.verification import compare_models
from nnrewrite.verify.verification_table import summarize
from onnx import helper, numpy_helper, parser

pytestmark = pytest.mark.slow

WEIGHTS = np.full(16, 2.0**20, np.float32)


def make(body: str) -> bytes:
    """A model of 16 numbers that are rounded after a product with weights, where many lie between two integers."""
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[4, 16] x) => (float[4, 16] y) '
        f"<float half = {{0.5}}, float near = {{1.0000001}}> {{ p = Mul(x, w) {body} }}"
    )
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    return bytes(model.SerializeToString())


ORIGINAL = make("r = Round(p) y = Sub(r, p)")


def test_a_number_between_two_integers_may_be_rounded_to_either() -> None:
    found = compare_models(ORIGINAL, make("q = Mul(p, near) r = Round(q) y = Sub(r, p)"))
    assert found.passed and SENSITIVE in found.remarks
    assert summarize(found).startswith("outputs agree within what rounding changes in the original")


def test_more_than_rounding_changes_is_a_difference() -> None:
    found = compare_models(
        ORIGINAL, make("q = Round(p) r = Sub(q, p) s = Add(half, half) t = Add(s, s) u = Add(t, s) y = Add(r, u)")
    )
    assert not found.passed and SENSITIVE not in found.remarks


def test_weights_are_off_in_their_last_places_and_other_constants_are_not() -> None:
    perturbed = perturb_model(ORIGINAL, 0)
    assert perturbed is not None
    stored = {one.name: numpy_helper.to_array(one) for one in onnx.load_model_from_string(perturbed).graph.initializer}
    assert stored["half"] == 0.5
    assert np.all(stored["w"] != WEIGHTS) and np.allclose(stored["w"], WEIGHTS, rtol=2.0**-21)


def test_weights_of_half_precision_are_off_in_their_last_places() -> None:
    model = onnx.load_model_from_string(ORIGINAL)
    del model.graph.initializer[:]
    model.graph.initializer.append(numpy_helper.from_array((WEIGHTS / 2**10).astype(np.float16), "w"))
    perturbed = perturb_model(model.SerializeToString(), 0)
    assert perturbed is not None
    [stored] = (numpy_helper.to_array(one) for one in onnx.load_model_from_string(perturbed).graph.initializer)
    assert stored.dtype == np.float16
    assert np.all(stored != WEIGHTS / 2**10) and np.allclose(stored, WEIGHTS / 2**10, rtol=2.0**-8)


def test_weights_in_another_file_are_off_as_well(tmp_path: Path) -> None:
    model = onnx.load_model_from_string(ORIGINAL)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    perturbed = perturb_model(str(tmp_path / "m.onnx"), 0)
    assert perturbed is not None
    stored = {one.name: numpy_helper.to_array(one) for one in onnx.load_model_from_string(perturbed).graph.initializer}
    assert np.all(stored["w"] != WEIGHTS)


def test_large_weights_in_another_file_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.load_model_from_string(ORIGINAL)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    monkeypatch.setattr("nnrewrite.verify.perturbation._LARGEST", 8)
    assert perturb_model(str(tmp_path / "m.onnx"), 0) is None


@pytest.mark.parametrize(("dtype", "changed"), [(np.float32, True), (np.float16, True), (np.int64, False)])
def test_real_inputs_are_off_in_their_last_places(dtype: type, changed: bool) -> None:
    array = np.arange(1, 9).astype(dtype)
    [[found]] = perturb_inputs([[array]], 0)
    assert found.dtype == dtype and bool(np.all(found != array)) is changed


def perturb(text: str) -> tuple[onnx.GraphProto, dict[str, np.ndarray]]:
    """The graph of a model in ONNX's own notation once it is perturbed, and its constants."""
    perturbed = perturb_model(parser.parse_model(text).SerializeToString(), 0)
    assert perturbed is not None
    graph = onnx.load_model_from_string(perturbed).graph
    return graph, {one.name: numpy_helper.to_array(one) for one in graph.initializer}


def test_numbers_are_off_by_a_part_of_a_step_where_they_become_codes_and_the_grid_is_not() -> None:
    changed, stored = perturb(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[4] x) => (float[4] y) <float s = {0.5}> '
        "{ q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }"
    )
    scale, grid = (stored[node.input[1]] for node in changed.node)
    assert grid == 0.5 and scale != 0.5 and abs(scale / 0.5 - 1) < 1e-3


def test_scales_of_operators_over_codes_are_off_and_those_of_their_results_are_not() -> None:
    changed, stored = perturb(
        '<ir_version: 10, opset_import: ["" : 20]> g (uint8[2,2] x) => (float[2,2] y)'
        " <float s = {0.5}, uint8 z = {3}, uint8[2,2] w = {1, 2, 3, 4}>"
        " { q = QLinearMatMul(x, s, z, w, s, z, s, z) y = DequantizeLinear(q, s, z) }"
    )
    product, view = changed.node
    scales = [float(stored[product.input[place]]) for place in (1, 4, 6)]
    assert 0.5 not in scales and stored[view.input[1]] == 0.5
    assert [product.input[place] for place in (2, 5, 7)] == ["z"] * 3


def test_scales_that_nodes_are_the_constants_of_are_off_as_well() -> None:
    changed, stored = perturb(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[4] x) => (float[4] y)'
        " { s = Constant <value = float {0.5}> () q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }"
    )
    _, quantize, dequantize = changed.node
    assert abs(float(stored[quantize.input[1]]) / 0.5 - 1) < 1e-3 and dequantize.input[1] == "s"


def test_scales_beside_codes_that_a_kernel_rounds_for_are_off_by_more() -> None:
    changed, stored = perturb(
        '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]> g (float[2,4] x) => (float[2,2] y)'
        " <float s = {0.5}, int8 z = {0}, int8[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
        " { y = com.microsoft.DynamicQuantizeMatMul(x, w, s, z) }"
    )
    assert 1e-2 < abs(float(stored[changed.node[0].input[2]]) / 0.5 - 1) < 2e-2


def test_scales_beside_numbers_that_no_kernel_rounds_are_off_by_a_small_part_of_a_step() -> None:
    """As those of MatMulNBits, whose weights alone are codes: a scale that is wrong by a hundredth is a difference."""
    draw = np.random.default_rng(0)
    scales = draw.uniform(0.05, 0.1, 4).astype(np.float32)
    constants = {"w": draw.integers(0, 255, (4, 1, 16), np.uint8), "s": scales, "z": np.full((4, 1), 136, np.uint8)}

    def write(constants: dict[str, np.ndarray[Any, Any]]) -> bytes:
        node = helper.make_node(
            "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=32, N=4, bits=4, block_size=32
        )
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 32])
        y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 4])
        stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph([node], "g", [x], [y], stored)
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())

    other = {**constants, "s": scales * np.array([1.01, 1, 1, 1], np.float32)}
    assert compare_models(write(constants), write(constants)).passed
    assert not compare_models(write(constants), write(other)).passed

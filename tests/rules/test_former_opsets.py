"""Models of older opsets as TensorFlow Lite and as ONNX: what operators meant, and how operands were left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nnrewrite
import onnx
import onnx.parser
import pytest
from nnrewrite import ModelError
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import compare_models

from .text_models import write_model

pytestmark = pytest.mark.slow

#: opset, outputs and nodes
MODELS = {
    "Softmax of rows, extents unknown": (11, "y", "y = Softmax<axis = 1>(x)"),
    "Softmax of one axis, extents unknown": (11, "y", "y = Softmax<axis = 3>(x)"),
    "LogSoftmax by default": (9, "y", "y = LogSoftmax(x)"),
    "Hardmax of rows": (12, "y", "y = Hardmax<axis = 2>(x)"),
    "Softmax of half precision": (11, "y", "h = Cast<to = 10>(x) y = Softmax<axis = 1>(h)"),
    "one factor for a group of channels": (
        18,
        "y",
        """s = Constant<value_floats = [1.0, 2.0, 3.0]>() b = Constant<value_floats = [0.5, 1.0, 1.5]>()
        d = Concat<axis = 1>(x, x) y = GroupNormalization<num_groups = 3, epsilon = 0.1>(d, s, b)""",
    ),
    "scales without elements beside sizes": (
        13,
        "y",
        """e = Constant<value = float[0] {}>() z = Constant<value = int64[4] {2, 3, 8, 8}>()
        p = Constant<value_ints = [2, 3, 4, 4]>()
        v = Expand(x, p) y = Resize<mode = "nearest">(v, e, e, z)""",
    ),
    "images of any size that grow": (
        9,
        "y",
        's = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() y = Upsample<mode = "linear">(x, s)',
    ),
    "what later opsets do anyway": (
        7,
        "y",
        """f = Constant<value = float[3] {1.0, 2.0, 3.0}>() y = BatchNormalization<spatial = 1>(x, f, f, f, f)""",
    ),
    "values that are put to places": (
        10,
        "y",
        """t = Constant<value = int64[1, 3, 1, 4] {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}>()
        u = Constant<value = float[1, 3, 1, 4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}>()
        y = Scatter<axis = 2>(x, t, u)""",
    ),
}


@pytest.mark.parametrize("form", ["tflite", "onnx"])
@pytest.mark.parametrize(("opset", "outputs", "nodes"), MODELS.values(), ids=MODELS)
def test_operators_compute_what_they_meant(opset: int, outputs: str, nodes: str, form: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.onnx", opset, outputs, nodes)
    made = nnrewrite.rewrite(path, to="tflite") if form == "tflite" else nnrewrite.rewrite(path, opset=max(opset, 21))
    verdict = compare_models(f"{path}", read_bytes(made.encoded), samples=2)
    assert verdict.passed, verdict.differences


def test_no_axes_are_all_axes(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.onnx", 11, "y", "y = ReduceMax<keepdims = 0>(x)")
    model = onnx.load(path)
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("axes", [], attr_type=onnx.AttributeProto.INTS))
    onnx.save(model, path)
    for made in (nnrewrite.rewrite(path, to="tflite"), nnrewrite.rewrite(path, opset=20)):
        assert compare_models(f"{path}", read_bytes(made.encoded)).passed


def test_operands_were_broadcast_along_an_axis_before_opset_7(tmp_path: Path) -> None:
    nodes = "b = Constant<value = float[3] {1.0, 2.0, 3.0}>() y = Add<broadcast = 1, axis = 1>(x, b)"
    old = write_model(tmp_path / "model.onnx", 6, "y", nodes)  # which ONNX Runtime does not run
    new = write_model(
        tmp_path / "new.onnx", 7, "y", "b = Constant<value = float[3, 1, 1] {1.0, 2.0, 3.0}>() y = Add(x, b)"
    )
    for made in (nnrewrite.rewrite(old, to="tflite"), nnrewrite.rewrite(old)):
        assert compare_models(f"{new}", read_bytes(made.encoded)).passed


def test_what_cannot_be_brought_to_the_first_opset_is_said_in_one_line(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.onnx", 5, "y", "y = Reshape(x, s)")
    with pytest.raises(ModelError, match="the model is of opset 5, which cannot be brought to opset 7: "):
        nnrewrite.rewrite(path, to="tflite")


def test_a_graph_without_a_name_gets_one_and_an_input_may_be_an_output(tmp_path: Path) -> None:
    model = onnx.load(write_model(tmp_path / "model.onnx", 16, "x", "", "float[2, 3] x"))
    model.graph.ClearField("name")
    onnx.save(model, tmp_path / "nameless.onnx")
    for made in (
        nnrewrite.rewrite(tmp_path / "nameless.onnx", to="tflite"),
        nnrewrite.rewrite(tmp_path / "nameless.onnx"),
    ):
        assert compare_models(f"{tmp_path / 'model.onnx'}", read_bytes(made.encoded)).passed


def test_slices_and_results_of_a_scan_may_be_along_any_axis(tmp_path: Path) -> None:
    nodes = """
        z = Constant<value = float[2, 3] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}>()
        last, y = Scan<num_scan_inputs = 1, scan_input_axes = [2], scan_output_axes = [1], body = body
          (float[2, 3] before, float[2, 3] row) => (float[2, 3] after, float[2, 3] out) {
            after = Add(before, row)
            joined = Concat<axis = 1>(before, row)
            q, k = Split<axis = 1, num_outputs = 2>(joined)
            s = Softmax<axis = 1>(q)
            out = Mul(s, k)
          }>(z, x)"""
    path = write_model(tmp_path / "scan.onnx", 21, "last y", nodes, "float[2, 3, n] x")
    made = nnrewrite.rewrite(path, to="tflite")
    verdict = compare_models(f"{path}", read_bytes(made.encoded), samples=2)
    assert verdict.passed, verdict.differences
    assert "WHILE" in made.report.target_operators


@pytest.mark.parametrize("results", ["y", "y, mean, variance"])
@pytest.mark.parametrize("options", [{}, {"opset": 18}, {"to": "tflite"}], ids=str)
@pytest.mark.parametrize("opset", [8, 13])
def test_a_normalization_of_five_results_is_one_in_training(
    opset: int, options: dict[str, Any], results: str, tmp_path: Path
) -> None:
    declared = ", ".join(f"float[{'2, 4, 6' if name == 'y' else '4'}] {name}" for name in results.split(", "))
    text = f"""<ir_version: 6, opset_import: ["": {opset}]> net (float[2, 3, 6] x) => ({declared})
      <float[4, 3, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}}, float[4] s = {{1, 2, 3, 4}},
       float[4] b = {{1, 0, 1, 0}}, float[4] m = {{1, 1, 2, 2}}, float[4] v = {{2, 2, 1, 1}}>
      {{ c = Conv(x, w) y, mean, variance, p, q = BatchNormalization<momentum = 0.7>(c, s, b, m, v) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    made = tmp_path / f"made.{options.get('to', 'onnx')}"
    nnrewrite.rewrite(model, **options).save(made)
    assert compare_models(model, made.read_bytes()).passed

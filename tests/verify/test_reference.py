"""ONNX models as originals."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.verify import compare_models
from onnx import TensorProto, helper


def model(operator: str, shape: list[int | str]) -> bytes:
    """A model of one operator over one tensor."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "net", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(made.SerializeToString())


def test_a_model_agrees_with_itself_at_sizes_that_are_free() -> None:
    found = compare_models(model("Relu", ["batch", 3, "size"]), model("Relu", ["batch", 3, "size"]))
    assert found.passed and found.comparisons[0].shape == (1, 3, 16)


def test_sizes_that_the_result_fixes_are_tried_first() -> None:
    for batch, tried in (("batch", 1), (5, 5)):
        found = compare_models(model("Relu", ["batch", 3, "size"]), model("Relu", [batch, 3, 7]))
        assert found.passed and found.comparisons[0].shape == (tried, 3, 7)


def test_another_function_is_different() -> None:
    assert not compare_models(model("Relu", [4, 4]), model("Abs", [4, 4])).passed


def test_inputs_of_types_that_numpy_has_not_are_named() -> None:
    small = onnx.ModelProto.FromString(model("Identity", [4]))
    for value in (*small.graph.input, *small.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT8E5M2
    small.opset_import[0].version = 19
    with pytest.raises(VerificationError, match=r"input x is a tensor\(float8e5m2\): such inputs cannot be drawn"):
        compare_models(small.SerializeToString(), small.SerializeToString())


def test_an_original_that_does_not_load_is_no_verdict() -> None:
    broken = onnx.ModelProto.FromString(model("Relu", [4]))
    broken.graph.node[0].op_type = "Rilu"
    with pytest.raises(VerificationError, match="refuses"):
        compare_models(broken.SerializeToString(), model("Relu", [4]))


@pytest.mark.slow
def test_a_result_of_tensorflow_lite_is_run_by_the_interpreter(tmp_path: Path) -> None:
    rewrite(model("Relu", [1, 4]), to="tflite").save(tmp_path / "net.tflite")
    assert compare_models(model("Relu", [1, 4]), tmp_path / "net.tflite").passed
    assert not compare_models(model("Abs", [1, 4]), tmp_path / "net.tflite").passed


def test_what_neither_runtime_runs_is_told(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(b"PK\x03\x04")
    with pytest.raises(VerificationError, match="neither an ONNX nor a TensorFlow Lite model"):
        compare_models(tmp_path / "net.pt2", model("Relu", [4]))


def _write_sum(batch: int | str) -> bytes:
    text = f"""<ir_version: 8, opset_import: ["": 18]> net (float[{batch}, n] x, float[n] w) => (float[{batch}, n] y)
      {{ y = Add(x, w) }}"""
    return onnx.parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("batch", [1, 2, "batch"])
def test_a_model_that_was_given_another_batch_is_compared_with_several_runs(batch: int | str) -> None:
    found = compare_models(_write_sum(batch), _write_sum(4))
    assert (found.passed, found.comparisons[0].shape) == (True, (4, 16))


def test_a_batch_that_is_not_several_of_the_own_is_not_run() -> None:
    with pytest.raises(VerificationError, match="invalid dimensions"):
        compare_models(_write_sum(3), _write_sum(4))

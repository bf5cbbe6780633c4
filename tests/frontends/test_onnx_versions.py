"""ONNX models in another opset: what is asked for, and what the rules of a target read."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from nnrewrite import convert, rewrite
from nnrewrite.engine.base.errors import CallError, ModelError


def softmax(opset: int) -> bytes:
    """A product with weights and a Softmax, which meant other axes before opset 13."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]>
        net (float[2, 3, 40] x) => (float[2, 3, 40] y) {{ t = MatMul(x, w)  y = Softmax<axis = 1>(t) }}"""
    )
    weights = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model.SerializeToString()


def run(model: bytes) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal((2, 3, 40)).astype(np.float32)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["x"]
    return np.asarray(session.run(["y"], {"x": x})[0])


@pytest.mark.parametrize(("own", "asked"), [(9, 13), (11, 21), (13, 18), (18, 13)])
def test_a_model_is_written_in_the_opset_that_is_asked_for(own: int, asked: int) -> None:
    source = softmax(own)
    model = convert(source, opset=asked)
    assert [entry.version for entry in model.opset_import] == [asked]
    np.testing.assert_allclose(run(model.SerializeToString()), run(source), rtol=1e-5)


def test_a_target_brings_older_models_to_the_first_opset_that_its_rules_read() -> None:
    source = softmax(9)
    conversion = rewrite(source, target="onnxruntime")
    assert conversion.report.opset == 13
    assert "the model was of 9" in conversion.report.opset_reason
    np.testing.assert_allclose(run(conversion.model.SerializeToString()), run(source), rtol=1e-5)
    assert rewrite(softmax(14), target="onnxruntime").report.opset == 14


def test_what_an_opset_cannot_say_is_refused_in_a_line_that_names_both() -> None:
    text = """<ir_version: 9, opset_import: ["": 20]> net (float[2] x) => (float[2] y) { y = Gelu(x) }"""
    source = onnx.parser.parse_model(text).SerializeToString()
    with pytest.raises(ModelError, match=r"of opset 20, and onnx cannot make it one of opset 13: .*Gelu") as caught:
        rewrite(source, opset=13)
    assert "\n" not in f"{caught.value}"
    with pytest.raises(CallError, match="opset 99 is none of"):
        rewrite(source, opset=99)

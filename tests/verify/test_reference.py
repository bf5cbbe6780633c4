"""ONNX models as originals."""

from __future__ import annotations

import onnx
import pytest
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


def test_another_function_is_different() -> None:
    assert not compare_models(model("Relu", [4, 4]), model("Abs", [4, 4])).passed


def test_an_original_that_does_not_load_is_no_verdict() -> None:
    broken = onnx.ModelProto.FromString(model("Relu", [4]))
    broken.graph.node[0].op_type = "Rilu"
    with pytest.raises(VerificationError, match="refuses"):
        compare_models(broken.SerializeToString(), model("Relu", [4]))

"""Random ONNX models of loops, branches and lists compute the same, optimized and in TensorFlow Lite."""

from __future__ import annotations

import nnrewrite
import onnx.parser
import pytest
from hypothesis import HealthCheck, given, settings
from nnrewrite.verify import Interpreter, compare_models

from .random_loops import programs


@settings(max_examples=12, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(programs())
@pytest.mark.thorough
def test_loops_branches_and_lists_compute_the_same(interpreter: Interpreter, text: str) -> None:
    source = onnx.parser.parse_model(text).SerializeToString()
    optimized, converted = nnrewrite.rewrite(source), nnrewrite.rewrite(source, to="tflite")
    assert compare_models(source, optimized.model.SerializeToString()).passed
    assert compare_models(source, converted.encoded.encode(), interpreter=interpreter).passed

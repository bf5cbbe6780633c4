"""Branches of rules that no draw comes upon: types of results that the file decides, extents that it does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnxruntime
import pytest
from nnrewrite.verify import Interpreter

Single = Callable[..., bytes]
F32 = "FLOAT32"


def agree(interpreter: Interpreter, source: bytes, *inputs: Any) -> None:
    """The interpreter and the converted model yield the same type, shape and, but for a last digit, elements."""
    session = onnxruntime.InferenceSession(nnrewrite.convert(source).SerializeToString())
    names = [one.name for one in session.get_inputs()]
    ours = session.run(None, dict(zip(names, inputs, strict=True)))
    theirs = interpreter.run(source, [inputs])[0]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "result", "shape"),
    [
        (np.array([1.5, -0.0, -3.25e-20, np.inf], np.float32), "INT32", [4]),
        (np.array([1069547520, -2147483648, 1, -8388608], np.int32), F32, [4]),
        (np.array([[1, -2], [-32768, 300]], np.int16), "INT32", [2]),
        (np.array([-2, 70000], np.int32), "INT16", [2, 2]),
        (np.array([1.5, -2.0], np.float32), "UINT8", [2, 4]),
    ],
    ids=["float to integer", "integer to float", "to wider", "to narrower", "float to bytes"],
)
def test_bits_are_taken_for_another_type(
    interpreter: Interpreter, single: Single, x: np.ndarray, result: str, shape: list[int]
) -> None:
    kind = {"float32": F32}.get(x.dtype.name, x.dtype.name.upper())
    agree(interpreter, single("BITCAST", {"x": (kind, list(x.shape))}, [(result, shape)]), x)


@pytest.mark.parametrize("axes", [[], [1]])
def test_no_axes_reduce_nothing(interpreter: Interpreter, single: Single, axes: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shape = [2] if axes else [2, 3]
    for operator in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        agree(interpreter, single(operator, {"x": (F32, [2, 3]), "axes": np.array(axes, np.int32)}, [(F32, shape)]), x)


def test_integers_multiply_to_wider_ones(interpreter: Interpreter, single: Single) -> None:
    a = np.array([[[-128, 127], [3, -4]]], np.int8)
    source = single("BATCH_MATMUL", {"a": ("INT8", [1, 2, 2]), "b": ("INT8", [1, 2, 2])}, [("INT32", [1, 2, 2])])
    agree(interpreter, source, a, a)


def test_extents_that_the_file_does_not_tell_are_padded_for_at_run_time(
    interpreter: Interpreter, single: Single
) -> None:
    w = np.random.default_rng(0).uniform(-1, 1, (3, 3, 2, 2)).astype(np.float32)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 2, "dilation_w_factor": 2}
    b = np.zeros(3, np.float32)
    source = single("CONV_2D", {"x": (F32, [1, None, None, 2]), "w": w, "b": b}, [(F32, [1, None, None, 3])], **options)
    model = nnrewrite.convert(source)
    assert "Pad" in {node.op_type for node in model.graph.node}
    x = np.random.default_rng(1).uniform(-1, 1, (1, 7, 6, 2)).astype(np.float32)
    agree(interpreter, source, x)

"""Operators of TensorFlow Lite that stand for several nodes of ONNX models, and windows that reach beyond images."""

from __future__ import annotations

import itertools
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnxruntime
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, compare_models
from onnx.reference import ReferenceEvaluator

from .text_models import add_weights, write_model

IMAGE, LINES = "float[1, 3, 5, 6] x", "float[1, 2, 1] x"
TANH = """k = Constant<value_float = 0.044715>() s = Constant<value_float = 0.7978845608>()
o = Constant<value_float = 1.0>() h = Constant<value_float = 0.5>() q = Mul(x, x) c = Mul(x, q)
a = Mul(k, c) b = Add(x, a) d = Mul(s, b) t = Tanh(d) e = Add(o, t) m = Mul(x, e) y = Mul(h, m)"""
ERF = """r = Constant<value_float = 0.70710678>() o = Constant<value_float = 1.0>() h = Constant<value_float = 0.5>()
a = Mul(x, r) b = Erf(a) e = Add(b, o) m = Mul(x, e) y = Mul(m, h)"""
SCALED = """f = Constant<value_float = 1.5>() g = Constant<value_float = 0.25>()
{before} u = Conv<pads = [1, 1, 1, 1]{more}>({read}, w) m = Mul(f, u) y = Add(m, g)"""


def write(path: Path, given: str, nodes: str, shape: tuple[int, ...] = ()) -> Path:
    """A model with random weights of a shape, where it reads any."""
    made = write_model(path, 18, "y", nodes, given)
    add_weights(made, {"w": shape})
    return made


@pytest.mark.parametrize(
    ("given", "nodes", "shape", "kept"),
    [
        (IMAGE, TANH, (), ["GELU"]),
        (IMAGE, ERF, (), ["GELU"]),
        (IMAGE, SCALED.format(before="", more="", read="x"), (4, 3, 3, 3), ["CONV_2D"]),
        (IMAGE, SCALED.format(before="v = Mul(x, f)", more="", read="v"), (4, 3, 3, 3), ["CONV_2D"]),
        (IMAGE, SCALED.format(before="v = Mul(x, f)", more=", group = 3", read="v"), (3, 1, 3, 3),
         ["DEPTHWISE_CONV_2D"]),
        (LINES, "y = MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", (), []),
        (LINES, "y = AveragePool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)", (), []),
    ],
    ids=["gelu by tanh", "gelu by a factor", "one number behind", "one number before", "before each channel",
         "a window beyond the end", "a mean beyond the end"],
)  # fmt: skip
def test_what_is_written_out_is_one_operator(
    given: str, nodes: str, shape: tuple[int, ...], kept: list[str], tmp_path: Path, interpreter: Interpreter
) -> None:
    path = write(tmp_path / "model.onnx", given, nodes, shape)
    conversion = nnrewrite.rewrite(path, to="tflite")
    found = dict(conversion.report.target_operators)
    others = {"TRANSPOSE", "PAD", "RESHAPE", *kept}
    assert all(found.get(name) == 1 for name in kept), found
    assert not kept or set(found) <= others, found
    verdict = compare_models(path, read_bytes(conversion.encoded), interpreter=interpreter)
    assert verdict.passed, verdict.differences


@pytest.mark.parametrize(("same", "holes"), list(itertools.product(["SAME_UPPER", "SAME_LOWER"], [1, 2])))
def test_same_of_windows_with_holes_is_pads_that_the_runtime_takes(same: str, holes: int, tmp_path: Path) -> None:
    nodes = f'y = Conv<auto_pad = "{same}", dilations = [{holes}, 1]>(x, w)'
    path = write(tmp_path / "model.onnx", IMAGE, nodes, (4, 3, 3, 2))
    x = np.random.default_rng(0).standard_normal((1, 3, 5, 6), np.float32)
    (wanted,) = ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})
    made = onnxruntime.InferenceSession(read_bytes(nnrewrite.rewrite(path).encoded))
    np.testing.assert_allclose(made.run(None, {"x": x})[0], wanted, atol=1e-5)


HEADS = "float[b, 4, s, 8] q, float[b, {0}, s, 8] k, float[b, {0}, s, 8] v"


@pytest.mark.parametrize(
    ("given", "nodes", "kept"),
    [
        (HEADS.format(4), "y = Attention(q, k, v)", {"MUL": 1, "BATCH_MATMUL": 2, "SOFTMAX": 1}),
        (
            "float[2, 3, 8] q, float[2, 5, 8] k, float[2, 5, 6] v",
            "y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v)",
            {"MUL": 1, "BATCH_MATMUL": 2, "SOFTMAX": 1, "RESHAPE": 4, "TRANSPOSE": 4},
        ),
        # No rule takes heads that share, so that the function's body is written, whose Softmax has a kernel.
        (HEADS.format(2).replace("b", "2").replace("s", "3"), "y = Attention(q, k, v)", {"SOFTMAX": 1}),
    ],
    ids=["of heads", "of rows", "of heads that share"],
)
def test_attention_has_the_operators_of_its_formula(
    given: str, nodes: str, kept: dict[str, int], tmp_path: Path, interpreter: Interpreter
) -> None:
    path = write_model(tmp_path / "attention.onnx", 23, "y", nodes, given)
    conversion = nnrewrite.rewrite(path, to="tflite")
    found = conversion.report.target_operators
    assert len(kept) == 1 or found == kept
    assert all(found[name] == count for name, count in kept.items())
    assert compare_models(path, read_bytes(conversion.encoded), interpreter=interpreter).passed


def test_keys_turned_between_views_are_taken_in_by_the_product(tmp_path: Path, interpreter: Interpreter) -> None:
    nodes = """rows = Constant<value_ints = [8, 5, 6]>() all = Constant<value_ints = [2, 4, 6, 5]>()
    v = Reshape(k, rows) t = Transpose<perm = [0, 2, 1]>(v) u = Reshape(t, all) y = MatMul(q, u)"""
    path = write_model(tmp_path / "keys.onnx", 18, "y", nodes, "float[2, 4, 3, 6] q, float[2, 4, 5, 6] k")
    conversion = nnrewrite.rewrite(path, to="tflite")
    assert conversion.report.target_operators == {"BATCH_MATMUL": 1}
    assert compare_models(path, read_bytes(conversion.encoded), interpreter=interpreter).passed


@pytest.mark.parametrize("turned", [False, True])
def test_heads_that_are_shared_are_not_repeated(turned: bool, tmp_path: Path, interpreter: Interpreter) -> None:
    nodes = """axis = Constant<value_ints = [2]>() each = Constant<value_ints = [2, 2, 3, 5, 6]>()
    all = Constant<value_ints = [2, 6, 5, 6]>() u = Unsqueeze(k, axis) e = Expand(u, each) r = Reshape(e, all)"""
    nodes += " t = Transpose<perm = [0, 1, 3, 2]>(r) y = MatMul(q, t)" if turned else " y = MatMul(q, r)"
    given = f"float[2, 6, 4, {6 if turned else 5}] q, float[2, 2, 5, 6] k"
    path = write_model(tmp_path / "heads.onnx", 18, "y", nodes, given)
    conversion = nnrewrite.rewrite(path, to="tflite")
    assert conversion.report.target_operators == {"BATCH_MATMUL": 1, "RESHAPE": 2}
    assert compare_models(path, read_bytes(conversion.encoded), interpreter=interpreter).passed


def test_heads_that_are_shared_are_not_repeated_whatever_is_free(tmp_path: Path) -> None:
    nodes = """zero = Constant<value_ints = [0]>() two = Constant<value_ints = [2]>() six = Constant<value_ints = [6]>()
    three = Constant<value_ints = [3]>() size = Shape(k) b = Gather(size, zero) s = Gather(size, two)
    eight = Constant<value_ints = [8]>() each = Concat<axis = 0>(b, two, three, s, eight)
    all = Concat<axis = 0>(b, six, s, eight) u = Unsqueeze(k, two) e = Expand(u, each) r = Reshape(e, all)
    t = Transpose<perm = [0, 1, 3, 2]>(r) y = MatMul(q, t)"""
    path = write_model(tmp_path / "heads.onnx", 18, "y", nodes, "float[b, 6, l, 8] q, float[b, 2, s, 8] k")
    conversion = nnrewrite.rewrite(path, rules=("onnx2onnx",))
    assert conversion.report.target_operators == {"Reshape": 2, "Transpose": 1, "MatMul": 1}
    session = onnxruntime.InferenceSession(conversion.model.SerializeToString())
    original = onnxruntime.InferenceSession(f"{path}")
    random = np.random.default_rng(0)
    for b, rows, columns in ((1, 1, 5), (2, 4, 3)):
        given = {"q": (b, 6, rows, 8), "k": (b, 2, columns, 8)}
        arrays = {name: random.standard_normal(shape, np.float32) for name, shape in given.items()}
        assert np.allclose(session.run(None, arrays)[0], original.run(None, arrays)[0], atol=1e-5)

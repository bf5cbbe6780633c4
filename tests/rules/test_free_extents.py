"""TensorFlow Lite of ONNX models whose extents only a run tells, loops that make such among them."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, compare_models

from .text_models import write_model

#: inputs, outputs and nodes
MODELS = {
    "frequencies of signals of any number and length": (
        "float[b, n] x",
        "y z",
        """p = Constant<value_ints = [0, 8, 0, 8]>() v = Pad(x, p) s = Constant<value_int = 2>()
        w = Constant<value_floats = [0.5, 1.0, 1.5, 1.0]>() y = STFT(v, s, w)
        a = Constant<value_ints = [-1]>() z = ReduceSumSquare<keepdims = 0>(y, a)""",
    ),
    "ends that are repeated and cut off": (
        "float[b, n, 3] x",
        "y z",
        """p = Constant<value_ints = [0, 2, 1, 1, 3, 0]>() y = Pad<mode = "edge">(x, p)
        q = Constant<value_ints = [0, 1, 0, 0, -1, 0]>() z = Pad<mode = "edge">(x, q)""",
    ),
    "an axis that is counted and left out": (
        "float[b, n, 3] x",
        "y",
        """s = Shape<start = 1, end = 2>(x) c = Squeeze(s) z = Constant<value_int = 0>() o = Constant<value_int = 1>()
        r = Range(z, c, o) y = Cast<to = 1>(r)""",
    ),
    "the last and the last but one of any number": (
        "float[b, n, 3] x",
        "y z",
        """l = Constant<value_int = -1>() y = Gather<axis = 1>(x, l)
        i = Constant<value_ints = [-2, 0]>() z = Gather<axis = 1>(x, i)""",
    ),
    "places that are computed, from the end of any number": (
        "float[b, n, 3] x",
        "y z w",
        """m = Constant<value_floats = [-1.0, 1.0]>() s = ReduceSum<keepdims = 0>(x) t = Sub(s, s) v = Add(m, t)
        i = Cast<to = 7>(v) y = Gather<axis = 1>(x, i) p = Constant<value_ints = [2, 1]>() j = Reshape(i, p)
        a = Transpose<perm = [1, 0, 2]>(x) z = GatherND(a, j) r = Transpose<perm = [0, 2, 1]>(x)
        q = Constant<value_ints = [1, 1, 2]>() g = Reshape(i, q) c = Shape<start = 0, end = 1>(x)
        k = Constant<value_ints = [3, 2]>() h = Concat<axis = 0>(c, k) e = Expand(g, h)
        w = GatherElements<axis = 2>(r, e)""",
    ),
    "some of a sequence of any length": (
        "float[b, n] x",
        "y z",
        """q = SplitToSequence<axis = 1, keepdims = 0>(x) o = Constant<value_int = 1>() l = Constant<value_int = -1>()
        y = SequenceAt(q, o) r = SplitToSequence<axis = 0>(x) z = SequenceAt(r, l)""",
    ),
    "ones along a line": ("float[b, n] x", "y", "y = EyeLike<k = 1>(x)"),
    "the class of the largest of any number": ("float[b, n] x", "y", "y = Hardmax(x)"),
    "channels beside extents that are broken": (
        "float[b, 8, h, w] x",
        "y z",
        """b = Shape<start = 0, end = 1>(x) h = Shape<start = 2, end = 3>(x) w = Shape<start = 3, end = 4>(x)
        m = Constant<value_ints = [-1]>() o = Constant<value_ints = [1]>() k = Constant<value_ints = [8]>()
        hm = Add(h, m) hk = Div(hm, k) ho = Add(hk, o) wm = Add(w, m) wk = Div(wm, k) wo = Add(wk, o)
        s = Concat<axis = 0>(b, k, ho, wo) v = MaxPool<kernel_shape = [1, 1], strides = [8, 8]>(x)
        u = Reshape<allowzero = 1>(v, s) y, z = Split<axis = 1, num_outputs = 2>(u)""",
    ),
    "rows that a loop collects": (
        "float[2, 3] x",
        "y z",
        """n = Constant<value = int64 {3}>()
        y, z = Loop<body = b (int64 i, bool c, float[2, 3] v) => (bool d, float[2, 3] w, float[2, 3] u) {
          d = Identity(c) w = Tanh(v) u = Add(w, v) }>(n, , x)""",
    ),
    "rows of half precision that a loop collects": (
        "float16[n, 3] x, bool f",
        "y z a",
        """n = Constant<value = int64 {3}>()
        y, z = Loop<body = b (int64 i, bool c, float16[n, 3] v) => (bool d, float16[n, 3] w, float16[n, 3] u) {
          d = Identity(c) w = Tanh(v) u = Add(w, v) }>(n, , x)
        a = If<then_branch = t () => (float16[n, 3] p) { p = Exp(x) },
               else_branch = e () => (float16[n, 3] q) { q = Neg(x) }>(f)""",
    ),
    "a scan that collects rows of any length, forwards and backwards": (
        "float[b, t, n] x",
        "last y z",
        """a = Constant<value_ints = [1]>() f = ReduceSum<keepdims = 0>(x, a)
        last, y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1, 0],
          scan_output_directions = [0, 1], body = body (float[b, n] before, float[b, n] row) =>
          (float[b, n] after, float[b, n] sum, float[b, n] gate) {
            after = Add(before, row) sum = Identity(after) gate = Sigmoid(row)
          }>(f, x)""",
    ),
}


@pytest.mark.parametrize(("inputs", "outputs", "nodes"), MODELS.values(), ids=MODELS)
def test_models_of_any_extents_compute_what_they_did(
    inputs: str, outputs: str, nodes: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    path = write_model(tmp_path / "model.onnx", 21, outputs, nodes, inputs)
    made = read_bytes(nnrewrite.rewrite(path, to="tflite").encoded)
    verdict = compare_models(f"{path}", made, samples=2, interpreter=interpreter)
    assert verdict.passed, verdict.differences

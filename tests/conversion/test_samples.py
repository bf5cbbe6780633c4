"""ONNX models of one sample that are given a batch compute for each sample what they computed for one."""

from __future__ import annotations

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

ATTENTION = """
  t = Transpose <perm = [1, 0, 2]> (x)
  s = Constant <value_ints = [5, 4, 2]> ()
  h = Reshape(t, s)
  q = Transpose <perm = [1, 0, 2]> (h)
  k = Transpose <perm = [1, 2, 0]> (h)
  p = MatMul(q, k)
  a = Softmax <axis = -1> (p)
  v = MatMul(a, q)
  b = Transpose <perm = [1, 0, 2]> (v)
  r = Constant <value_ints = [5, 8]> ()
  c = Reshape(b, r)
  d = MatMul(c, w)
  u = Constant <value_ints = [5, 1, 8]> ()
  e = Reshape(d, u)
  y = Transpose <perm = [1, 0, 2]> (e)
"""
WINDOWS = """
  s = Constant <value_ints = [1, 2, 2, 2, 2, 3]> ()
  a = Reshape(x, s)
  b = Transpose <perm = [0, 1, 3, 2, 4, 5]> (a)
  r = Constant <value_ints = [4, 4, 3]> ()
  c = Reshape(b, r)
  m = ReduceMean <axes = [1], keepdims = 1> (c)
  d = Sub(c, m)
  e = Reshape(d, s)
  f = Transpose <perm = [0, 1, 3, 2, 4, 5]> (e)
  u = Constant <value_ints = [1, 4, 4, 3]> ()
  y = Reshape(f, u)
"""
TOKEN = """
  s = Constant <value_ints = [1, 1, 8]> ()
  o = Constant <value_floats = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> ()
  t = Reshape(o, s)
  n = Expand(t, s)
  j = Concat <axis = 1> (n, x)
  f = Flatten <axis = 1> (j)
  r = Constant <value_ints = [1, 6, 8]> ()
  y = Reshape(f, r)
"""
PART = """
  b = Constant <value_ints = [0, 1, 0]> ()
  e = Constant <value_ints = [1, 4, 8]> ()
  c = Slice(x, b, e)
  s = Constant <value_ints = [1, 3, 8]> ()
  y = Expand(c, s)
"""
SIZES = """
  z = Constant <value_ints = [1, 3, 8, 8]> ()
  t = Transpose <perm = [0, 3, 1, 2]> (x)
  y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (t, , , z)
"""
_WAVE = [f"{(number * 7 % 11 - 5) / 10}" for number in range(48)]

#: a state that each sample begins with
RECURRENT = f"""
  w1 = Constant <value = float[1, 6, 8] {{{", ".join(_WAVE)}}}> ()
  r1 = Constant <value = float[1, 6, 2] {{{", ".join(_WAVE[:12])}}}> ()
  h = Constant <value = float[1, 1, 2] {{0.5, -0.25}}> ()
  o = Constant <value_ints = [1]> ()
  t = Transpose <perm = [1, 0, 2]> (x)
  a, b = GRU <hidden_size = 2> (t, w1, r1, , , h)
  s = Squeeze(a, o)
  y = Transpose <perm = [1, 0, 2]> (s)
"""


#: rows that each sample chooses from one table
ROWS = """
  f = Constant <value_float = 7.9> ()
  a = Abs(x)
  m = Mul(a, f)
  i = Cast <to = 7> (m)
  y = Gather <axis = 0> (w, i)
"""
#: places that are the same in each sample
PLACES = """
  i = Constant <value = int64[1, 2, 8] {0, 1, 2, 3, 4, 0, 1, 2, 4, 3, 2, 1, 0, 4, 3, 0}> ()
  u = Constant <value = float[1, 2, 8] {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}> ()
  s = ScatterElements <axis = 1> (x, i, u)
  y = GatherElements <axis = 1> (s, i)
"""
#: inference tells nothing of what a function yields
GROUPS = """
  o = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> ()
  z = Constant <value_floats = [0.5, 0.25, 0.0, 1.0]> ()
  g = GroupNormalization <num_groups = 2> (x, o, z)
  s = Constant <value_ints = [1, 4, 6]> ()
  r = Reshape(g, s)
  t = Transpose <perm = [0, 2, 1]> (r)
  u = Constant <value_ints = [1, 3, 2, 4]> ()
  y = Reshape(t, u)
"""
_PLACES = f"""
  f = Constant <value_ints = [-1]> ()
  i = Constant <value = int64[1, 8, 5] {{{", ".join(map(str, range(40)))}}}> ()
  a = Reshape(x, f)
"""

#: a view by strides, as an exporter writes it, inside a model and as its result
STRIDES = f"{_PLACES} b = Gather <axis = 0> (a, i) c = Transpose <perm = [0, 2, 1]> (b) y = MatMul(c, w)"
STRIDES_LAST = f"{_PLACES} y = Gather <axis = 0> (a, i)"


def write(nodes: str, *shape: int) -> bytes:
    """A model of a graph from `x` to `y`, with a matrix `w`."""
    opset = 21 if "GroupNormalization" in nodes else 17
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> net (float[{", ".join(map(str, shape))}] x) => (float[] y)
      <float[8, 8] w = {{{", ".join(f"{one:.3f}" for one in noise(64))}}}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    return bytes(model.SerializeToString())


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def run(model: bytes, x: np.ndarray) -> np.ndarray:
    return np.asarray(onnxruntime.InferenceSession(model).run(None, {"x": x})[0])


@pytest.mark.parametrize("batch", [3, "dynamic"])
@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (ATTENTION, (1, 5, 8)),
        (WINDOWS, (1, 4, 4, 3)),
        (TOKEN, (1, 5, 8)),
        (PART, (1, 5, 8)),
        (SIZES, (1, 4, 4, 3)),
        (RECURRENT, (1, 5, 8)),
        (STRIDES, (1, 5, 8)),
        (STRIDES_LAST, (1, 5, 8)),
        (ROWS, (1, 5)),
        (GROUPS, (1, 4, 3, 2)),
        (PLACES, (1, 5, 8)),
    ],
    ids=[
        "heads behind the sequence",
        "windows",
        "a token for each sample",
        "a part of all axes",
        "sizes",
        "a state",
        "strides",
        "strides last",
        "rows of a table",
        "groups of channels",
        "places of elements",
    ],
)
def test_each_sample_is_computed_as_one_was(nodes: str, shape: tuple[int, ...], batch: int | str) -> None:
    source = write(nodes, *shape)
    made = nnrewrite.rewrite(source, to="onnx", batch=batch).model.SerializeToString()
    x = noise(3, *shape[1:])
    wanted = np.concatenate([run(source, x[number : number + 1]) for number in range(3)])
    np.testing.assert_allclose(run(made, x), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            RECURRENT.replace("Transpose <perm = [1, 0, 2]> (x)", "Reshape(x, k)").replace(
                "t =", "k = Constant <value_ints = [5, 1, 8]> () t ="
            ),
            "works along the samples",
        ),
        ("z = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 0> (x, z)", "puts the samples together"),
        ("z = Constant <value_int = 0> () y = Gather <axis = 0> (x, z)", "works along the samples"),
        (
            "o = Constant <value_ints = [0]> () e = Constant <value_ints = [1]> () s = Constant <value_ints = [-1]> ()"
            " y = Slice(x, o, e, o, s)",
            "takes a part of the samples",
        ),
        ("s = Constant <value_ints = [5, 8]> () h = Reshape(x, s) t = Transpose(h) y = MatMul(h, t)", "forbids"),
        ("s = Constant <value_ints = [40]> () h = Reshape(x, s) y = Softmax <axis = 0> (h)", "works along the samples"),
        ("s = Constant <value_ints = [3, 5, 8]> () y = Expand(x, s)", "repeats the samples"),
        (
            "s = Constant <value_ints = [8, 5, 1]> () h = Reshape(x, s) t = Transpose <perm = [2, 1, 0]> (x)"
            " y = Concat <axis = 1> (h, t)",
            "forbids",
        ),
    ],
)
def test_what_mixes_samples_is_named(nodes: str, message: str) -> None:
    with pytest.raises(nnrewrite.RewriteError, match=message):
        nnrewrite.rewrite(write(nodes, 1, 5, 8), to="onnx", batch=2)


def test_an_unnamed_free_extent_is_a_batch() -> None:
    model = onnx.ModelProto.FromString(write("y = Relu(x)", 1, 8))
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    made = nnrewrite.rewrite(model.SerializeToString(), to="onnx", batch=2).model
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_the_search_for_places_ends() -> None:
    turns = "".join(
        f"s{n} = Constant <value_ints = [1, 1, 1, 4, 2]> () a{n} = Reshape({'x' if not n else f'b{n - 1}'}, s{n})"
        f" b{n} = Relu(a{n}) "
        for n in range(40)
    )
    source = write(f"{turns} z = Constant <value_ints = [0, 1, 2, 3, 4]> () y = ReduceSum(b39, z)", 1, 8)
    with pytest.raises(nnrewrite.RewriteError, match="puts the samples together"):
        nnrewrite.rewrite(source, to="onnx", batch=2)

"""TensorFlow Lite of ONNX models over images whose sizes only a run tells: odd ones and even ones, from one file."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx.parser
import onnxruntime
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, compare_models

from .text_models import write_model

pytestmark = pytest.mark.slow

HOW, HALF, MORE = "coordinate_transformation_mode", "[1.0, 1.0, 0.5, 0.5]", "[1.0, 1.0, 1.5, 1.25]"
#: the sizes of another image, one and a half times as many rows
OTHER = """sx = Shape(x) f = Constant<value_ints = [2, 2, 3, 2]>() t = Constant<value_ints = [2, 2, 2, 2]>()
  m = Mul(sx, f) s = Div(m, t)"""


def resize(words: str, scales: str | None = None) -> str:
    """The nodes that resize an image by factors, or to the sizes of another."""
    if scales is None:
        return f"{OTHER} y = Resize<{words}>(x, , , s)"
    return f"k = Constant<value_floats = {scales}>() y = Resize<{words}>(x, , k)"


def pool(operator: str, words: str) -> str:
    """The node of a pool over windows that are two pixels apart."""
    return f"y = {operator}<strides = [2, 2], {words}>(x)"


MODELS = {
    "halved along lines": resize('mode = "linear"', HALF),
    "halved, the nearest": resize(f'mode = "nearest", {HOW} = "asymmetric", nearest_mode = "floor"', HALF),
    "by broken factors": resize(f'mode = "linear", {HOW} = "pytorch_half_pixel"', MORE),
    "by broken factors, corner to corner": resize(f'mode = "linear", {HOW} = "align_corners"', MORE),
    "by broken factors, the nearest": resize('mode = "nearest", nearest_mode = "round_prefer_floor"', MORE),
    "to a single row by PyTorch's rule": f"""n = Shape<end = 2>(x) t = Constant<value_ints = [1, 2]>()
        s = Concat<axis = 0>(n, t) y = Resize<mode = "linear", {HOW} = "pytorch_half_pixel">(x, , , s)""",
    "along curves": resize('mode = "cubic"'),
    "along curves, nothing outside": resize('mode = "cubic", exclude_outside = 1, cubic_coeff_a = -0.5', MORE),
    "symmetric": resize(f'mode = "linear", {HOW} = "half_pixel_symmetric"', MORE),
    "greatest, beyond the end": pool("MaxPool", "kernel_shape = [3, 2], ceil_mode = 1"),
    "greatest, beyond pads": pool("MaxPool", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1"),
    "means without pads": pool("AveragePool", "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"),
    "means with pads": pool("AveragePool", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1"),
    "means beyond the end": pool("AveragePool", "kernel_shape = [3, 2], ceil_mode = 1"),
    "means with pads, beyond the end": pool(
        "AveragePool", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1, ceil_mode = 1"
    ),
    "pools of volumes": """a = Constant<value_ints = [1]>() v = Unsqueeze(x, a)
        u = MaxPool<kernel_shape = [2, 3, 2], strides = [1, 2, 2], ceil_mode = 1>(v)
        w = AveragePool<kernel_shape = [2, 3, 3], pads = [0, 1, 1, 1, 1, 1]>(u) y = Squeeze(w, a)""",
    "what lies at the other end": 'p = Constant<value_ints = [0, 0, 1, 2, 0, 0, 3, 0]>() y = Pad<mode = "wrap">(x, p)',
    "half of what is below a line": "k = Constant<value_int = 1>() y = Trilu<upper = 0>(x, k)",
    "sums over one side": 'y = Einsum<equation = "bchw,bcjw->bhj">(x, x)',
    "windows put back": """p = Constant<value_ints = [0, 3, -1]>() c = Reshape(x, p) s = Shape<start = 2>(x)
        t = Constant<value_ints = [0, 2]>() e = Add(s, t) k = Constant<value_ints = [1, 3]>() y = Col2Im(c, e, k)""",
    "norms of groups": """c = Concat<axis = 1>(x, x) p = Constant<value_ints = [0, 3, -1]>() v = Reshape(c, p)
        o = Constant<value_floats = [1.0, 1.0, 1.0]>() z = Constant<value_floats = [0.0, 0.0, 0.0]>()
        i = InstanceNormalization(v, o, z) s = Shape(c) y = Reshape(i, s)""",
    "rows by rows": """l = Constant<value_ints = [3]>() r = ReduceMax<keepdims = 0>(x, l)
        k = Constant<value_floats = [1.0, 1.0, 1.7]>() y = Resize<mode = "linear">(r, , k)""",
}  # fmt: skip


@pytest.mark.parametrize("nodes", MODELS.values(), ids=MODELS)
def test_images_of_any_size_become_what_they_did(nodes: str, tmp_path: Path, interpreter: Interpreter) -> None:
    path = write_model(tmp_path / "model.onnx", 19, "y", nodes, "float[b, 3, h, w] x")
    made = read_bytes(nnrewrite.rewrite(path, to="tflite").encoded)
    rng = np.random.default_rng(0)
    for shape in ((1, 3, 9, 13), (2, 3, 8, 7)):
        image = rng.standard_normal(shape, np.float32)
        verdict = compare_models(f"{path}", made, inputs=[[image]], interpreter=interpreter)
        assert verdict.passed, (shape, verdict.differences)


def test_bytes_of_any_size_are_at_most_one_off(tmp_path: Path, interpreter: Interpreter) -> None:
    nodes = "k = Constant<value_floats = [1.0, 1.0, 1.7, 1.3]>() y = Resize<mode = 'linear'>(x, , k)".replace("'", '"')
    path = write_model(tmp_path / "model.onnx", 19, "y", nodes, "uint8[b, 3, h, w] x")
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 9, 13), np.uint8)
    [[found]] = interpreter.run(read_bytes(nnrewrite.rewrite(path, to="tflite").encoded), [[image]])
    [expected] = onnxruntime.InferenceSession(path).run(None, {"x": image})
    # Either runtime may have a rounding error below a whole number, and cuts it off.
    assert np.abs(found.astype(int) - expected).max() <= 1
    assert (found != expected).mean() < 0.02


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", ["h, w", "41, 29"])
def test_images_are_resized_by_quotients_of_extents(
    sizes: str, turned: bool, mode: str, interpreter: Interpreter
) -> None:
    height, width = sizes.split(", ")
    given, first = (f"1, {height}, {width}, 2", 1) if turned else (f"1, 2, {height}, {width}", 2)
    image = "Transpose<perm = [0, 3, 1, 2]>(x)" if turned else "Identity(x)"
    text = f"""<ir_version: 4, opset_import: ["": 9]> net (float[{given}] x, int64[2] m) => (float y)
      <float[2] ones = {{1, 1}}> {{ v = {image} s = Shape(x)
        e = Slice<axes = [0], starts = [{first}], ends = [{first + 2}]>(s)
        f = Cast<to = 1>(e) g = Cast<to = 1>(m) q = Div(g, f) k = Concat<axis = 0>(ones, q)
        y = Upsample<mode = "{mode}">(v, k) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    made = read_bytes(nnrewrite.rewrite(model, to="tflite").encoded)
    rng = np.random.default_rng(0)
    shape = (1, 41, 29, 2) if turned else (1, 2, 41, 29)
    for wanted in ([82, 58], [55, 47], [41, 33]):
        feeds = [rng.standard_normal(shape, np.float32), np.array(wanted)]
        [expected] = onnxruntime.InferenceSession(model).run(None, dict(zip("xm", feeds, strict=True)))
        ((found, *_),) = interpreter.run(made, [feeds])
        np.testing.assert_allclose(found, expected, atol=1e-4)

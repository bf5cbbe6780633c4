"""Operators that do nothing to what is never below zero, and weights that are all one number."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.conversion.pipeline import rewrite
from onnxruntime import InferenceSession


def optimize(body: str, given: str, yielded: str) -> tuple[dict[str, int], int, float]:
    """Kinds of nodes of an optimized graph, its bytes, and by how much its result differs."""
    text = f'<ir_version: 8, opset_import: ["": 17]> main ({given}) => ({yielded}) {body}'
    model = onnx.parser.parse_model(text)
    made = rewrite(model.SerializeToString()).model
    shapes = {one.name: [n.dim_value for n in one.type.tensor_type.shape.dim] for one in model.graph.input}
    feeds = {name: np.random.default_rng(1).standard_normal(shape, np.float32) for name, shape in shapes.items()}
    [want], [got] = (InferenceSession(one.SerializeToString()).run(None, feeds) for one in (model, made))
    kinds: dict[str, int] = {}
    for node in made.graph.node:
        kinds[node.op_type] = kinds.get(node.op_type, 0) + 1
    return kinds, made.ByteSize(), float(np.abs(want - got).max() / max(np.abs(want).max(), 1e-3))


@pytest.mark.parametrize(
    ("weights", "bias", "left"),
    [("0.5, 0.25", "1.0", 1), ("0.5, 0.25", "-1.0", 2), ("0.5, -0.25", "1.0", 2)],
)
def test_a_relu_goes_where_no_sum_is_below_zero(weights: str, bias: str, left: int) -> None:
    kinds, _, off = optimize(
        f"""<float[1, 2, 1, 1] w = {{{weights}}}, float[1] b = {{{bias}}}> {{
          r = Relu(x)  p = MaxPool <kernel_shape = [2, 2]> (r)  t = Conv(p, w, b)  y = Relu(t)
        }}""",
        "float[1, 2, 5, 5] x",
        "float[1, 1, 4, 4] y",
    )
    assert kinds["Relu"] == left and off < 1e-6


def test_a_factor_below_zero_keeps_the_relu_behind_it() -> None:
    kinds, _, off = optimize(
        "<float[4, 2] w = {1,2,3,4,1,2,3,4}> { r = Sigmoid(x) t = Gemm <alpha = -1.0> (r, w) y = Relu(t) }",
        "float[2, 4] x",
        "float[2, 2] y",
    )
    assert kinds["Relu"] == 1 and off < 1e-6


def test_layers_of_one_number_are_one_and_stay_small() -> None:
    kinds, size, off = optimize(
        """<int64[2] first = {400, 300}, int64[2] second = {300, 200}, int64[1] many = {300}> {
          v = ConstantOfShape <value = float[1] {0.5}> (first)
          w = ConstantOfShape <value = float[1] {0.25}> (second)
          b = ConstantOfShape <value = float[1] {2.0}> (many)
          r = Relu(x)  t = Gemm(r, v, b)  s = Relu(t)  y = Gemm(s, w)
        }""",
        "float[2, 400] x",
        "float[2, 200] y",
    )
    assert kinds == {"Relu": 1, "ConstantOfShape": 1, "Gemm": 1} and size < 2500 and off < 1e-5


def test_a_normalization_of_one_number_goes_into_weights_that_stay_a_node() -> None:
    kinds, size, off = optimize(
        """<int64[4] filters = {4096, 64, 1, 1}, int64[1] many = {4096}> {
          w = ConstantOfShape <value = float[1] {0.5}> (filters)
          s = ConstantOfShape <value = float[1] {0.25}> (many)
          v = ConstantOfShape <value = float[1] {2.0}> (many)
          t = Conv(x, w)  y = BatchNormalization(t, s, s, v, v)
        }""",
        "float[1, 64, 2, 2] x",
        "float[1, 4096, 2, 2] y",
    )
    assert kinds == {"ConstantOfShape": 1, "Conv": 1} and size < 20_000 and off < 1e-5


def test_weights_whose_product_would_take_long_are_not_multiplied() -> None:
    extent = 2049
    text = f"""<ir_version: 8, opset_import: ["": 18]> net (float[1, {extent}] x) => (float[1, {extent}] y)
      {{ a = MatMul(x, v)  b = MatMul(a, w)  c = Gemm(b, v)  y = Gemm(c, w) }}"""
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal((extent, extent)).astype(np.float32)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(weights, name) for name in "vw")
    assert len(rewrite(model.SerializeToString()).model.graph.node) == 4

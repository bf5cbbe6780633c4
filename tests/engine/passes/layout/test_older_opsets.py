"""Layouts at opsets at which operators meant another thing, or had attributes for what are operands now."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from nnrewrite.conversion.pipeline import rewrite

X = np.random.default_rng(0).standard_normal((2, 4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("opset", "inner", "left"),
    [
        # Before opset 13 the axes from one on are one row, in the order in which they stand.
        (11, "b = Softmax<axis = 1>(a)", {"Transpose": 2, "Softmax": 1}),
        (13, "b = Softmax<axis = 1>(a)", {"Softmax": 1}),
        # What is of fewer axes gets more, by an attribute there.
        (11, "b = Add(a, z)", {"Unsqueeze": 1, "Add": 1}),
        (13, "b = Add(a, z)", {"Unsqueeze": 1, "Add": 1}),
    ],
)
def test_what_stands_between_permutations_computes_the_same(opset: int, inner: str, left: dict[str, int]) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[2, 4, 5, 6] x, float[4] z) => (float[2, 4, 5, 6] y)
        {{ a = Transpose<perm = [0, 2, 3, 1]>(x)  {inner}  y = Transpose<perm = [0, 3, 1, 2]>(b) }}"""
    )
    made = rewrite(model.SerializeToString()).model
    feeds = {"x": X, "z": X[0, :, 0, 0]}
    want, got = (onnxruntime.InferenceSession(one.SerializeToString()).run(None, feeds)[0] for one in (model, made))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert Counter(node.op_type for node in made.graph.node) == left

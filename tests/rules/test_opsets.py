"""Operators written in other opsets, where what they were is not a form of the newest one that fuzzing could draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.conversion.pipeline import rewrite
from onnxruntime import InferenceSession

IMAGE = np.random.default_rng(1).standard_normal((2, 2, 6, 6), np.float32)
PLACES = np.random.default_rng(2).uniform(-1.1, 1.1, (2, 3, 3, 2)).astype(np.float32)
BOXES = np.array([[0, 0, 3, 4], [1, 1.5, 5, 5]], np.float32)
ROI = "main (float[2, 2, 6, 6] x, float[2, 4] r) => (float[2, 2, 2, 3] y) <int64[2] b = {0, 1}>"
BY_ROWS = "main (float[2, 3, C, 1] x) => (float[2, 3, C, 1] y)"
CASES = [
    *[
        (
            16,
            20,
            f"main (float[2, 2, 6, 6] x, float[2, 3, 3, 2] g) => (float[2, 2, 3, 3] y) "
            f'{{ y = GridSample <mode = "{mode}", padding_mode = "{around}"> (x, g) }}',
            {"x": IMAGE, "g": PLACES},
            {"GridSample"},
        )
        for mode, around in [("bilinear", "zeros"), ("bicubic", "border"), ("nearest", "zeros")]
    ],
    *[
        (
            given,
            wanted,
            f'{ROI} {{ y = RoiAlign <mode = "{mode}", output_height = 2, output_width = 3{corners}> (x, r, b) }}',
            {"x": IMAGE, "r": BOXES},
            {"RoiAlign"},
        )
        for given, wanted, corners in [
            (10, 16, ""),
            (16, 11, ', coordinate_transformation_mode = "output_half_pixel"'),
        ]
        for mode in ("avg", "max")
    ],
    (
        13,
        18,
        "main (float[2, 2, 6, 6] x) => (float[2, 2, 2, 6] y, float[2, 2, 2, 6] z, float[2, 2, 2, 6] v) "
        "{ y, z, v = Split <axis = 2> (x) }",
        {"x": IMAGE},
        {"Split"},
    ),
    *[
        (
            13,
            11,
            f"main (int8[2, 3, 4] x) => (float[2, 3, 4] y) <float[3] s = {{0.5, 0.25, 2}}, int8[3] z = {{1, 2, -3}}> "
            f"{{ y = DequantizeLinear <axis = {axis}> (x, s{zero}) }}",
            {"x": np.arange(24, dtype=np.int8).reshape(2, 3, 4)},
            None,
        )
        for axis in (1, -2)
        for zero in ("", ", z")
    ],
    (
        21,
        13,
        "main (float[2, 2, 6, 6] x) => (float[a, b] y) <int64[2] s = {4, 36}> { y = Reshape <allowzero = 1> (x, s) }",
        {"x": IMAGE},
        {"Reshape"},
    ),
    (11, 13, f"{BY_ROWS.replace('C', '1')} {{ y = Softmax <axis = 1> (x) }}", {"x": IMAGE[:, :1, :3, :1]}, {"Softmax"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("given", "wanted", "body", "feeds", "left"), CASES)
def test_what_an_operator_was_is_said_in_another_opset(
    given: int, wanted: int, body: str, feeds: dict[str, np.ndarray[Any, Any]], left: set[str] | None
) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {given}]> {body}')
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {**feeds, "x": feeds["x"].reshape(shape)}
    made = rewrite(model.SerializeToString(), opset=wanted).model
    expected, found = (InferenceSession(one.SerializeToString()).run(None, feeds) for one in (model, made))
    assert made.opset_import[0].version == wanted
    assert left is None or {node.op_type for node in made.graph.node} == left
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)

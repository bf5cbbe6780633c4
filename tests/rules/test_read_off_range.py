"""Activations that are put on the grid of their range and read off it again, beside weights that are codes."""

from __future__ import annotations

import nnrewrite
import numpy as np
import onnxruntime
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.verify import Interpreter
from nnrewrite.verify.interpreter import Kernels
from onnx import parser

CODES = np.random.default_rng(1).integers(-60, 61, 96)
SCALES = np.linspace(0.005, 0.02, 6)


def write(layer: str, shape: str, weights: str, count: int) -> bytes:
    codes, scales = (", ".join(f"{one}" for one in ones) for ones in (CODES[:count], SCALES))
    text = (
        f'<ir_version: 10, opset_import: ["" : 21]> g (float{shape} x) => (float y) '
        f"<int8{weights} w = {{{codes}}}, float[6] s = {{{scales}}}, float[6] b = {{1, 2, 3, 4, 5, 6}}>"
        f"{{ q, r, z = DynamicQuantizeLinear(x) d = DequantizeLinear(q, r, z) {layer} }}"
    )
    return bytes(parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize(
    ("layer", "shape", "weights", "kernel"),
    [
        ("v = DequantizeLinear<axis = 0>(w, s) y = Gemm<transB = 1>(d, v, b)", (1, 8), (6, 8), "FULLY_CONNECTED"),
        ("v = DequantizeLinear<axis = 0>(w, s) y = Gemm<transB = 1>(d, v, b)", (3, 8), (6, 8), "FULLY_CONNECTED"),
        ("v = DequantizeLinear<axis = 1>(w, s) y = MatMul(d, v)", (2, 3, 8), (8, 6), "FULLY_CONNECTED"),
        ("v = DequantizeLinear<axis = 0>(w, s) y = Conv(d, v, b)", (1, 4, 5, 5), (6, 4, 2, 2), "CONV_2D"),
        ("v = DequantizeLinear<axis = 0>(w, s) y = Conv(d, v, b)", (2, 4, 5, 5), (6, 4, 1, 1), "CONV_2D"),
    ],
)
def test_numbers_read_off_their_range_are_those_that_a_kernel_rounds(
    layer: str, shape: tuple[int, ...], weights: tuple[int, ...], kernel: str, interpreter: Interpreter
) -> None:
    extents, sizes = (f"[{','.join(f'{one}' for one in ones)}]" for ones in (shape, weights))
    model = write(layer, extents, sizes, int(np.prod(weights)))
    made = nnrewrite.rewrite(model, to="tflite")
    assert kernel in made.report.target_operators and "ROUND" not in made.report.target_operators
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert isinstance(made.encoded, Encoded)
    (found,) = interpreter.run(made.encoded.encode(), [[x]], Kernels.DEFAULT)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-4)

"""Functions of complex numbers of TensorFlow itself, between operators that make them and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Runtime

from ..engine.expressions.test_tables import value
from .test_loops import Block

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
PARTS = [RNG.uniform(-2, 2, (3, 4)).astype(np.float32) for _ in range(2)]
PARTS[0][0], PARTS[1][0] = [0.25, -1.5, 2.0, 0.0], [0.0, 0.0, 0.0, -1.0]
FACTORS = np.array([1, 1j, -2 + 0.5j, 0.25 - 3j], np.complex64)

FUNCTIONS: dict[str, tuple[Callable[[Array], Array], list[Any]]] = {
    "FlexNeg": (np.negative, []),
    "FlexZerosLike": (np.zeros_like, []),
    "FlexSqrt": (np.sqrt, []),
    "FlexSinh": (np.sinh, []),
    "FlexCosh": (np.cosh, []),
    "FlexTanh": (np.tanh, []),
    "FlexSigmoid": (lambda z: 1 / (1 + np.exp(-z)), []),
    "FlexLog": (np.log, []),
    "FlexReciprocal": (np.reciprocal, []),
    "FlexMul": (lambda z: z * FACTORS, [FACTORS]),
    "FlexRoll": (lambda z: np.roll(z, (1, -2), (0, 1)), [[1, -2], [0, 1]]),
    "FlexGatherNd": (lambda z: z[[2, 0]], [[[2], [0]]]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_complex_numbers_is_that_of_numpy(name: str, catalogue: Catalogue) -> None:
    function, constants = FUNCTIONS[name]
    wanted = function(PARTS[0] + 1j * PARTS[1])
    inputs = [value(name, "FLOAT", [3, 4]) for name in "ab"]
    block = Block(*inputs)
    z = value("z", "COMPLEX64", [3, 4])
    block.nodes.append(ir.Node("tflite.custom", "FlexComplex", inputs, outputs=[z]))
    y = value("y", "COMPLEX64", list(wanted.shape))
    types = [one.dtype.name if isinstance(one, np.ndarray) else "int32" for one in constants]
    operands = [z, *map(block.constant, constants, types)]
    block.nodes.append(ir.Node("tflite.custom", name, operands, outputs=[y]))
    results = [value(part, "FLOAT", list(wanted.shape)) for part in ("re", "im")]
    for operator, result in zip(("FlexReal", "FlexImag"), results, strict=True):
        block.nodes.append(ir.Node("tflite.custom", operator, [y], outputs=[result]))
    model = nnrewrite.convert(write(ir.Model(block.graph(results, "main"), ir_version=10), catalogue))
    real, imaginary = Runtime(model.SerializeToString()).run(PARTS)
    np.testing.assert_allclose(real + 1j * imaginary, wanted, rtol=2e-5, atol=2e-6)

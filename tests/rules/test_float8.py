"""Floating-point numbers of 8 and 4 bits, which TensorFlow Lite has no kernels for: real numbers rounded to theirs."""

from __future__ import annotations

import ml_dtypes
import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as helper
import pytest
from nnrewrite import UnsupportedError
from nnrewrite.verify import Interpreter
from onnx.reference import ReferenceEvaluator

from .test_onnx2tflite import convert, make, operators

TYPES = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
#: powers of two from the smallest numbers on, with what lies a quarter, an eighth, a half of a step from them, and sums
POWERS = np.float32(2.0) ** np.arange(-18, 18, dtype=np.float32)
NUMBERS = np.concatenate(
    [sign * POWERS * part for sign in (1, -1) for part in np.arange(32, 64, dtype=np.float32) / 32]
)


def run(model: onnx.ModelProto, x: npt.NDArray[np.float32], interpreter: Interpreter) -> None:
    """Check that the interpreter yields the numbers that the standard's evaluator does."""
    [expected] = ReferenceEvaluator(model).run(None, {"x": x})
    [[found]] = interpreter.run(convert(model), [[x]])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.thorough
def test_numbers_are_rounded_to_the_nearest_that_there_is(kind: str, interpreter: Interpreter) -> None:
    to = getattr(onnx.TensorProto, kind)
    nodes = [helper.make_node("Cast", ["x"], ["q"], to=to), helper.make_node("Cast", ["q"], ["y"], to=1)]
    run(make(nodes, {"x": NUMBERS}, ["y"], opset=23), NUMBERS, interpreter)


@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_codes_that_are_floating_point_numbers(kind: type, axis: int | None, interpreter: Interpreter) -> None:
    x = np.resize(NUMBERS, (40, 4, 4))
    scale = np.array([0.5, 3.0, 0.0625, 1.25] if axis is not None else 0.75, np.float32)
    constants = {"scale": scale, "zero": np.zeros(scale.shape, kind)}
    options = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **options),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], **options),
    ]
    run(make(nodes, {"x": x}, ["y"], constants, opset=19), x, interpreter)


def test_weights_are_the_numbers_that_they_stand_for(interpreter: Interpreter) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((2, 6), np.float32), rng.standard_normal((6, 3)).astype(ml_dtypes.float8_e4m3fn)
    nodes = [
        helper.make_node("DequantizeLinear", ["weights", "scale"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    model = make(nodes, {"x": x}, ["y"], {"weights": weights, "scale": np.array([1.0, 0.5, 2.0], np.float32)})
    assert operators(model) == {"FULLY_CONNECTED"}
    [expected] = ReferenceEvaluator(model).run(None, {"x": x})
    [[found]] = interpreter.run(convert(model), [[x]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_order_of_axes_passes_the_bits_of_numbers() -> None:
    to = onnx.TensorProto.FLOAT8E4M3FN
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Cast", ["t"], ["q"], to=to),
        helper.make_node("Cast", ["q"], ["r"], to=1),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 3, 1, 2]),
    ]
    assert "TRANSPOSE" not in operators(make(nodes, {"x": np.zeros((1, 3, 4, 5), np.float32)}, ["y"]))


def test_what_yields_them_is_refused_by_their_name() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT8E5M2)]
    with pytest.raises(UnsupportedError, match="no kernel of TensorFlow Lite converts f8e5m2"):
        convert(make(nodes, {"x": np.zeros((2, 3), np.float32)}, ["y"]))


@pytest.mark.parametrize(("opset", "last"), [(19, False), (21, True)])
def test_bytes_are_moved_where_the_opset_can_move_them(opset: int, last: bool) -> None:
    zero = np.zeros((), ml_dtypes.float8_e4m3fn)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("QuantizeLinear", ["t", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["r"]),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    x = np.resize(NUMBERS / NUMBERS.max(), (2, 3, 4))
    model = make(nodes, {"x": x}, ["y"], {"scale": np.array(0.5, np.float32), "zero": zero}, opset)
    made = nnrewrite.rewrite(model.SerializeToString()).model
    onnx.checker.check_model(made, full_check=True)
    found = [node.op_type for node in made.graph.node]
    assert (found.index("QuantizeLinear") < found.index("Transpose")) is last
    [expected], [computed] = (ReferenceEvaluator(one).run(None, {"x": x}) for one in (model, made))
    np.testing.assert_array_equal(computed, expected)

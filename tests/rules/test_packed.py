"""Values of few bits, scales of blocks and of other axes than usual: types kept, opsets raised, codes cut off."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import nnrewrite
import numpy as np
import pytest
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, Kernels, Runtime

pytestmark = pytest.mark.slow

Single = Callable[..., bytes]
RNG = np.random.default_rng(6)


def grid(scale: float | np.ndarray, zero: int = 0, axis: int = 0, block: int = 0) -> Quantization:
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, np.full(scales.shape, zero, np.int64), axis, block)


def bytes_of(shape: tuple[int, ...]) -> np.ndarray:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def run(source: bytes, *feeds: np.ndarray, **options: object) -> np.ndarray:
    model = nnrewrite.convert(source, **options)  # type: ignore[arg-type]
    runtime = Runtime(model.SerializeToString(), precise=True)
    return next(iter(runtime.evaluate(dict(zip(runtime.inputs, feeds, strict=True))).values()))


def wanted(interpreter: Interpreter, source: bytes, *feeds: np.ndarray) -> np.ndarray:
    [[result]] = interpreter.run(source, [list(feeds)], Kernels.DEFAULT)
    return result


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2"])
@pytest.mark.parametrize("known", [None, grid(0.1, 1)])
@pytest.mark.parametrize("plain", [False, True])
def test_constants_of_few_bits_are_cast(
    dtype: str, known: Quantization | None, plain: bool, single: Single, interpreter: Interpreter
) -> None:
    codes = RNG.integers(0, 2, (3, 5)).astype(getattr(ml_dtypes, dtype))
    operand = codes if known is None else (codes, known)
    source = single("CAST", {"x": operand}, [("FLOAT32", [3, 5])], in_data_type=dtype.upper(), out_data_type="FLOAT32")
    np.testing.assert_array_equal(run(source, float=plain), wanted(interpreter, source))


@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "INT2"])
def test_real_numbers_are_cut_off_and_not_wrapped_in_few_bits(
    dtype: str, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    import onnx_ir as ir
    from nnrewrite.backends.probe import make_operator_model
    from nnrewrite.backends.tflite_writer import write

    model = make_operator_model(
        catalogue, "CAST", {"x": ("FLOAT32", [9])}, [(dtype, [9])], in_data_type="FLOAT32", out_data_type=dtype
    )
    back = ir.Node("tflite", "CAST", [model.graph.outputs[0]], num_outputs=1, name="back")
    [result] = back.outputs
    result.type, result.shape, result.name = ir.TensorType(ir.DataType.FLOAT), ir.Shape([9]), "result"
    model.graph.append(back)
    model.graph.outputs[0] = result
    source = write(model, catalogue)
    x = np.float32([-20, -8.5, -1.6, -0.5, 0.5, 1.9, 7.6, 15.5, 40])
    np.testing.assert_array_equal(run(source, x), wanted(interpreter, source, x))


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_scales_of_blocks_raise_the_opset(dtype: str, single: Single, interpreter: Interpreter) -> None:
    scales = RNG.uniform(0.01, 0.1, (6, 4)).astype(np.float16).astype(np.float32)
    weights = RNG.integers(-7, 8, (6, 128)).astype(getattr(ml_dtypes, dtype, np.int8))
    operands = {"x": ("FLOAT32", [3, 128]), "w": (weights, grid(scales, 0, 1, 32)), "b": None}
    source = single("FULLY_CONNECTED", operands, [("FLOAT32", [3, 6])])
    x = RNG.normal(size=(3, 128)).astype(np.float32)
    want = x @ (weights.astype(np.float32) * np.repeat(scales, 32, 1)).T
    if dtype == "int4":  # bytes have no kernel; it rounds the activations of each row
        rounded = wanted(interpreter, source, x)
        assert np.abs(rounded - want).max() < 0.02 * np.abs(want).max()
    assert nnrewrite.convert(source).opset_import[0].version >= 21
    for options in ({"hybrid": "real"}, {"target": "portable"}, {"float": True, "opset": 13}):
        assert np.abs(run(source, x, **options) - want).max() < 1e-4
    with pytest.raises(RewriteError, match="opset 21"):
        nnrewrite.convert(source, opset=13)


def test_scales_of_blocks_are_left_to_real_numbers_beside_16_bit_codes(single: Single) -> None:
    fine = grid(0.001)
    weights = bytes_of((6, 32)), grid(np.full((6, 2), 0.02, np.float32), 0, 1, 16)
    source = single(
        "FULLY_CONNECTED", {"x": ("INT16", [3, 32], fine), "w": weights, "b": None}, [("INT16", [3, 6], fine)]
    )
    x = RNG.integers(-500, 500, (3, 32)).astype(np.int16)
    want = np.clip(np.round(x.astype(float) @ weights[0].T * 0.02), -32768, 32767)
    assert np.abs(run(source, x) - want).max() <= 1


@pytest.mark.parametrize("target", ["portable", "onnxruntime"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_scales_of_weights_belong_to_channels_whatever_axis_is_named(
    axis: int, target: str, single: Single, interpreter: Interpreter
) -> None:
    scales = RNG.uniform(0.005, 0.02, 4).astype(np.float32)
    operands = {
        "x": ("INT8", [1, 5, 6, 4], grid(0.05, -3)),
        "w": (bytes_of((4, 4, 4, 4)) // 4, grid(scales, 0, axis)),  # of which no processor saturates sums
        "b": (np.arange(4, dtype=np.int32), grid(0.05 * scales)),
    }
    source = single("CONV_2D", operands, [("INT8", [1, 5, 6, 4], grid(0.3, 7))], stride_h=1, stride_w=1)
    x = bytes_of((1, 5, 6, 4))
    off = run(source, x, target=target).astype(int) - wanted(interpreter, source, x)
    assert np.abs(off).max() <= 1  # a step where a product is halfway between two codes


@pytest.mark.parametrize("scale", [None, 0.7])
def test_biases_count_in_steps_of_products_in_plain_models_too(
    scale: float | None, single: Single, interpreter: Interpreter
) -> None:
    bias = np.array([900, -800, 70], np.int32)
    operands = {
        "x": ("INT8", [2, 4], grid(0.05, -3)),
        "w": (bytes_of((3, 4)), grid(0.01)),
        "b": bias if scale is None else (bias, grid(scale)),
    }
    source = single("FULLY_CONNECTED", operands, [("INT8", [2, 3], grid(0.4, 7))])
    x = RNG.integers(-30, 30, (2, 4)).astype(np.int8)
    want = (wanted(interpreter, source, x).astype(np.float32) - 7) * np.float32(0.4)
    got = run(source, (x.astype(np.float32) + 3) * np.float32(0.05), float=True)
    assert np.abs(got - want).max() <= 0.21


def test_a_float_interface_gives_no_name_twice(single: Single) -> None:
    source = single("RELU", {"x": ("UINT8", [2, 3], grid(0.05, 125))}, [("UINT8", [2, 3], grid(0.03))])
    names = [node.name for node in nnrewrite.convert(source, float_io=True, target="portable").graph.node]
    assert len(set(names)) == len(names) > 2


def test_integers_that_are_meant_raise_the_opset_of_plain_models(single: Single) -> None:
    fine = grid(0.001)
    source = single("NEG", {"x": ("INT16", [4], fine)}, [("INT16", [4], fine)])
    x = np.float32([-1, 2.5, 0, 3])
    np.testing.assert_allclose(run(source, x, float=True), -x, atol=1e-3)
    with pytest.raises(RewriteError, match="opset 21"):
        nnrewrite.convert(source, float=True, opset=13)

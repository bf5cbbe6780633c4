"""Operands that files seldom have: windows beyond images, no channels, codes that no type holds, old weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter

from ..conversion.test_odd import FLOATS, Make, both, refusal


def numbers(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def grid(*scales: float, zero: int = 0) -> Quantization:
    return Quantization(np.array(scales, np.float32), np.full(len(scales), zero, np.int64))


# ---- windows


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("extents", [(7, 9), (201, 5), (302, 100)])
def test_strides_beyond_a_window_of_an_image_of_any_size(
    single: Make, interpreter: Interpreter, operator: str, extents: tuple[int, int]
) -> None:
    image = (FLOATS, [1, None, None, 4])
    weights = {"CONV_2D": numbers(4, 2, 3, 4), "DEPTHWISE_CONV_2D": numbers(1, 2, 3, 4)}
    operands = {"x": image, **({"w": weights[operator], "b": numbers(4)} if operator in weights else {})}
    more = {} if operator in weights else {"filter_height": 2, "filter_width": 3}
    model = single(operator, operands, [image], padding="SAME", stride_h=100, stride_w=100, **more)
    expected, actual = both(model, [numbers(1, *extents, 4)], interpreter)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_maxima_of_wide_codes_where_strides_are_beyond_a_window(single: Make, interpreter: Interpreter) -> None:
    described = ("INT16", [1, None, None, 4])
    options = {"stride_h": 2, "stride_w": 100, "filter_height": 3, "filter_width": 2}
    model = single(
        "MAX_POOL_2D", {"x": (*described, grid(0.5))}, [(*described, grid(0.25))],
        padding="SAME", fused_activation_function="RELU6", **options,
    )  # fmt: skip
    feed = np.random.default_rng(5).integers(-30, 30, (1, 6, 250, 4)).astype(np.int16)
    expected, actual = both(model, [feed], interpreter)
    np.testing.assert_array_equal(expected, actual)


def test_codes_are_chosen_whatever_they_stand_for(single: Make, interpreter: Interpreter) -> None:
    first, second = ("INT16", [3, 4], grid(0.5)), ("INT16", [3, 4], grid(0.25))
    model = single("SELECT", {"go": ("BOOL", [3, 4]), "a": first, "b": second}, [first])
    draw = np.random.default_rng(5)
    feeds = [draw.integers(0, 2, (3, 4)).astype(bool), *draw.integers(-3000, 3000, (2, 3, 4)).astype(np.int16)]
    expected, actual = both(model, feeds, interpreter)
    np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize(("padding", "shape"), [("VALID", [1, 3, 8, 2]), ("SAME", [1, 0, 8, 2])])
def test_an_image_without_room_for_a_window_is_refused(single: Make, padding: str, shape: list[int]) -> None:
    model = single(
        "MAX_POOL_2D", {"x": (FLOATS, shape)}, [(FLOATS, [1, 0, 4, 2])],
        padding=padding, stride_h=4, stride_w=2, filter_height=4, filter_width=1,
    )  # fmt: skip
    said = refusal(model)
    assert "MAX_POOL_2D x 1: " in said
    assert f"rule pool_2d.MAX_POOL_2D: an image of [{shape[1]}, 8] has no room for a window of [4, 1]" in said


# ---- no channels


@pytest.mark.parametrize("operator", ["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"])
def test_pools_of_images_without_channels_are_refused(single: Make, operator: str) -> None:
    image = (FLOATS, [None, 8, 8, 0])
    pool = {"stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    said = refusal(single(operator, {"x": image}, [image], padding="SAME", **pool))
    assert f"(made of {operator}" in said
    assert "of an image without channels" in said


@pytest.mark.slow
def test_convolutions_in_no_groups_are_refused(single: Make) -> None:
    image = ("INT8", [None, 8, 8, 0], grid(0.5))
    pool = {"stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    said = refusal(single("AVERAGE_POOL_2D", {"x": image}, [image], padding="VALID", **pool), exact=True)
    assert "rule groups_of_convolution: of an image without channels ConvInteger has no groups" in said


# ---- codes


def test_a_zero_point_that_is_none_of_its_type_is_refused(single: Make) -> None:
    model = single("QUANTIZE", {"x": ("UINT8", [3], grid(0.5, zero=255))}, [("INT8", [3], grid(0.5, zero=255))])
    assert 'tensor 1 ("output_0") has the zero point 255, its type holds -128 to 127' in refusal(model)


@pytest.mark.filterwarnings("error")
def test_scales_out_of_range_are_met_in_silence(single: Make) -> None:
    described = ("INT16", [2], grid(0.5))
    model = single("MUL", {"x": described, "y": described}, [("INT16", [2], grid(1e-40))])
    assert "rule mul_16: cannot convert float infinity to integer" in refusal(model)


def test_a_bias_of_another_length_than_its_scales_is_refused(single: Make) -> None:
    image, result = ("INT8", [1, 6, 6, 4], grid(0.5)), ("INT8", [1, 6, 6, 8], grid(0.5))
    weights = (np.ones((1, 3, 2, 8), np.int8), Quantization(np.full(8, 0.5, np.float32), np.zeros(8, np.int64), 3))
    operands = {"x": image, "w": weights, "b": (np.zeros(0, np.int32), grid(0.25))}
    model = single("DEPTHWISE_CONV_2D", operands, [result], padding="SAME", stride_h=1, stride_w=1, depth_multiplier=2)
    assert "b of DEPTHWISE_CONV_2D has 8 scales, which are taken along axis 0, and is [0]" in refusal(model)


def test_weights_of_integers_with_scales_of_another_axis_are_refused(single: Make) -> None:
    scales = Quantization(np.full(128, 0.5, np.float32), np.zeros(128, np.int64), 3)
    weights = (np.ones((512, 1, 1, 128), np.int8), scales)
    operands = {"x": ("FLOAT32", [1, 8, 8, 128], None), "w": weights}
    result = [("FLOAT32", [1, 8, 8, 512], None)]
    model = single("CONV_2D", operands, result, padding="SAME", stride_h=1, stride_w=1)
    assert "w of CONV_2D has 128 scales, which are taken along axis 0, and is [512, 1, 1, 128]" in refusal(model)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_products_of_old_weights(single: Make, interpreter: Interpreter, asymmetric: bool) -> None:
    weights = (np.random.default_rng(7).integers(90, 160, (5, 4)).astype(np.uint8), grid(0.02, zero=131))
    model = single(
        "FULLY_CONNECTED", {"x": (FLOATS, [50, 4]), "w": weights}, [(FLOATS, [50, 5])],
        asymmetric_quantize_inputs=asymmetric,
    )  # fmt: skip
    feed = np.random.default_rng(8).integers(-10, 11, (50, 4)).astype(np.float32) / 2  # of which many lie between codes
    expected, actual = both(model, [feed], interpreter)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [[2, 0, 512], [0, 3, 512], [0, 512]])
@pytest.mark.parametrize("known", [True, False])
def test_products_of_no_rows(single: Make, interpreter: Interpreter, shape: list[int], known: bool) -> None:
    weights = (np.ones((1000, 512), np.int8), grid(0.1))
    extents = shape if known else [*[None] * (len(shape) - 1), 512]
    operands = {"x": (FLOATS, extents), "w": weights, "b": numbers(1000)}
    model = single("FULLY_CONNECTED", operands, [(FLOATS, [None] * len(shape))], keep_num_dims=len(shape) > 2)
    expected, actual = both(model, [np.zeros(shape, np.float32)], interpreter)
    assert expected.shape == actual.shape


# ---- recurrent layers


def lstm(single: Make, steps: int, dtype: str, activation: str) -> bytes:
    """A layer of 4 units over 2 samples of 3 numbers a step."""
    codes = dtype == "INT8"
    chance = np.random.default_rng(9)

    def made(*shape: int) -> Any:
        return (chance.integers(-99, 99, shape).astype(np.int8), grid(0.02)) if codes else numbers(*shape)

    quantized = [[grid(0.5)], [grid(0.01)], [grid(1 / 2048)], [grid(0.1)]] if codes else [[]] * 4
    biases = np.arange(4, dtype=np.int32) if codes else numbers(4)
    weights = {f"w{n}": made(4, 3) for n in range(4)} | {f"r{n}": made(4, 4) for n in range(4)}
    peepholes = dict.fromkeys(("pi", "pf", "po"))
    operands = {
        "x": (dtype, [2, steps, 3], *quantized[0]), **weights, **peepholes, **{f"b{n}": biases for n in range(4)},
        "wp": None, "bp": None, "h": (dtype, [2, 4], *quantized[1]),
        "c": ("INT16" if codes else FLOATS, [2, 4], *quantized[2]),
    }  # fmt: skip
    results = [(dtype, [2, steps, 4], *quantized[3])]
    return single("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, results, fused_activation_function=activation)


def test_a_scan_of_no_steps_is_refused(single: Make) -> None:
    said = refusal(lstm(single, 0, FLOATS, "RELU6"), target="onnxruntime")
    assert "ONNX Runtime has no Scan of no steps" in said


def test_integer_biases_beside_real_numbers_are_refused(single: Make) -> None:
    assert "biases are integers that stand for no real numbers" in refusal(lstm(single, 5, "INT8", "TANH"))


@pytest.mark.parametrize("alpha", [0.5, -0.5])
def test_a_window_of_fewer_than_one_channel_is_refused(single: Make, alpha: float) -> None:
    image = (FLOATS, [1, 3, 4, 6])
    factors = {"radius": -1, "bias": 1.0, "alpha": alpha, "beta": 0.5}
    said = refusal(single("LOCAL_RESPONSE_NORMALIZATION", {"x": image}, [image], **factors))
    assert ": a window of -1 channels" in said


# ---- no scale


@pytest.mark.parametrize("kind", ["INT8", "INT16"])
@pytest.mark.parametrize("operator", ["SUB", "MUL"])
def test_codes_computed_of_scaled_ones_need_a_scale(single: Make, operator: str, kind: str) -> None:
    operands = {"a": (kind, [2, 3], grid(0.5)), "b": (kind, [2, 3], grid(0.25))}
    said = refusal(single(operator, operands, [(kind, [2, 3])]))
    assert f"{operator}_0: result output_0 of {operator} has no scale, and b, which it is computed of, has one" in said

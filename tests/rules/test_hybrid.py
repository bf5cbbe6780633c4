"""Real activations and integer weights: what the default kernels of the interpreter quantize is quantized alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import nnrewrite
import numpy as np
import pytest
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter, Kernels, Runtime

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
#: of the largest element: sums of products of single precision are rounded differently
ROUNDED = 2e-6


def weights(*shape: int, scales: int) -> tuple[np.ndarray, Quantization]:
    """Weights in bytes, with one scale or one for each output."""
    grid = Quantization(RNG.uniform(0.005, 0.02, scales).astype(np.float32), np.zeros(scales, np.int64))
    return RNG.integers(-127, 128, shape, dtype=np.int8), grid


def product(single: Callable[..., bytes], shape: list[int], w: tuple[np.ndarray, Quantization]) -> bytes:
    *rows, outputs = [*shape[:-1], len(w[0])]
    operands = {"x": ("FLOAT32", shape), "w": w, "b": RNG.uniform(-1, 1, outputs).astype(np.float32)}
    return single("FULLY_CONNECTED", operands, [("FLOAT32", [*rows, outputs])], keep_num_dims=True)


def convolution(
    single: Callable[..., bytes], shape: list[int], w: tuple[np.ndarray, Quantization], stride: int
) -> bytes:
    extents = [shape[0], -(-shape[1] // stride), -(-shape[2] // stride), len(w[0])]
    operands = {"x": ("FLOAT32", shape), "w": w, "b": RNG.uniform(-1, 1, len(w[0])).astype(np.float32)}
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride}
    return single("CONV_2D", operands, [("FLOAT32", extents)], **options)


def check(source: bytes, rule: str, shape: list[int], interpreter: Interpreter) -> None:
    """The conversion uses the rule and yields what the default kernels do; with real activations it does not."""
    feed = (RNG.uniform(-1, 2, shape) * RNG.uniform(0.1, 3, [*shape[:-1], 1])).astype(np.float32)
    [[want]] = interpreter.run(source, [[feed]], Kernels.DEFAULT)
    conversion = nnrewrite.rewrite(source)
    assert rule in conversion.report.rules
    limit = ROUNDED * np.abs(want).max()
    [got] = Runtime(conversion.model.SerializeToString(), threads=1, precise=True).run([feed])
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)
    [real] = Runtime(nnrewrite.convert(source, hybrid="real").SerializeToString(), threads=1).run([feed])
    assert np.abs(real - want).max() > 10 * limit


@pytest.mark.parametrize("scales", [1, 128])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_quantizes_its_sample(
    single: Callable[..., bytes], interpreter: Interpreter, scales: int, stride: int
) -> None:
    shape = [1, 16, 15, 64]
    source = convolution(single, shape, weights(128, 3, 3, 64, scales=scales), stride)
    check(source, "hybrid_conv_of_patches", shape, interpreter)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_kernels_that_do_not_overlap_read_blocks(
    single: Callable[..., bytes], interpreter: Interpreter, padding: str
) -> None:
    """As where a transformer takes its image apart, with some rows and columns beyond the last block."""
    shape, (w, grid) = [1, 43, 46, 16], weights(192, 8, 8, 16, scales=192)
    extents = [1, *(-(-n // 8) if padding == "SAME" else n // 8 for n in shape[1:3]), len(w)]
    operands = {"x": ("FLOAT32", shape), "w": (w, grid), "b": np.zeros(len(w), np.float32)}
    options = {"padding": padding, "stride_h": 8, "stride_w": 8}
    source = single("CONV_2D", operands, [("FLOAT32", extents)], **options)
    check(source, "hybrid_conv_of_patches", shape, interpreter)
    assert sum(nnrewrite.rewrite(source).report.target_operators.values()) <= 12


@pytest.mark.parametrize("scales", [1, 512])
def test_a_convolution_of_one_by_one_quantizes_each_pixel(
    single: Callable[..., bytes], interpreter: Interpreter, scales: int
) -> None:
    shape = [2, 8, 7, 128]
    check(
        convolution(single, shape, weights(512, 1, 1, 128, scales=scales), 1),
        "hybrid_conv_of_pixels",
        shape,
        interpreter,
    )


@pytest.mark.parametrize("scales", [1, 400])
@pytest.mark.parametrize(
    ("shape", "rule"), [([1, 512], "hybrid_product_of_one_row"), ([3, 16, 512], "hybrid_product_of_rows")]
)
def test_a_product_quantizes_each_row(
    single: Callable[..., bytes], interpreter: Interpreter, scales: int, shape: list[int], rule: str
) -> None:
    check(product(single, shape, weights(400, 512, scales=scales)), rule, shape, interpreter)


def packed(*shape: int, scales: int, axis: int = 0) -> tuple[np.ndarray, Quantization]:
    """Weights of 4 bits, with one scale or one for each output."""
    grid = Quantization(RNG.uniform(0.05, 0.2, scales).astype(np.float32), np.zeros(scales, np.int64), axis)
    return RNG.integers(-7, 8, shape).astype(ml_dtypes.int4), grid


@pytest.mark.parametrize("scales", [1, 24])
@pytest.mark.parametrize("extent", [1, 3])
def test_a_convolution_of_few_bits_quantizes_its_sample(
    single: Callable[..., bytes], interpreter: Interpreter, scales: int, extent: int
) -> None:
    """By the largest magnitude where all outputs have one scale."""
    shape = [2, 8, 7, 16]
    source = convolution(single, shape, packed(24, extent, extent, 16, scales=scales), 1)
    check(source, "rounded_conv_2d", shape, interpreter)


@pytest.mark.parametrize("scales", [1, 12])
def test_a_transposed_convolution_quantizes_its_sample(
    single: Callable[..., bytes], interpreter: Interpreter, scales: int
) -> None:
    shape = [1, 6, 5, 16]
    operands = {
        "output_shape": np.array([1, 12, 10, 12], np.int32),
        "w": weights(12, 3, 3, 16, scales=scales),
        "x": ("FLOAT32", shape),
        "b": RNG.uniform(-1, 1, 12).astype(np.float32),
    }
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    source = single("TRANSPOSE_CONV", operands, [("FLOAT32", [1, 12, 10, 12])], **options)
    check(source, "rounded_transpose_conv", shape, interpreter)


def test_a_depthwise_convolution_quantizes_its_sample(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    shape, (w, grid) = [1, 9, 8, 16], weights(1, 3, 3, 16, scales=16)
    w = (w, replace(grid, axis=3))
    operands = {"x": ("FLOAT32", shape), "w": w, "b": RNG.uniform(-1, 1, 16).astype(np.float32)}
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    source = single("DEPTHWISE_CONV_2D", operands, [("FLOAT32", shape)], **options)
    check(source, "rounded_depthwise_conv_2d", shape, interpreter)


def test_a_product_of_few_bits_quantizes_each_row(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    check(product(single, [3, 128], packed(40, 128, scales=40)), "rounded_fully_connected", [3, 128], interpreter)


def test_a_product_of_weights_in_blocks_quantizes_each_row(single: Callable[..., bytes]) -> None:
    """As XNNPACK computes it from files of ai-edge-quantizer, whose scales stand in a tensor of their own."""
    shape, (w, _) = [3, 128], packed(40, 128, scales=1)
    scales = RNG.uniform(0.05, 0.2, (40, 4)).astype(np.float16)
    source = product(single, shape, (w, Quantization(scales, np.zeros(scales.shape, np.int64), 1, 32)))
    feed = RNG.uniform(-1, 2, shape).astype(np.float32)
    step = (feed.max(1, keepdims=True) - feed.min(1, keepdims=True)) / 255
    rounded = (np.round(feed / step) + 0) * step
    real = w.astype(np.float32) * np.repeat(scales.astype(np.float32), 32, axis=1)
    conversion = nnrewrite.rewrite(source)
    assert "rounded_fully_connected" in conversion.report.rules
    [got], [plain] = (
        Runtime(model.SerializeToString(), threads=1, precise=True).run([feed])
        for model in (conversion.model, nnrewrite.convert(source, hybrid="real"))
    )
    # What both add is the bias.
    np.testing.assert_allclose(got - plain, (rounded - feed) @ real.T, rtol=0, atol=2e-4)


def test_zeros_alone_yield_the_bias(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    for shape in ([1, 512], [16, 512]):
        source, feed = product(single, shape, weights(400, 512, scales=1)), np.zeros(shape, np.float32)
        [[want]] = interpreter.run(source, [[feed]], Kernels.DEFAULT)
        [got] = Runtime(nnrewrite.convert(source).SerializeToString(), threads=1, precise=True).run([feed])
        np.testing.assert_array_equal(got, want)


def test_small_products_and_portable_models_keep_real_activations(single: Callable[..., bytes]) -> None:
    small, large = (product(single, [4, n], weights(n, n, scales=1)) for n in (16, 512))
    for model in (nnrewrite.convert(small), nnrewrite.convert(large, target="portable")):
        assert "MatMulInteger" not in {node.op_type for node in model.graph.node}

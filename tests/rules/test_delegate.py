"""8-bit layers that the interpreter's delegate takes or leaves to its own kernels: equal to the default ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter, Kernels
from nnrewrite.verify.runtime import Runtime

RNG = np.random.default_rng
#: how a node looks that the delegate leaves, and one that it takes
CAUSES = ("bias without a scale", "bias as an input", "weights as an input", "all constant")
#: operand, weights and result; halves are many
SCALES = {"x": 0.5, "w": 0.25, "y": 8.0}


def grid(scale: float, zero: int = 0) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))


def equal(source: bytes, feeds: list[np.ndarray[Any, Any]], interpreter: Interpreter) -> nnrewrite.Conversion:
    """The conversion of a model whose outputs equal those of the default kernels."""
    [wanted] = interpreter.run(source, [feeds], Kernels.DEFAULT)
    conversion = nnrewrite.rewrite(source)
    found = Runtime(conversion.model.SerializeToString(), threads=1, precise=True).run(feeds)
    for want, got in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(got, want)
    return conversion


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
@pytest.mark.parametrize("channels", [3, 11])
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"])
def test_layers_round_as_the_kernel_that_computes_them(
    single: Callable[..., bytes], interpreter: Interpreter, operator: str, channels: int, kind: str, cause: str
) -> None:
    generator, dtype = RNG(channels), np.dtype(kind.lower())
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    zero = {"x": low + 131, "w": 120 if kind == "UINT8" else 0, "y": low + 125}
    flat, deep = operator == "FULLY_CONNECTED", operator == "DEPTHWISE_CONV_2D"
    depth = channels if deep else 5
    shape = [400, depth] if flat else [1, 20, 20, depth]
    out = [*shape[:-1], channels]
    wide = [channels, depth] if flat else [1, 1, 1, channels] if deep else [channels, 1, 1, depth]
    x = generator.integers(low, high + 1, shape).astype(dtype)
    w = generator.integers(max(low, -127), high + 1, wide).astype(dtype)
    b = generator.integers(-500, 500, channels).astype(np.int32)
    scale = SCALES["x"] * SCALES["w"]
    feeds = [x]
    inputs: dict[str, Any] = {"x": (kind, shape, grid(SCALES["x"], zero["x"])), "w": (w, grid(SCALES["w"], zero["w"]))}
    inputs["b"] = b if cause == CAUSES[0] else (b, grid(scale))
    if cause == "weights as an input":
        inputs["w"] = (kind, wide, grid(SCALES["w"], zero["w"]))
        feeds = [w, x] if operator == "TRANSPOSE_CONV" else [x, w]
    if cause == "bias as an input":
        inputs["b"] = ("INT32", [channels], grid(scale))
        feeds.append(b)
    if operator == "TRANSPOSE_CONV":
        inputs = {"shape": np.array(out, np.int32), "w": inputs["w"], "x": inputs["x"], "b": inputs["b"]}
    options = {} if flat else {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    if deep:
        options["depth_multiplier"] = 1
    source = single(operator, inputs, [(kind, out, grid(SCALES["y"], zero["y"]))], **options)
    conversion = equal(source, feeds, interpreter)
    assert any(rule.endswith(("own_kernel", "late_shape")) for rule in conversion.report.rules) == (
        cause != "all constant"
    )


@pytest.mark.parametrize("multiplier", [0, 2])
def test_a_depthwise_convolution_may_leave_its_multiplier_out(
    single: Callable[..., bytes], interpreter: Interpreter, multiplier: int
) -> None:
    x, w = (
        RNG(0).integers(0, 256, [1, 30, 30, 3]).astype(np.uint8),
        RNG(1).integers(0, 256, [1, 1, 1, 6]).astype(np.uint8),
    )
    inputs = {
        "x": ("UINT8", [1, 30, 30, 3], grid(0.5, 131)),
        "w": (w, grid(0.25, 120)),
        "b": (np.zeros(6, np.int32), grid(0.125)),
    }
    options = {"stride_h": 1, "stride_w": 1, "depth_multiplier": multiplier}
    source = single("DEPTHWISE_CONV_2D", inputs, [("UINT8", [1, 30, 30, 6], grid(8.0, 128))], **options)
    equal(source, [x], interpreter)


@pytest.mark.parametrize("batch", [1, 2])
def test_unsigned_codes_past_sixteens_are_those_of_all_samples(
    single: Callable[..., bytes], interpreter: Interpreter, batch: int
) -> None:
    """4500 * batch results, computed sixteen at once."""
    x, w = (
        RNG(0).integers(0, 256, [batch, 30, 30, 3]).astype(np.uint8),
        RNG(1).integers(0, 256, [5, 1, 1, 3]).astype(np.uint8),
    )
    out = [batch, 30, 30, 5]
    inputs = {
        "shape": np.array(out, np.int32),
        "w": (w, grid(0.25, 120)),
        "x": ("UINT8", [batch, 30, 30, 3], grid(0.5, 131)),
        "b": np.zeros(5, np.int32),
    }
    equal(single("TRANSPOSE_CONV", inputs, [("UINT8", out, grid(8.0, 128))], stride_h=1, stride_w=1), [x], interpreter)


def test_shifted_weights_of_a_layer_are_taken_by_one_kernel(
    single: Callable[..., bytes], interpreter: Interpreter
) -> None:
    x = RNG(0).integers(-128, 128, [500, 4]).astype(np.int8)
    w, b = RNG(1).integers(-127, 128, [6, 4]).astype(np.int8), np.arange(-3, 3, dtype=np.int32)
    inputs = {"x": ("INT8", [500, 4], grid(0.5, 3)), "w": (w, grid(0.5, 3)), "b": (b, grid(0.25))}
    equal(single("FULLY_CONNECTED", inputs, [("INT8", [500, 6], grid(4.0, 3))]), [x], interpreter)


@pytest.mark.parametrize("operator", ["CONV_2D", "FULLY_CONNECTED", "MUL"])
@pytest.mark.parametrize("zero", [2, 3])
def test_a_bound_between_two_codes_is_the_even_one(
    single: Callable[..., bytes], interpreter: Interpreter, operator: str, zero: int
) -> None:
    """6 / 0.16 is 37.5."""
    shape = [1, 10, 10, 3] if operator == "CONV_2D" else [100, 3]
    x, y = RNG(0).integers(0, 256, shape).astype(np.uint8), ("UINT8", shape, grid(0.16, zero))
    inputs: dict[str, Any] = {"x": ("UINT8", shape, grid(0.1, 100))}
    options: dict[str, Any] = {"fused_activation_function": "RELU6"}
    if operator == "MUL":
        inputs["w"] = (np.array([[130, 20, 130]], np.uint8), grid(0.1, 120))
    else:
        w = RNG(1).integers(0, 256, [3, 1, 1, 3] if operator == "CONV_2D" else [3, 3]).astype(np.uint8)
        inputs |= {"w": (w, grid(0.1, 120)), "b": (np.zeros(3, np.int32), grid(0.01))}
        options |= {"padding": "SAME", "stride_w": 1, "stride_h": 1} if operator == "CONV_2D" else {}
    conversion = equal(single(operator, inputs, [y], **options), [x], interpreter)
    if operator != "MUL":
        assert any("own" in rule for rule in conversion.report.rules) == (zero % 2 == 1)


@pytest.mark.parametrize("zero", [2, 3])
def test_a_maximum_is_cut_off_at_the_even_code(
    single: Callable[..., bytes], interpreter: Interpreter, zero: int
) -> None:
    x, of = RNG(0).integers(0, 256, [1, 6, 6, 3]).astype(np.uint8), grid(0.16, zero)
    pool = dict.fromkeys(("stride_h", "stride_w", "filter_height", "filter_width"), 2)
    shapes = {"x": ("UINT8", [1, 6, 6, 3], of)}, [("UINT8", [1, 3, 3, 3], of)]
    equal(single("MAX_POOL_2D", *shapes, fused_activation_function="RELU6", **pool), [x], interpreter)


@pytest.mark.parametrize(("scale", "zero", "special"), [(6.4, 131, True), (6.4, 130, True), (6.3179, 131, False)])
def test_products_at_halves_are_rounded_before_the_zero_point_is_added(
    single: Callable[..., bytes], interpreter: Interpreter, scale: float, zero: int, special: bool
) -> None:
    """0.1 * 0.5 / 6.4 is 1 / 128: the product 64 stands for half a step."""
    a, b = (part.astype(np.uint8).reshape(-1) for part in np.meshgrid(np.arange(256), np.arange(256)))
    inputs = {"a": ("UINT8", [65536], grid(0.1, 3)), "b": ("UINT8", [65536], grid(0.5, 128))}
    conversion = equal(single("MUL", inputs, [("UINT8", [65536], grid(scale, zero))]), [a, b], interpreter)
    assert ("mul_8_with_halves" in conversion.report.rules) == special


@pytest.mark.parametrize("activation", ["RELU", "RELU6"])
def test_an_activation_within_signed_codes_leaves_the_integer_kernel(
    single: Callable[..., bytes], interpreter: Interpreter, activation: str
) -> None:
    x, w = (RNG(i).integers(-127, 128, [*n, 3]).astype(np.int8) for i, n in enumerate([(1, 9, 9), (4, 2, 2)]))
    inputs = {
        "x": ("INT8", [1, 9, 9, 3], grid(0.75, 127)),
        "w": (w, grid(0.3)),
        "b": (np.zeros(4, np.int32), grid(0.225)),
    }
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": activation}
    conversion = equal(single("CONV_2D", inputs, [("INT8", [1, 9, 9, 4], grid(0.9, 3))], **options), [x], interpreter)
    assert {"clip_of_codes", "relu_of_codes"} & set(conversion.report.rules)


@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
def test_a_filter_narrower_than_its_strides_is_left_to_the_own_kernel(
    single: Callable[..., bytes], interpreter: Interpreter, kind: str
) -> None:
    generator, dtype = RNG(4), np.dtype(kind.lower())
    x = generator.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, [1, 30, 20, 3]).astype(dtype)
    zero = 128 if kind == "UINT8" else 0
    inputs = {
        "s": np.array([1, 60, 40, 11], np.int32),
        "w": (generator.integers(1, 100, [11, 1, 2, 3]).astype(dtype), grid(SCALES["w"], zero)),
        "x": (kind, x.shape, grid(SCALES["x"], zero)),
    }
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    equal(
        single("TRANSPOSE_CONV", inputs, [(kind, [1, 60, 40, 11], grid(SCALES["y"], zero))], **options),
        [x],
        interpreter,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "bias"),
    [
        ("CONV_2D", True),  # the interpreter takes none without
        ("TRANSPOSE_CONV", True),
        ("TRANSPOSE_CONV", False),
        ("FULLY_CONNECTED", True),
        ("FULLY_CONNECTED", False),
    ],
)
def test_sums_of_16_bits_kept_in_32_are_rounded_twice(
    single: Callable[..., bytes], interpreter: Interpreter, operator: str, bias: bool
) -> None:
    """The option quantized_bias_type says so: default and reference kernels differ, and both are followed."""
    generator = RNG(5)
    x = generator.integers(-300, 300, [500, 2] if operator == "FULLY_CONNECTED" else [1, 500, 1, 2]).astype(np.int16)
    shape = [*x.shape[:-1], 11]
    w = generator.integers(-3, 4, [11, 2] if operator == "FULLY_CONNECTED" else [11, 1, 1, 2]).astype(np.int8)
    inputs: dict[str, Any] = {"x": ("INT16", x.shape, grid(0.01)), "w": (w, grid(0.25))}
    if operator == "TRANSPOSE_CONV":
        inputs = {"s": np.array(shape, np.int32), "w": inputs["w"], "x": inputs["x"]}
    if bias:
        inputs["b"] = generator.integers(-200, 200, 11).astype(np.int32), grid(0.0025)
    options: dict[str, Any] = {"quantized_bias_type": "INT32"}
    if operator != "FULLY_CONNECTED":
        options.update(padding="VALID", stride_h=1, stride_w=1)
    source = single(operator, inputs, [("INT16", shape, grid(0.015))], **options)
    equal(source, [x], interpreter)
    [[wanted], [default]] = [interpreter.run(source, [[x]], k)[0] for k in (Kernels.REFERENCE, Kernels.DEFAULT)]
    [found] = Runtime(nnrewrite.convert(source, exact=True).SerializeToString(), threads=1, precise=True).run([x])
    np.testing.assert_array_equal(found, wanted)
    assert (wanted != default).any()


@pytest.mark.parametrize("kind", ["INT8", "INT16", "INT32"])
@pytest.mark.parametrize("ratio", [0.0007, 0.37, 1.0, 2.9])
def test_codes_of_16_bits_are_brought_to_another_grid_as_kernels_do(
    single: Callable[..., bytes], interpreter: Interpreter, kind: str, ratio: float
) -> None:
    x = np.arange(-32768, 32768).astype(np.int16)
    result = grid(0.01 / ratio, 7 if kind == "INT8" else 0)
    source = single("QUANTIZE", {"x": ("INT16", [65536], grid(0.01))}, [(kind, [65536], result)])
    equal(source, [x], interpreter)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("INT8", (0.0007, 3), (0.0007, 3)),
        ("UINT8", (0.03, 17), (0.012, 200)),
        ("INT16", (0.00002, 0), (0.00002, 0)),
    ],
)
@pytest.mark.parametrize("operator", ["EQUAL", "NOT_EQUAL", "LESS", "GREATER_EQUAL"])
def test_codes_are_compared_in_steps(
    single: Callable[..., bytes],
    interpreter: Interpreter,
    operator: str,
    kind: str,
    first: tuple[float, int],
    second: tuple[float, int],
) -> None:
    """Kernels compare numbers of eight binary places: codes on a finer grid are equal where those are."""
    limits = np.iinfo(np.dtype(kind.lower()))
    a = RNG(6).integers(max(limits.min, -500), min(limits.max, 500) + 1, [1, 300]).astype(limits.dtype)
    b = RNG(7).integers(max(limits.min, -500), min(limits.max, 500) + 1, [300, 1]).astype(limits.dtype)
    inputs = {"a": (kind, [1, 300], grid(*first)), "b": (kind, [300, 1], grid(*second))}
    equal(single(operator, inputs, [("BOOL", [300, 300])]), [a, b], interpreter)


@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
def test_quotients_of_codes_are_those_of_the_kernel(
    single: Callable[..., bytes], interpreter: Interpreter, kind: str
) -> None:
    """Also where the numerator is next to nothing, and the kernel shifts by more than a number has bits."""
    limits = np.iinfo(np.dtype(kind.lower()))
    every = np.arange(limits.min, limits.max + 1).astype(limits.dtype)
    inputs = {"a": (kind, [256, 1], grid(0.3, 5)), "b": (kind, [1, 255], grid(0.07, int(limits.min)))}
    source = single("DIV", inputs, [(kind, [256, 255], grid(0.21, 9))])
    equal(source, [every.reshape(-1, 1), every[1:].reshape(1, -1)], interpreter)


@pytest.mark.parametrize("operator", ["REDUCE_MAX", "CONCATENATION"])
def test_codes_whose_axes_are_joined_stay_on_their_grid(
    operator: str, interpreter: Interpreter, single: Callable[..., bytes]
) -> None:
    extents, known = [1, 2, 3, 2, 2, 3, 3], grid(0.05, 3)
    x = np.random.default_rng(0).integers(-100, 100, extents).astype(np.int8)
    operands: dict[str, Any] = {"x": ("INT8", extents, known)}
    if operator == "CONCATENATION":
        operands["z"], y, options = operands["x"], [1, 2, 3, 2, 4, 3, 3], {"axis": 4}
    else:
        operands["axes"], y, options = (np.array([3, 5], np.int32),), [1, 2, 3, 1, 2, 1, 3], {"keep_dims": True}
    source = single(operator, operands, [("INT8", y, known)], **options)
    made = nnrewrite.rewrite(source, to="tflite").encoded
    feeds = [[x, x] if operator == "CONCATENATION" else [x]]
    assert isinstance(made, Encoded)
    expected = interpreter.run(source, feeds, Kernels.REFERENCE)
    np.testing.assert_array_equal(interpreter.run(made.encode(), feeds)[0][0], expected[0][0])

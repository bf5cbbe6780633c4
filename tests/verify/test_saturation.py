"""Products of bytes: those that saturate on some processors are told of, and one target has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from nnrewrite.cli.commands.verify import command as verify
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter, Kernels, Runtime, compare_models, saturation
from nnrewrite.verify.layers import compare_layers
from nnrewrite.verify.verification_table import summarize
from onnx import TensorProto, helper, numpy_helper, parser

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(7)
SAFE, SAID = "onnxruntime-avx2", "products of bytes may saturate on x86 processors without VNNI"

#: two products of one row and one column, by one constant
TWICE = """
<ir_version: 8, opset_import: ["": 13]>
twice (uint8[1,2] x) => (int32[1,1] y, int32[1,1] z)
  <int8[2,1] w = {127, 127}> { y = MatMulInteger(x, w)  z = MatMulInteger(x, w) }
"""

#: the same with weights that are made real once, and results that are codes
SHARED = """
<ir_version: 8, opset_import: ["": 13]>
shared (uint8[1,2] x, uint8[1,2] v) => (uint8[1,1] y, uint8[1,1] z)
  <int8[2,1] w = {127, 127}, float s = {1.0}, float t = {512.0}, uint8 o = {0}, int8 zero = {0}> {
  a = DequantizeLinear(x, s, o)
  b = DequantizeLinear(v, s, o)
  r = DequantizeLinear(w, s, zero)
  p = MatMul(a, r)
  q = MatMul(b, r)
  y = QuantizeLinear(p, t, o)
  z = QuantizeLinear(q, t, o)
}
"""

#: a product of two values of codes, of which the runtime makes those unsigned that go from a Quantize to a Dequantize
CODES = """
<ir_version: 8, opset_import: ["": 13]>
codes (float[8,8] x, float[8,8] w) => (float[8,8] y) <float s = {0.1}, int8 z = {3}> {
  p = QuantizeLinear(x, s, z)
  a = DequantizeLinear(p, s, z)
  q = QuantizeLinear(w, s, z)
  BETWEEN
  b = DequantizeLinear(t, s, z)
  y = MatMul(a, b)
}
"""


def grid(*scales: float) -> Quantization:
    return Quantization(np.array(scales, np.float32), np.zeros(len(scales), np.int64))


def weights(largest: int, *shape: int) -> tuple[np.ndarray, Quantization]:
    """Weights of which one in each row is the largest: a scale for each row, one for a filter of single channels."""
    found = RNG.integers(-largest, largest + 1, shape, dtype=np.int8)
    found.reshape(len(found), -1)[:, 0] = largest
    scales = (0.02,) if shape[0] == 1 else tuple(np.linspace(0.01, 0.03, shape[0]))
    return found, grid(*scales)


def bias(w: tuple[np.ndarray, Quantization], count: int) -> tuple[np.ndarray, Quantization]:
    return RNG.integers(-500, 500, count, dtype=np.int32), grid(*(0.1 * w[1].scale))


def convolution(single: Callable[..., bytes], largest: int = 127) -> bytes:
    w = weights(largest, 16, 3, 3, 8)
    operands = {"x": ("INT8", [1, 9, 9, 8], grid(0.1)), "w": w, "b": bias(w, 16)}
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    return single("CONV_2D", operands, [("INT8", [1, 9, 9, 16], grid(2.0))], **options)


def depthwise(single: Callable[..., bytes]) -> bytes:
    w = weights(127, 1, 3, 3, 16)
    operands = {"x": ("INT8", [1, 9, 9, 16], grid(0.1)), "w": w, "b": bias(w, 16)}
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    return single("DEPTHWISE_CONV_2D", operands, [("INT8", [1, 9, 9, 16], grid(0.5))], **options)


def product(single: Callable[..., bytes]) -> bytes:
    operands = {"x": ("INT8", [3, 64], grid(0.1)), "w": weights(127, 10, 64)}
    return single("FULLY_CONNECTED", operands, [("INT8", [3, 10], grid(1.0))])


def product_16(single: Callable[..., bytes]) -> bytes:
    operands = {"x": ("INT16", [3, 1100], grid(0.001)), "w": weights(127, 10, 1100)}
    return single("FULLY_CONNECTED", operands, [("INT16", [3, 10], grid(0.1))])


def hybrid(single: Callable[..., bytes]) -> bytes:
    return single(
        "FULLY_CONNECTED", {"x": ("FLOAT32", [1, 512]), "w": weights(127, 1000, 512)}, [("FLOAT32", [1, 1000])]
    )


def signed(model: onnx.ModelProto) -> list[np.ndarray]:
    """The matrices and filters of signed bytes."""
    arrays = map(numpy_helper.to_array, model.graph.initializer)
    return [array for array in arrays if array.dtype == np.int8 and array.ndim > 1]


# ---- what is told


@pytest.mark.parametrize(
    ("made", "target"),
    [
        (convolution, "onnxruntime"),
        (product, "onnxruntime"),
        (hybrid, "onnxruntime"),
    ],
)
def test_products_that_may_saturate_are_told_of(
    single: Callable[..., bytes], made: Callable[..., bytes], target: str
) -> None:
    report = nnrewrite.rewrite(made(single), target=target).report
    [(said, count)] = report.told.items()
    assert said.startswith(SAID)
    assert SAFE in said
    assert count == 1
    assert f"{said}: 1 node" in report.remarks


def test_what_becomes_another_format_is_not_told_of() -> None:
    model = onnx.parser.parse_model(SHARED).SerializeToString()
    assert nnrewrite.rewrite(model, to="onnx").report.told
    assert not nnrewrite.rewrite(model, to="tflite").report.told


def test_products_of_16_bit_codes_cannot_saturate(single: Callable[..., bytes]) -> None:
    assert nnrewrite.rewrite(product_16(single), target="onnxruntime").report.told == {}


def test_signed_codes_that_come_from_no_operator_are_multiplied_as_such(single: Callable[..., bytes]) -> None:
    assert not nnrewrite.rewrite(product(single), target="portable").report.told


@pytest.mark.parametrize("made", [lambda single: convolution(single, 64), depthwise])
def test_weights_that_are_small_or_of_one_channel_are_left_as_they_are(
    single: Callable[..., bytes], made: Callable[..., bytes]
) -> None:
    conversion = nnrewrite.rewrite(made(single))
    assert not conversion.report.told
    assert len(signed(conversion.model)) == len(signed(nnrewrite.convert(made(single), target=SAFE))) == 1


@pytest.mark.parametrize("moved", [True, False])
def test_of_two_values_of_codes_one_that_stays_signed_is_told_of(monkeypatch: pytest.MonkeyPatch, moved: bool) -> None:
    monkeypatch.setattr(saturation, "can_saturate", lambda: True)
    text = CODES.replace("BETWEEN", "t = Transpose(q)" if moved else "").replace("(t,", "(t," if moved else "(q,")
    model = onnx.shape_inference.infer_shapes(parser.parse_model(text))
    assert bool(saturation.explain_saturation(model.SerializeToString())) == moved


def test_one_weight_beyond_the_bound_is_told_of(single: Callable[..., bytes]) -> None:
    assert sum(nnrewrite.rewrite(convolution(single, 65)).report.told.values()) == 1


# ---- the target that has none


@pytest.mark.parametrize("made", [convolution, depthwise, product, product_16, hybrid])
def test_the_safe_target_yields_what_the_kernels_do_on_any_processor(
    single: Callable[..., bytes], interpreter: Interpreter, made: Callable[..., bytes]
) -> None:
    source = made(single)
    conversion = nnrewrite.rewrite(source, target=SAFE)
    assert not conversion.report.told
    assert compare_models(source, conversion.model.SerializeToString(), interpreter=interpreter, samples=3).passed
    [described] = interpreter.describe(source).inputs
    if described.dtype == "float32":
        return
    least, most = np.iinfo(described.dtype).min, np.iinfo(described.dtype).max
    for code in (least, most):  # the sums that are furthest from zero
        feed = np.full(described.shape, code, described.dtype)
        [[want]] = interpreter.run(source, [[feed]], Kernels.DEFAULT)
        [got] = Runtime(conversion.model.SerializeToString()).run([feed])
        np.testing.assert_allclose(got, want, atol=1)


@pytest.mark.parametrize("made", [convolution, product, hybrid])
def test_the_safe_target_has_unsigned_weights(single: Callable[..., bytes], made: Callable[..., bytes]) -> None:
    assert len(signed(nnrewrite.convert(made(single)))) >= 1
    assert not signed(nnrewrite.convert(made(single), target=SAFE))


def test_unsigned_weights_of_the_source_stay_so(single: Callable[..., bytes]) -> None:
    codes = Quantization(np.array([0.1], np.float32), np.array([128]))
    x, w = ("UINT8", [3, 64], codes), (RNG.integers(0, 256, (10, 64), dtype=np.uint8), codes)
    source = single("FULLY_CONNECTED", {"x": x, "w": w}, [("UINT8", [3, 10], codes)])
    assert "signed_weights" in nnrewrite.rewrite(source).report.rules
    assert not {"signed_weights", "unsigned_weights"} & set(nnrewrite.rewrite(source, target=SAFE).report.rules)


# ---- this processor


def test_a_precise_runtime_saturates_nowhere() -> None:
    model = parser.parse_model(TWICE).SerializeToString()
    feed = np.full((1, 2), 255, np.uint8)
    for found in Runtime(model, precise=True).run([feed]):
        assert found.tolist() == [[2 * 255 * 127]]
    [plain, _] = Runtime(model).run([feed])
    assert (plain.item() != 2 * 255 * 127) == saturation.can_saturate()


def test_a_precise_runtime_takes_weights_that_several_nodes_read_as_real_numbers() -> None:
    model, feed = parser.parse_model(SHARED).SerializeToString(), np.full((1, 2), 255, np.uint8)
    for found in Runtime(model, precise=True).run([feed, feed]):
        assert found.tolist() == [[round(2 * 255 * 127 / 512)]]


def test_a_precise_runtime_takes_several_steps_without_zeros() -> None:
    codes, steps = np.arange(120, 128, dtype=np.int8).reshape(2, 4), np.array([1, 2, 4, 8], np.float32)
    node = helper.make_node("DequantizeLinear", ["codes", "steps"], ["y"], axis=1)
    constants = [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(steps, "steps")]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, codes.shape)
    graph = helper.make_graph([node], "g", [], [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    [found] = Runtime(model.SerializeToString(), precise=True).run([])
    assert np.array_equal(found, codes * steps)


@pytest.mark.parametrize("made", [hybrid])
def test_a_tensor_is_compared_as_if_nothing_saturated(
    single: Callable[..., bytes], interpreter: Interpreter, made: Callable[..., bytes]
) -> None:
    source = made(single)
    model = nnrewrite.convert(source)
    [step] = compare_layers(source, model.SerializeToString(), interpreter)
    assert step.comparison.verdict.passed
    assert step.saturates == saturation.can_saturate()
    for one in model.graph.initializer:
        array = numpy_helper.to_array(one)
        if array.dtype == np.int8 and array.ndim == 2:
            one.CopyFrom(numpy_helper.from_array(-array, one.name))
    [step] = compare_layers(source, model.SerializeToString(), interpreter)
    assert not step.comparison.verdict.passed
    assert not step.saturates


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (product, "outputs do, but not where products of bytes are kept from saturating"),
        (hybrid, "products of bytes saturate on this processor, and were kept from it for 1 of these tensors"),
    ],
)
def test_the_command_tells_what_saturates_from_what_is_wrong(
    single: Callable[..., bytes], tmp_path: Path, made: Callable[..., bytes], words: str
) -> None:
    source, target = tmp_path / "a.tflite", tmp_path / "a.onnx"
    source.write_bytes(made(single))
    onnx.save(nnrewrite.convert(source), target)
    run = CliRunner().invoke(verify, [f"{source}", f"{target}", "--per-layer"])
    assert "none differs" in run.output
    assert (words in run.output) == (SAFE in run.output) == saturation.can_saturate()


def test_what_differs_is_explained_where_products_saturate(
    single: Callable[..., bytes], interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = product(single)
    model = nnrewrite.convert(source)
    for one in model.graph.initializer:  # another model than the original, whatever the processor
        array = numpy_helper.to_array(one)
        if array.dtype == np.int8 and array.ndim == 2:
            one.CopyFrom(numpy_helper.from_array(-array, one.name))
    for saturates in (True, False):
        monkeypatch.setattr(saturation, "can_saturate", lambda known=saturates: known)
        found = compare_models(source, model.SerializeToString(), interpreter=interpreter)
        assert not found.passed
        assert found.saturation.startswith(SAID) == (SAFE in summarize(found)) == saturates
        assert summarize(replace(found, saturation="")) == "DIFFERENT"

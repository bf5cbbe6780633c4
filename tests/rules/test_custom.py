"""Custom operators: options in every form, those that stay as they are, and MediaPipe's by their definitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import custom
from nnrewrite.frontends.tflite_reader import read
from nnrewrite.verify import Interpreter, Kernels

Single = Callable[..., bytes]
F32 = "FLOAT32"


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def run(source: bytes, *inputs: np.ndarray, **asked: Any) -> list[np.ndarray]:
    model = nnrewrite.convert(source, **asked)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    return [np.asarray(y) for y in session.run(None, dict(zip(names, inputs, strict=True)))]


# ---- options


def test_options_may_be_a_c_struct(catalogue: Catalogue) -> None:
    spec = catalogue.find_dialect("tflite").operators["MaxPoolingWithArgmax2D"]
    raw = custom.pack_options({"padding": 2, "stride_h": 3}, spec)
    assert custom.read_options(memoryview(raw), spec)["stride_h"] == 3
    assert custom.read_options(memoryview(raw[:4]), spec) == {"padding": 2}


# ---- operators without a rule


def test_an_unknown_operator_is_refused_and_can_be_kept(single: Single) -> None:
    source = single("Unheard", {"x": (F32, [2])}, [(F32, [2])], alpha=0.5)
    with pytest.raises(nnrewrite.RewriteError, match=r"describes Unheard.*--keep-custom"):
        nnrewrite.convert(source)
    model = nnrewrite.convert(source, keep_custom=True)
    [node] = model.graph.node
    assert (node.domain, node.op_type) == ("tflite.custom", "Unheard")
    assert onnx.helper.get_attribute_value(node.attribute[0]) == 0.5
    assert {entry.domain for entry in model.opset_import} == {"", "tflite.custom"}


def test_builtin_operators_are_never_kept(single: Single) -> None:
    source = single("SKIP_GRAM", {"x": ("STRING", [1])}, [("STRING", [1])])
    with pytest.raises(nnrewrite.RewriteError, match="SKIP_GRAM"):
        nnrewrite.convert(source, keep_custom=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("edgetpu-custom-op", "compiled for Google's Edge TPU"),
        ("ethos-u", "Ethos-U"),
        ("NeutronGraph", "NXP's Neutron"),
        ("DISPATCH_OP", "accelerator"),
    ],
)
def test_compiled_programs_are_refused_for_what_they_are(single: Single, name: str, words: str) -> None:
    source = single(name, {"x": (F32, [2])}, [(F32, [2])])
    with pytest.raises(nnrewrite.RewriteError, match=words):
        nnrewrite.convert(source)


def write_working_operator(catalogue: Catalogue, name: str) -> bytes:
    """A model of an operator that reads its input, and a tensor that is room to work in: nothing ever yields it."""
    x, y, room = (
        ir.Value(name=word, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2])) for word in ("x", "y", "room")
    )
    node = ir.Node("tflite.custom", name, [x, room], outputs=[y])
    return write(ir.Model(ir.Graph([x], [y], nodes=[node], name="main"), ir_version=10), catalogue)


def test_a_custom_operator_may_have_room_to_work_in(catalogue: Catalogue) -> None:
    with pytest.raises(nnrewrite.RewriteError, match="compiled for Arm's Ethos-U"):
        nnrewrite.convert(write_working_operator(catalogue, "ethos-u"))
    unheard = write_working_operator(catalogue, "Unheard")
    [node] = nnrewrite.convert(unheard, keep_custom=True).graph.node
    assert list(node.input) == ["x", ""]
    again = read(nnrewrite.rewrite(unheard, to="tflite").encoded.encode(), catalogue)
    [kept] = again.graph
    assert [value.name for value in kept.inputs if value is not None] == ["x", "room"]


def test_bytes_that_are_no_options_are_kept_as_bytes(models_folder: Path) -> None:
    model = nnrewrite.convert(next(models_folder.rglob("test_custom_node_with_init_data.tflite")), keep_custom=True)
    [node] = model.graph.node
    assert onnx.numpy_helper.to_array(onnx.helper.get_attribute_value(node.attribute[0])).tobytes() == b"ABC"


# ---- boxes of detectors


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("each", [1, 2])
def test_detections_are_the_interpreters(single: Single, interpreter: Interpreter, regular: bool, each: int) -> None:
    anchors = np.random.default_rng(3).uniform(0.2, 0.6, (40, 4)).astype(np.float32)
    encodings, scores = noise(1, 40, 4) * 3, np.abs(noise(1, 40, 4, seed=1))
    shapes = {"e": (F32, [1, 40, 4]), "p": (F32, [1, 40, 4]), "a": anchors}
    results = [(F32, [1, 6 * each, 4]), (F32, [1, 6 * each]), (F32, [1, 6 * each]), (F32, [1])]
    for threshold, iou in ((0.0, 0.5), (0.6, 0.3), (0.95, 0.6), (2.0, 0.5)):
        source = single(
            "TFLite_Detection_PostProcess",
            shapes,
            results,
            max_detections=6,
            max_classes_per_detection=each,
            detections_per_class=3,
            use_regular_nms=regular,
            num_classes=3,
            nms_score_threshold=threshold,
            nms_iou_threshold=iou,
            y_scale=10.0,
            x_scale=10.0,
            h_scale=5.0,
            w_scale=5.0,
        )
        [want] = interpreter.run(source, [[encodings, scores]], Kernels.DEFAULT)
        found = run(source, encodings, scores)
        assert found[3] == want[3]
        count = int(found[3][0]) * (1 if regular else each)  # what lies behind is left as memory was
        for one, other in zip(found[:3], want[:3], strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one[:, :count], other[:, :count], rtol=1e-5, atol=1e-6)
            assert not one[:, count:].any()


# ---- MediaPipe


@pytest.mark.parametrize(("size", "stride", "padding"), [(2, 2, 1), (3, 2, 1), (3, 2, 2), (2, 1, 2)])
def test_maxima_know_their_place_in_the_window(single: Single, size: int, stride: int, padding: int) -> None:
    x = noise(1, 7, 6, 2)
    count = [-(-n // stride) if padding == 1 else (n - size) // stride + 1 for n in (7, 6)]
    before = [
        max((c - 1) * stride + size - n, 0) // 2 if padding == 1 else 0 for c, n in zip(count, (7, 6), strict=True)
    ]
    values, places = np.zeros((1, *count, 2), np.float32), np.zeros((1, *count, 2), np.float32)
    for i, j, c in np.ndindex(*count, 2):
        window = np.full((size, size), -np.inf)
        for a, b in np.ndindex(size, size):
            row, column = i * stride + a - before[0], j * stride + b - before[1]
            if 0 <= row < 7 and 0 <= column < 6:
                window[a, b] = x[0, row, column, c]
        values[0, i, j, c], places[0, i, j, c] = window.max(), window.argmax() + 0.1
    options = {"padding": padding, "stride_w": stride, "stride_h": stride, "filter_width": size, "filter_height": size}
    source = single("MaxPoolingWithArgmax2D", {"x": (F32, x.shape)}, [(F32, values.shape)] * 2, **options)
    found, at = run(source, x)
    np.testing.assert_array_equal(found, values)
    np.testing.assert_allclose(at, places, atol=1e-6)


def test_unpooling_puts_each_element_in_its_place(single: Single) -> None:
    x, at = noise(1, 2, 3, 2), np.random.default_rng(1).integers(0, 4, (1, 2, 3, 2)) + np.float32(0.1)
    want = np.zeros((1, 4, 6, 2), np.float32)
    for i, j, c in np.ndindex(2, 3, 2):
        place = int(at[0, i, j, c])
        want[0, 2 * i + place // 2, 2 * j + place % 2, c] = x[0, i, j, c]
    shapes = {"x": (F32, x.shape), "at": (F32, at.shape)}
    options = {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    source = single("MaxUnpooling2D", shapes, [(F32, want.shape)], **options)
    [found] = run(source, x, at.astype(np.float32))
    np.testing.assert_array_equal(found, want)


MATRIX = np.array([[0.9, 0.3, 0, -0.7], [-0.2, 1.1, 0, 0.6], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)


@pytest.mark.parametrize("coordinates", [2, 3])
def test_landmarks_are_transformed_but_for_their_third_coordinate(single: Single, coordinates: int) -> None:
    x = noise(1, 5, coordinates)
    want = x.copy()
    want[0, :, :2] = x[0, :, :2] @ MATRIX[:2, :2].T + MATRIX[:2, 3]
    source = single("TransformLandmarks", {"x": (F32, x.shape), "m": (F32, [1, 4, 4])}, [(F32, x.shape)])
    [found] = run(source, x, MATRIX[None])
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_a_tensor_is_read_where_a_matrix_says(single: Single) -> None:
    x = noise(1, 6, 7, 2)
    want = np.zeros((1, 5, 8, 2), np.float32)
    for i, j in np.ndindex(5, 8):
        u, v = MATRIX[:2, :2] @ [j + 0.5, i + 0.5] + MATRIX[:2, 3] - 0.5
        if not (0 <= u <= 6 and 0 <= v <= 5):
            continue
        a, b = int(v), int(u)
        rows, columns = [a, min(a + 1, 5)], [b, min(b + 1, 6)]
        weights = np.outer([1 - (v - a), v - a], [1 - (u - b), u - b])
        want[0, i, j] = np.einsum("ij,ijc->c", weights, x[0][np.ix_(rows, columns)])
    shapes = {"x": (F32, x.shape), "m": (F32, [1, 4, 4])}
    source = single("TransformTensorBilinear", shapes, [(F32, want.shape)], output_height=5, output_width=8)
    [found] = run(source, x, MATRIX[None])
    assert 0 < np.count_nonzero(want[..., 0]) < 40
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def shift(x: float, y: float) -> np.ndarray:
    return np.array([[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, 0], [0, 0, 0, 1]])


def turn(r: float) -> np.ndarray:
    return np.array([[np.cos(r), -np.sin(r), 0, 0], [np.sin(r), np.cos(r), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_landmarks_say_where_a_picture_is(single: Single) -> None:
    x, subset = noise(1, 8, 3, seed=4) * 20, [0, 3, 5, 6, 7, 2]
    v = x[0, 4] - x[0, 1]
    r = 0.3 - np.arctan2(v[1], v[0])
    points = x[0, subset, :2] @ turn(r)[:2, :2].T
    low, high = points.min(axis=0), points.max(axis=0)
    middle = turn(-r)[:2, :2] @ ((low + high) / 2)
    scale = np.diag([*(np.array([1.5, 1.25]) * (high - low) / [6, 4]), 1, 1])
    want = shift(*middle) @ turn(-r) @ scale @ shift(-3, -2)
    source = single(
        "Landmarks2TransformMatrix",
        {"x": (F32, x.shape)},
        [(F32, [1, 4, 4])],
        left_rotation_idx=1,
        right_rotation_idx=4,
        target_rotation_radians=0.3,
        output_height=4,
        output_width=6,
        scale_x=1.5,
        scale_y=1.25,
        subset_idxs=subset,
    )
    [found] = run(source, x)
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("limit", "taken"), [(4000.0, True), (4001.0, False)])
def test_frequencies_above_half_the_sample_rate_are_refused(single: Single, limit: float, taken: bool) -> None:
    inputs = {"spectrogram": (F32, [1, 2, 65]), "sample_rate": np.array(8000, np.int32)}
    counts = {"filterbank_channel_count": 10, "dct_coefficient_count": 6}
    source = single(
        "Mfcc", inputs, [(F32, [1, 2, 6])], upper_frequency_limit=limit, lower_frequency_limit=20.0, **counts
    )
    if taken:
        assert nnrewrite.convert(source).graph.node
        return
    with pytest.raises(nnrewrite.RewriteError, match="half the sample rate"):
        nnrewrite.convert(source)

"""Recurrent layers whose weights are codes and whose activations the runtime quantizes by their range."""

from __future__ import annotations

import nnrewrite
import numpy as np
import onnx
import onnx.helper as helper
import pytest
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime

pytestmark = pytest.mark.slow

SIZE, WIDTH = 48, 40


def make(steps: int, samples: int | str, both: bool, scales: int = 1, weights: type = np.int8) -> bytes:
    """An LSTM as ONNX Runtime's quantizer writes it."""
    generator, directions = np.random.default_rng(1), 2 if both else 1
    low, high = (-90, 91) if weights is np.int8 else (0, 256)
    constants = {
        "w": generator.integers(low, high, (directions, WIDTH, 4 * SIZE)).astype(weights),
        "r": generator.integers(low, high, (directions, SIZE, 4 * SIZE)).astype(weights),
        "b": generator.uniform(-0.1, 0.1, (directions, 8 * SIZE)).astype(np.float32),
        **{f"{one}s": generator.uniform(1e-3, 2e-3, (directions, scales)[: 1 + (scales > 1)]) for one in "wr"},
        **{f"{one}z": np.full((directions, scales)[: 1 + (scales > 1)], 0, weights) for one in "wr"},
    }
    constants |= {name: constants[name].astype(np.float32) for name in ("ws", "rs")}
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"],
        ["y", "h", "c"],
        domain="com.microsoft",
        hidden_size=SIZE,
        direction="bidirectional" if both else "forward",
    )
    real = onnx.TensorProto.FLOAT
    state = [directions, samples, SIZE]
    graph = helper.make_graph(
        [node],
        "model",
        [helper.make_tensor_value_info("x", real, [steps, samples, WIDTH])],
        [
            helper.make_tensor_value_info("y", real, [steps, directions, samples, SIZE]),
            *(helper.make_tensor_value_info(name, real, state) for name in ("h", "c")),
        ],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())


def convert(model: bytes, **options: str) -> bytes:
    encoded = nnrewrite.rewrite(model, to="tflite", **options).encoded
    assert isinstance(encoded, Encoded)
    return encoded.encode()


@pytest.mark.parametrize("scales", [1, 4 * SIZE], ids=["one", "each"])
@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("steps", [1, 5, 30])
def test_a_layer_of_codes_has_the_numbers_of_the_runtime(
    steps: int, both: bool, scales: int, interpreter: Interpreter
) -> None:
    model = make(steps, 1, both, scales)
    x = np.random.default_rng(0).standard_normal((steps, 1, WIDTH)).astype(np.float32)
    wanted = Runtime(model, precise=True).run([x])
    (found,) = interpreter.run(convert(model), [[x]], Kernels.DEFAULT)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)


@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
def test_weights_of_a_layer_of_codes_stay_bytes(both: bool) -> None:
    model = make(30, "n", both)
    assert len(convert(model)) < 2 * len(model) < len(convert(model, hybrid="real"))


@pytest.mark.parametrize("options", [{}, {"hybrid": "real"}], ids=["codes", "real"])
@pytest.mark.parametrize("samples", [1, 3, "n"])
@pytest.mark.thorough
def test_what_rounding_by_range_changes_is_no_difference(samples: int | str, options: dict[str, str]) -> None:
    model = make(5, samples, False)
    assert compare_models(model, convert(model, **options)).passed


def test_another_order_of_gates_is_a_difference() -> None:
    model = onnx.load_model_from_string(make(5, 2, False))
    turned = onnx.load_model_from_string(make(5, 2, False))
    for one in turned.graph.initializer:
        if one.name == "b":
            bias = onnx.numpy_helper.to_array(one)
            one.CopyFrom(onnx.numpy_helper.from_array(np.roll(bias, SIZE, axis=1), "b"))
    assert not compare_models(model.SerializeToString(), convert(turned.SerializeToString(), hybrid="real")).passed

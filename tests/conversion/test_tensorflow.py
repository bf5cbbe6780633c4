"""What needs TensorFlow: networks made and converted to TensorFlow Lite here and now, against TensorFlow itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnxruntime
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: `make test-tf` has it")
pytestmark = pytest.mark.tensorflow

layers = tf.keras.layers


def image() -> Any:
    return tf.keras.Sequential(
        [
            layers.Input((16, 16, 3), batch_size=1),
            layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(max_value=6.0),
            layers.UpSampling2D(interpolation="bilinear"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4, activation="softmax"),
        ]
    )


def recurrent() -> Any:
    given = layers.Input((7, 5), batch_size=1)
    both = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(given)
    return tf.keras.Model(given, layers.Dense(3)(layers.GRU(4)(both)))


def attention() -> Any:
    given = layers.Input((6, 8), batch_size=1)
    seen = layers.MultiHeadAttention(num_heads=2, key_dim=4)(given, given)
    return tf.keras.Model(given, layers.LayerNormalization()(layers.add([seen, given])))


def convert(network: Any, **settings: Any) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    for name, value in settings.items():
        setattr(converter, name, value)
    made: bytes = converter.convert()
    return made


def run(model: bytes, given: Any) -> Any:
    session = onnxruntime.InferenceSession(nnrewrite.convert(model).SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: given})[0]


@pytest.mark.parametrize("make", [image, recurrent, attention])
def test_a_network_computes_what_tensorflow_computes(make: Callable[[], Any]) -> None:
    tf.keras.utils.set_random_seed(0)
    network = make()
    given = np.random.default_rng(0).standard_normal(network.input_shape).astype(np.float32)
    np.testing.assert_allclose(run(convert(network), given), network(given).numpy(), rtol=1e-4, atol=1e-5)


def test_a_network_that_tensorflow_quantizes_stays_close_to_it() -> None:
    tf.keras.utils.set_random_seed(0)
    network, draw = image(), np.random.default_rng(0)
    samples = [draw.standard_normal(network.input_shape).astype(np.float32) for _ in range(8)]
    model = convert(
        network, optimizations=[tf.lite.Optimize.DEFAULT], representative_dataset=lambda: ([one] for one in samples)
    )
    kinds = nnrewrite.rewrite(model).report.target_operators
    assert kinds["QuantizeLinear"] and kinds["DequantizeLinear"]
    for one in samples:
        np.testing.assert_allclose(run(model, one), network(one).numpy(), atol=0.05)

"""Random networks of Keras in every quantization of TensorFlow's converter. Runs in an environment with TensorFlow.

    python wild_networks.py FOLDER --count 100 --seed 1

Writes FOLDER/KIND/NAME.tflite. Nothing is written of what Keras or the converter refuses; standard error says why.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from numpy.random import Generator
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from wild_children import Made, read_arguments, write_each
from wild_layers import ANY, BLOCKS, one

LARGEST = 40000
KINDS = ("float32", "float16", "dynamic range", "int8", "int8 throughout", "uint8 at the ends", "int16x8")


def draw_input(draw: Generator) -> Any:
    """An image, a sequence, tokens, a vector or a volume."""
    rank = int(draw.choice([2, 3, 4, 4, 4, 3, 5, 0]))
    if rank == 0:
        return layers.Input((int(draw.integers(4, 10)),), dtype="int32")
    return layers.Input((*(int(extent) for extent in draw.integers(6, 13, rank - 2)), int(draw.integers(2, 9))))


def draw_network(seed: int) -> tuple[Any, list[str]]:
    """A network of some random blocks, and their names."""
    draw = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    entry = draw_input(draw)
    tokens = len(entry.shape) == 2 and entry.dtype == "int32"
    value = layers.Embedding(10, 8, mask_zero=bool(draw.integers(2)))(entry) if tokens else entry
    names: list[str] = []
    wanted = int(draw.integers(2, 7))
    for _ in range(40):
        if len(names) == wanted:
            break
        choices = {**BLOCKS[len(value.shape)], **(ANY if draw.random() < 0.4 else {})}
        name = str(draw.choice(list(choices)))
        try:
            found = choices[name](draw, value)
        except (ValueError, ZeroDivisionError, TypeError, IndexError, AttributeError) as error:
            print(f"{seed}: {name} on {value.shape}: {error}"[:200], file=sys.stderr)
            continue
        if None in found.shape[1:] or len(found.shape) not in BLOCKS or not 0 < np.prod(found.shape[1:]) < LARGEST:
            continue
        value, names = found, [*names, name]
    if draw.random() < 0.4:
        value = layers.Flatten()(value)
        if value.shape[1] < 2000 and draw.random() < 0.5:
            value = layers.Dense(300, activation="relu")(value)
        value = layers.Dense(10, activation="softmax")(value)
    model = keras.Model(entry, value)
    # Biases, factors and running means begin as zeros and ones, which says nothing.
    for weight in model.weights:
        if str(weight.dtype).startswith("float") and not np.ptp(weight.numpy()):
            weight.assign(weight.numpy() + draw.uniform(0.0, 0.3, weight.shape))
    return model, names


def convert(model: Any, kind: str, seed: int, batch: int | None, named: bool = False) -> bytes:
    """A model as TensorFlow's converter makes it of a kind, with a signature where the batch is free or `named`."""
    entry = model.inputs[0]
    if named:
        fixed = layers.Input(batch_shape=(batch, *entry.shape[1:]), dtype=entry.dtype)
        converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(fixed, model(fixed)))
    elif batch is None:
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
    else:
        specification = tf.TensorSpec((batch, *entry.shape[1:]), entry.dtype)
        function = tf.function(lambda x: model(x, training=False), input_signature=[specification])
        frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=False)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    wanted = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    converter.target_spec.supported_ops = wanted
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind not in ("float32", "float16", "dynamic range"):
        converter.representative_dataset = lambda: samples(entry, seed, batch or 1)
        if kind == "int16x8":
            exact = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            converter.target_spec.supported_ops = [exact, *wanted]
    if kind in ("int8 throughout", "uint8 at the ends") and entry.dtype != "int32":
        at_ends = tf.int8 if kind == "int8 throughout" else tf.uint8
        converter.inference_input_type = converter.inference_output_type = at_ends
    return bytes(converter.convert())


def samples(entry: Any, seed: int, batch: int) -> Iterator[list[Any]]:
    draw = np.random.default_rng(seed)
    for _ in range(8):
        shape = (batch, *entry.shape[1:])
        if entry.dtype == "int32":
            yield [draw.integers(0, 10, shape).astype(np.int32)]
        else:
            yield [draw.uniform(-1, 1, shape).astype(np.float32)]


def main() -> None:
    asked = read_arguments(100)
    makers = {}
    for number in range(asked.count):
        seed, kind = asked.seed * 100000 + number, KINDS[number % len(KINDS)]
        makers[f"{kind.replace(' ', '_')}/{seed}.tflite"] = partial(make, seed, kind)
    write_each(asked.folder, makers)


def make(seed: int, kind: str) -> Made:
    """The network of a seed as a model, half of them of any batch, and what Keras computes with real numbers."""
    model, names = draw_network(seed)
    print(seed, *names, file=sys.stderr)
    batch = one(np.random.default_rng(seed), None, None, 1, 2)
    content = convert(model, kind, seed, batch)
    if kind != "float32" or b"Flex" not in content:  # the others run in an interpreter
        return Made(content)
    (value,) = next(samples(model.inputs[0], seed, batch or 2))
    return Made(content, {"in:": value, "out:0": np.asarray(model(value))})


if __name__ == "__main__":
    main()

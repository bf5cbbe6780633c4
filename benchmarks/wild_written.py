"""Networks of wild_architectures.py in every quantization of TensorFlow's converter and of ai-edge-quantizer.

    python wild_written.py FOLDER --count 100 --seed 1

Networks take turns, and so do kinds. Runs in an environment with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from ai_edge_quantizer import qtyping, quantizer, recipe
from wild_architectures import APPLICATIONS, ARCHITECTURES
from wild_children import Made, read_arguments, write_each
from wild_networks import keras

#: kinds of TensorFlow's converter, recipes by name, and recipes of our own: bits of weights and of activations, the
#: compute precision, granularity and algorithm
CONVERTED = ("float32", "float16", "dynamic range", "int8", "int8 throughout", "uint8 at the ends", "int16x8")
RECIPES = (
    "dynamic_wi8_afp32", "dynamic_wi4c_afp32", "static_wi8_ai8", "static_wi8_ai16", "weight_only_wi8_afp32",
    "weight_only_wi4_afp32", "dynamic_wi4b32_afp32", "dynamic_wi8c_hr_afp32",
)  # fmt: skip
OWN = {
    "float casting": (16, None, "float", "TENSORWISE", "float_casting"),
    "static wi4 ai8": (4, 8, "integer", "CHANNELWISE", "min_max_uniform_quantize"),
    "static wi4 ai16": (4, 16, "integer", "CHANNELWISE", "min_max_uniform_quantize"),
    "static wi8t ai8": (8, 8, "integer", "TENSORWISE", "min_max_uniform_quantize"),
    "dynamic wi4t": (4, None, "integer", "TENSORWISE", "min_max_uniform_quantize"),
    "weight only wi4 octav": (4, None, "float", "CHANNELWISE", "OCTAV"),
    "weight only wi4b32": (4, None, "float", "BLOCKWISE_32", "min_max_uniform_quantize"),
    "dynamic wi4b64": (4, None, "integer", "BLOCKWISE_64", "min_max_uniform_quantize"),
    "dynamic wi8b128": (8, None, "integer", "BLOCKWISE_128", "min_max_uniform_quantize"),
}


def samples(shapes: dict[str, tuple[tuple[int, ...], Any]], seed: int) -> Iterator[dict[str, Any]]:
    """Eight samples in the range of what models are verified with."""
    draw = np.random.default_rng(seed)
    for _ in range(8):
        yield {
            name: draw.integers(0, 10, shape).astype(kind)
            if np.issubdtype(kind, np.integer)
            else draw.uniform(-1, 1, shape).astype(kind)
            for name, (shape, kind) in shapes.items()
        }


def read_recipe(name: str) -> Any:
    """A recipe by its name, of the library's or of ours."""
    if name not in OWN:
        return getattr(recipe, name)()
    bits, activation, precision, granularity, algorithm = OWN[name]
    weight = qtyping.TensorQuantizationConfig(
        num_bits=bits, symmetric=True, granularity=qtyping.QuantGranularity[granularity],
        dtype=qtyping.TensorDataType.FLOAT if algorithm == "float_casting" else qtyping.TensorDataType.INT,
    )  # fmt: skip
    config = qtyping.OpQuantizationConfig(
        activation_tensor_config=activation
        and qtyping.TensorQuantizationConfig(activation, symmetric=activation == 16),
        weight_tensor_config=weight,
        compute_precision=qtyping.ComputePrecision[precision.upper()],
        explicit_dequantize=precision == "float",
    )
    return [
        {"regex": ".*", "operation": "*", "algorithm_key": algorithm, "op_config": config.to_dict()},
    ]


def quantize(content: bytes, name: str, seed: int) -> bytes:
    """A model of real numbers, quantized by a recipe."""
    made = quantizer.Quantizer(bytearray(content), read_recipe(name))
    ranges = None
    if made.need_calibration:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_content=content)
        (signature,) = interpreter.get_signature_list()
        entries = interpreter.get_signature_runner(signature).get_input_details()
        shapes = {key: (tuple(one["shape"]), one["dtype"]) for key, one in entries.items()}
        ranges = made.calibrate({signature: list(samples(shapes, seed))})
    return bytes(made.quantize(ranges, enable_progress_report=False).quantized_model)


def convert(model: Any, kind: str, seed: int, batch: int | None) -> bytes:
    """A model as TensorFlow's converter makes it of a kind."""
    entries = [
        keras.Input(batch_shape=(batch, *one.shape[1:]), dtype=one.dtype, name=f"in{at}")
        for at, one in enumerate(model.inputs)
    ]
    converter = tf.lite.TFLiteConverter.from_keras_model(
        keras.Model(entries, model(entries if len(entries) > 1 else entries[0]))
    )
    wanted = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    converter.target_spec.supported_ops = wanted
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind not in ("float32", "float16", "dynamic range"):
        shapes = {one.name: ((batch or 1, *one.shape[1:]), np.dtype(one.dtype)) for one in entries}
        converter.representative_dataset = lambda: (list(one.values()) for one in samples(shapes, seed))
        if kind == "int16x8":
            exact = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            converter.target_spec.supported_ops = [exact, *wanted]
    if kind in ("int8 throughout", "uint8 at the ends") and all(one.dtype == "float32" for one in model.inputs):
        at_ends = tf.int8 if kind == "int8 throughout" else tf.uint8
        converter.inference_input_type = converter.inference_output_type = at_ends
    return bytes(converter.convert())


def numbered(results: Any) -> dict[str, Any]:
    """Results under names whose order is theirs."""
    return {f"result_{at:02}": result for at, result in enumerate(tf.nest.flatten(results))}


def make(name: str, seed: int, kind: str) -> Made:
    """A network, and what Keras computes where the interpreter cannot."""
    draw = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = {**ARCHITECTURES, **APPLICATIONS}[name](int(draw.integers(4, 8)), 32 * int(draw.integers(1, 3)))
    for weight in model.weights:
        if str(weight.dtype).startswith("float") and not np.ptp(weight.numpy()):
            weight.assign(weight.numpy() + draw.uniform(0.0, 0.3, weight.shape))
    converted = kind in CONVERTED
    batch = None if converted and draw.random() < 0.3 else 1
    content = convert(model, kind if converted else "float32", seed, batch)
    if not converted:
        return Made(quantize(content, kind, seed))
    if kind != "float32" or b"Flex" not in content:  # the others run in an interpreter
        return Made(content)
    shapes = {f"in{at}": ((batch or 2, *one.shape[1:]), np.dtype(one.dtype)) for at, one in enumerate(model.inputs)}
    value = next(samples(shapes, seed))
    results = numbered(model(list(value.values()) if len(value) > 1 else next(iter(value.values()))))
    found = {f"out:{at}": np.asarray(one) for at, one in enumerate(results.values())}
    return Made(content, {f"in:{key}": one for key, one in value.items()} | found)


def main() -> None:
    asked = read_arguments(100)
    names, kinds = list(ARCHITECTURES) + list(APPLICATIONS), [*CONVERTED, *RECIPES, *OWN]
    makers = {}
    for number in range(asked.count):
        turn, at = divmod(number, len(names))
        # a stride that has no divisor in common with the number of kinds, so that a network meets all in turn
        seed, kind = asked.seed * 1000 + number, kinds[(at + turn * 7 + asked.seed) % len(kinds)]
        makers[f"{kind.replace(' ', '_')}/{names[at]}-{seed}.tflite"] = partial(make, names[at], seed, kind)
    write_each(asked.folder, makers, 300)


if __name__ == "__main__":
    main()

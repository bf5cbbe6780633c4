"""Random networks of Keras quantized by the recipes of ai-edge-quantizer. Runs in an environment with both.

    python wild_quantizer.py FOLDER --count 100 --seed 1

Networks are those of wild_networks.py, with a fixed batch, and some that are written out here, whose widths are multiples
of the blocks that weights are quantized by; recipes take turns.
"""

# Networks that are written out stand in a line each.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from ai_edge_quantizer import quantizer, recipe
from wild_children import Made, read_arguments, write_each
from wild_networks import convert, draw_network, keras, layers

#: the interpreter reads weights of 2 bits of convolutions as bytes, and what lies behind them: none of their recipes
RECIPES = (
    "dynamic_wi8c_afp32", "dynamic_wi4c_afp32", "dynamic_wi8c_hr_afp32", "dynamic_wi8b32_afp32",
    "dynamic_wi4b32_afp32", "dynamic_wi2b32_afp32", "dynamic_legacy_wi8_afp32",
    "static_wi8_ai8", "static_wi8_ai16", "weight_only_wi8_afp32", "weight_only_wi4_afp32",
    "dynamic_wi4c_hr_afp32", "static_wi8_ai8", "static_wi8_ai16",
)  # fmt: skip


def calibration(name: str, entry: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Eight samples in the range of what models are verified with."""
    draw = np.random.default_rng(seed)
    shape, kind = tuple(entry["shape"]), entry["dtype"]
    for _ in range(8):
        whole = kind == np.int32
        yield {name: draw.integers(0, 10, shape).astype(kind) if whole else draw.uniform(-1, 1, shape).astype(kind)}


def attend(x: Any, units: int) -> Any:
    y = layers.LayerNormalization()(x)
    y = layers.MultiHeadAttention(2, units // 2)(y, y)
    x = layers.Add()([x, y])
    y = layers.Dense(2 * units, activation="gelu")(layers.LayerNormalization()(x))
    return layers.Add()([x, layers.Dense(units)(y)])


def language(n: int, w: int) -> Any:
    entry = layers.Input((n,), dtype="int32")
    x = attend(layers.Embedding(16, w)(entry), w)
    return keras.Model(entry, layers.Dense(16, activation="softmax")(layers.RMSNormalization()(x)))


def stacked(entry: Any, *body: Any) -> Any:
    x = entry
    for layer in body:
        x = layer(x)
    return keras.Model(entry, x)


#: networks of an extent and a width
NETWORKS: dict[str, Callable[[int, int], Any]] = {
    "language": language,
    "vision": lambda n, w: stacked(
        layers.Input((4 * n, 4 * n, 3)),
        layers.Conv2D(w, 4, 4),
        layers.Reshape((-1, w)),
        lambda x: attend(x, w),
        layers.GlobalAveragePooling1D(),
        layers.Dense(10),
    ),
    "images": lambda n, w: stacked(
        layers.Input((2 * n, 2 * n, 3)),
        layers.Conv2D(w, 3, 2, activation="relu", padding="same"),
        layers.Conv2D(w, 3, padding="same", activation="silu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(w, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ),
    "mobile": lambda n, w: stacked(
        layers.Input((2 * n, 2 * n, w)),
        layers.DepthwiseConv2D(3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(6.0),
        layers.Conv2D(2 * w, 1),
        layers.Activation("hard_silu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(5),
    ),
    "decoder": lambda n, w: stacked(
        layers.Input((n, n, w)),
        layers.Conv2DTranspose(w, 3, 2, padding="same", activation="relu"),
        layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh"),
    ),
    "waves": lambda n, w: stacked(
        layers.Input((4 * n, w)),
        layers.Conv1D(w, 3, padding="causal", activation="tanh"),
        layers.Conv1D(w, 5, 2, padding="same", activation="gelu"),
        layers.LSTM(w, unroll=True),
        layers.Dense(4),
    ),
    "tabular": lambda n, w: stacked(
        layers.Input((w,)),
        layers.Dense(2 * w, activation="relu"),
        layers.LayerNormalization(),
        layers.Dense(w, activation="selu"),
        layers.Dense(3, activation="sigmoid"),
    ),
    "mixer": lambda n, w: stacked(
        layers.Input((n, w)),
        layers.LayerNormalization(),
        layers.Permute((2, 1)),
        layers.Dense(32, activation="gelu"),
        layers.Dense(n),
        layers.Permute((2, 1)),
        layers.Dense(w, activation="gelu"),
        layers.Dense(w),
    ),
}


def draw_written(seed: int) -> Any:
    """A network that is written out, of a width that is a multiple of 32, with biases that are not zeros."""
    draw = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = list(NETWORKS.values())[int(draw.integers(len(NETWORKS)))](
        int(draw.integers(4, 9)), 32 * int(draw.integers(1, 4))
    )
    for weight in model.weights:
        if str(weight.dtype).startswith("float") and not np.ptp(weight.numpy()):
            weight.assign(weight.numpy() + draw.uniform(0.0, 0.3, weight.shape))
    return model


def make(seed: int, name: str, written: bool = False) -> Made:
    """The network of a seed, quantized by a recipe."""
    model = draw_written(seed) if written else draw_network(seed)[0]
    content = convert(model, "float32", seed, 1, named=True)
    made = quantizer.Quantizer(bytearray(content), getattr(recipe, name)())
    ranges = None
    if made.need_calibration:
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(model_content=content).get_signature_runner("serving_default")
        ((key, entry),) = runner.get_input_details().items()
        ranges = made.calibrate({"serving_default": list(calibration(key, entry, seed))})
    return Made(bytes(made.quantize(ranges, enable_progress_report=False).quantized_model))


def main() -> None:
    asked = read_arguments(100)
    makers = {}
    for number in range(asked.count):
        seed, name = asked.seed * 100000 + 50000 + number, RECIPES[number % len(RECIPES)]
        makers[f"{name}/{seed}.tflite"] = partial(make, seed, name, number % 3 == 2)
    write_each(asked.folder, makers)


if __name__ == "__main__":
    main()

"""Recurrent layers of Keras as TensorFlow's converter exports them by default: of any batch, with lists of tensors.

    python wild_recurrent.py FOLDER --count 40 --seed 1

Layers take turns, options are drawn. Each model has a sample beside it. Runs in an environment with TensorFlow.
"""

# The table has a layer a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from wild_children import Made, read_arguments, write_each
from wild_layers import one
from wild_networks import convert, keras, layers

CELLS = (layers.LSTMCell, layers.GRUCell, layers.SimpleRNNCell)
QUANTIZED = ("dynamic range", "float16", "int8")
LAYERS = (layers.LSTM, layers.GRU, layers.SimpleRNN)


def options(draw: Generator, kind: Any) -> dict[str, Any]:
    """Options of a layer or a cell."""
    found = {"use_bias": bool(draw.random() < 0.8)}
    if kind in (layers.GRU, layers.GRUCell):
        found["reset_after"] = bool(draw.integers(2))
    if draw.random() < 0.2:
        found["activation"] = one(draw, "relu", "softsign", "sigmoid")
    return found


def layer(draw: Generator, kind: Any, sequences: bool | None = None) -> Any:
    whole = bool(draw.integers(2)) if sequences is None else sequences
    backwards = bool(draw.random() < 0.3)
    return kind(int(draw.integers(3, 9)), return_sequences=whole, go_backwards=backwards, **options(draw, kind))


def both_ways(draw: Generator, x: Any, kind: Any) -> Any:
    inner = layer(draw, kind)
    inner.go_backwards = False
    return layers.Bidirectional(inner, merge_mode=one(draw, "concat", "sum", "mul", "ave"))(x)


def stack(draw: Generator, x: Any, kind: Any) -> Any:
    for _ in range(int(draw.integers(1, 3))):
        x = layer(draw, kind, True)(x)
    return layer(draw, one(draw, *LAYERS))(x)


def cells(draw: Generator, x: Any, kinds: tuple[Any, ...]) -> Any:
    made = [kind(int(draw.integers(3, 8)), **options(draw, kind)) for kind in kinds]
    return layers.RNN(made, return_sequences=bool(draw.integers(2)))(x)


def states(draw: Generator, x: Any, kind: Any) -> Any:
    """A layer that begins with what another one ended with."""
    units = int(draw.integers(3, 8))
    first, *state = kind(units, return_state=True, return_sequences=True)(x)
    return layers.Concatenate()([first, kind(units, return_sequences=True)(x, initial_state=state)])


def each(draw: Generator, x: Any) -> Any:
    y = layers.TimeDistributed(layers.Dense(6, activation="relu"))(x)
    return layers.TimeDistributed(layers.Dense(4))(layer(draw, one(draw, *LAYERS), True)(y))


def convolved(draw: Generator, x: Any, kind: Any) -> Any:
    return kind(int(draw.integers(2, 5)), 3, padding=one(draw, "same", "valid"), return_sequences=bool(draw.integers(2)),
        strides=one(draw, 1, 1, 2), use_bias=bool(draw.integers(2)))(x)  # fmt: skip


def masked(draw: Generator, x: Any) -> Any:
    return layers.Masking(0.0)(x)


MODELS: dict[str, tuple[Callable[[Generator, Any], Any], int]] = {
    **{kind.__name__.lower(): (lambda d, x, kind=kind: layer(d, kind)(x), 3) for kind in LAYERS},
    **{f"masked_{kind.__name__.lower()}": (lambda d, x, kind=kind: layer(d, kind)(masked(d, x)), 3) for kind in LAYERS},
    **{f"both_{kind.__name__.lower()}": (lambda d, x, kind=kind: both_ways(d, x, kind), 3) for kind in LAYERS},
    "masked_both": (lambda d, x: both_ways(d, masked(d, x), one(d, *LAYERS)), 3), "stack": (lambda d, x: stack(d, x, one(d, *LAYERS)), 3),
    "masked_stack": (lambda d, x: stack(d, masked(d, x), one(d, *LAYERS)), 3), "cells": (lambda d, x: cells(d, x, (one(d, *CELLS), one(d, *CELLS))), 3),
    "masked_cells": (lambda d, x: cells(d, masked(d, x), (one(d, *CELLS), one(d, *CELLS), one(d, *CELLS))), 3), "cell": (lambda d, x: cells(d, x, (one(d, *CELLS),)), 3),
    "states": (lambda d, x: states(d, x, one(d, layers.LSTM, layers.GRU)), 3), "each": (each, 3), "nested": (lambda d, x: layers.TimeDistributed(layer(d, one(d, *LAYERS)))(x), 4),
    "conv1d": (lambda d, x: convolved(d, x, layers.ConvLSTM1D), 4), "conv2d": (lambda d, x: convolved(d, x, layers.ConvLSTM2D), 5),
}  # fmt: skip


def make(name: str, seed: int, kind: str = "float32") -> Made:
    """A layer as a model, and what Keras computes, some rows ending in zeros, which masks leave out.

    What a quantized one computes is asked of TensorFlow's interpreter (wild_samples.py).
    """
    draw = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    block, rank = MODELS[name]
    steps = None if rank == 3 and draw.random() < 0.3 else int(draw.integers(5, 9))
    extents = (steps, *(int(extent) for extent in draw.integers(4, 8, rank - 3)), int(draw.integers(2, 6)))
    entry = layers.Input(extents)
    model = keras.Model(entry, block(draw, entry))
    for weight in model.weights:
        if str(weight.dtype).startswith("float") and not np.ptp(weight.numpy()):
            weight.assign(weight.numpy() + draw.uniform(0.0, 0.3, weight.shape))
    value = draw.uniform(-1, 1, (3, steps or 6, *extents[1:])).astype(np.float32)
    value[0, -2:] = 0.0
    value[1, 1:2] = 0.0
    if kind != "float32":
        return Made(convert(model, kind, seed, None))
    return Made(convert(model, "float32", seed, None), {"in:": value, "out:0": np.asarray(model(value))})


def main() -> None:
    asked = read_arguments(40)
    names = list(MODELS)
    makers = {}
    for number in range(asked.count):
        name, seed = names[number % len(names)], asked.seed * 1000 + number
        makers[f"any_batch/{name}-{seed}.tflite"] = partial(make, name, seed)
        kind = QUANTIZED[number % len(QUANTIZED)]
        makers[f"any_batch_{kind.replace(' ', '_')}/{name}-{seed}.tflite"] = partial(make, name, seed, kind)
    write_each(asked.folder, makers)


if __name__ == "__main__":
    main()

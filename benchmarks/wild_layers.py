"""Layers of Keras that random networks are drawn from, by the rank of what they read. Runs in an environment with Keras.

A block is a function of a generator of random numbers and of a symbolic tensor, and returns another one.
"""

# The tables have a block a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import layers, ops
from numpy.random import Generator

Block = Callable[[Generator, Any], Any]

ACTIVATIONS = (
    "relu", "relu6", "gelu", "silu", "elu", "selu", "softplus", "softsign", "hard_sigmoid", "hard_silu", "leaky_relu", "mish",
    "tanh", "sigmoid", "exponential", "log_softmax", "softmax", "celu", "squareplus", "tanh_shrink", "soft_shrink",
    "hard_shrink", "hard_tanh", "sparse_plus", "log_sigmoid", "threshold", "linear",
)  # fmt: skip


def one(draw: Generator, *choices: Any) -> Any:
    return choices[int(draw.integers(len(choices)))]


def activation(draw: Generator) -> str:
    return str(one(draw, *ACTIVATIONS[:12], None, None, None, "relu", "relu6") or "linear")


def act(draw: Generator, x: Any) -> Any:
    return layers.Activation(str(one(draw, *ACTIVATIONS)))(x)


def residual(draw: Generator, x: Any) -> Any:
    channels = x.shape[-1]
    y = layers.Conv2D(channels * 2, 1, activation=one(draw, "relu6", "silu", "gelu"))(x)
    y = layers.DepthwiseConv2D(one(draw, 3, 5), padding="same", activation=activation(draw))(y)
    if draw.random() < 0.5:  # squeeze and excitation
        s = layers.GlobalAveragePooling2D(keepdims=True)(y)
        s = layers.Conv2D(max(channels // 2, 1), 1, activation=one(draw, "relu", "silu"))(s)
        y = layers.Multiply()([y, layers.Conv2D(channels * 2, 1, activation=one(draw, "sigmoid", "hard_sigmoid"))(s)])
    return layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(channels, 1, use_bias=False)(y))])


def branches(draw: Generator, x: Any) -> Any:
    pooled = one(draw, layers.AveragePooling2D, layers.MaxPooling2D)(3, strides=1, padding="same")(x)
    parts = [
        layers.Conv2D(4, 1, activation=activation(draw))(x),
        layers.SeparableConv2D(6, 3, padding="same", activation=activation(draw))(x),
        layers.Conv2D(4, (1, 5), padding="same")(pooled),
    ]
    return layers.Concatenate()(parts)


def patches(draw: Generator, x: Any) -> Any:
    """The patch embedding of a vision transformer, with positions that are learned."""
    size = min(4, x.shape[1], x.shape[2])
    y = layers.Conv2D(16, size, strides=size, use_bias=bool(draw.integers(2)))(x)
    y = layers.Reshape((-1, 16))(y)
    return layers.Add()([y, layers.Embedding(y.shape[1], 16)(ops.arange(y.shape[1]))])


def shuffle(draw: Generator, x: Any) -> Any:
    h, w, c = x.shape[1:]
    groups = 2 if c % 2 == 0 else 1
    y = layers.Reshape((h, w, groups, c // groups))(x)
    return layers.Reshape((h, w, c))(layers.Permute((1, 2, 4, 3))(y))


def unet(draw: Generator, x: Any) -> Any:
    down = layers.Conv2D(8, 3, strides=2, padding="same", activation=activation(draw))(x)
    if draw.random() < 0.5:
        up = layers.Conv2DTranspose(6, one(draw, 2, 3, 4), strides=2, padding="same", activation=activation(draw))(down)
    else:
        up = layers.UpSampling2D(2, interpolation=one(draw, "nearest", "bilinear"))(down)
    cut = layers.CenterCrop(min(x.shape[1], up.shape[1]), min(x.shape[2], up.shape[2]))
    return layers.Concatenate()([cut(x), cut(up)])


def depth_to_space(draw: Generator, x: Any) -> Any:
    h, w = x.shape[1:3]
    y = layers.Conv2D(12, 1)(x)
    y = layers.Reshape((h, w, 2, 2, 3))(y)
    return layers.Reshape((2 * h, 2 * w, 3))(layers.Permute((1, 3, 2, 4, 5))(y))


def transformer(draw: Generator, x: Any) -> Any:
    width = x.shape[-1]
    norm = one(draw, layers.LayerNormalization, layers.LayerNormalization, layers.RMSNormalization)
    y = norm()(x)
    if draw.random() < 0.6:
        y = layers.MultiHeadAttention(2, max(width // 2, 1))(y, y, use_causal_mask=bool(draw.integers(2)))
    else:
        y = layers.GroupQueryAttention(max(width // 4, 1), 4, 2)(y, y)
    x = layers.Add()([x, y])
    y = layers.Dense(width * 2, activation=one(draw, "gelu", "relu", "silu"))(norm()(x))
    return layers.Add()([x, layers.Dense(width)(y)])


def attend(draw: Generator, x: Any) -> Any:
    keys = layers.Dense(x.shape[-1])(x)
    return one(draw, layers.Attention(use_scale=True), layers.AdditiveAttention())([x, keys])


def recurrent(draw: Generator, x: Any) -> Any:
    kind = one(draw, layers.LSTM, layers.GRU, layers.SimpleRNN)
    more = {"reset_after": bool(draw.integers(2))} if kind is layers.GRU else {}
    cell = kind(int(draw.integers(3, 9)), return_sequences=bool(draw.integers(2)), go_backwards=bool(draw.integers(2)),
        unroll=bool(draw.random() < 0.2), **more)  # fmt: skip
    if draw.random() < 0.3:
        cell.go_backwards = False
        cell = layers.Bidirectional(cell, merge_mode=one(draw, "concat", "sum", "mul", "ave"))
    return cell(layers.Masking(0.25)(x) if draw.random() < 0.2 else x)


def cells(draw: Generator, x: Any) -> Any:
    kinds = (layers.LSTMCell, layers.GRUCell, layers.SimpleRNNCell)
    return layers.RNN([one(draw, *kinds)(4), one(draw, *kinds)(5)], return_sequences=bool(draw.integers(2)))(x)


def wavenet(draw: Generator, x: Any) -> Any:
    skip = []
    for rate in (1, 2, 4):
        a = layers.Conv1D(6, 2, padding="causal", dilation_rate=rate, activation="tanh")(x)
        b = layers.Conv1D(6, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        y = layers.Conv1D(x.shape[-1], 1)(layers.Multiply()([a, b]))
        x = layers.Add()([x, y])
        skip.append(y)
    return layers.Add()([x, *skip])


def merge(draw: Generator, x: Any) -> Any:
    kind = one(draw, layers.Maximum, layers.Minimum, layers.Average, layers.Multiply, layers.Subtract, layers.Add)
    y = layers.Dense(x.shape[-1], activation=activation(draw))(x)
    return kind()([x, y])


def reduced(draw: Generator, x: Any) -> Any:
    kind = one(draw, ops.mean, ops.max, ops.min, ops.sum, ops.var, ops.std, ops.logsumexp, ops.any, ops.prod)
    y = kind(x, axis=int(draw.integers(1, len(x.shape))), keepdims=True)
    return layers.Multiply()([x, ops.cast(y, "float32")])


def mixed(draw: Generator, x: Any) -> Any:
    """An operation that keeps the shape."""
    axis = int(draw.integers(1, len(x.shape)))
    kinds = (
        lambda: ops.cumsum(x, axis), lambda: ops.roll(x, 2, axis), lambda: ops.flip(x, axis), lambda: ops.sort(x, axis),
        lambda: ops.clip(x, -0.3, 0.7), lambda: ops.where(x > 0.1, x, ops.sin(x)), lambda: ops.erf(x), lambda: ops.square(x),
        lambda: ops.arctan2(x, x + 2.0), lambda: ops.log1p(ops.abs(x)), lambda: ops.expm1(x), lambda: ops.sign(x) * ops.sqrt(ops.abs(x)),
        lambda: ops.floor(x * 3.0) / 3.0, lambda: ops.mod(x, 0.37), lambda: ops.power(ops.abs(x) + 0.1, 1.7), lambda: ops.rsqrt(ops.abs(x) + 0.5),
        lambda: ops.nan_to_num(x), lambda: ops.round(x * 4.0), lambda: ops.normalize(x, axis=axis), lambda: ops.cast(ops.argsort(x, axis), "float32"),
        lambda: ops.sinh(x), lambda: ops.cosh(x), lambda: ops.arctan(x), lambda: ops.arcsinh(x), lambda: ops.logaddexp(x, -x),
        lambda: ops.maximum(x, ops.flip(x, axis)), lambda: ops.cast(x > ops.mean(x), "float32"), lambda: ops.tan(x), lambda: ops.digitize(x, [-0.5, 0.0, 0.5]),
    )  # fmt: skip
    return layers.Activation("linear")(ops.cast(one(draw, *kinds)(), "float32"))


def normalized(draw: Generator, x: Any) -> Any:
    channels = x.shape[-1]
    made: Any = one(
        draw, layers.BatchNormalization, layers.LayerNormalization, layers.UnitNormalization, layers.RMSNormalization,
        lambda: layers.GroupNormalization(one(draw, 1, channels)), lambda: layers.BatchNormalization(scale=False),
        lambda: layers.Rescaling(0.7, 0.1), lambda: layers.Normalization(mean=0.2, variance=0.6),
        lambda: layers.LayerNormalization(axis=list(range(1, len(x.shape)))),
    )()  # fmt: skip
    return made(x)


ANY: dict[str, Block] = {
    "act": act, "merge": merge, "reduced": reduced, "mixed": mixed, "normalized": normalized,
    "prelu": lambda d, x: layers.PReLU(shared_axes=list(range(1, len(x.shape) - 1)) or None)(x),
    "leaky": lambda d, x: layers.LeakyReLU(0.2)(x), "relu": lambda d, x: layers.ReLU(one(d, None, 6.0, 2.5), one(d, 0.0, 0.1), one(d, 0.0, 0.3))(x),
    "dense": lambda d, x: layers.Dense(int(d.integers(4, 12)), activation=activation(d))(x),
    "softmax": lambda d, x: layers.Softmax(axis=int(d.integers(1, len(x.shape))))(x), "dropout": lambda d, x: layers.Dropout(0.3)(x),
    "noise": lambda d, x: layers.GaussianNoise(0.1)(layers.AlphaDropout(0.1)(x)),
}  # fmt: skip
VECTOR: dict[str, Block] = {
    "glu": lambda d, x: layers.Activation("glu")(layers.Dense(8)(x)), "repeat": lambda d, x: layers.RepeatVector(4)(x),
    "einsum": lambda d, x: layers.EinsumDense("ab,bc->ac", 7, bias_axes="c")(x),
    "fold": lambda d, x: layers.Reshape((2, -1))(layers.Dense(12)(x)),
    "dot": lambda d, x: layers.Dot(1)([layers.Dense(6)(x), layers.Dense(6)(x)]),
    "gate": lambda d, x: layers.Multiply()([layers.Dense(8, "sigmoid")(x), layers.Dense(8, "tanh")(x)]),
    "top": lambda d, x: layers.Concatenate()(ops.split(layers.Dense(8)(x), 4, axis=-1)[::-1]),
    "best": lambda d, x: ops.top_k(layers.Dense(9)(x), 5)[0],
    "outer": lambda d, x: layers.Reshape((8, 8))(ops.einsum("ab,ac->abc", layers.Dense(8)(x), layers.Dense(8)(x))),
}  # fmt: skip
SEQUENCE: dict[str, Block] = {
    "conv1d": lambda d, x: layers.Conv1D(int(d.integers(3, 10)), one(d, 1, 2, 3, 5), padding=one(d, "same", "causal"), dilation_rate=one(d, 1, 2), activation=activation(d))(x),
    "strided1d": lambda d, x: layers.Conv1D(8, 3, strides=2, padding="same", groups=1)(x),
    "depthwise1d": lambda d, x: layers.DepthwiseConv1D(3, padding="same", depth_multiplier=one(d, 1, 2), activation=activation(d))(x),
    "separable1d": lambda d, x: layers.SeparableConv1D(7, 3, padding="same", activation=activation(d))(x),
    "transposed1d": lambda d, x: layers.Conv1DTranspose(5, one(d, 2, 3, 4), strides=2, padding="same")(x),
    "pool1d": lambda d, x: one(d, layers.MaxPooling1D, layers.AveragePooling1D)(2, padding="same")(x), "up1d": lambda d, x: layers.UpSampling1D(2)(x),
    "pad1d": lambda d, x: layers.ZeroPadding1D((1, 2))(x), "crop1d": lambda d, x: layers.Cropping1D((1, 0))(x) if x.shape[1] > 2 else x,
    "recurrent": recurrent, "recurrent2": recurrent, "cells": cells, "transformer": transformer, "transformer2": transformer, "attend": attend, "wavenet": wavenet,
    "each": lambda d, x: layers.TimeDistributed(layers.Dense(6, activation=activation(d)))(x), "permute": lambda d, x: layers.Permute((2, 1))(x),
    "globalpool": lambda d, x: one(d, layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D)()(x), "flatten": lambda d, x: layers.Flatten()(x),
    "last": lambda d, x: x[:, -1, :], "every": lambda d, x: x[:, ::2, :], "image": lambda d, x: layers.Reshape((*x.shape[1:], 1))(x),
    "einsum": lambda d, x: layers.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d", activation=activation(d))(x),
    "scores": lambda d, x: ops.matmul(x, ops.transpose(x, (0, 2, 1))),
}  # fmt: skip
IMAGE: dict[str, Block] = {
    "conv": lambda d, x: layers.Conv2D(int(d.integers(3, 14)), one(d, 1, 3, (3, 2), 5), padding="same", activation=activation(d))(x),
    "strided": lambda d, x: layers.Conv2D(8, 3, strides=one(d, 1, 2, (2, 1)), padding=one(d, "same", "same", "valid") if min(x.shape[1:3]) > 3 else "same")(x),
    "dilated": lambda d, x: layers.Conv2D(8, 3, dilation_rate=one(d, 2, (1, 3)), padding="same", activation=activation(d))(x),
    "grouped": lambda d, x: layers.Conv2D(2 * x.shape[-1], 3, groups=x.shape[-1] if x.shape[-1] < 9 else 1, padding="same")(x),
    "depthwise": lambda d, x: layers.DepthwiseConv2D(3, strides=one(d, 1, 2), padding="same", depth_multiplier=one(d, 1, 2), activation=activation(d))(x),
    "separable": lambda d, x: layers.SeparableConv2D(8, 3, padding="same", activation=activation(d))(x),
    "transposed": lambda d, x: layers.Conv2DTranspose(6, one(d, 2, 3, 4), strides=2, padding=one(d, "same", "valid"), activation=activation(d))(x),
    "pool": lambda d, x: one(d, layers.MaxPooling2D, layers.AveragePooling2D)(one(d, 2, 3), strides=one(d, 1, 2), padding="same")(x),
    "up": lambda d, x: layers.UpSampling2D(2, interpolation=one(d, "nearest", "bilinear"))(x),
    "resize": lambda d, x: layers.Resizing(int(d.integers(5, 14)), int(d.integers(5, 14)), interpolation=one(d, "nearest", "bilinear"))(x),
    "pad": lambda d, x: layers.ZeroPadding2D(((1, 0), (2, 1)))(x), "crop": lambda d, x: layers.Cropping2D(((1, 0), (0, 1)))(x) if min(x.shape[1:3]) > 2 else x,
    "residual": residual, "residual2": residual, "branches": branches, "patches": patches, "patches2": patches, "shuffle": shuffle, "unet": unet, "d2s": depth_to_space,
    "globalpool": lambda d, x: one(d, layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D)()(x), "flatten": lambda d, x: layers.Flatten()(x),
    "rows": lambda d, x: layers.Reshape((x.shape[1], -1))(x), "permute": lambda d, x: layers.Permute(one(d, (2, 1, 3), (3, 1, 2), (1, 3, 2)))(x),
    "lines": lambda d, x: layers.TimeDistributed(layers.Conv1D(5, 3, padding="same"))(x),
    "convlstm": lambda d, x: layers.ConvLSTM1D(4, 3, padding="same", return_sequences=bool(d.integers(2)))(x),
    "mirror": lambda d, x: ops.pad(x, ((0, 0), (1, 1), (1, 2), (0, 0)), one(d, "reflect", "symmetric")) if min(x.shape[1:3]) > 3 else x,
    "extract": lambda d, x: ops.image.extract_patches(x, 2, strides=2, padding="same"),
}  # fmt: skip
VOLUME: dict[str, Block] = {
    "conv3d": lambda d, x: layers.Conv3D(5, one(d, 1, 3, (1, 3, 3)), padding="same", activation=activation(d))(x),
    "strided3d": lambda d, x: layers.Conv3D(6, 3, strides=one(d, 1, 2), padding="same")(x), "pool3d": lambda d, x: one(d, layers.MaxPooling3D, layers.AveragePooling3D)(2, padding="same")(x),
    "transposed3d": lambda d, x: layers.Conv3DTranspose(4, 3, strides=2, padding="same")(x), "up3d": lambda d, x: layers.UpSampling3D(2)(x),
    "pad3d": lambda d, x: layers.ZeroPadding3D(1)(x), "globalpool": lambda d, x: layers.GlobalAveragePooling3D()(x),
    "frames": lambda d, x: layers.TimeDistributed(layers.Conv2D(4, 3, padding="same", activation=activation(d)))(x),
    "convlstm2d": lambda d, x: layers.ConvLSTM2D(4, 3, padding="same", return_sequences=bool(d.integers(2)))(x),
    "pooled": lambda d, x: layers.TimeDistributed(layers.GlobalAveragePooling2D())(x),
}  # fmt: skip
BLOCKS = {2: VECTOR, 3: SEQUENCE, 4: IMAGE, 5: VOLUME}

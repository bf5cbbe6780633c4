"""Networks of Keras that are written out: what papers and tutorials have, of two sizes drawn. Needs an environment with TensorFlow.

Each is a function of an extent and a width, and returns a model, whose inputs of whole numbers are below ten.
"""

# Networks that are written out stand in a line or two.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops
from wild_pictures import PICTURES, put

L = layers


def wide_deep(n: int, w: int) -> Any:
    a, b = L.Input((n,), dtype="int32"), L.Input((w,))
    deep = put(L.Flatten()(L.Embedding(10, 8)(a)), L.Dense(w, activation="relu"), L.Dense(w, activation="relu"))
    wide = L.Dense(1)(L.Concatenate()([L.Flatten()(L.CategoryEncoding(10, "multi_hot")(a)), b]))
    return keras.Model([a, b], L.Activation("sigmoid")(L.Dense(1)(deep) + wide))


def crossing(n: int, w: int) -> Any:
    """Crosses of features (DCN)."""
    entry = L.Input((w,))
    x = entry
    for _ in range(3):
        x = entry * L.Dense(w)(x) + x
    return keras.Model(entry, L.Dense(1)(L.Concatenate()([x, L.Dense(w, activation="relu")(entry)])))


def interactions(n: int, w: int) -> Any:
    """Dot products of embeddings, of which the lower triangle counts (DLRM)."""
    a, b = L.Input((n,), dtype="int32"), L.Input((w,))
    every = L.Concatenate(axis=1)([L.Embedding(10, 16)(a), L.Reshape((1, 16))(L.Dense(16)(b))])
    dots = ops.matmul(every, ops.transpose(every, (0, 2, 1)))
    return keras.Model([a, b], put(ops.tril(dots, -1), L.Flatten(), L.Dense(w, activation="relu"), L.Dense(1)))


def factors(n: int, w: int) -> Any:
    """A factorization machine."""
    entry = L.Input((n,), dtype="int32")
    e = L.Embedding(10, 8)(entry)
    pairs = 0.5 * (ops.square(ops.sum(e, 1)) - ops.sum(ops.square(e), 1))
    return keras.Model(entry, L.Activation("sigmoid")(ops.sum(pairs, 1, keepdims=True) + L.Dense(1)(L.Flatten()(e))))


def points(n: int, w: int) -> Any:
    """Points of a cloud, turned by a matrix that they yield (PointNet)."""
    entry = L.Input((8 * n, 3))
    t = put(entry, L.Conv1D(w, 1, activation="relu"), L.GlobalMaxPooling1D(), L.Dense(9))
    x = ops.matmul(entry, L.Reshape((3, 3))(t))
    return keras.Model(
        entry,
        put(
            x,
            L.Conv1D(w, 1),
            L.BatchNormalization(),
            L.ReLU(),
            L.GlobalMaxPooling1D(),
            L.Dense(5, activation="softmax"),
        ),
    )


def graph(n: int, w: int) -> Any:
    a, x = L.Input((n, n)), L.Input((n, w))
    degree = ops.rsqrt(ops.sum(ops.abs(a), -1, keepdims=True) + 1.0)
    near = (ops.abs(a) + ops.eye(n)) * degree * ops.transpose(degree, (0, 2, 1))
    h = ops.relu(ops.matmul(near, L.Dense(w)(x)))
    return keras.Model([a, x], ops.softmax(ops.matmul(near, L.Dense(4)(h))))


def graph_attention(n: int, w: int) -> Any:
    a, x = L.Input((n, n)), L.Input((n, w))
    h = L.Dense(w)(x)
    scores = L.LeakyReLU(0.2)(L.Dense(1)(h) + ops.transpose(L.Dense(1)(h), (0, 2, 1)))
    return keras.Model([a, x], L.ELU()(ops.matmul(ops.softmax(ops.where(a > 0.0, scores, -1e9)), h)))


def fourier(n: int, w: int) -> Any:
    """Tokens are mixed by Fourier transforms (FNet)."""
    entry = L.Input((n, w))
    real = ops.fft2((entry, ops.zeros_like(entry)))[0]
    x = L.LayerNormalization()(entry + real)
    return keras.Model(entry, L.LayerNormalization()(x + L.Dense(w)(L.Dense(2 * w, activation="gelu")(x))))


def gated_tokens(n: int, w: int) -> Any:
    """gMLP."""
    entry = L.Input((n, w))
    u, v = ops.split(L.Dense(2 * w, activation="gelu")(L.LayerNormalization()(entry)), 2, -1)
    v = L.Permute((2, 1))(L.Dense(n, bias_initializer="ones")(L.Permute((2, 1))(L.LayerNormalization()(v))))
    return keras.Model(entry, entry + L.Dense(w)(u * v))


def coordinates(n: int, w: int) -> Any:
    """Waves of coordinates (NeRF, SIREN)."""
    entry = L.Input((n, 3))
    waves = ops.concatenate([f(entry * 2.0**k) for k in range(4) for f in (ops.sin, ops.cos)], -1)
    x = ops.sin(3.0 * L.Dense(w)(waves))
    return keras.Model(entry, [ops.softplus(L.Dense(1)(x)), ops.sigmoid(L.Dense(3)(ops.concatenate([x, entry], -1)))])


def experts(n: int, w: int) -> Any:
    entry = L.Input((w,))
    gates = ops.softmax(L.Dense(4)(entry))
    best, which = ops.top_k(gates, 2)
    kept = ops.sum(ops.one_hot(which, 4) * best[..., None], 1)
    every = ops.stack([L.Dense(w, activation="gelu")(entry) for _ in range(4)], 1)
    return keras.Model(entry, ops.einsum("be,bed->bd", kept / ops.sum(kept, -1, keepdims=True), every))


def sparse_softmax(n: int, w: int) -> Any:
    """A projection onto the simplex (sparsemax), as TabNet has it."""
    entry = L.Input((w,))
    z = L.BatchNormalization()(L.Dense(w)(entry))
    s = ops.flip(ops.sort(z, -1), -1)
    k = ops.arange(1, w + 1, dtype="float32")
    support = ops.cast(1 + k * s > ops.cumsum(s, -1), "float32")
    count = ops.sum(support, -1, keepdims=True)
    return keras.Model(entry, entry * ops.relu(z - (ops.sum(s * support, -1, keepdims=True) - 1) / count))


def differential(n: int, w: int) -> Any:
    """A differential equation by steps, in a loop."""
    entry = L.Input((w,))
    f = L.Dense(w, activation="tanh")
    f.build((None, w))
    if n % 2:
        return keras.Model(entry, L.Lambda(lambda v: ops.fori_loop(0, 6, lambda i, h: h + 0.1 * f(h), v))(entry))
    return keras.Model(
        entry,
        L.Lambda(lambda v: ops.while_loop(lambda h, i: i < 5, lambda h, i: (h + 0.1 * f(h), i + 1), (v, 0))[0])(entry),
    )


def retention(n: int, w: int) -> Any:
    entry = L.Input((n, w))
    gap = ops.arange(n, dtype="float32")[:, None] - ops.arange(n, dtype="float32")[None]
    decay = ops.where(gap >= 0.0, 0.9 ** ops.maximum(gap, 0.0), 0.0)
    q, k, v = (L.Dense(w, use_bias=False)(entry) for _ in range(3))
    return keras.Model(
        entry,
        L.GroupNormalization(4)(ops.matmul(ops.matmul(q, ops.transpose(k, (0, 2, 1))) * decay, v))
        * ops.silu(L.Dense(w)(entry)),
    )


def state_space(n: int, w: int) -> Any:
    """A linear state, by a scan over time or by one that halves."""
    entry = L.Input((8, w))
    a, b = ops.sigmoid(L.Dense(w)(entry)), L.Dense(w)(entry)

    class Scan(L.Layer):
        def call(self, a: Any, b: Any) -> Any:
            if n % 2:
                return ops.associative_scan(
                    lambda one, two: (one[0] * two[0], one[1] * two[0] + two[1]), (a, b), axis=1
                )[1]
            state = ops.zeros_like(b[:, 0])
            _, states = ops.scan(
                lambda h, x: (x[0] * h + x[1],) * 2, state, (ops.transpose(a, (1, 0, 2)), ops.transpose(b, (1, 0, 2)))
            )
            return ops.transpose(states, (1, 0, 2))

    return keras.Model(entry, L.Dense(3)(Scan()(a, b)))


def sequence_pair(n: int, w: int) -> Any:
    """An encoder whose states a decoder begins with, and attention between them."""
    a, b = L.Input((n,), dtype="int32"), L.Input((n + 1,), dtype="int32")
    table = L.Embedding(10, 8)
    seen, h, c = L.LSTM(8, return_sequences=True, return_state=True)(table(a))
    out = L.LSTM(8, return_sequences=True)(table(b), initial_state=[h, c])
    return keras.Model([a, b], L.Dense(10, activation="softmax")(L.Concatenate()([out, L.Attention()([out, seen])])))


def attended_recurrent(n: int, w: int) -> Any:
    entry = L.Input((n, w))
    h = L.Bidirectional(L.GRU(6, return_sequences=True))(entry)
    weights = ops.softmax(L.Dense(1)(ops.tanh(L.Dense(8)(h))), axis=1)
    return keras.Model(entry, L.Dense(3)(ops.sum(weights * h, 1)))


def masked_mean(n: int, w: int) -> Any:
    entry = L.Input((n,), dtype="int32")
    x = L.Embedding(10, w, mask_zero=True)(entry)
    y = L.MultiHeadAttention(2, 8)(x, x)
    return keras.Model(entry, L.Dense(2)(L.GlobalAveragePooling1D()(x + y)))


def masked_attention(n: int, w: int) -> Any:
    x, m = L.Input((n, w)), L.Input((n, n))
    y, scores = L.MultiHeadAttention(2, w // 2, value_dim=4)(x, x, attention_mask=m > 0.0, return_attention_scores=True)
    return keras.Model([x, m], [L.LayerNormalization()(x + y), scores])


def axes_attention(n: int, w: int) -> Any:
    entry = L.Input((4, n, w))
    x = entry + L.MultiHeadAttention(2, w // 2, attention_axes=2)(entry, entry)
    return keras.Model(entry, x + L.MultiHeadAttention(2, w // 2, attention_axes=(1, 2))(x, x))


def capsules(n: int, w: int) -> Any:
    entry = L.Input((n, 8))

    class Routing(L.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(shape[1], 3, 8, 6), initializer="normal")

        def call(self, u: Any) -> Any:
            votes = ops.einsum("bnd,nkde->bnke", u, self.w)
            b = ops.zeros_like(votes[..., 0])
            for _ in range(3):
                s = ops.sum(ops.softmax(b, 2)[..., None] * votes, 1)
                norm = ops.sum(s**2, -1, keepdims=True)
                v = norm / (1 + norm) * s * ops.rsqrt(norm + 1e-7)
                b = b + ops.sum(votes * v[:, None], -1)
            return ops.sqrt(ops.sum(v**2, -1) + 1e-9)

    return keras.Model(entry, Routing()(entry))


def duel(n: int, w: int) -> Any:
    entry = L.Input((w,))
    x = L.Dense(2 * w, activation="relu")(entry)
    a = L.Dense(4)(x)
    q = L.Dense(1)(x) + a - ops.mean(a, 1, keepdims=True)
    return keras.Model(entry, [q, ops.argmax(q, 1)])


def actor(n: int, w: int) -> Any:
    entry = L.Input((w,))
    x = L.Dense(w, activation="tanh")(entry)
    mean, log = L.Dense(3)(x), ops.clip(L.Dense(3)(x), -5.0, 2.0)
    return keras.Model(entry, [ops.tanh(mean), ops.exp(log), mean + ops.exp(log) * 0.3, -0.5 * ops.sum(log, -1)])


def spectrogram(n: int, w: int) -> Any:
    entry = L.Input((512,))
    x = L.MelSpectrogram(fft_length=64, sequence_stride=32, num_mel_bins=12, sampling_rate=8000)(entry)
    return keras.Model(entry, put(x[..., None], L.Conv2D(w, 3, activation="relu"), L.GlobalMaxPooling2D(), L.Dense(4)))


def spectra(n: int, w: int) -> Any:
    entry = L.Input((256, 1))
    return keras.Model(
        entry,
        L.Dense(3)(
            L.STFTSpectrogram(mode=("log", "magnitude", "psd", "real")[n % 4], frame_length=32, frame_step=16)(entry)
        ),
    )


def buckets(n: int, w: int) -> Any:
    entry = L.Input((n,))
    return keras.Model(
        entry,
        L.Dense(3)(
            L.CategoryEncoding(5, ("count", "multi_hot")[n % 2])(L.Discretization([-0.5, -0.1, 0.2, 0.6])(entry))
        ),
    )


def lookups(n: int, w: int) -> Any:
    entry = L.Input((n,), dtype="int64")
    return keras.Model(
        entry, L.Dense(3)(L.Flatten()(L.Embedding(8, 4)(L.IntegerLookup(vocabulary=[1, 3, 5, 7])(entry))))
    )


def hashes(n: int, w: int) -> Any:
    entry = L.Input((n,), dtype="int64")
    return keras.Model(entry, L.Embedding(12, 4)(L.Hashing(12)(entry)))


def stacked_cells(n: int, w: int) -> Any:
    entry = L.Input((n, w))
    return keras.Model(entry, L.Dense(2)(L.RNN(L.StackedRNNCells([L.GRUCell(6), L.LSTMCell(5)]))(entry)))


def patched_time(n: int, w: int) -> Any:
    """Patches of a series, each series normalized by itself (PatchTST)."""
    entry = L.Input((16, 2))
    mean, dev = ops.mean(entry, 1, keepdims=True), ops.std(entry, 1, keepdims=True) + 1e-5
    x = ops.reshape(ops.transpose((entry - mean) / dev, (0, 2, 1)), (-1, 4, 4))
    x = L.Dense(w)(x)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
    return keras.Model(
        entry, ops.transpose(ops.reshape(L.Dense(4)(L.Flatten()(x)), (-1, 2, 4)), (0, 2, 1)) * dev + mean
    )


def moving(n: int, w: int) -> Any:
    """A series parted into what moves slowly and the rest (DLinear)."""
    entry = L.Input((12, 3))
    slow = L.AveragePooling1D(3, 1, padding="same")(entry)
    swap = L.Permute((2, 1))
    return keras.Model(entry, swap(L.Dense(5)(swap(slow)) + L.Dense(5)(swap(entry - slow))))


def blocks_of_basis(n: int, w: int) -> Any:
    """Residues that are forecast in turn (N-BEATS)."""
    entry = L.Input((12,))
    rest, total = entry, 0.0
    for _ in range(2):
        h = put(rest, L.Dense(w, activation="relu"), L.Dense(w, activation="relu"))
        rest, total = rest - L.Dense(12)(h), total + L.Dense(4)(h)
    return keras.Model(entry, total)


def splines(n: int, w: int) -> Any:
    """Sums of hats over a grid (KAN)."""
    entry = L.Input((6,))
    hats = ops.relu(1.0 - ops.abs(entry[..., None] - ops.linspace(-1.0, 1.0, 7)) * 3.0)
    return keras.Model(entry, L.Dense(4)(ops.silu(entry)) + L.Dense(4)(L.Flatten()(hats)))


def rotary(n: int, w: int) -> Any:
    entry = L.Input((n,), dtype="int32")
    x = L.Embedding(10, w)(entry)
    y = L.RMSNormalization()(x)
    q, k, v = (L.Reshape((n, 2, w // 2))(L.Dense(w, use_bias=False)(y)) for _ in range(3))
    angle = ops.arange(n, dtype="float32")[:, None] * 10000.0 ** (-ops.arange(0, w // 2, 2, dtype="float32") / (w // 2))
    cos, sin = (ops.concatenate([f(angle)] * 2, -1)[None, :, None] for f in (ops.cos, ops.sin))
    turn = lambda v: v * cos + ops.concatenate([-v[..., w // 4 :], v[..., : w // 4]], -1) * sin  # noqa: E731
    x = x + L.Dense(w)(L.Reshape((n, w))(ops.dot_product_attention(turn(q), turn(k), v, is_causal=True)))
    y = L.RMSNormalization()(x)
    return keras.Model(entry, L.Dense(10)(x + L.Dense(w)(ops.silu(L.Dense(2 * w)(y)) * L.Dense(2 * w)(y))))


def polynomial(n: int, w: int) -> Any:
    """Kernels around centres, whose product is a polynomial."""
    entry = L.Input((4,))
    centre = ops.convert_to_tensor([[0.1, 0.2, -0.4, 0.5], [0.5, -0.6, 0.3, 0.0], [0.3, 0.1, 0.9, -0.2]])
    gap = ops.sum(ops.square(entry[:, None] - centre), -1)
    return keras.Model(entry, L.Dense(2)(ops.exp(-gap * 2.0)))


def application(kind: Any, **more: Any) -> Callable[[int, int], Any]:
    return lambda n, w: kind(input_shape=(32, 32, 3), weights=None, classes=10, **more)


A = keras.applications
APPLICATIONS: dict[str, Callable[[int, int], Any]] = {
    "mobilenet": application(A.MobileNet, alpha=0.25), "mobilenet2": application(A.MobileNetV2, alpha=0.35), "mobilenet3": application(A.MobileNetV3Small),
    "mobilenet3_minimal": application(A.MobileNetV3Small, minimalistic=True), "efficientnet": application(A.EfficientNetB0), "efficientnet2": application(A.EfficientNetV2B0),
    "densenet": application(A.DenseNet121), "nasnet": application(A.NASNetMobile),
}  # fmt: skip
SEQUENCES: dict[str, Callable[[int, int], Any]] = {
    one.__name__: one
    for one in (
        wide_deep, crossing, interactions, factors, points, graph, graph_attention, fourier, gated_tokens,
        coordinates, experts, sparse_softmax, differential, retention, state_space, sequence_pair,
        attended_recurrent, masked_mean, masked_attention, axes_attention, capsules, duel, actor, spectrogram,
        spectra, buckets, lookups, hashes, stacked_cells, patched_time, moving, blocks_of_basis, splines, rotary,
        polynomial,
    )
}  # fmt: skip
ARCHITECTURES = PICTURES | SEQUENCES

"""Networks of Keras for images that are written out, as wild_architectures.py has them. Needs an environment with TensorFlow."""

# Networks that are written out stand in a line or two.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

L = layers


def put(x: Any, *body: Any) -> Any:
    for layer in body:
        x = layer(x)
    return x


def image(n: int, c: int = 3) -> Any:
    return L.Input((4 * n, 4 * n, c))


def block(w: int, size: int = 3, stride: int = 1, act: str = "relu") -> Any:
    return lambda x: put(
        x, L.Conv2D(w, size, stride, padding="same", use_bias=False), L.BatchNormalization(), L.Activation(act)
    )


def siamese(n: int, w: int) -> Any:
    a, b = image(n), image(n)
    tower = keras.Sequential(
        [L.Conv2D(w, 3, 2, activation="relu"), L.GlobalAveragePooling2D(), L.Dense(w), L.UnitNormalization()]
    )
    gap = ops.sqrt(ops.sum(ops.square(tower(a) - tower(b)), -1, keepdims=True) + 1e-6)
    return keras.Model([a, b], L.Dense(1, activation="sigmoid")(gap))


def pyramid(n: int, w: int) -> Any:
    entry = image(n)
    c3 = block(w, stride=2)(entry)
    c4 = block(w, stride=2)(c3)
    c5 = block(w, stride=2)(c4)
    p5 = L.Conv2D(w, 1)(c5)
    p4 = L.Conv2D(w, 1)(c4) + ops.image.resize(p5, c4.shape[1:3], interpolation="nearest")
    p3 = L.Conv2D(w, 1)(c3) + ops.image.resize(p4, c3.shape[1:3], interpolation="bilinear")
    return keras.Model(entry, [L.Conv2D(6, 3, padding="same")(p) for p in (p3, p4, p5)])


def detector(n: int, w: int) -> Any:
    """Boxes of a grid, decoded as YOLO does."""
    entry = image(n)
    x = put(entry, block(w, stride=2, act="silu"), block(w, stride=2, act="leaky_relu"))
    raw = L.Reshape((-1, 9))(L.Conv2D(18, 1)(x))
    h, v = x.shape[1:3]
    grid = ops.repeat(ops.reshape(ops.stack(ops.meshgrid(ops.arange(v), ops.arange(h)), -1), (-1, 2)), 2, axis=0)
    centre = (ops.sigmoid(raw[..., :2]) * 2.0 - 0.5 + ops.cast(grid, "float32")) * 4.0
    size = ops.square(ops.sigmoid(raw[..., 2:4]) * 2.0) * 8.0
    return keras.Model(
        entry,
        [
            ops.concatenate([centre - size / 2, centre + size / 2], -1),
            ops.sigmoid(raw[..., 4:5]) * ops.softmax(raw[..., 5:]),
        ],
    )


def suppressed(n: int, w: int) -> Any:
    entry = image(n)
    raw = L.Reshape((-1, 5))(put(entry, block(w, stride=2), L.Conv2D(5, 1)))
    corner = ops.sigmoid(raw[..., :2])
    boxes = ops.concatenate([corner, corner + 0.1 + ops.sigmoid(raw[..., 2:4]) * 0.3], -1)

    class Suppression(L.Layer):
        def call(self, b: Any, s: Any) -> Any:
            found = tf.image.combined_non_max_suppression(b[:, :, None], s, 5, 7, 0.4, 0.1, clip_boxes=False)
            return found.nmsed_boxes, found.nmsed_scores

    return keras.Model(entry, list(Suppression()(boxes, ops.sigmoid(raw[..., 4:]))))


def spatial_pyramid(n: int, w: int) -> Any:
    """Convolutions of several rates beside the mean of the image (ASPP)."""
    entry = image(n)
    x = block(w, stride=2)(entry)
    mean = ops.image.resize(L.Conv2D(w, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(x)), x.shape[1:3])
    parts = [L.Conv2D(w, 1)(x), *(L.Conv2D(w, 3, dilation_rate=r, padding="same")(x) for r in (2, 3)), mean]
    y = L.Conv2D(5, 1)(L.Concatenate()(parts))
    return keras.Model(entry, ops.argmax(ops.image.resize(y, entry.shape[1:3]), -1) if n % 2 else L.Softmax()(y))


def attention_module(n: int, w: int) -> Any:
    """Attention over channels and over space (CBAM)."""
    entry = image(n)
    x = block(w)(entry)
    one, two = L.Dense(w // 4, activation="relu"), L.Dense(w)
    s = ops.sigmoid(two(one(L.GlobalAveragePooling2D()(x))) + two(one(L.GlobalMaxPooling2D()(x))))
    x = x * s[:, None, None]
    maps = ops.concatenate([ops.mean(x, -1, keepdims=True), ops.max(x, -1, keepdims=True)], -1)
    return keras.Model(entry, x * L.Conv2D(1, 7, padding="same", activation="sigmoid")(maps))


def super_resolution(n: int, w: int) -> Any:
    entry = L.Input((2 * n, 2 * n, 3))
    x = put(entry, L.Conv2D(w, 5, padding="same", activation="tanh"), L.Conv2D(12, 3, padding="same"))
    return keras.Model(
        entry,
        ops.clip(
            L.Lambda(lambda v: tf.nn.depth_to_space(v, 2))(x)
            + ops.image.resize(entry, (4 * n, 4 * n), interpolation="bicubic"),
            0.0,
            1.0,
        ),
    )


def nested_unet(n: int, w: int) -> Any:
    entry = image(n)
    a = block(w)(entry)
    b = block(2 * w)(L.MaxPooling2D()(a))
    c = block(2 * w)(L.MaxPooling2D()(b))
    b1 = block(w)(L.Concatenate()([b, L.Conv2DTranspose(w, 2, 2)(c)]))
    a1 = block(w)(L.Concatenate()([a, L.Conv2DTranspose(w, 2, 2)(b)]))
    a2 = block(w)(L.Concatenate()([a, a1, L.Conv2DTranspose(w, 3, 2, padding="same")(b1)]))
    return keras.Model(entry, L.Average()([L.Conv2D(1, 1, activation="sigmoid")(v) for v in (a1, a2)]))


def text_lines(n: int, w: int) -> Any:
    """Convolutions, then a layer that runs both ways (CRNN)."""
    entry = L.Input((16, 4 * n, 1))
    x = put(entry, block(w), L.MaxPooling2D((2, 2)), block(w), L.MaxPooling2D((2, 1)))
    x = L.Reshape((x.shape[2], -1))(L.Permute((2, 1, 3))(x))
    return keras.Model(
        entry, put(x, L.Bidirectional(L.LSTM(8, return_sequences=True)), L.Dense(11, activation="softmax"))
    )


def class_token(n: int, w: int) -> Any:
    """A vision transformer with a token of the class."""
    entry = image(n)

    class Token(L.Layer):
        def build(self, shape: Any) -> None:
            self.token = self.add_weight(shape=(1, 1, w), initializer="normal")
            self.places = self.add_weight(shape=(1, shape[1] + 1, w), initializer="normal")

        def call(self, x: Any) -> Any:
            return ops.concatenate([ops.broadcast_to(self.token, (ops.shape(x)[0], 1, w)), x], 1) + self.places

    x = Token()(L.Reshape((-1, w))(L.Conv2D(w, 4, 4)(entry)))
    for _ in range(2):
        y = L.LayerNormalization(epsilon=1e-6)(x)
        x = x + L.MultiHeadAttention(4, w // 4)(y, y)
        x = x + L.Dense(w)(L.Dense(2 * w, activation="gelu")(L.LayerNormalization(epsilon=1e-6)(x)))
    return keras.Model(entry, L.Dense(10)(L.LayerNormalization()(x)[:, 0]))


def windows(n: int, w: int) -> Any:
    """Attention in windows that are shifted (Swin)."""
    entry = L.Input((8, 8, w))
    x = ops.roll(L.LayerNormalization()(entry), (-2, -2), (1, 2))
    x = ops.reshape(ops.transpose(ops.reshape(x, (-1, 2, 4, 2, 4, w)), (0, 1, 3, 2, 4, 5)), (-1, 16, w))
    q, k, v = ops.split(ops.transpose(ops.reshape(L.Dense(3 * w)(x), (-1, 16, 3, 2, w // 2)), (2, 0, 3, 1, 4)), 3)
    y = ops.matmul(ops.softmax(ops.matmul(q[0] * (w // 2) ** -0.5, ops.transpose(k[0], (0, 1, 3, 2)))), v[0])
    y = L.Dense(w)(ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, 16, w)))
    y = ops.reshape(ops.transpose(ops.reshape(y, (-1, 2, 2, 4, 4, w)), (0, 1, 3, 2, 4, 5)), (-1, 8, 8, w))
    return keras.Model(entry, entry + ops.roll(y, (2, 2), (1, 2)))


def convolution_mixer(n: int, w: int) -> Any:
    entry = image(n)
    x = put(entry, L.Conv2D(w, 4, 4), L.Activation("gelu"), L.BatchNormalization())
    for _ in range(2):
        x = x + put(x, L.DepthwiseConv2D(5, padding="same"), L.Activation("gelu"), L.BatchNormalization())
        x = put(x, L.Conv2D(w, 1), L.Activation("gelu"), L.BatchNormalization())
    return keras.Model(entry, put(x, L.GlobalAveragePooling2D(), L.Dense(10)))


def ghost(n: int, w: int) -> Any:
    entry = image(n)
    x = block(w)(entry)
    y = put(x, L.DepthwiseConv2D(3, padding="same", use_bias=False), L.BatchNormalization(), L.ReLU())
    return keras.Model(entry, L.Concatenate()([x, y]))


def codebook(n: int, w: int) -> Any:
    """The nearest of some vectors (VQ-VAE)."""
    entry = image(n)
    z = put(entry, block(8, stride=2), L.Conv2D(8, 1))

    class Nearest(L.Layer):
        def build(self, shape: Any) -> None:
            self.codes = self.add_weight(shape=(16, 8), initializer="normal")

        def call(self, z: Any) -> Any:
            flat = ops.reshape(z, (-1, 8))
            gap = (
                ops.sum(flat**2, 1, keepdims=True)
                - 2 * ops.matmul(flat, ops.transpose(self.codes))
                + ops.sum(self.codes**2, 1)
            )
            return ops.reshape(ops.take(self.codes, ops.argmin(gap, 1), 0), ops.shape(z))

    return keras.Model(entry, L.Conv2DTranspose(3, 4, 2, padding="same")(Nearest()(z)))


def generator(n: int, w: int) -> Any:
    entry = L.Input((w,))
    x = put(entry, L.Dense(16 * w, use_bias=False), L.BatchNormalization(), L.LeakyReLU(0.2), L.Reshape((4, 4, w)))
    return keras.Model(
        entry,
        put(
            x,
            L.Conv2DTranspose(w, 5, 1, padding="same", use_bias=False),
            L.BatchNormalization(),
            L.LeakyReLU(0.2),
            L.Conv2DTranspose(8, 5, 2, padding="same"),
            L.ReLU(),
            L.Conv2DTranspose(3, 5, 2, padding="same", activation="tanh"),
        ),
    )


def styled(n: int, w: int) -> Any:
    """A style that scales what is normalized (AdaIN)."""
    entry, style = image(n), L.Input((8,))
    x = block(w)(entry)
    mean, var = ops.moments(x, (1, 2), keepdims=True)
    scale, shift = (L.Dense(w)(style)[:, None, None] for _ in range(2))
    return keras.Model([entry, style], L.Conv2D(3, 1)((x - mean) * ops.rsqrt(var + 1e-5) * (1 + scale) + shift))


def denoiser(n: int, w: int) -> Any:
    """A U-Net that is told the time by waves."""
    entry, time = image(n), L.Input((1,))
    waves = ops.exp(ops.arange(8, dtype="float32") * -0.5)
    t = L.Dense(w, activation="silu")(ops.concatenate([ops.sin(time * waves), ops.cos(time * waves)], -1))
    x = block(w, act="silu")(entry) + t[:, None, None]
    y = block(w, stride=2, act="silu")(L.GroupNormalization(4)(x))
    return keras.Model([entry, time], L.Conv2D(3, 3, padding="same")(L.Concatenate()([x, L.UpSampling2D()(y)])))


def spectral(n: int, w: int) -> Any:
    entry = image(n)
    return keras.Model(
        entry,
        put(
            entry,
            L.SpectralNormalization(L.Conv2D(w, 3)),
            L.SpatialDropout2D(0.2),
            L.ActivityRegularization(0.1),
            L.Flatten(),
            L.Dense(2),
        ),
    )


def augmented(n: int, w: int) -> Any:
    """Layers that do nothing once a network is trained."""
    entry = image(n)
    return keras.Model(
        entry,
        put(
            entry,
            L.RandomFlip(),
            L.RandomRotation(0.1),
            L.RandomZoom(0.1),
            L.RandomContrast(0.2),
            L.Rescaling(2.0, -1.0),
            L.Resizing(9, 7, crop_to_aspect_ratio=True),
            L.Conv2D(w, 3),
            L.Flatten(),
            L.Dense(4),
        ),
    )


def volumes(n: int, w: int) -> Any:
    entry = L.Input((8, 8, 8, 1))
    x = put(
        entry,
        L.Conv3D(w, 3, padding="same", activation="relu"),
        L.MaxPooling3D(),
        L.Conv3D(w, 3, padding="same"),
        L.BatchNormalization(),
        L.ReLU(),
    )
    return keras.Model(entry, L.Conv3DTranspose(2, 2, 2)(x))


def video(n: int, w: int) -> Any:
    entry = L.Input((4, 2 * n, 2 * n, 3))
    x = L.TimeDistributed(keras.Sequential([L.Conv2D(w, 3, 2, activation="relu"), L.GlobalAveragePooling2D()]))(entry)
    return keras.Model(entry, L.Dense(4, activation="softmax")(L.LSTM(8)(x)))


def affine(n: int, w: int) -> Any:
    """An image looked up along a grid that it yields itself (spatial transformer)."""
    entry = image(n, 1)
    t = put(entry, L.Conv2D(4, 3, 2, activation="relu"), L.Flatten(), L.Dense(6, kernel_initializer="random_normal"))
    t = ops.concatenate([t * 0.1 + ops.convert_to_tensor([1.0, 0, 0, 0, 1.0, 0]), ops.zeros_like(t[:, :2])], 1)
    return keras.Model(entry, L.Conv2D(2, 1)(ops.image.affine_transform(entry, t)))


def pooled_areas(n: int, w: int) -> Any:
    """Means of areas of several sizes (SPP)."""
    entry = image(n, 4)
    parts = [L.Flatten()(L.AdaptiveAveragePooling2D(k)(entry)) for k in (1, 2, 3)] + [
        L.Flatten()(L.AdaptiveMaxPooling2D(2)(entry))
    ]
    return keras.Model(entry, L.Dense(5)(L.Concatenate()(parts)))


def inception(n: int, w: int) -> Any:
    entry = image(n)
    x = block(w, stride=2)(entry)
    return keras.Model(
        entry,
        put(
            L.Concatenate()(
                [
                    block(8, 1)(x),
                    put(x, block(8, 1), L.Conv2D(8, (1, 3), padding="same"), L.Conv2D(8, (3, 1), padding="same")),
                    put(x, L.MaxPooling2D(3, 1, padding="same"), block(8, 1)),
                ]
            ),
            L.GlobalMaxPooling2D(),
            L.Dropout(0.3),
            L.Dense(7, activation="softmax"),
        ),
    )


def dense_blocks(n: int, w: int) -> Any:
    entry = image(n)
    x = L.Conv2D(8, 3, padding="same")(entry)
    for _ in range(3):
        x = L.Concatenate()([x, put(x, L.BatchNormalization(), L.ReLU(), L.Conv2D(8, 3, padding="same"))])
    return keras.Model(
        entry, put(x, L.BatchNormalization(), L.ReLU(), L.Conv2D(w, 1), L.AveragePooling2D(), L.Flatten(), L.Dense(5))
    )


def grouped(n: int, w: int) -> Any:
    entry = image(n)
    x = L.Conv2D(w, 3, padding="same", activation="relu6")(entry)
    y = L.Conv2D(w, 3, padding="same", groups=4, use_bias=False)(x)
    return keras.Model(entry, L.GlobalAveragePooling2D()(L.ReLU()(L.BatchNormalization()(y) + x)))


PICTURES: dict[str, Callable[[int, int], Any]] = {
    one.__name__: one
    for one in (
        siamese, pyramid, detector, suppressed, spatial_pyramid, attention_module, super_resolution, nested_unet,
        text_lines, class_token, windows, convolution_mixer, ghost, codebook, generator, styled, denoiser, spectral,
        augmented, volumes, video, affine, pooled_areas, inception, dense_blocks, grouped,
    )
}  # fmt: skip

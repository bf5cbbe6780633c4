"""Still more functions as models, as wild_functions.py has them: keras.ops, control flow, numbers, images, signals.

What a function reads: the extents that are drawn stand as letters. Runs in an environment with TensorFlow.
"""

# The table has a function a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops as k

F, I, S = tf.float32, tf.int32, tf.string  # noqa: E741
raw = tf.raw_ops
Function = tuple[Callable[..., Any], list[tuple[str, Any]]]


def bisect(x: Any) -> Any:
    """A root between bounds that close in."""

    def step(low: Any, high: Any) -> Any:
        middle = (low + high) / 2.0
        up = middle**3 + middle < x
        return tf.where(up, middle, low), tf.where(up, high, middle)

    return tf.while_loop(
        lambda a, b: tf.reduce_max(b - a) > 1e-3, step, (tf.fill(tf.shape(x), -2.0), tf.fill(tf.shape(x), 2.0))
    )


def primes(i: Any) -> Any:
    """Which numbers have no divisor, by two loops."""
    found = tf.TensorArray(tf.bool, 5)
    for at in tf.range(5):
        n = i[0] + at + 2
        d = tf.constant(2)
        while d * d <= n and n % d != 0:
            d += 1
        found = found.write(at, d * d > n)
    return found.stack()


def edit_distance(i: Any) -> Any:
    """The distance of two rows, by a loop over rows of its table."""
    a, b = i[0], i[1]
    row = tf.range(5)
    for at in tf.range(4):
        new = tf.TensorArray(I, 5, clear_after_read=False).write(0, at + 1)
        for j in tf.range(4):
            new = new.write(
                j + 1, tf.minimum(tf.minimum(new.read(j), row[j + 1]) + 1, row[j] + tf.cast(a[at] != b[j], I))
            )
        row = new.stack()
    return row


def gradient_descent(x: Any) -> Any:
    """Steps downhill along slopes that TensorFlow finds."""
    w = tf.zeros_like(x[0])
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, w) - 1.0)) + 0.1 * tf.reduce_sum(tf.nn.softplus(w))
        w = w - 0.1 * tape.gradient(loss, w)
    return w


def switch(x: Any, i: Any) -> Any:
    return tf.switch_case(
        i[0] % 3, [lambda: x * 2.0, lambda: tf.sin(x), lambda: x - tf.reduce_mean(x)], default=lambda: x
    )


def cases(x: Any) -> Any:
    m = tf.reduce_mean(x)
    return tf.case([(m < -0.5, lambda: x * 0.0), (m < 0.1, lambda: -x)], default=lambda: x + 1.0, exclusive=False)


def k_means(x: Any) -> Any:
    centre = x[:2]
    for _ in tf.range(3):
        near = tf.argmin(tf.reduce_sum(tf.square(x[:, None] - centre[None]), -1), 1)
        centre = (
            tf.math.unsorted_segment_mean(x, near, 2)
            if False
            else tf.math.divide_no_nan(
                tf.math.unsorted_segment_sum(x, near, 2),
                tf.cast(tf.math.bincount(tf.cast(near, I), minlength=2, maxlength=2), F)[:, None],
            )
        )
    return centre


def queue(x: Any) -> Any:
    """A window over what was read last."""
    buffer = tf.zeros([3, 5])
    out = tf.TensorArray(F, 6)
    for t in tf.range(6):
        buffer = tf.concat([buffer[1:], x[t][None]], 0)
        out = out.write(t, tf.reduce_mean(buffer, 0))
    return out.stack()


def exponential_average(x: Any) -> Any:
    return tf.scan(lambda a, b: 0.9 * a + 0.1 * b, x)


def longest_run(i: Any) -> Any:
    best, run = tf.constant(0), tf.constant(0)
    for at in tf.range(tf.shape(i)[0]):
        if i[at] > 4:
            run += 1
        else:
            run = tf.constant(0)
        best = tf.maximum(best, run)
    return best


def warp_flow(x: Any, y: Any) -> Any:
    """An image looked up at places that a flow moves (bilinear, by gathers)."""
    h, w = tf.shape(x)[1], tf.shape(x)[2]
    gy, gx = tf.meshgrid(tf.range(h), tf.range(w), indexing="ij")
    py = tf.clip_by_value(tf.cast(gy, F) + y[..., 0], 0.0, tf.cast(h - 2, F))
    px = tf.clip_by_value(tf.cast(gx, F) + y[..., 1], 0.0, tf.cast(w - 2, F))
    y0, x0 = tf.cast(tf.floor(py), I), tf.cast(tf.floor(px), I)
    fy, fx = (py - tf.floor(py))[..., None], (px - tf.floor(px))[..., None]

    def at(a: Any, b: Any) -> Any:
        return tf.gather_nd(x, tf.stack([a, b], -1), batch_dims=1)

    return (at(y0, x0) * (1 - fx) + at(y0, x0 + 1) * fx) * (1 - fy) + (
        at(y0 + 1, x0) * (1 - fx) + at(y0 + 1, x0 + 1) * fx
    ) * fy


def anchors(x: Any) -> Any:
    """Boxes of every place and shape, clipped."""
    h, w = tf.shape(x)[1], tf.shape(x)[2]
    y, z = tf.meshgrid(tf.range(h), tf.range(w), indexing="ij")
    centre = tf.cast(tf.reshape(tf.stack([y, z], -1), [-1, 1, 2]), F) * 8.0 + 4.0
    half = tf.constant([[4.0, 4.0], [8.0, 4.0], [4.0, 8.0]])[None]
    return tf.clip_by_value(
        tf.reshape(tf.concat([centre - half, centre + half], -1), [-1, 4]), 0.0, 8.0 * tf.cast(w, F)
    )


def soft_nms(x: Any) -> Any:
    return tf.image.non_max_suppression_with_scores(
        tf.sort(tf.abs(x), 1), tf.abs(x[:, 0]), 4, 0.5, 0.05, soft_nms_sigma=0.3
    )


V, M, N3, IM = [("nm", F)], [("n44", F)], [("nmk", F)], [("nhw3", F)]
FRESH: dict[str, Function] = {
    # control flow
    "bisect": (bisect, V), "primes": (primes, [("n", I)]), "edit_distance": (edit_distance, [("24", I)]), "gradient_descent": (gradient_descent, V), "switch": (switch, [("nm", F), ("n", I)]), "cases": (cases, V),
    "k_means": (k_means, [("65", F)]), "queue": (queue, [("65", F)]), "exponential_average": (exponential_average, V), "longest_run": (longest_run, [("n", I)]), "k_fori": (lambda x: k.fori_loop(0, 5, lambda i, v: v * 0.5 + k.cast(i, "float32"), x), V),
    "k_scan": (lambda x: k.scan(lambda c, v: (c + v, c * v), x[0], x), V), "k_scan_back": (lambda x: k.scan(lambda c, v: (c + v, c - v), x[0], x, reverse=True), [("65", F)]), "k_associative": (lambda x: k.associative_scan(k.add, x, axis=1), [("n8", F)]), "k_map": (lambda x: k.map(lambda v: k.sum(v * v), x), V),
    "k_vectorized": (lambda x: k.vectorized_map(lambda v: k.max(v) - v, x), V), "k_cond": (lambda x: k.cond(k.sum(x) > 0.0, lambda: x + 1.0, lambda: x * 2.0), V), "k_switch": (lambda x: k.switch(k.cast(k.argmax(x[0]) % 2, "int32"), [lambda v: v * 2.0, lambda v: v - 1.0], x), V), "k_unstack": (lambda x: k.stack(k.unstack(x, axis=1)[:3]), V), "k_slice_update": (lambda x: k.slice_update(x, (1, 0), x[:1, :2] * 3.0), [("n4", F)]), "k_scatter_update": (lambda x: k.scatter_update(x, [[0, 1], [1, 2]], k.convert_to_tensor([9.0, 8.0])), V),
    # keras.ops over numbers
    "k_average": (lambda x: k.average(x, 1, weights=k.arange(1, 5, dtype="float32")), [("n4", F)]), "k_bincount": (lambda i: k.bincount(i, minlength=10), [("m", I)]), "k_corrcoef": (lambda x: k.corrcoef(x), [("3m", F)]), "k_correlate": (lambda x: k.correlate(x[0], x[1], mode="same"), [("37", F)]), "k_cross": (lambda x, y: k.cross(x, y), [("n3", F), ("n3", F)]), "k_diff": (lambda x: k.diff(x, n=2, axis=1), V), "k_digitize": (lambda x: k.digitize(x, [-0.4, 0.0, 0.6]), V), "k_hist": (lambda x: k.histogram(x, bins=4, range=(-1.0, 1.0))[0], V),
    "k_median": (lambda x: k.median(x, axis=1), V), "k_quantile": (lambda x: k.quantile(x, [0.25, 0.6], axis=1), V), "k_quantile_near": (lambda x: k.quantile(x, 0.3, axis=1, method="nearest"), V), "k_nan": (lambda x: k.nan_to_num(x / (x - x[:1]), nan=0.5, posinf=2.0, neginf=-2.0), V), "k_select": (lambda x: k.select([x < -0.3, x > 0.4], [x * 2.0, x - 1.0], 0.25), V), "k_tensordot": (lambda x, y: k.tensordot(x, y, axes=[[2], [1]]), [("nmk", F), ("jk", F)]), "k_trapezoid": (lambda x: k.trapezoid(x, dx=0.5), V),
    "k_vander": (lambda x: k.vander(x, 4), [("m", F)]), "k_swap": (lambda x: k.swapaxes(k.moveaxis(x, 0, -1), 0, 1), N3), "k_rot90": (lambda x: k.rot90(x, 1, axes=(1, 2)), N3), "k_kaiser": (lambda x: x * k.kaiser(8, 5.0) + k.bartlett(8) + k.blackman(8) + k.hamming(8), [("n8", F)]), "k_unravel": (lambda i: k.unravel_index(i, (3, 4)), [("m", I)]), "k_searchsorted": (lambda x: k.searchsorted(k.sort(x[0]), x[1], side="right"), [("3m", F)]), "k_take_along": (lambda x: k.take_along_axis(x, k.argsort(x, 1), 1), V), "k_logaddexp": (lambda x: k.logaddexp2(x, x * 2.0) + k.exp2(x) + k.log2(k.abs(x) + 0.5), V),
    "k_bits": (lambda i: k.bitwise_xor(k.left_shift(i, 2), k.right_shift(i, 1)), [("nm", I)]), "k_gcd": (lambda i: k.gcd(i, i[::-1] + 2), [("m", I)]), "k_heaviside": (lambda x: k.heaviside(x, 0.5) + k.deg2rad(x) + k.cbrt(x) + k.signbit(x), V), "k_hypot": (lambda x: k.hypot(x, 0.5) + k.sinc(x) if hasattr(k, "sinc") else k.hypot(x, 0.5), V), "k_fmod": (lambda x: k.fmod(x * 5.0, 1.5) if hasattr(k, "fmod") else x, V), "k_kron": (lambda x: k.kron(x, k.eye(2)), [("34", F)]), "k_inner": (lambda x, y: (k.inner(x, y), k.outer(x[0], y[0]), k.vdot(x, y)), [("35", F), ("35", F)]), "k_nanmean": (lambda x: k.nansum(x / (x - x[:1]), 1) if hasattr(k, "nansum") else x, V),
    "k_logical": (lambda x: k.logical_xor(x > 0.0, x < 0.5), V), "k_ptp": (lambda x: k.ptp(x, 1) if hasattr(k, "ptp") else x, V), "k_isclose": (lambda x: k.isclose(x, k.round(x, 1), atol=0.03), V), "k_round": (lambda x: k.round(x, 2), V), "k_floor_divide": (lambda x: k.floor_divide(x, 0.3) + k.true_divide(x, 0.7), V), "k_array_split": (lambda x: k.array_split(x, 3, axis=1), [("n7", F)]), "k_arange": (lambda i: k.arange(0, 10, 2) + i[0], [("n", I)]), "k_tri": (lambda x: k.triu(x, 1) + k.tril(x, -1) + k.trace(x, axis1=1, axis2=2)[:, None, None] + k.diagonal(x, axis1=1, axis2=2)[..., None], [("n55", F)]),
    "k_view": (lambda x: k.view_as_complex(x) if False else k.real(k.view_as_complex(x)) * 2.0, [("nm2", F)]), "k_angle": (lambda x: k.angle(x) if hasattr(k, "angle") else x, V), "k_erfinv": (lambda x: k.erfinv(x * 0.9), V), "k_extract": (lambda x: k.extract_sequences(x, 16, 8), [("nl", F)]), "k_segment": (lambda x: k.segment_max(x, [0, 0, 1, 2, 2], 3, sorted=True), [("53", F)]), "k_segment_sum": (lambda x: k.segment_sum(x, [2, 0, 1, 0, 2], 3), [("53", F)]), "k_rfft": (lambda x: k.rfft(x, 32), [("nl", F)]), "k_stft": (lambda x: k.stft(x, 16, 8, 16, window="hann"), [("nl", F)]), "k_istft": (lambda x: k.istft(k.stft(x, 16, 4, 16), 16, 4, 16), [("nl", F)]), "k_fft": (lambda x: k.fft((x, x * 0.5)), V), "k_ifft2": (lambda x: k.ifft2((x, -x)), N3), "k_logdet": (lambda x: k.logdet(k.matmul(x, k.transpose(x, (0, 2, 1))) + k.eye(4)), M), "k_in_top_k": (lambda x: k.in_top_k(k.convert_to_tensor([1, 0, 2]), x, 2), [("3m", F)]),
    # keras.ops of linear algebra and networks
    "k_cholesky": (lambda x: k.cholesky(k.matmul(x, k.transpose(x, (0, 2, 1))) + k.eye(4)), M), "k_cholesky_inverse": (lambda x: k.cholesky_inverse(k.cholesky(k.matmul(x, k.transpose(x, (0, 2, 1))) + k.eye(4))), M), "k_det": (lambda x: k.det(x), M), "k_inv": (lambda x: k.inv(x + 3.0 * k.eye(4)), M), "k_norm": (lambda x: (k.norm(x, ord=1, axis=1), k.norm(x, ord="fro", axis=(1, 2)), k.norm(x, ord=np.inf, axis=2)), M), "k_solve": (lambda x, y: k.solve(x + 3.0 * k.eye(4), y), [("n44", F), ("n42", F)]), "k_triangular": (lambda x, y: k.solve_triangular(x + 3.0 * k.eye(4), y, lower=True), [("n44", F), ("n42", F)]), "k_svd": (lambda x: k.svd(x, compute_uv=False), M), "k_eigh": (lambda x: k.eigh(x + k.transpose(x, (0, 2, 1)))[0], M), "k_qr": (lambda x: k.abs(k.qr(x)[1]), M), "k_lstsq": (lambda x, y: k.lstsq(x + k.eye(4), y), [("44", F), ("42", F)]), "k_jvp": (lambda x: k.jvp(lambda v: k.sin(v) * v, (x,), (k.ones_like(x),))[1] if hasattr(k, "jvp") else x, V),
    "k_ctc_decode": (lambda x: k.ctc_decode(k.log_softmax(x * 5.0), [6, 6], strategy="greedy")[1], [("265", F)]), "k_multi_hot": (lambda i: k.multi_hot(i, 10), [("nm", I)]), "k_dot_attention": (lambda x: k.dot_product_attention(x, x, x, is_causal=True), [("n453", F)]), "k_unfold": (lambda x: k.unfold(x, 2) if hasattr(k, "unfold") else x, [("nhwk", F)]), "k_moments": (lambda x: k.moments(x, [1, 2]), N3), "k_psnr": (lambda x: k.psnr(k.abs(x), k.abs(x) * 0.9, 1.0), IM), "k_polar": (lambda x: k.polar(k.abs(x), x * 3.0) if False else k.glu(x), [("n8", F)]), "k_layer_norm": (lambda x: k.layer_normalization(x) if hasattr(k, "layer_normalization") else x, V), "k_rms": (lambda x: k.rms_normalization(x, 1.0) if hasattr(k, "rms_normalization") else x, V), "k_sparse_loss": (lambda x: k.sparse_categorical_crossentropy(k.convert_to_tensor([1, 0, 2]), k.softmax(x)), [("3m", F)]), "k_binary_loss": (lambda x: k.binary_crossentropy(k.abs(x), k.sigmoid(x)), V),
    "k_depthwise": (lambda x: k.depthwise_conv(x, k.ones((3, 3, 3, 2)) * 0.1, padding="same"), IM), "k_conv_t": (lambda x: k.conv_transpose(x, k.ones((3, 3, 2, 3)) * 0.1, 2, padding="valid", output_padding=1), IM), "k_pool_adaptive": (lambda x: k.adaptive_average_pool(x, (3, 4)) if hasattr(k, "adaptive_average_pool") else x, IM),
    # keras.ops.image
    "ki_crop": (lambda x: k.image.crop_images(x, 1, 2, 1, 0), IM), "ki_pad": (lambda x: k.image.pad_images(x, 1, 2, 3, 0), IM), "ki_patches": (lambda x: k.image.extract_patches(x, (3, 2), strides=(1, 2)), IM), "ki_hsv": (lambda x: k.image.hsv_to_rgb(k.image.rgb_to_hsv(k.abs(x))), IM), "ki_gray": (lambda x: k.image.rgb_to_grayscale(x), IM), "ki_affine": (lambda x: k.image.affine_transform(x, k.convert_to_tensor([[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.0, 0.0]] * 2), fill_mode="constant", fill_value=0.5), [("2hw3", F)]), "ki_affine_near": (lambda x: k.image.affine_transform(x, k.convert_to_tensor([[0.0, 1.0, 0.3, -1.0, 0.0, 5.2, 0.0, 0.0]] * 2), interpolation="nearest", fill_mode="reflect"), [("2hw3", F)]), "ki_map": (lambda x: k.image.map_coordinates(x[0, ..., 0], k.stack([k.abs(x[0, ..., 1]) * 5.0, k.abs(x[0, ..., 2]) * 4.0]), order=1, fill_mode="nearest"), IM), "ki_blur": (lambda x: k.image.gaussian_blur(x, (3, 3), (1.0, 1.0)), IM), "ki_perspective": (lambda x: k.image.perspective_transform(x, k.convert_to_tensor([[[0.0, 0.0], [0.0, 6.0], [6.0, 0.0], [6.0, 6.0]]] * 2), k.convert_to_tensor([[[1.0, 1.0], [0.0, 5.0], [5.0, 0.0], [6.0, 5.0]]] * 2)), [("2hw3", F)]), "ki_bicubic": (lambda x: k.image.resize(x, (9, 12), interpolation="bicubic", antialias=False), IM), "ki_lanczos": (lambda x: k.image.resize(x, (5, 4), interpolation="lanczos5", antialias=True), IM), "ki_scale": (lambda x: k.image.scale_and_translate(x, (x.shape[0], 7, 8, 3), k.convert_to_tensor([1.2, 0.8]), k.convert_to_tensor([0.3, -0.2]), (1, 2), "linear"), [("2hw3", F)]),
    # images of TensorFlow
    "warp_flow": (warp_flow, [("2hw3", F), ("2hw2", F)]), "anchors": (anchors, [("nhwk", F)]), "soft_nms": (soft_nms, [("m4", F)]), "nms_padded": (lambda x: tf.image.non_max_suppression_padded(tf.sort(tf.abs(x), 1), tf.abs(x[:, 0]), 5, pad_to_max_output_size=True), [("m4", F)]), "combined_classes": (lambda x, y: tf.image.combined_non_max_suppression(tf.sort(tf.abs(x), 2)[:, :, None], tf.abs(y), 4, 6, score_threshold=0.2), [("n64", F), ("n63", F)]), "jpeg_blocks": (lambda x: tf.signal.dct(tf.reshape(x, [-1, 8, 8]), norm="ortho"), [("288", F)]), "posterize": (lambda x: tf.cast(tf.bitwise.bitwise_and(tf.cast(tf.abs(x) * 255.0, tf.uint8), tf.constant(0xE0, tf.uint8)), F), [("nhw3", F)]), "equalize": (lambda x: tf.gather(tf.cumsum(tf.math.bincount(tf.cast(tf.abs(x[0, ..., 0]) * 15.0, I), minlength=16, maxlength=16)), tf.cast(tf.abs(x[0, ..., 0]) * 15.0, I)), IM), "multiscale": (lambda x: tf.image.ssim_multiscale(tf.abs(x), tf.abs(x) * 0.9, 1.0, [0.5, 0.5], filter_size=3), [("2883", F)]), "cutout": (lambda x: x * tf.pad(tf.zeros([2, 3]), [[1, 3], [2, 1]], constant_values=1.0)[None, :, :, None], [("n663", F)]), "grid": (lambda x: tf.image.draw_bounding_boxes(x, tf.constant([[[0.1, 0.2, 0.7, 0.9]]] * 2), [[1.0, 0.0, 0.0]]), [("2hw3", F)]),
    # numbers
    "histogram_fixed": (lambda x: tf.histogram_fixed_width_bins(x, [-1.0, 1.0], 6), V), "cumulative": (lambda x: tf.math.cumulative_logsumexp(x, 1, exclusive=True), V), "lbeta_rows": (lambda x: tf.math.lbeta(tf.abs(x) + 0.5), V), "xlog1py": (lambda x: tf.math.xlog1py(x, tf.abs(x)) + tf.math.log1p(tf.abs(x)), V), "betainc_x": (lambda x: tf.math.betainc(tf.abs(x) + 1.0, 2.0 * tf.ones_like(x), tf.abs(x) * 0.9), V), "erfcinv": (lambda x: tf.math.erfcinv(tf.abs(x) + 0.2), V), "ndtri_x": (lambda x: tf.math.ndtri(tf.abs(x) * 0.8 + 0.1), V), "sobol": (lambda x: x[:, :3] + tf.math.sobol_sample(3, 4, skip=1)[:1], [("n4", F)]), "top_k_long": (lambda x: tf.math.top_k(x, 3, sorted=True), N3), "argmax_long": (lambda i: tf.argmax(tf.cast(i, tf.int64), 1, output_type=I), [("nm", I)]), "reduce_bits": (lambda i: tf.reduce_max(tf.bitwise.bitwise_or(i, 4), 0) - tf.reduce_prod(i % 3 + 1, 0), [("nm", I)]), "rows_equal": (lambda i: tf.reduce_all(i[:, None] == i[None], -1), [("nm", I)]), "rank_of": (lambda x: tf.argsort(tf.argsort(x, 1), 1), V), "scaled_tanh": (lambda x: 1.7159 * tf.nn.tanh(2.0 / 3.0 * x) + tf.nn.silu(x, 1.3), V), "softmax_mask": (lambda x: tf.nn.softmax(x + (1.0 - tf.linalg.band_part(tf.ones([5, 5]), -1, 0)) * -1e9), [("n55", F)]), "entropy": (lambda x: -tf.reduce_sum(tf.nn.softmax(x) * tf.nn.log_softmax(x), -1), V), "js": (lambda x, y: tf.keras.losses.KLDivergence(reduction="none")(tf.nn.softmax(x), tf.nn.softmax(y)), [("nm", F), ("nm", F)]), "hinge": (lambda x: tf.keras.losses.CategoricalHinge(reduction="none")(tf.abs(x), x), V), "log_cosh": (lambda x: tf.keras.losses.LogCosh(reduction="none")(x, x * 0.5), V), "focal": (lambda x: tf.keras.losses.BinaryFocalCrossentropy(reduction="none")(tf.round(tf.abs(x)), tf.sigmoid(x)), V), "uint16": (lambda i: tf.cast(tf.cast(i * 9000, tf.uint16), I), [("nm", I)]), "complex_math": (lambda x: tf.abs(tf.exp(tf.complex(x, x * 2.0)) / tf.complex(x + 2.0, 1.0)), V), "complex_pow": (lambda x: tf.math.real(tf.pow(tf.complex(x, x), tf.complex(2.0, 0.0))), V), "divide_int": (lambda i: (i + 20) // 7 - (i + 20) % 7 + tf.math.floordiv(-i, 3), [("nm", I)]), "round_even": (lambda x: tf.round(x * 10.0 + 0.5), V), "sum_bool": (lambda x: tf.math.count_nonzero(x > 0.2, 1), V), "sort_desc": (lambda i: tf.sort(i, 1, "DESCENDING"), [("nm", I)]),
    # shapes
    "einsum_dots": (lambda x, y: tf.einsum("...ij,...jk->...ik", x, y), [("nmk", F), ("nkj", F)]), "einsum_diag": (lambda x: tf.einsum("bii->bi", x), M), "einsum_three": (lambda x, y: tf.einsum("bik,bjk,bjl->bil", x, x, y), [("nmk", F), ("nmj", F)]), "dynamic_slice": (lambda x, i: tf.slice(x, [0, i[0] % 3], [-1, 2]), [("n5", F), ("n", I)]), "reverse_dynamic": (lambda x, i: tf.reverse(x, [1 + i[0] * 0]) if False else tf.reverse(x, [1]), [("nm", F), ("n", I)]), "pad_dynamic": (lambda x, i: tf.pad(x, [[0, 0], [i[0] % 3, 2]]), [("nm", F), ("n", I)]), "tile_dynamic": (lambda x, i: tf.tile(x, [1, i[0] % 3 + 1]), [("nm", F), ("n", I)]), "repeat_dynamic": (lambda x, i: tf.repeat(x, i % 3, axis=0), [("nm", F), ("n", I)]), "boolean_two": (lambda x: tf.boolean_mask(x, x[0] > 0.0, axis=1), V), "space_nd": (lambda x: tf.space_to_batch_nd(x, [2, 2], [[0, 2], [1, 1]]), [("n642", F)]), "scatter_nd_sub": (lambda x: tf.tensor_scatter_nd_sub(x, [[0], [1]], x[:2] * 0.5), V), "scatter_nd_min": (lambda x: tf.tensor_scatter_nd_min(x, [[0], [1]], x[1:3] if False else x[:2] * 0.5), V), "gather_nd_batch": (lambda x, i: tf.gather_nd(x, (i % 4)[..., None], batch_dims=1), [("nmk", F), ("nj", I)]), "mesh_stack": (lambda x: tf.stack(tf.meshgrid(tf.range(tf.shape(x)[0]), tf.range(tf.shape(x)[1]), indexing="ij"), -1), V), "zero_rows": (lambda x: tf.reduce_sum(x[:0], 0), V), "split_three": (lambda x: tf.split(x, [2, -1, 1], 1), [("n6", F)]), "unique_counts": (lambda i: tf.unique_with_counts(i), [("m", I)]), "expand_new": (lambda x: x[:, None, ..., None] * x[None, ..., None], V), "squeeze_all": (lambda x: tf.squeeze(x[:, :1]), V), "fill_like": (lambda x: tf.fill(tf.shape(x)[1:], 0.5) + tf.ones_like(x), V), "ravel_multi": (lambda i: tf.tensordot(i, tf.constant([12, 4, 1]), 1), [("n3", I)]), "where_index": (lambda x: tf.where(x > 0.3), V), "block_diag": (lambda x: tf.linalg.diag(x, k=1, padding_value=0.5), V), "band_dynamic": (lambda x, i: tf.linalg.band_part(x, i[0] % 3, 1), [("n55", F), ("n", I)]),
    # signals
    "stft_power": (lambda x: tf.abs(tf.signal.stft(x, 20, 10, 32)) ** 2, [("nl", F)]), "mel": (lambda x: tf.matmul(tf.abs(tf.signal.stft(x, 16, 8, 32)), tf.signal.linear_to_mel_weight_matrix(10, 17, 8000)), [("nl", F)]), "hilbert": (lambda x: tf.math.imag(tf.signal.fft(tf.cast(x, tf.complex64))), V), "window_mean": (lambda x: tf.reduce_mean(tf.signal.frame(x, 5, 1), -1), [("nl", F)]), "fir": (lambda x: tf.nn.conv1d(x[..., None], tf.constant([0.25, 0.5, 0.25])[:, None, None], 1, "SAME")[..., 0], [("nl", F)]), "welch": (lambda x: tf.reduce_mean(tf.abs(tf.signal.rfft(tf.signal.frame(x, 16, 8) * tf.signal.hann_window(16))) ** 2, 1), [("nl", F)]), "idct3": (lambda x: tf.signal.idct(x, 3), V), "dst": (lambda x: tf.signal.dct(tf.reverse(x, [1]), 2) * [1.0, -1.0, 1.0, -1.0], [("n4", F)]), "rfft_full": (lambda x: tf.signal.rfft2d(x), N3), "crosscorr": (lambda x: tf.signal.irfft(tf.signal.rfft(x, [64]) * tf.math.conj(tf.signal.rfft(x[:1], [64])), [64]), [("nl", F)]),
    # text where ONNX has an operator, numbers drawn, tables, quantization
    "t_upper": (lambda s: tf.strings.upper(tf.strings.join([s, "aBc"])), [("n", S)]), "t_lower": (lambda s: tf.strings.lower(s), [("n", S)]), "t_join3": (lambda s: tf.strings.join([s, s, "!"], "_"), [("n", S)]), "t_full_match": (lambda s: tf.strings.regex_full_match(s, "[0-9]+[05]"), [("n", S)]), "t_split_pad": (lambda s: tf.strings.split(tf.strings.join([s, "x", s], " ")).to_tensor(), [("n", S)]), "t_ids": (lambda s: tf.cast(s == "14", F) + tf.strings.to_number(s), [("n", S)]),
    "r_uniform_int": (lambda x: tf.random.stateless_uniform([4], [3, 4], 0, 10, I) + tf.cast(x[0, 0] * 0.0, I), V), "r_normal": (lambda x: x + tf.random.stateless_normal([4], [7, 8]), [("n4", F)]), "r_truncated": (lambda x: x + tf.random.stateless_truncated_normal([4], [7, 8]), [("n4", F)]), "r_binomial": (lambda x: tf.shape(tf.random.stateless_binomial([3], [1, 2], 5.0, 0.5)) + tf.cast(x[0, 0] * 0.0, I), V), "r_poisson": (lambda x: tf.shape(tf.random.stateless_poisson([3], [1, 2], 2.0)) + tf.cast(x[0, 0] * 0.0, I), V),
    "q_fake_channel": (lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-0.5] * 4, [0.7] * 4), [("n4", F)]), "q_round_trip": (lambda x: tf.quantization.dequantize(tf.quantization.quantize(x, -1.0, 1.0, tf.qint8)[0], -1.0, 1.0), V), "q_unsigned": (lambda x: tf.quantization.dequantize(tf.quantization.quantize(x, -1.0, 1.0, tf.quint8)[0], -1.0, 1.0), V), "q_v3": (lambda x: tf.raw_ops.QuantizeAndDequantizeV3(input=x, input_min=-1.0, input_max=1.0, num_bits=4, signed_input=True, range_given=True, narrow_range=True, axis=-1), V),
}  # fmt: skip

"""Functions of TensorFlow as models: control flow, and operators that TensorFlow Lite takes over from TensorFlow (Flex).

    python wild_functions.py FOLDER --seed 1

Each function comes with extents drawn from the seed, with a known and with an unknown first extent. Runs in an
environment with TensorFlow.
"""

# The table has a function a line.
# ruff: noqa: E501
from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from wild_arrays import OPERATORS as ARRAYS
from wild_children import Made, read_arguments, write_each
from wild_fresh import FRESH
from wild_operators import OPERATORS

F, I, S = tf.float32, tf.int32, tf.string  # noqa: E741
raw = tf.raw_ops


def collatz(x: Any) -> Any:
    return tf.while_loop(lambda i, v: tf.reduce_sum(v) < 50.0, lambda i, v: (i + 1, v * 1.5 + 1.0), (tf.constant(0), x))


def gathered(x: Any) -> Any:
    """An array that grows in a loop."""
    rows = tf.TensorArray(F, size=0, dynamic_size=True, clear_after_read=False)
    for i in tf.range(tf.shape(x)[0]):
        rows = rows.write(i, x[i] * tf.cast(i, F))
    return rows.stack()


def branches(x: Any) -> Any:
    return tf.switch_case(
        tf.cast(tf.abs(x[0, 0]) * 4.0, I), [lambda: x + 1.0, lambda: tf.nn.relu(x), lambda: tf.sin(x) * 2.0]
    )


def nested(x: Any) -> Any:
    total = tf.zeros_like(x)
    for i in tf.range(3):
        if tf.reduce_mean(x) > 0.0:
            for _ in tf.range(i):
                total += x
        else:
            total -= x
    return total


def early(x: Any) -> Any:
    found = x
    for i in tf.range(6):
        if tf.reduce_max(found) > 3.0:
            break
        found = found * 1.4 + tf.cast(i, F) * 0.1
    return found


def scanned(x: Any) -> Any:
    return tf.scan(lambda a, e: a * 0.5 + e, x, initializer=tf.zeros_like(x[0]))


def mapped(x: Any) -> Any:
    return tf.map_fn(lambda row: tf.reduce_sum(row) * tf.nn.softmax(row), x)


def folded(x: Any) -> Any:
    return tf.foldl(lambda a, e: tf.maximum(a * 0.9, e), x)


def beam(x: Any) -> Any:
    values, places = tf.math.top_k(tf.nn.log_softmax(x), 3)
    return values, tf.gather(x, places, batch_dims=1), places


def boxes(x: Any) -> Any:
    corners = tf.concat([x[:, :2], x[:, :2] + tf.abs(x[:, 2:4]) + 0.1], 1)
    chosen = tf.image.non_max_suppression(corners, tf.abs(x[:, 0]), 4, iou_threshold=0.4)
    return tf.gather(corners, chosen)


def spectrogram(x: Any) -> Any:
    frames = tf.signal.stft(x, 16, 8, 16)
    mel = tf.signal.linear_to_mel_weight_matrix(6, 9, 8000, 100.0, 3500.0)
    return tf.math.log(tf.matmul(tf.abs(frames), mel) + 1e-3)


def counted(x: Any) -> Any:
    words = tf.strings.split(tf.strings.as_string(tf.cast(x[0] * 10.0, I)), "1").to_tensor("none")
    return tf.strings.length(words)


#: what a function reads: the extents that are drawn stand as letters
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[str, Any]]]] = {
    **FRESH,
    "collatz": (collatz, [("nm", F)]), "gathered": (gathered, [("nm", F)]), "branches": (branches, [("nm", F)]), "nested": (nested, [("nm", F)]),
    "early": (early, [("nm", F)]), "scan": (scanned, [("nm", F)]), "map": (mapped, [("nm", F)]), "fold": (folded, [("nm", F)]), "beam": (beam, [("nk", F)]), "boxes": (boxes, [("n4", F)]),
    "stft": (spectrogram, [("nl", F)]), "mfcc": (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x)[..., :5], [("nmk", F)]),
    "istft": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8, 16), 16, 8, 16), [("nl", F)]), "dct": (lambda x: tf.signal.dct(x, 2, norm="ortho"), [("nm", F)]),
    "fft2d": (lambda x: tf.math.real(tf.signal.fft2d(tf.cast(x, tf.complex64))), [("mk", F)]), "ifft": (lambda x: tf.abs(tf.signal.ifft(tf.complex(x, -x))), [("nm", F)]),
    "rfft2d": (lambda x: tf.abs(tf.signal.rfft2d(x, (8, 8))), [("n88", F)]), "irfft": (lambda x: tf.signal.irfft(tf.complex(x, x * 0.5), [8]), [("n5", F)]),
    "angle": (lambda x, y: tf.math.angle(tf.complex(x, y)), [("nm", F), ("nm", F)]), "conj": (lambda x, y: tf.math.imag(tf.math.conj(tf.complex(x, y)) * tf.complex(y, x)), [("nm", F), ("nm", F)]),
    "hamming": (lambda x: x * tf.signal.hamming_window(12), [("nd", F)]), "overlap": (lambda x: tf.signal.overlap_and_add(x, 3), [("nmk", F)]), "frame": (lambda x: tf.signal.frame(x, 5, 2, pad_end=True), [("nl", F)]),
    "einsum": (lambda x, y: tf.einsum("abc,dc->abd", x, y), [("nmk", F), ("jk", F)]), "einsum2": (lambda x, y: tf.einsum("bij,bjk->bki", x, y), [("nmk", F), ("nkj", F)]),
    "matmul": (lambda x, y: tf.matmul(x, y, transpose_b=True), [("nmk", F), ("njk", F)]), "tensordot": (lambda x, y: tf.tensordot(x, y, [[2], [0]]), [("nmk", F), ("kj", F)]),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), [("nm", F)]), "cumprod": (lambda x: tf.math.cumprod(x, 1), [("nm", F)]), "cumlogsum": (lambda x: tf.math.cumulative_logsumexp(x, 1), [("nm", F)]),
    "sort": (lambda x: (tf.sort(x, 1, "DESCENDING"), tf.argsort(x, 1)), [("nm", F)]), "unique": (lambda x: tf.unique(x), [("l", I)]), "uniquec": (lambda x: tf.unique_with_counts(x), [("l", I)]),
    "where": (lambda x: tf.where(x > 0.0), [("nm", F)]), "mask": (lambda x: tf.boolean_mask(x, tf.reduce_sum(x, 1) > 0.0), [("nm", F)]),
    "segment": (lambda x, i: tf.math.segment_sum(x, tf.sort(i)), [("nm", F), ("n", I)]), "unsorted": (lambda x, i: tf.math.unsorted_segment_mean(x, i, 10), [("nm", F), ("n", I)]),
    "segmentmax": (lambda x, i: tf.math.unsorted_segment_max(x, i, 10), [("nm", F), ("n", I)]), "bincount": (lambda i: tf.math.bincount(i, minlength=10, maxlength=10), [("l", I)]),
    "scatter": (lambda x, i: tf.tensor_scatter_nd_update(x, i[:, None] % 2, x[: tf.shape(i)[0]]), [("nm", F), ("n", I)]), "scatteradd": (lambda x, i: tf.tensor_scatter_nd_add(x, i[:, None] % 2, x), [("nm", F), ("n", I)]),
    "scattermax": (lambda x, i: tf.tensor_scatter_nd_max(x, i[:, None] % 2, x), [("nm", F), ("n", I)]), "scatternd": (lambda x, i: tf.scatter_nd(i[:, None], x, [10, x.shape[1]]), [("nm", F), ("n", I)]),
    "gathernd": (lambda x, i: tf.gather_nd(x, i[:, None] % 2), [("nm", F), ("n", I)]), "onehot": (lambda i: tf.one_hot(i, 7, 2.0, -1.0, axis=0), [("nm", I)]), "sequence": (lambda i: tf.sequence_mask(i, 10, dtype=F), [("n", I)]),
    "reverse": (lambda x, i: tf.reverse_sequence(x, i % 2 + 1, seq_axis=1), [("nm", F), ("n", I)]), "roll": (lambda x: tf.roll(x, [1, -2], [0, 1]), [("nm", F)]), "tile": (lambda x: tf.tile(x, [2, 3]), [("nm", F)]),
    "band": (lambda x: tf.linalg.band_part(x, 1, 2), [("nmm", F)]), "diag": (lambda x: tf.linalg.diag(x, k=1), [("nm", F)]), "diagpart": (lambda x: tf.linalg.diag_part(x), [("nmm", F)]), "setdiag": (lambda x: tf.linalg.set_diag(x, x[:, 0]), [("nmm", F)]),
    "trace": (lambda x: tf.linalg.trace(x), [("nmm", F)]), "det": (lambda x: tf.linalg.det(x), [("nmm", F)]), "inv": (lambda x: tf.linalg.inv(x + 3.0 * tf.eye(5)), [("n55", F)]),
    "cholesky": (lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(5)), [("n55", F)]),
    "triangular": (lambda x, y: tf.linalg.triangular_solve(x + 4.0 * tf.eye(5), y), [("n55", F), ("n52", F)]), "norm": (lambda x: tf.norm(x, ord=1, axis=1), [("nm", F)]),
    "erf": (lambda x: tf.math.erf(x), [("nm", F)]), "lgamma": (lambda x: tf.math.lgamma(x + 2.0), [("nm", F)]),
    "atanh": (lambda x: tf.math.log1p(x * 0.9), [("nm", F)]), "sinh": (lambda x: tf.sinh(x) + tf.cosh(x), [("nm", F)]),
    "tan": (lambda x: tf.tan(x) + tf.atan(x), [("nm", F)]), "xlogy": (lambda x, y: tf.math.xlogy(x, tf.abs(y) + 0.1) + tf.math.xdivy(x, y), [("nm", F), ("nm", F)]), "rint": (lambda x: tf.math.rint(x * 3.0) + tf.round(x * 5.0), [("nm", F)]),
    "floormod": (lambda x, y: tf.math.floormod(x, y + 3) + x // (y + 1), [("nm", I), ("nm", I)]), "truncate": (lambda x, y: tf.truncatediv(x, y + 1), [("nm", I), ("nm", I)]), "divnonan": (lambda x, y: tf.math.divide_no_nan(x, tf.nn.relu(y)), [("nm", F), ("nm", F)]),
    "bits": (lambda x, y: tf.bitwise.bitwise_xor(x, y) + tf.bitwise.left_shift(x, y) - tf.bitwise.invert(y), [("nm", I), ("nm", I)]), "popcount": (lambda x: tf.cast(raw.PopulationCount(x=x), I), [("nm", I)]),
    "isnan": (lambda x: tf.cast(tf.math.is_nan(x / (x - x[0])), F) + tf.cast(tf.math.is_finite(1.0 / x), F), [("nm", F)]), "selu": (lambda x: tf.nn.selu(x) + tf.nn.softplus(x) + tf.nn.softsign(x), [("nm", F)]),
    "crelu": (lambda x: tf.nn.crelu(x), [("nm", F)]), "l2": (lambda x: tf.nn.l2_loss(x), [("nm", F)]), "moments": (lambda x: tf.nn.moments(x, [1]), [("nm", F)]), "lrn": (lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 0.3), [("nhwk", F)]),
    "dilation": (lambda x: tf.nn.dilation2d(x, tf.ones([2, 2, 5]) * 0.1, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), [("nhw5", F)]), "argpool": (lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME"), [("1hwk", F)]),
    "s2b": (lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]), [("n86k", F)]), "d2s": (lambda x: tf.nn.depth_to_space(x, 2), [("nhw8", F)]), "s2d": (lambda x: tf.nn.space_to_depth(x, 2), [("n86k", F)]), "conv3d": (lambda x: tf.nn.conv3d(x, tf.ones([2, 2, 2, 5, 3]) * 0.1, [1, 1, 1, 1, 1], "SAME"), [("n4hw5", F)]),
    "erosion": (lambda x: tf.nn.erosion2d(x, tf.ones([2, 2, 5]) * 0.1, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1]), [("nhw5", F)]), "pool3": (lambda x: tf.nn.pool(x, [2, 3], "AVG", [1, 1], "SAME"), [("nhwk", F)]), "ctc": (lambda x: tf.nn.ctc_greedy_decoder(x, tf.fill([2], 5))[1], [("62k", F)]),
    "crop": (lambda x, y: tf.image.crop_and_resize(x, tf.abs(y), tf.zeros([3], I), [4, 5]), [("nhw3", F), ("34", F)]), "bicubic": (lambda x: tf.image.resize(x, [9, 7], "bicubic"), [("nhwk", F)]),
    "hsv": (lambda x: tf.image.rgb_to_hsv(tf.abs(x)), [("nhw3", F)]), "rgb": (lambda x: tf.image.hsv_to_rgb(tf.abs(x)), [("nhw3", F)]),
    "contrast": (lambda x: tf.image.adjust_contrast(x, 1.7), [("nhw3", F)]), "hue": (lambda x: tf.image.adjust_hue(tf.abs(x), 0.1), [("nhw3", F)]), "saturation": (lambda x: tf.image.adjust_saturation(tf.abs(x), 1.4), [("nhw3", F)]), "gamma": (lambda x: tf.image.adjust_gamma(tf.abs(x), 0.7), [("nhw3", F)]),
    "yuv": (lambda x: tf.image.rgb_to_yuv(x), [("nhw3", F)]), "gray": (lambda x: tf.image.rgb_to_grayscale(x), [("nhw3", F)]), "sobel": (lambda x: tf.image.sobel_edges(x), [("nhwk", F)]), "patches": (lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"), [("nhwk", F)]),
    "standard": (lambda x: tf.image.per_image_standardization(x), [("nhwk", F)]), "flip": (lambda x: tf.image.flip_left_right(tf.image.rot90(x)), [("nhwk", F)]), "totalvar": (lambda x: tf.image.total_variation(x), [("nhwk", F)]),
    "combined": (lambda x: tf.image.combined_non_max_suppression(tf.abs(x)[:, :, None, :4], tf.abs(x)[:, :, 4:], 5, 9), [("2d7", F)]), "nmspad": (lambda x: tf.image.non_max_suppression_padded(tf.concat([x[:, :2], x[:, :2] + 0.5], 1), tf.abs(x[:, 2]), 6, pad_to_max_output_size=True)[0], [("n4", F)]),
    "ragged": (lambda x: tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]).to_tensor(-1.0), [("5m", F)]), "ragmean": (lambda x: tf.reduce_mean(tf.RaggedTensor.from_row_splits(x, [0, 1, 1, 5]), axis=1), [("5m", F)]), "sparse": (lambda x: tf.sparse.sparse_dense_matmul(tf.sparse.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4]), x), [("4m", F)]),
    "todense": (lambda i: tf.sparse.to_dense(tf.sparse.SparseTensor(tf.cast(tf.stack([tf.range(4), i], 1), tf.int64), [1.0, 2.0, 3.0, 4.0], [4, 10])), [("4", I)]), "strings": (counted, [("nm", F)]), "lookup": (lambda x: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2, 3], [10, 20, 30]), -1).lookup(x), [("n", I)]),
    "join": (lambda s: tf.strings.join([s, s], "-"), [("n", S)]), "number": (lambda s: tf.strings.to_number(s), [("n", S)]), "replace": (lambda s: tf.strings.regex_replace(s, "[1-3]", "x"), [("n", S)]), "substr": (lambda s: tf.strings.substr(s, 0, 1), [("n", S)]),
    "splits": (lambda s: tf.strings.split(s, "1").to_tensor("none"), [("n", S)]), "hash": (lambda s: tf.strings.to_hash_bucket_fast(s, 100), [("n", S)]), "equal": (lambda s: tf.cast(tf.equal(s, s[0]), I), [("n", S)]), "strip": (lambda s: tf.strings.strip(s), [("n", S)]),
    "uniform": (lambda x: x + 0.0 * tf.random.stateless_uniform(tf.shape(x), [1, 2]), [("nm", F)]), "philox": (lambda x: x + tf.random.stateless_uniform([4], [3, 4]), [("n4", F)]), "normal": (lambda x: x * tf.random.stateless_normal([4], [3, 4]), [("n4", F)]), "stateful": (lambda x: tf.shape(tf.random.uniform(tf.shape(x))), [("nm", F)]),
    "quantiles": (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -0.7, 0.6), [("nm", F)]), "channelquant": (lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-0.5, -1.0, -0.2, -0.7], [0.5, 0.6, 0.7, 0.8]), [("n4", F)]), "bucket": (lambda x: raw.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.4]), [("nm", F)]),
    "bfloat": (lambda x: tf.cast(tf.cast(x, tf.bfloat16) * 2.0, F), [("nm", F)]), "double": (lambda x: tf.cast(tf.sin(tf.cast(x, tf.float64)), F), [("nm", F)]), "half": (lambda x: tf.cast(x, tf.float16) + tf.cast(1.0, tf.float16), [("nm", F)]), "int8": (lambda x: tf.cast(tf.cast(x * 20.0, tf.int8) // 3, F), [("nm", F)]),
    "shape": (lambda x: tf.reshape(tf.range(tf.size(x)), tf.shape(x)), [("nm", F)]), "linspace": (lambda x: tf.linspace(x[0, 0], x[0, 1], 7), [("nm", F)]), "meshgrid": (lambda x, y: tf.meshgrid(x, y), [("n", F), ("m", F)]), "broadcast": (lambda x: tf.broadcast_to(x[:, None], [tf.shape(x)[0], 3, tf.shape(x)[1]]), [("nm", F)]),
    "strided": (lambda x: x[::-1, 1::2, ..., tf.newaxis], [("nmk", F)]), "slices": (lambda x, i: x[:, i[0] % 2 :], [("nm", F), ("n", I)]), "unstack": (lambda x: tf.stack(tf.unstack(x, axis=1)[::-1], 0), [("nm", F)]), "repeat": (lambda x: tf.repeat(x, [2, 0, 1, 3], axis=1), [("n4", F)]),
    "kthl": (lambda x: tf.math.in_top_k(tf.constant([1, 0, 2]), x, 2), [("3m", F)]), "confusion": (lambda i: tf.math.confusion_matrix(i, i[::-1], 10), [("n", I)]), "allclose": (lambda x: tf.reduce_all(x < 2.0, 1), [("nm", F)]), "prod": (lambda x: tf.reduce_prod(x, 1), [("nm", F)]), "euclid": (lambda x: tf.math.reduce_euclidean_norm(x, 1), [("nm", F)]),
    "qr": (lambda x: tf.matmul(*tf.linalg.qr(x)), [("n55", F)]),
    "logdet": (lambda x: tf.linalg.slogdet(x)[1], [("n55", F)]), "lstsq": (lambda x, y: tf.linalg.lstsq(x + 3.0 * tf.eye(5), y), [("n55", F), ("n52", F)]),
    **OPERATORS,
    **ARRAYS,
}  # fmt: skip


def extents(letters: str, seed: int) -> list[int]:
    draw = np.random.default_rng(seed)
    found = {"n": int(draw.integers(2, 5)), "m": int(draw.integers(4, 9)), "k": int(draw.integers(5, 8)), "j": int(draw.integers(2, 5)),
        "l": int(draw.integers(40, 60)), "h": int(draw.integers(6, 10)), "w": int(draw.integers(7, 11)), "d": 12}  # fmt: skip
    return [int(letter) if letter.isdigit() else found[letter] for letter in letters]


def make(name: str, seed: int, known: bool) -> Made:
    """A function as a model, and what it yields for random operands: TensorFlow's interpreter has no such operators."""
    function, operands = FUNCTIONS[name]
    shapes = [extents(letters, seed) for letters, _ in operands]
    if not known:
        shapes = [
            [None if letters[0] == "n" else shape[0], *shape[1:]]
            for shape, (letters, _) in zip(shapes, operands, strict=True)
        ]
    draw = np.random.default_rng(seed)
    values = [operand(draw, extents(letters, seed), kind) for letters, kind in operands]
    specifications = [
        tf.TensorSpec(shape, kind, name) for name, shape, (_, kind) in zip("abc", shapes, operands, strict=False)
    ]
    module = tf.Module()
    module.call = tf.function(lambda *xs: numbered(function(*xs)), input_signature=specifications)
    concrete = module.call.get_concrete_function()
    results = module.call(*[tf.constant(value) for value in values]).values()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    sample = {f"in:{name}": value for name, value in zip("abc", values, strict=False)}
    return Made(bytes(converter.convert()), sample | {f"out:{at}": plain(result) for at, result in enumerate(results)})


def numbered(results: Any) -> dict[str, Any]:
    """Results under names whose order is theirs."""
    return {f"result_{at:02}": result for at, result in enumerate(tf.nest.flatten(results))}


def operand(draw: Any, shape: list[int], kind: Any) -> Any:
    if kind == F:
        return draw.uniform(-1, 1, shape).astype(np.float32)
    whole = draw.integers(0, 10, shape).astype(np.int32)
    return np.array([str(7 * number) for number in whole], "S") if kind == S else whole.astype(kind.as_numpy_dtype)


def plain(result: Any) -> Any:
    array = result.numpy()
    return (
        array.astype("S")
        if array.dtype == object
        else array.astype(np.float32)
        if result.dtype == tf.bfloat16
        else array
    )


def main() -> None:
    asked = read_arguments(len(FUNCTIONS))
    names = list(FUNCTIONS)[: asked.count]
    makers = {f"any_batch/{name}.tflite": partial(make, name, asked.seed, False) for name in names}
    makers |= {f"fixed/{name}.tflite": partial(make, name, asked.seed, True) for name in names}
    write_each(asked.folder, makers)


if __name__ == "__main__":
    main()

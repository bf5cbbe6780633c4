"""Functions of TensorFlow as models, as wild_functions.py has them: gradients, ragged and sparse tensors, tables, text.

What a function reads: the extents that are drawn stand as letters. Runs in an environment with TensorFlow.
"""

# The table has a function a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

F, I, S = tf.float32, tf.int32, tf.string  # noqa: E741
raw = tf.raw_ops
Function = tuple[Callable[..., Any], list[tuple[str, Any]]]


def slope(function: Callable[..., Any]) -> Callable[..., Any]:
    """How the sum of the squares of a function's results changes with its first operand."""
    return lambda x, *xs: tf.gradients(tf.reduce_sum(function(x, *xs) ** 2), x)[0]


def table(keys: Any, values: Any, otherwise: Any) -> Callable[..., Any]:
    """A look-up in a table that is filled when the model begins."""
    return lambda x: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), otherwise).lookup(x)


def vocabulary(s: Any) -> Any:
    made = tf.lookup.KeyValueTensorInitializer(["7", "14", "21"], tf.constant([0, 1, 2], tf.int64))
    return tf.lookup.StaticVocabularyTable(made, 3).lookup(s)


def rows(x: Any, lengths: Any = (2, 0, 3)) -> Any:
    return tf.RaggedTensor.from_row_lengths(x, lengths)


def sparse(x: Any) -> Any:
    return tf.sparse.from_dense(tf.nn.relu(x))


def dense(x: Any) -> Any:
    return tf.sparse.to_dense(x)


def scattered(x: Any) -> Any:
    made = tf.TensorArray(F, size=4, element_shape=[None]).scatter([2, 0, 3, 1], x[:4])
    return made.gather([1, 3]), made.concat()


def halved(x: Any) -> Any:
    made = tf.TensorArray(F, size=0, dynamic_size=True, infer_shape=False).split(x, [2, 3])
    return made.read(0) + tf.reduce_sum(made.read(1))


def nested_loops(x: Any) -> Any:
    total = tf.zeros_like(x)
    for i in tf.range(3):
        for j in tf.range(tf.shape(x)[1]):
            total += tf.cast(i * j, F) * x
            if tf.reduce_sum(total) > 40.0:
                break
    return total


def two_states(x: Any) -> Any:
    return tf.while_loop(
        lambda i, a, b: tf.logical_and(i < 7, tf.reduce_max(b) < 9.0),
        lambda i, a, b: (i + 1, b, a + b * 0.7),
        (0, x, tf.ones_like(x)),
    )


def collected(x: Any) -> Any:
    """Pairs of results of a loop, of which one is as long as the loop is."""
    return tf.map_fn(lambda row: (tf.sort(row), tf.argmax(row)), x, fn_output_signature=(F, tf.int64))


def viterbi(x: Any) -> Any:
    step = tf.constant([[0.1, 0.5, -0.3], [0.2, 0.0, 0.4], [-0.1, 0.3, 0.2]])

    def forward(score: Any, now: Any) -> Any:
        return tf.reduce_max(score[:, None] + step, 0) + now

    return tf.scan(forward, x[1:], initializer=x[0])


def lengths_of(x: Any) -> Any:
    return tf.cast(tf.reduce_sum(tf.cast(x > 0.0, I), 1), I)


OPERATORS: dict[str, Function] = {
    # loops and arrays
    "ta_scatter": (scattered, [("5m", F)]), "ta_split": (halved, [("5m", F)]), "loops": (nested_loops, [("nm", F)]), "two_states": (two_states, [("nm", F)]), "collected": (collected, [("nm", F)]), "viterbi": (viterbi, [("l3", F)]),
    "map_rows": (lambda x: tf.map_fn(lambda i: x[i] * tf.cast(i, F), tf.range(tf.shape(x)[0]), fn_output_signature=F), [("nm", F)]), "map_where": (lambda x: tf.map_fn(lambda r: tf.where(tf.reduce_sum(r) > 0.0, r, -r), x), [("nm", F)]), "fold_both": (lambda x: tf.foldl(lambda a, e: (a[0] + e, tf.maximum(a[1], e)), x, initializer=(tf.zeros_like(x[0]), tf.zeros_like(x[0]))), [("nm", F)]),
    "cond_none": (lambda x: tf.cond(tf.reduce_any(tf.math.is_nan(x)), lambda: tf.zeros_like(x), lambda: tf.nn.softmax(x)), [("nm", F)]), "cond_two": (lambda x: tf.cond(tf.size(x) > 20, lambda: (x + 1.0, tf.reduce_sum(x)), lambda: (x - 1.0, tf.reduce_max(x))), [("nm", F)]), "while_grow": (lambda x: tf.while_loop(lambda v: tf.shape(v)[0] < 12, lambda v: (tf.concat([v, v[:1] * 0.5], 0),), (x,), shape_invariants=(tf.TensorShape([None, None]),))[0], [("nm", F)]),
    # slopes, as a model that is trained on a device computes them
    "d_tanh": (slope(lambda x: tf.tanh(x) * tf.sigmoid(x)), [("nm", F)]), "d_relu": (slope(lambda x: tf.nn.relu(x) + tf.nn.relu6(x * 5.0) + tf.nn.leaky_relu(x, 0.1)), [("nm", F)]), "d_elu": (slope(lambda x: tf.nn.elu(x) + tf.nn.selu(x) + tf.nn.softplus(x) + tf.nn.softsign(x)), [("nm", F)]), "d_root": (slope(lambda x: tf.sqrt(tf.abs(x) + 1.0) + tf.math.rsqrt(tf.abs(x) + 1.0) + tf.math.reciprocal(x + 3.0)), [("nm", F)]), "d_gelu": (slope(lambda x: tf.nn.gelu(x) + tf.nn.silu(x)), [("nm", F)]),
    "d_max_pool": (slope(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID")), [("nhwk", F)]), "d_max_pool_overlap": (slope(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME")), [("nhwk", F)]), "d_average_pool": (slope(lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID")), [("nhwk", F)]), "d_average_same": (slope(lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME")), [("nhwk", F)]), "d_filter": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.conv2d(x, (w := tf.ones([3, 3, 5, 4]) * 0.1), 1, "SAME") ** 2), w)[0], [("nhw5", F)]), "d_depthwise": (slope(lambda x: tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 5, 2]) * 0.1, [1, 1, 1, 1], "SAME")), [("nhw5", F)]),
    "d_norm": (slope(lambda x: tf.compat.v1.nn.fused_batch_norm(x, [1.0, 2.0, 0.5], [0.1, 0.2, 0.3], is_training=True)[0]), [("nhw3", F)]), "d_norm_fixed": (slope(lambda x: tf.compat.v1.nn.fused_batch_norm(x, [1.0, 2.0, 0.5], [0.1, 0.2, 0.3], [0.1, 0.0, 0.2], [1.0, 0.5, 2.0], is_training=False)[0]), [("nhw3", F)]), "d_lrn": (slope(lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 0.3)), [("nhwk", F)]), "d_layer_norm": (slope(lambda x: (x - tf.reduce_mean(x, 1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(x, 1, keepdims=True) + 1e-3)), [("nm", F)]), "d_bias": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.bias_add(x, (b := tf.ones([5]))) ** 2), b)[0], [("nhw5", F)]),
    "d_mirror": (slope(lambda x: tf.pad(x, [[0, 0], [2, 1]], "REFLECT") * tf.pad(x, [[0, 0], [2, 1]], "SYMMETRIC")), [("nm", F)]), "d_resize": (slope(lambda x: tf.compat.v1.image.resize_bilinear(x, [9, 12])), [("nhwk", F)]), "d_nearest": (slope(lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, [9, 12])), [("nhwk", F)]), "d_gather": (slope(lambda x: tf.gather(x, [1, 0, 1])), [("nm", F)]), "d_cumsum": (slope(lambda x: tf.cumsum(x, 1)), [("nm", F)]), "d_matmul": (slope(lambda x, y: tf.nn.softmax(tf.matmul(x, y))), [("nmk", F), ("nkj", F)]), "d_slice": (slope(lambda x: x[:, 1::2]), [("nm", F)]),
    "d_max": (slope(lambda x: tf.reduce_max(x, 1) + tf.reduce_prod(x, 1)), [("nm", F)]), "d_concat": (slope(lambda x: tf.concat([x[:, :2], tf.transpose(tf.transpose(x)[2:])], 1) * tf.tile(x[:, :1], [1, tf.shape(x)[1]])), [("nm", F)]), "d_loss": (slope(lambda x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i % 4, x)), [("nm", F), ("n", I)]), "d_conv_t": (slope(lambda x: tf.nn.conv2d_transpose(x, tf.ones([3, 3, 4, 5]) * 0.1, [2, 12, 14, 4], 2)), [("2675", F)]), "d_where": (slope(lambda x: tf.where(x > 0.0, x * x, tf.exp(x)) + tf.minimum(x, 0.2) * tf.maximum(x, -0.1)), [("nm", F)]), "d_segment": (slope(lambda x, i: tf.math.unsorted_segment_sum(x, i, 10)), [("nm", F), ("n", I)]),
    "sgd": (lambda x, y: x - 0.1 * tf.gradients(tf.reduce_mean((tf.tanh(x @ tf.ones([5, 1])) - y) ** 2), x)[0], [("n5", F), ("n1", F)]), "d_argpool": (slope(lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0]), [("1hwk", F)]), "d_pow": (slope(lambda x, y: tf.pow(tf.abs(x) + 0.5, y) + tf.atan2(x, y + 2.0)), [("nm", F), ("nm", F)]), "d_broadcast": (slope(lambda x, y: x * y[:1] + x[:, :1] / (y + 3.0)), [("nm", F), ("nm", F)]),
    # ragged tensors
    "rag_slice": (lambda x: rows(x)[:, 1:].to_tensor(), [("5m", F)]), "rag_row": (lambda x: rows(x)[2], [("5m", F)]), "rag_reverse": (lambda x: rows(x)[:, ::-1].to_tensor(), [("5m", F)]), "rag_prod": (lambda x: (tf.reduce_prod(rows(x), 1), tf.reduce_min(rows(x, [2, 1, 2]), 1)), [("5m", F)]), "rag_any": (lambda x: tf.reduce_any(rows(x) > 0.3, 1), [("5m", F)]), "rag_sum0": (lambda x: tf.reduce_sum(rows(x[:, 0]), 0), [("5m", F)]), "rag_lengths": (lambda x: (rows(x).row_lengths(), rows(x).value_rowids(), rows(x).row_starts(), rows(x).nrows()), [("5m", F)]),
    "rag_concat0": (lambda x: tf.concat([rows(x), rows(x, [1, 4])], 0).to_tensor(), [("5m", F)]), "rag_from_tensor": (lambda x: tf.RaggedTensor.from_tensor(x, lengths=lengths_of(x)).to_tensor(-2.0), [("nm", F)]), "rag_padding": (lambda i: tf.RaggedTensor.from_tensor(i, padding=0).to_tensor(-1), [("nm", I)]), "rag_sparse": (lambda x: dense(rows(x[:, 0]).to_sparse()), [("5m", F)]), "rag_expand": (lambda x: tf.expand_dims(rows(x[:, 0]), 1).to_tensor(), [("5m", F)]), "rag_tile": (lambda x: tf.tile(rows(x[:, 0]), [2, 1]).to_tensor(), [("5m", F)]),
    "rag_merge": (lambda x: tf.RaggedTensor.from_row_lengths(rows(x, [1, 1, 1, 2]), [2, 2]).merge_dims(0, 1).to_tensor(), [("5m", F)]), "rag_nested": (lambda x: tf.RaggedTensor.from_row_lengths(rows(x[:, 0], [1, 1, 1, 2]), [2, 0, 2]).to_tensor(), [("5m", F)]), "rag_splits": (lambda i: (tf.ragged.segment_ids_to_row_splits(tf.sort(i)), tf.ragged.row_splits_to_segment_ids([0, 2, 2, 5])), [("n", I)]), "rag_where": (lambda x: tf.where(rows(x) > 0.0, rows(x), -rows(x)).to_tensor(), [("5m", F)]), "rag_add": (lambda x: (rows(x) * 2.0 + rows(x)).to_tensor(), [("5m", F)]), "rag_bincount": (lambda i: tf.math.bincount(tf.RaggedTensor.from_row_lengths(i, [2, 3]), minlength=10, axis=-1), [("5", I)]),
    "rag_stack": (lambda x, i: tf.ragged.stack_dynamic_partitions(x, i % 3, 3).to_tensor(), [("nm", F), ("n", I)]), "rag_equal": (lambda x: tf.gather_nd(rows(x), [[0, 1], [2, 2]]), [("5m", F)]), "rag_embedding": (lambda i: tf.reduce_mean(tf.nn.embedding_lookup(tf.reshape(tf.range(40.0), [10, 4]), tf.RaggedTensor.from_row_lengths(i, [2, 3])), 1), [("5", I)]), "rag_bounding": (lambda x: rows(x).bounding_shape(), [("5m", F)]), "rag_argmax": (lambda x: tf.argmax(rows(x[:, 0]).to_tensor(-9.0), 1), [("5m", F)]), "rag_softmax": (lambda x: tf.nn.softmax(rows(x[:, 0], [2, 1, 2])).to_tensor(), [("5m", F)]), "rag_map": (lambda x: tf.map_fn(tf.reduce_sum, rows(x), fn_output_signature=F), [("5m", F)]),
    # sparse tensors
    "sp_max": (lambda x: tf.sparse.reduce_max(sparse(x), 1), [("nm", F)]), "sp_sum": (lambda x: tf.sparse.reduce_sum(sparse(x), 1, keepdims=True), [("nm", F)]), "sp_sum_all": (lambda x: tf.sparse.reduce_sum(sparse(x)), [("nm", F)]), "sp_expand": (lambda x: dense(tf.sparse.expand_dims(sparse(x), 1)), [("nm", F)]), "sp_fill": (lambda x: dense(tf.sparse.fill_empty_rows(sparse(x - 0.7), -1.0)[0]), [("nm", F)]), "sp_mask": (lambda x: tf.sparse.maximum(sparse(x), sparse(-x)).values, [("nm", F)]), "sp_min": (lambda x: dense(tf.sparse.minimum(sparse(x), sparse(x * 0.5))), [("nm", F)]), "sp_retain": (lambda x: dense(tf.sparse.retain(sparse(x), sparse(x).values > 0.4)), [("nm", F)]),
    "sp_slice": (lambda x: dense(tf.sparse.slice(sparse(x), [1, 0], [1, 4])), [("nm", F)]), "sp_split": (lambda x: [dense(one) for one in tf.sparse.split(sparse(x), 2, 1)], [("nm", F)]), "sp_concat": (lambda x: dense(tf.sparse.concat(0, [sparse(x), sparse(-x)])), [("nm", F)]), "sp_matmul": (lambda x, y: tf.sparse.sparse_dense_matmul(sparse(x), y, adjoint_b=True), [("nm", F), ("jm", F)]), "sp_matmul_t": (lambda x, y: tf.sparse.sparse_dense_matmul(sparse(x), y, adjoint_a=True), [("nm", F), ("nj", F)]), "sp_times": (lambda x, y: dense(sparse(x).__mul__(y)), [("nm", F), ("nm", F)]), "sp_over": (lambda x, y: dense(sparse(x) / (tf.abs(y) + 1.0)), [("nm", F), ("nm", F)]), "sp_add": (lambda x, y: tf.sparse.add(sparse(x), y), [("nm", F), ("nm", F)]),
    "sp_eye": (lambda x: tf.sparse.sparse_dense_matmul(tf.sparse.eye(5), x), [("5m", F)]), "sp_map": (lambda x: dense(tf.sparse.map_values(tf.sqrt, sparse(x))), [("nm", F)]), "sp_reorder": (lambda x: dense(tf.sparse.reorder(tf.sparse.SparseTensor([[2, 1], [0, 3]], x[:2, 0], [3, 4]))), [("5m", F)]), "sp_reset": (lambda x: dense(tf.sparse.reset_shape(sparse(x), [9, 12])), [("nm", F)]), "sp_reshape": (lambda x: dense(tf.sparse.reshape(sparse(x), [-1, 2, 3])), [("n6", F)]), "sp_indicator": (lambda i: tf.sparse.to_indicator(tf.sparse.from_dense(tf.cast(i, tf.int64)), 12), [("nm", I)]), "sp_mask_rows": (lambda x: tf.sparse.reduce_sum(tf.sparse.transpose(sparse(x)), 1), [("nm", F)]), "sp_edit": (lambda i: tf.edit_distance(tf.sparse.from_dense(i), tf.sparse.from_dense(i[:, ::-1])), [("nm", I)]),
    "sp_segments": (lambda x: (tf.sparse.segment_sum(x, [0, 2, 1], [0, 0, 2], num_segments=4), tf.sparse.segment_mean(x, [0, 2, 1], [0, 0, 1]), tf.sparse.segment_sqrt_n(x, [0, 1, 2], [0, 1, 1])), [("4m", F)]), "sp_weights": (lambda i: tf.nn.embedding_lookup_sparse(tf.reshape(tf.range(40.0), [10, 4]), (s := tf.sparse.from_dense(tf.cast(i, tf.int64))), tf.sparse.map_values(lambda v: tf.cast(v, F) * 0.1, s), combiner="sum"), [("nm", I)]), "sp_bincount": (lambda i: dense(tf.sparse.bincount(i, minlength=10, maxlength=10, axis=-1)), [("nm", I)]),
    # tables
    "table_text": (table(["7", "14", "21"], [1, 2, 3], -1), [("n", S)]), "table_long": (table(np.int64([1, 5, 8]), np.int64([10, 50, 80]), -1), [("n", tf.int64)]), "table_float": (table([1, 5, 8], [0.5, 1.5, 2.5], 0.0), [("nm", I)]), "table_words": (table(np.int64([0, 1, 2]), ["no", "one", "two"], "?"), [("nm", tf.int64)]), "table_rename": (table(["7", "14"], ["seven", "fourteen"], "?"), [("n", S)]), "table_embedding": (lambda s: tf.gather(tf.reshape(tf.range(12.0), [4, 3]), table(["7", "14", "21"], [1, 2, 3], 0)(s)), [("n", S)]),
    "table_vocabulary": (vocabulary, [("n", S)]), "table_size": (lambda x: x + tf.cast(tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), 0).size(), F), [("nm", F)]),
    # text
    "text_split": (lambda s: tf.strings.split(tf.strings.join([s, "a", "b"], "-"), "-").to_tensor("none"), [("n", S)]), "text_split_two": (lambda s: tf.strings.split(tf.strings.join([s, "a", s], ", "), ", ").to_tensor(), [("n", S)]), "text_split_most": (lambda s: tf.strings.split(tf.strings.join([s, "a", s], "-"), "-", maxsplit=1).to_tensor(), [("n", S)]), "text_join_rows": (lambda s: tf.strings.reduce_join([s, s], 0, separator="+"), [("n", S)]), "text_concat": (lambda s: tf.concat([s, s[:1]], 0), [("n", S)]), "text_onehot": (lambda s: tf.one_hot(tf.cast(tf.strings.to_number(s), I) // 7, 10), [("n", S)]), "text_stack": (lambda s: tf.reshape(tf.stack([s, s + "x"], 1), [-1]), [("n", S)]),
    "text_tile": (lambda s: tf.tile(s[:, None], [1, 2]), [("n", S)]), "text_equal": (lambda s: tf.reduce_sum(tf.cast(tf.not_equal(s[:, None], ["7", "14", "63"]), I), 1), [("n", S)]), "text_float": (lambda x: tf.strings.as_string(tf.round(x * 10.0) / 4.0, precision=1), [("n", F)]), "text_bool": (lambda x: tf.strings.as_string(x > 0.0), [("n", F)]), "text_matches": (lambda s: tf.strings.regex_full_match(s, "7.*"), [("n", S)]), "text_unique": (lambda s: tf.unique(s), [("n", S)]), "text_double": (lambda s: tf.strings.to_number(s, tf.float64), [("n", S)]), "text_format": (lambda i: tf.strings.join(["n=", tf.strings.as_string(i)]), [("n", I)]),
    "text_base64": (lambda s: tf.io.decode_base64(tf.io.encode_base64(s)), [("n", S)]), "text_pad": (lambda s: tf.strings.as_string(tf.strings.to_number(s, I), width=5, fill="0"), [("n", S)]), "text_mask": (lambda s: tf.boolean_mask(s, tf.strings.to_number(s) > 20.0), [("n", S)]), "text_segments": (lambda s, i: tf.strings.unsorted_segment_join(s, i % 3, 3, "."), [("n", S), ("n", I)]),
    # images
    "central": (lambda x: tf.image.central_crop(x, 0.5), [("286k", F)]), "crop_box": (lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 4), [("nhwk", F)]), "pad_box": (lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 13, 15), [("nhwk", F)]), "with_pad": (lambda x: tf.image.resize_with_pad(x, 9, 9), [("286k", F)]), "crop_or_pad": (lambda x: tf.image.resize_with_crop_or_pad(x, 7, 12), [("nhwk", F)]), "lanczos": (lambda x: tf.image.resize(x, [9, 7], "lanczos3"), [("nhwk", F)]), "gaussian": (lambda x: tf.image.resize(x, [4, 5], "gaussian"), [("nhwk", F)]), "mitchell": (lambda x: tf.image.resize(x, [9, 7], "mitchellcubic"), [("nhwk", F)]), "area": (lambda x: tf.image.resize(x, [4, 5], "area"), [("nhwk", F)]), "antialias": (lambda x: tf.image.resize(x, [4, 5], antialias=True), [("nhwk", F)]),
    "yiq": (lambda x: tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x) * 0.9), [("nhw3", F)]), "yuv_back": (lambda x: tf.image.yuv_to_rgb(x), [("nhw3", F)]), "to_rgb": (lambda x: tf.image.grayscale_to_rgb(x), [("nhw1", F)]), "image_slopes": (lambda x: tf.image.image_gradients(x), [("nhwk", F)]), "psnr": (lambda x, y: tf.image.psnr(tf.abs(x), tf.abs(y), 1.0), [("nhw3", F), ("nhw3", F)]), "ssim": (lambda x, y: tf.image.ssim(tf.abs(x), tf.abs(y), 1.0, filter_size=5), [("nhw3", F), ("nhw3", F)]), "up_down": (lambda x: tf.image.flip_up_down(tf.image.transpose(x)), [("nhwk", F)]), "to_bytes": (lambda x: tf.cast(tf.image.convert_image_dtype(tf.abs(x), tf.uint8, saturate=True), I), [("nhwk", F)]), "brightness": (lambda x: tf.image.adjust_brightness(x, 0.2) + tf.image.adjust_hue(tf.abs(x), -0.2), [("nhw3", F)]), "from_bytes": (lambda i: tf.image.convert_image_dtype(tf.cast(i * 20, tf.uint8), F), [("nhw", I)]),
    "glimpses": (lambda x: tf.image.extract_glimpse(x, [3, 4], [[0.1, -0.2], [0.3, 0.4]], noise="zero"), [("2hwk", F)]), "warp": (lambda x: raw.ImageProjectiveTransformV3(images=x, transforms=[[1.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0, 0.0]], output_shape=[6, 7], fill_value=0.5, interpolation="NEAREST", fill_mode="CONSTANT"), [("nhwk", F)]), "blur": (lambda x: tf.nn.depthwise_conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), tf.ones([3, 3, 3, 1]) / 9.0, [1, 1, 1, 1], "VALID"), [("nhw3", F)]), "crop_bilinear": (lambda x, y: tf.image.crop_and_resize(x, y[:, :4] + [[0.0, 0.0, 1.0, 1.0]], [0, 1, 0], [3, 3], extrapolation_value=0.5), [("2hw3", F), ("34", F)]),
    # signals
    "kaiser": (lambda x: tf.signal.frame(x, 8, 4) * tf.signal.kaiser_window(8, 6.0), [("nl", F)]), "vorbis": (lambda x: tf.signal.mdct(x, 8, tf.signal.vorbis_window, pad_end=True), [("nl", F)]), "imdct": (lambda x: tf.signal.inverse_mdct(tf.signal.mdct(x, 8)), [("nl", F)]), "stft_end": (lambda x: tf.abs(tf.signal.stft(x, 12, 5, 16, pad_end=True)), [("nl", F)]), "stft_none": (lambda x: tf.math.angle(tf.signal.stft(x, 16, 16, window_fn=None) + 0.1), [("nl", F)]), "istft_window": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 4, 16), 16, 4, 16, tf.signal.inverse_stft_window_fn(4)), [("nl", F)]), "power": (lambda x: tf.math.square(tf.abs(tf.signal.rfft(x, [32]))), [("nl", F)]), "cepstrum": (lambda x: tf.signal.irfft(tf.cast(tf.math.log(tf.abs(tf.signal.rfft(x, [64])) + 0.1), tf.complex64)), [("nl", F)]), "dct4": (lambda x: tf.signal.dct(x, 4), [("n6", F)]), "dct_n": (lambda x: tf.signal.dct(x, 2, n=4), [("nm", F)]), "frame_axis": (lambda x: tf.signal.frame(x, 3, 2, axis=1, pad_end=True, pad_value=0.5), [("nmk", F)]),
    "phase": (lambda x: tf.math.imag(tf.signal.ifft2d(tf.signal.fft2d(tf.complex(x, x)) * tf.complex(0.5, 1.0))), [("nmk", F)]), "log_mel": (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.matmul(tf.abs(tf.signal.stft(x, 16, 8, 16)), tf.signal.linear_to_mel_weight_matrix(8, 9, 8000, 80.0, 3600.0)) + 1e-2)), [("nl", F)]), "autocorrelation": (lambda x: tf.signal.irfft(tf.cast(tf.square(tf.abs(tf.signal.rfft(x, [64]))), tf.complex64), [64])[:, :9], [("nl", F)]), "preemphasis": (lambda x: tf.concat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1), [("nl", F)]),
    # numbers
    "special": (lambda x: tf.math.special.dawsn(x) + tf.math.special.expint(tf.abs(x) + 0.1) + tf.math.special.spence(tf.abs(x) + 0.5), [("nm", F)]), "fresnel": (lambda x: tf.math.special.fresnel_cos(x) + tf.math.special.fresnel_sin(x), [("nm", F)]), "bessel_j": (lambda x: tf.math.special.bessel_j0(x) + tf.math.special.bessel_j1(x) + tf.math.special.bessel_y0(tf.abs(x) + 0.3), [("nm", F)]), "bessel_k": (lambda x: tf.math.special.bessel_k0(tf.abs(x) + 0.1) + tf.math.special.bessel_k1e(tf.abs(x) + 0.1) + tf.math.bessel_i1(x), [("nm", F)]), "igammac": (lambda x: tf.math.igammac(tf.abs(x) + 1.0, tf.abs(x) + 0.5), [("nm", F)]), "polyval": (lambda x: tf.math.polyval([0.5, -1.0, 2.0], x), [("nm", F)]), "increasing": (lambda x: (tf.math.is_strictly_increasing(x[0]), tf.math.is_non_decreasing(tf.sort(x[0]))), [("nm", F)]), "log_sigmoid": (lambda x: tf.math.log_sigmoid(x) + tf.math.softplus(-x), [("nm", F)]), "nan_min": (lambda x: tf.reduce_min(x / (x - x[:1]), 1), [("nm", F)]),
    "clip_nan": (lambda x: tf.clip_by_value(x, -0.3, 0.4) + tf.clip_by_norm(x, 0.5), [("nm", F)]), "quantize": (lambda x: raw.QuantizeAndDequantizeV2(input=x, input_min=-1.0, input_max=1.0, signed_input=True, num_bits=8, range_given=True, round_mode="HALF_TO_EVEN", narrow_range=False, axis=-1), [("nm", F)]), "quantize_found": (lambda x: tf.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0, range_given=False), [("nm", F)]), "fake_var": (lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -0.4, 0.9, 4, True), [("nm", F)]), "mod_float": (lambda x, y: tf.math.floormod(x * 5.0, y + 2.0) + tf.truncatemod(tf.cast(x * 9.0, I), 4)[0, 0] * 0 if False else tf.math.floormod(x * 5.0, y + 2.0), [("nm", F), ("nm", F)]), "shift_long": (lambda i: tf.bitwise.left_shift(tf.cast(i, tf.int64), tf.cast(i, tf.int64)), [("nm", I)]), "uint32": (lambda i: tf.cast(tf.cast(i, tf.uint32) + tf.cast(4294967295, tf.uint32), tf.int64), [("nm", I)]), "half_math": (lambda x: tf.cast(tf.exp(tf.cast(x, tf.float16)), F), [("nm", F)]), "int8_math": (lambda i: tf.cast(tf.cast(i * 30, tf.int8) + tf.cast(1, tf.int8), I), [("nm", I)]),
    # linear algebra
    "lu_solve": (lambda x, y: tf.linalg.lu_solve(*tf.linalg.lu(x + 4.0 * tf.eye(5)), y), [("n55", F), ("n52", F)]), "power_m": (lambda x: tf.matmul(x, tf.matmul(x, x)), [("n44", F)]), "trimatmul": (lambda x, y: tf.linalg.tridiagonal_matmul(x, y, "compact"), [("n35", F), ("n52", F)]), "rank_m": (lambda x: tf.linalg.matrix_rank(x), [("n44", F)]), "qr_r": (lambda x: tf.abs(tf.linalg.qr(x)[1]), [("n54", F)]), "qr_full": (lambda x: tf.matmul(*tf.linalg.qr(x, full_matrices=True)), [("n54", F)]), "svd_full": (lambda x: (lambda s, u, v: tf.matmul(u * s[:, None, :], v, adjoint_b=True))(*tf.linalg.svd(x)), [("n44", F)]), "eigh_full": (lambda x: (lambda e, v: tf.matmul(v * e[:, None, :], v, adjoint_b=True))(*tf.linalg.eigh(x + tf.linalg.matrix_transpose(x))), [("n44", F)]), "norm2": (lambda x: tf.norm(x, ord=2, axis=[-2, -1]) if False else tf.norm(x, ord="fro", axis=[-2, -1]), [("nmk", F)]),
    "banded_solve": (lambda x, y: tf.linalg.banded_triangular_solve(x + tf.constant([[2.0], [0.0]]), y), [("n25", F), ("n52", F)]), "diag_m": (lambda x: tf.linalg.tensor_diag(x[0]) + tf.linalg.tensor_diag_part(tf.tensordot(x[0], x[0], 0))[0], [("nm", F)]), "low_rank": (lambda x: tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorIdentity(5), x).to_dense(), [("n52", F)]), "kronecker": (lambda x: tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(x), tf.linalg.LinearOperatorIdentity(2)]).to_dense(), [("n33", F)]), "block": (lambda x: tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(x)] * 2).to_dense(), [("n33", F)]), "sqrtm": (lambda x: tf.linalg.sqrtm(tf.matmul(x, x, transpose_b=True) + 2.0 * tf.eye(4)), [("n44", F)]), "inv_sym": (lambda x: tf.linalg.inv(tf.linalg.matmul(x, x, transpose_a=True) + tf.eye(4), adjoint=True), [("n54", F)]), "solve_t": (lambda x, y: tf.linalg.solve(x + 4.0 * tf.eye(5), y, adjoint=True), [("n55", F), ("n52", F)]), "triangular_u": (lambda x, y: tf.linalg.triangular_solve(x + 4.0 * tf.eye(5), y, lower=False, adjoint=True), [("n55", F), ("n52", F)]),
    # random numbers and shapes
    "multinomial": (lambda x: tf.shape(tf.random.categorical(x, 3)), [("nm", F)]), "stateless_class": (lambda x: tf.random.stateless_categorical(x * 3.0, 4, [3, 5]), [("n5", F)]), "stateless_gamma": (lambda x: tf.shape(tf.random.stateless_gamma([4], [1, 2], 2.0)) + tf.cast(x[0, 0] * 0.0, I), [("nm", F)]), "stateless_bits": (lambda x: tf.random.stateless_uniform([5], [7, 9], None, None, I) + tf.cast(x[0, 0] * 0.0, I), [("nm", F)]), "stateless_shuffle": (lambda x: tf.random.experimental.stateless_shuffle(x, [1, 2]), [("nm", F)]), "stateless_drop": (lambda x: tf.nn.experimental.stateless_dropout(x, 0.4, [1, 2]), [("nm", F)]), "split_seed": (lambda x: x + tf.random.stateless_normal([5], tf.random.experimental.stateless_split([1, 2], 2)[1]), [("n5", F)]), "shape_n": (lambda x, y: tf.shape_n([x, y]), [("nm", F), ("nmk", F)]),
    "identity_n": (lambda x, y: tf.identity_n([x + 1.0, y]), [("nm", F), ("nm", F)]), "format_map": (lambda i: raw.DataFormatDimMap(x=i % 4, src_format="NHWC", dst_format="NCHW"), [("n", I)]), "permute": (lambda i: raw.DataFormatVecPermute(x=i, src_format="NHWC", dst_format="NCHW"), [("4", I)]), "set_union": (lambda i: dense(tf.sets.union(i, i[:, :2] + 3)), [("nm", I)]), "upper_bound": (lambda x: (tf.searchsorted(tf.sort(x, 1), x * 0.7), raw.UpperBound(sorted_inputs=tf.sort(x, 1), values=x)), [("nm", F)]), "pack_bits": (lambda x: tf.cast(raw.CompareAndBitpack(input=x, threshold=0.1), I), [("n8", F)]), "default": (lambda x: tf.compat.v1.placeholder_with_default(x * 2.0, [None, None]) + 1.0, [("nm", F)]), "gather_axis": (lambda x, i: tf.gather(x, i % 4, axis=-1), [("nm", F), ("nm", I)]), "gather_batch": (lambda x, i: tf.gather(x, i % 4, axis=1, batch_dims=1), [("nmk", F), ("nj", I)]), "accidental": (lambda i: tf.nn.compute_accidental_hits(tf.cast(i, tf.int64), tf.range(5, dtype=tf.int64), 2)[0], [("n2", I)]),
    "weighted": (lambda x, y: tf.nn.weighted_moments(x, [1], tf.abs(y)), [("nm", F), ("nm", F)]), "statistics": (lambda x: tf.nn.sufficient_statistics(x, [1])[:3], [("nm", F)]), "isotonic": (lambda x: tf.nn.isotonic_regression(x)[0], [("nm", F)]), "sequence_mask": (lambda i: tf.sequence_mask(i) , [("nm", I)]), "argsort_text": (lambda i: tf.argsort(tf.cast(i, tf.int64) * 100 + 5, 0, stable=True), [("nm", I)]), "fraction": (lambda x: raw.FractionalAvgPool(value=x, pooling_ratio=[1.0, 1.5, 1.5, 1.0], pseudo_random=False, deterministic=True, seed=1, seed2=2)[0], [("nhwk", F)]), "concat_dynamic": (lambda x, y: tf.concat([x, y], tf.constant(1)), [("nm", F), ("nk", F)]), "space3": (lambda x: tf.space_to_batch(x, [2], [[1, 1]]), [("n6k", F)]), "unbatch": (lambda x: tf.reshape(tf.transpose(x, [1, 0, 2]), [-1, tf.shape(x)[0] * 5]), [("nm5", F)]),
}  # fmt: skip

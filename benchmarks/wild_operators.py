"""More functions of TensorFlow as models, as wild_functions.py has them: linear algebra, text, tables, sets, loops.

What a function reads: the extents that are drawn stand as letters. Runs in an environment with TensorFlow.
"""

# The table has a function a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

F, I, S = tf.float32, tf.int32, tf.string  # noqa: E741
raw = tf.raw_ops
Function = tuple[Callable[..., Any], list[tuple[str, Any]]]


def newton(x: Any) -> Any:
    """A root of each number, by a loop that ends when it is near."""

    def better(root: Any, i: Any) -> Any:
        return root - (root * root - tf.abs(x) - 0.5) / (2.0 * root), i + 1

    return tf.while_loop(lambda root, i: i < 8, better, (tf.ones_like(x), 0))


def fibonacci(x: Any) -> Any:
    rows = tf.TensorArray(F, size=6).unstack(tf.tile(x[:1], [6, 1]))
    out = tf.TensorArray(F, size=6)
    a, b = tf.zeros_like(x[0]), tf.ones_like(x[0])
    for i in tf.range(6):
        a, b = b, a + b * rows.read(i)
        out = out.write(i, a)
    return out.stack()


def greedy(x: Any) -> Any:
    """Tokens one after another, until one is the last."""
    tokens = tf.TensorArray(I, size=5, element_shape=[])
    token = tf.constant(1)
    for i in tf.range(5):
        scores = x[:, tf.math.floormod(token, 4)]
        token = tf.argmax(scores, output_type=I)
        tokens = tokens.write(i, token)
    return tokens.stack()


def sampled(x: Any) -> Any:
    """The smallest set of words that has nine tenths of the probability."""
    p = tf.nn.softmax(x * 3.0)
    order = tf.argsort(p, direction="DESCENDING")
    total = tf.cumsum(tf.gather(p, order, batch_dims=1), 1, exclusive=True)
    kept = tf.scatter_nd(tf.stack([tf.repeat(tf.range(tf.shape(p)[0]), tf.shape(p)[1]), tf.reshape(order, [-1])], 1),
        tf.reshape(tf.cast(total < 0.9, F), [-1]), tf.shape(p))  # fmt: skip
    return p * kept


def power_iteration(x: Any) -> Any:
    m = tf.matmul(x, x, transpose_a=True)
    v = tf.ones([5, 1])
    for _ in tf.range(4):
        v = tf.linalg.l2_normalize(tf.matmul(m, v))
    return v


def kalman(x: Any) -> Any:
    def step(state: Any, z: Any) -> Any:
        mean, variance = state
        gain = variance / (variance + 0.5)
        return mean + gain * (z - mean), (1.0 - gain) * variance + 0.1

    return tf.scan(step, x, initializer=(tf.zeros_like(x[0]), tf.ones_like(x[0])))


def dynamic(x: Any, i: Any) -> Any:
    """Parts put together again in another order."""
    parts = tf.dynamic_partition(x, i % 2, 2)
    places = tf.dynamic_partition(tf.range(tf.size(i)), i % 2, 2)
    return tf.dynamic_stitch(places, parts)


def vocabulary(s: Any) -> Any:
    keys = tf.constant(["7", "14", "21", "28"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0, 1, 2, 3], tf.int64)), 9)
    return table.lookup(s)


def piecewise(x: Any) -> Any:
    return tf.case(
        [(tf.reduce_sum(x) > 1.0, lambda: x * 2.0), (tf.reduce_sum(x) > 0.0, lambda: x - 1.0)],
        default=lambda: tf.exp(x),
    )


def griffin(x: Any) -> Any:
    """Two rounds between frames and their spectra."""
    size = tf.abs(tf.signal.stft(x, 16, 8, 16))
    wave = tf.signal.inverse_stft(tf.cast(size, tf.complex64), 16, 8, 16)
    phase = tf.math.angle(tf.signal.stft(wave, 16, 8, 16))
    return tf.signal.inverse_stft(
        tf.cast(size, tf.complex64) * tf.exp(tf.complex(tf.zeros_like(phase), phase)), 16, 8, 16
    )


def affine(x: Any) -> Any:
    return raw.ImageProjectiveTransformV3(images=x, transforms=[[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.0, 0.0]], output_shape=[7, 8],
        fill_value=0.0, interpolation="BILINEAR", fill_mode="CONSTANT")  # fmt: skip


def csr(x: Any) -> Any:
    sparse = tf.sparse.from_dense(x * tf.cast(x > 0.0, F))
    return tf.sparse.reduce_sum(sparse, 1), tf.sparse.to_dense(tf.sparse.transpose(sparse))


def cx(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(tf.complex(x, y))


def parts(z: Any) -> Any:
    return tf.math.real(z), tf.math.imag(z)


OPERATORS: dict[str, Function] = {
    # loops and branches
    "newton": (newton, [("nm", F)]), "fibonacci": (fibonacci, [("nm", F)]), "greedy": (greedy, [("nm", F)]), "sampled": (sampled, [("nm", F)]), "power_iteration": (power_iteration, [("n5", F)]),
    "kalman": (kalman, [("nm", F)]), "piecewise": (piecewise, [("nm", F)]), "foldr": (lambda x: tf.foldr(lambda a, e: a * 0.5 + tf.sin(e), x), [("nm", F)]), "scan_back": (lambda x: tf.scan(lambda a, e: a * 0.3 + e, x, reverse=True), [("nm", F)]),
    "vectorized": (lambda x, y: tf.vectorized_map(lambda ab: tf.tensordot(ab[0], ab[1], 1), (x, y)), [("nm", F), ("nm", F)]), "map_two": (lambda x, y: tf.map_fn(lambda ab: ab[0] + tf.reduce_max(ab[1]), (x, y), fn_output_signature=F), [("nm", F), ("nm", F)]),
    "dynamic": (dynamic, [("nm", F), ("n", I)]), "partition": (lambda x, i: tf.dynamic_partition(x, i % 3, 3), [("nm", F), ("n", I)]), "cond_shape": (lambda x: tf.cond(tf.shape(x)[0] > 2, lambda: tf.reduce_sum(x, 0), lambda: tf.reduce_max(x, 0)), [("nm", F)]),
    # complex numbers and signals
    "z_product": (cx(lambda z: parts(z * z + tf.math.conj(z))), [("nm", F), ("nm", F)]), "z_quotient": (cx(lambda z: parts(z / (z + tf.complex(2.0, 1.0)))), [("nm", F), ("nm", F)]), "z_exp": (cx(lambda z: parts(tf.exp(z))), [("nm", F), ("nm", F)]),
    "z_sqrt": (cx(lambda z: parts(tf.sqrt(z + tf.complex(3.0, 0.0)))), [("nm", F), ("nm", F)]), "z_log": (cx(lambda z: parts(tf.math.log(z + tf.complex(3.0, 0.0)))), [("nm", F), ("nm", F)]), "z_slice": (cx(lambda z: parts(z[:, 1::2])), [("nm", F), ("nm", F)]),
    "z_reverse": (cx(lambda z: parts(z[:, ::-1])), [("nm", F), ("nm", F)]), "z_newaxis": (cx(lambda z: parts(z[:, tf.newaxis, 1:-1])), [("nm", F), ("nm", F)]), "z_pad": (cx(lambda z: parts(tf.pad(z, [[0, 0], [1, 2]]))), [("nm", F), ("nm", F)]),
    "z_concat": (cx(lambda z: parts(tf.concat([z, tf.math.conj(z)], 1))), [("nm", F), ("nm", F)]), "z_sum": (cx(lambda z: parts(tf.reduce_sum(z, 1))), [("nm", F), ("nm", F)]), "z_matmul": (cx(lambda z: parts(tf.matmul(z, z, adjoint_b=True))), [("nm", F), ("nm", F)]),
    "z_transpose": (cx(lambda z: parts(tf.transpose(z))), [("nm", F), ("nm", F)]), "z_gather": (cx(lambda z: parts(tf.gather(z, [1, 0, 1], axis=1))), [("nm", F), ("nm", F)]), "z_mean": (cx(lambda z: parts(tf.reduce_mean(z, 1))), [("nm", F), ("nm", F)]),
    "z_where": (cx(lambda z: parts(tf.where(tf.math.real(z) > 0.0, z, tf.math.conj(z)))), [("nm", F), ("nm", F)]), "z_stack": (cx(lambda z: parts(tf.stack([z, -z], 1))), [("nm", F), ("nm", F)]), "z_tile": (cx(lambda z: parts(tf.tile(z, [1, 2]))), [("nm", F), ("nm", F)]),
    "z_power": (cx(lambda z: parts(tf.square(z) - z)), [("nm", F), ("nm", F)]), "z_expand": (cx(lambda z: parts(tf.squeeze(tf.expand_dims(z, 1), 1))), [("nm", F), ("nm", F)]), "z_equal": (cx(lambda z: tf.equal(z, tf.math.conj(z))), [("nm", F), ("nm", F)]),
    "irfft_too": (lambda x: tf.signal.irfft(tf.complex(x, 0.3 * x)), [("nm", F)]), "irfft2d": (lambda x: tf.signal.irfft2d(tf.complex(x, 0.3 * x), [6, 8]), [("n65", F)]), "rfft3d": (lambda x: tf.abs(tf.signal.rfft3d(x)), [("n448", F)]), "fftshift": (lambda x: tf.abs(tf.signal.fftshift(tf.signal.fft(tf.cast(x, tf.complex64)), 1)), [("nm", F)]),
    "fft3d": (lambda x: tf.math.imag(tf.signal.fft3d(tf.cast(x, tf.complex64))), [("n444", F)]), "griffin": (griffin, [("nl", F)]), "idct": (lambda x: tf.signal.idct(x, norm="ortho"), [("nm", F)]), "dct3": (lambda x: tf.signal.dct(x, 3), [("nm", F)]), "dct1": (lambda x: tf.signal.dct(x, 1), [("nm", F)]), "mdct": (lambda x: tf.signal.mdct(x, 16), [("nl", F)]),
    "ifftshift": (lambda x: tf.signal.ifftshift(x), [("nm", F)]), "hann": (lambda x: tf.signal.frame(x, 8, 4) * tf.signal.hann_window(8), [("nl", F)]), "convolve": (lambda x: tf.signal.irfft(tf.signal.rfft(x, [64]) * tf.signal.rfft(x[:, ::-1], [64]), [64]), [("nl", F)]),
    "z_tanh": (cx(lambda z: parts(tf.tanh(z) + tf.sinh(z) - tf.cosh(z))), [("nm", F), ("nm", F)]), "z_pow": (cx(lambda z: parts(tf.pow(z, tf.complex(0.5, 1.0)))), [("nm", F), ("nm", F)]), "z_unstack": (cx(lambda z: parts(tf.unstack(z, axis=1)[2] * tf.split(z, 2, 1)[1][:, 0])), [("n6", F), ("n6", F)]),
    "z_cumsum": (cx(lambda z: parts(tf.cumsum(z, 1))), [("nm", F), ("nm", F)]), "z_add_n": (cx(lambda z: parts(tf.add_n([z, z, tf.math.conj(z)]))), [("nm", F), ("nm", F)]), "z_reciprocal": (cx(lambda z: parts(tf.math.reciprocal(z) + tf.zeros_like(z))), [("nm", F), ("nm", F)]), "z_unequal": (cx(lambda z: tf.not_equal(z, tf.math.conj(z))), [("nm", F), ("nm", F)]),
    "z_mirror": (cx(lambda z: parts(tf.pad(z, [[0, 0], [1, 2]], "REFLECT"))), [("nm", F), ("nm", F)]), "z_gather_nd": (cx(lambda z: parts(tf.gather_nd(z, [[1], [0]]))), [("nm", F), ("nm", F)]), "z_scatter": (cx(lambda z: parts(tf.tensor_scatter_nd_update(z, [[1]], z[:1]))), [("nm", F), ("nm", F)]), "z_einsum": (cx(lambda z: parts(tf.einsum("ij,kj->ik", z, z))), [("nm", F), ("nm", F)]),
    "irfft3d": (lambda x: tf.signal.irfft3d(tf.complex(x, 0.3 * x), [4, 4, 8]), [("n445", F)]), "z_norm": (cx(lambda z: tf.norm(z, axis=1)), [("nm", F), ("nm", F)]), "z_outer": (cx(lambda z: parts(tf.matmul(z[:, :, None], z[:, None, :]))), [("nm", F), ("nm", F)]), "z_broadcast": (cx(lambda z: parts(z * z[:1] + 1.0)), [("nm", F), ("nm", F)]), "z_sigmoid": (cx(lambda z: parts(tf.sigmoid(z))), [("nm", F), ("nm", F)]),
    # sorting, sets and scatters
    "sort_rows": (lambda x: tf.sort(x, 0), [("nm", F)]), "argsort_down": (lambda x: tf.argsort(x, -1, "DESCENDING", stable=True), [("nm", F)]), "median": (lambda x: tf.sort(x, 1)[:, 2], [("nm", F)]), "top_sorted": (lambda x: tf.math.top_k(x, 2, sorted=True), [("nm", F)]), "nth": (lambda x: raw.NthElement(input=x, n=2), [("nm", F)]),
    "approx": (lambda x: tf.math.approx_max_k(x, 2), [("nm", F)]), "scattersub": (lambda x, i: tf.tensor_scatter_nd_sub(x, i[:, None] % 2, x), [("nm", F), ("n", I)]), "scattermin": (lambda x, i: tf.tensor_scatter_nd_min(x, i[:, None] % 2, x), [("nm", F), ("n", I)]), "scattermax2": (lambda x: tf.tensor_scatter_nd_max(x, [[0, 1], [1, 2], [0, 1]], [0.4, -3.0, 0.1]), [("nm", F)]),
    "segmentmean": (lambda x, i: tf.math.segment_mean(x, tf.sort(i) // 3), [("nm", F), ("n", I)]), "segmentprod": (lambda x, i: tf.math.unsorted_segment_prod(x, i, 10), [("nm", F), ("n", I)]), "sqrtn": (lambda x, i: tf.math.unsorted_segment_sqrt_n(x, i, 10), [("nm", F), ("n", I)]), "difference": (lambda i: tf.sets.difference(i, i[:, :2] + 1).values, [("nm", I)]),
    "intersection": (lambda i: tf.sparse.to_dense(tf.sets.intersection(i, i[:, 1:])), [("nm", I)]), "setsize": (lambda i: tf.sets.size(tf.sparse.from_dense(i)), [("nm", I)]), "listdiff": (lambda i: raw.ListDiff(x=i, y=i[:3]).out, [("l", I)]), "searchsorted": (lambda x: tf.searchsorted(tf.sort(x, 1), x, side="right"), [("nm", F)]),
    "histogram": (lambda x: tf.histogram_fixed_width(x, [-1.0, 1.0], 6), [("nm", F)]), "bins": (lambda x: tf.histogram_fixed_width_bins(x, [-1.0, 1.0], 6), [("nm", F)]), "bincountw": (lambda i, x: tf.math.bincount(i, weights=x[:, 0], minlength=12, maxlength=12), [("n", I), ("nm", F)]), "bincountrows": (lambda i: tf.math.bincount(i, axis=-1, minlength=10, maxlength=10), [("nm", I)]),
    "binary": (lambda i: tf.math.bincount(i, axis=-1, minlength=10, maxlength=10, binary_output=True), [("nm", I)]), "unique2": (lambda i: raw.UniqueV2(x=i, axis=[0]), [("l", I)]), "invert": (lambda i: tf.math.invert_permutation(tf.argsort(i)), [("l", I)]), "cross": (lambda x, y: tf.linalg.cross(x, y), [("n3", F), ("n3", F)]),
    # linear algebra
    "solve": (lambda x, y: tf.linalg.solve(x + 4.0 * tf.eye(5), y), [("n55", F), ("n52", F)]), "choleskysolve": (lambda x, y: tf.linalg.cholesky_solve(tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(5)), y), [("n55", F), ("n52", F)]), "tridiagonal": (lambda x, y: tf.linalg.tridiagonal_solve(x + tf.constant([[0.0], [4.0], [0.0]]), y, diagonals_format="compact"), [("n35", F), ("n5", F)]),
    "expm": (lambda x: tf.linalg.expm(x * 0.1), [("n44", F)]), "eigh": (lambda x: tf.linalg.eigvalsh(x + tf.linalg.matrix_transpose(x)), [("n44", F)]), "svd": (lambda x: tf.linalg.svd(x, compute_uv=False), [("n44", F)]), "adjoint": (lambda x: tf.linalg.adjoint(x), [("nmk", F)]), "matvec": (lambda x, y: tf.linalg.matvec(x, y), [("nmk", F), ("nk", F)]), "kron": (lambda x: tf.reshape(x[:, :, None, None] * x[None, None], [-1, 5]), [("55", F)]),
    "normalize": (lambda x: tf.linalg.normalize(x, axis=1), [("nm", F)]), "globalnorm": (lambda x, y: tf.linalg.global_norm([x, y]), [("nm", F), ("nm", F)]), "diagk": (lambda x: tf.linalg.diag(x, k=-2, padding_value=0.5), [("nm", F)]), "diagparts": (lambda x: tf.linalg.diag_part(x, k=(-1, 1), padding_value=9.0), [("n55", F)]), "setdiags": (lambda x: tf.linalg.set_diag(x, x[:, :2, :], k=(0, 1), align="LEFT_LEFT"), [("n55", F)]),
    "banded": (lambda x: tf.linalg.band_part(x, 0, -1), [("nmm", F)]), "pinv": (lambda x: tf.linalg.pinv(x + 3.0 * tf.eye(4)), [("n44", F)]), "lu": (lambda x: tf.linalg.lu(x + 3.0 * tf.eye(4))[0], [("n44", F)]), "logm": (lambda x: tf.linalg.logdet(tf.matmul(x, x, transpose_b=True) + tf.eye(4)), [("n44", F)]), "toeplitz": (lambda x: tf.linalg.LinearOperatorToeplitz(x, x).to_dense(), [("n4", F)]),
    "circulant": (lambda x: tf.math.real(tf.linalg.LinearOperatorCirculant(tf.cast(x, tf.complex64)).to_dense()), [("4", F)]), "einsum3": (lambda x, y: tf.einsum("bhqd,bhkd->bhqk", x, y), [("n2md", F), ("n2kd", F)]), "einsum4": (lambda x: tf.einsum("ii->", x), [("55", F)]), "einsum5": (lambda x: tf.einsum("bij->bj", x), [("nmk", F)]), "einsum6": (lambda x, y: tf.einsum("...i,...i->...", x, y), [("nmk", F), ("nmk", F)]), "einsum7": (lambda x: tf.einsum("bii->bi", x), [("nmm", F)]),
    # functions of numbers
    "bessel": (lambda x: tf.math.bessel_i0(x) + tf.math.bessel_i1e(x), [("nm", F)]), "digamma": (lambda x: tf.math.digamma(tf.abs(x) + 1.5), [("nm", F)]), "igamma": (lambda x: tf.math.igamma(tf.abs(x) + 1.0, tf.abs(x) + 0.5), [("nm", F)]), "betainc": (lambda x: tf.math.betainc(tf.abs(x) + 1.0, tf.abs(x) + 2.0, tf.abs(x) * 0.9), [("nm", F)]), "erfinv": (lambda x: tf.math.erfinv(x * 0.9), [("nm", F)]), "ndtri": (lambda x: tf.math.ndtri(tf.abs(x) * 0.9 + 0.05), [("nm", F)]),
    "erfc": (lambda x: tf.math.erfc(x) + tf.math.erfcinv(tf.abs(x) + 0.1), [("nm", F)]), "polygamma": (lambda x: tf.math.polygamma(2.0 * tf.ones_like(x), tf.abs(x) + 1.0), [("nm", F)]), "zeta": (lambda x: tf.math.zeta(tf.abs(x) + 2.0, tf.abs(x) + 1.0), [("nm", F)]), "lbeta": (lambda x: tf.math.lbeta(tf.abs(x) + 0.5), [("nm", F)]), "nextafter": (lambda x: tf.math.nextafter(x, x + 1.0) - x, [("nm", F)]), "acosh": (lambda x: tf.acosh(tf.abs(x) + 1.0) + tf.asinh(x) + tf.atanh(x * 0.9), [("nm", F)]),
    "asin": (lambda x: tf.asin(x) + tf.acos(x), [("nm", F)]), "atan2": (lambda x, y: tf.atan2(x, y), [("nm", F), ("nm", F)]), "expm1": (lambda x: tf.math.expm1(x) + tf.math.log1p(tf.abs(x)), [("nm", F)]), "logsumexp": (lambda x: tf.reduce_logsumexp(x, [1]), [("nm", F)]), "sigmoidloss": (lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(tf.abs(x), y), [("nm", F), ("nm", F)]), "softmaxloss": (lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), y), [("nm", F), ("nm", F)]),
    "sparseloss": (lambda x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i % 4, x), [("nm", F), ("n", I)]), "huber": (lambda x, y: tf.keras.losses.huber(x, y), [("nm", F), ("nm", F)]), "cosine": (lambda x, y: tf.keras.losses.cosine_similarity(x, y), [("nm", F), ("nm", F)]), "poisson": (lambda x: tf.nn.log_poisson_loss(tf.abs(x), x, True), [("nm", F)]), "weightedloss": (lambda x, y: tf.nn.weighted_cross_entropy_with_logits(tf.abs(x), y, 1.7), [("nm", F), ("nm", F)]),
    "variance": (lambda x: (tf.math.reduce_variance(x, 1), tf.math.reduce_std(x, 0)), [("nm", F)]), "zerofraction": (lambda x: tf.nn.zero_fraction(tf.nn.relu(x)), [("nm", F)]), "nonzero": (lambda x: tf.math.count_nonzero(tf.nn.relu(x), 1), [("nm", F)]), "clip": (lambda x: tf.clip_by_norm(x, 0.7, [1]), [("nm", F)]), "clipglobal": (lambda x, y: tf.clip_by_global_norm([x, y], 0.7)[0], [("nm", F), ("nm", F)]), "average": (lambda x: tf.math.accumulate_n([x, x, -0.5 * x]), [("nm", F)]),
    "mulnonan": (lambda x, y: tf.math.multiply_no_nan(x / (x - x[:1]), tf.nn.relu(y - y[:1])), [("nm", F), ("nm", F)]), "floordiv": (lambda x, y: x // (tf.abs(y) + 0.1) + tf.math.mod(x, 0.3), [("nm", F), ("nm", F)]), "truncatemod": (lambda x, y: tf.truncatemod(x - 5, y + 1), [("nm", I), ("nm", I)]), "sign": (lambda x: tf.sign(x) * tf.math.reciprocal_no_nan(x), [("nm", F)]), "minmax": (lambda x: (tf.reduce_min(x, 1), tf.reduce_max(x) - tf.reduce_min(x)), [("nm", F)]), "argmin": (lambda x: (tf.argmin(x, 0), tf.argmax(x, 1, I)), [("nm", F)]),
    "anyall": (lambda x: (tf.reduce_any(x > 0.9, 1), tf.reduce_all(x < 0.9, 0)), [("nm", F)]), "logical": (lambda x, y: tf.math.logical_xor(x > 0.0, y > 0.1), [("nm", F), ("nm", F)]), "approxequal": (lambda x, y: tf.math.approximate_equal(x, y, 0.3), [("nm", F), ("nm", F)]), "long": (lambda i: tf.cast(i, tf.int64) * 1234567 // 7 % 1000, [("nm", I)]), "unsigned": (lambda i: tf.cast(tf.cast(i, tf.uint8) * tf.cast(30, tf.uint8), I), [("nm", I)]), "bitcast": (lambda x: tf.bitcast(x, I), [("nm", F)]),
    "shifts": (lambda i: tf.bitwise.right_shift(i * 1000, i) + tf.bitwise.bitwise_and(i, 5) + tf.bitwise.bitwise_or(i, 8), [("nm", I)]), "int16": (lambda x: tf.cast(tf.cast(x * 100.0, tf.int16) * tf.cast(3, tf.int16), I), [("nm", F)]), "double2": (lambda x: tf.cast(tf.linalg.matmul(tf.cast(x, tf.float64), tf.cast(x, tf.float64), transpose_b=True), F), [("nm", F)]), "swish": (lambda x: tf.nn.swish(x) + tf.nn.elu(x) + tf.nn.leaky_relu(x), [("nm", F)]), "gelu": (lambda x: tf.nn.gelu(x) + tf.nn.gelu(x, True), [("nm", F)]), "relu6": (lambda x: tf.nn.relu6(x * 9.0) + tf.nn.log_softmax(x), [("nm", F)]),
    "quantdequant": (lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True), [("nm", F)]), "fakevars": (lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -0.5, 0.8, 8, True), [("nm", F)]), "quantized": (lambda x: tf.quantization.dequantize(tf.quantization.quantize(x, -1.0, 1.0, tf.quint8)[0], -1.0, 1.0), [("nm", F)]),
    # images and windows
    "nearest": (lambda x: tf.image.resize(x, [9, 7], "nearest"), [("nhwk", F)]), "area": (lambda x: tf.image.resize(x, [4, 5], "area"), [("nhwk", F)]), "lanczos": (lambda x: tf.image.resize(x, [9, 7], "lanczos3"), [("nhwk", F)]), "mitchell": (lambda x: tf.image.resize(x, [9, 7], "mitchellcubic"), [("nhwk", F)]), "antialias": (lambda x: tf.image.resize(x, [5, 4], "bilinear", antialias=True), [("nhwk", F)]), "padded": (lambda x: tf.image.resize_with_pad(x, 12, 9), [("nhwk", F)]), "cropped": (lambda x: tf.image.resize_with_crop_or_pad(x, 6, 12), [("nhwk", F)]),
    "central": (lambda x: tf.image.central_crop(x, 0.6), [("nhwk", F)]), "gradients": (lambda x: tf.image.image_gradients(x), [("nhwk", F)]), "psnr": (lambda x: tf.image.psnr(tf.abs(x), tf.abs(x) * 0.9, 1.0), [("nhwk", F)]), "ssim": (lambda x: tf.image.ssim(tf.abs(x), tf.abs(x) * 0.9, 1.0, filter_size=5), [("n983", F)]), "yiq": (lambda x: tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x)), [("nhw3", F)]), "rgbyuv": (lambda x: tf.image.yuv_to_rgb(x), [("nhw3", F)]), "brightness": (lambda x: tf.image.adjust_brightness(x, 0.2), [("nhw3", F)]), "transpose": (lambda x: tf.image.transpose(x), [("nhwk", F)]),
    "flips": (lambda x: tf.image.flip_up_down(tf.image.rot90(x, 3)), [("nhwk", F)]), "affine": (affine, [("nhwk", F)]), "glimpse": (lambda x, y: tf.image.extract_glimpse(x, [3, 4], y, noise="zero"), [("nhwk", F), ("n2", F)]), "boxdraw": (lambda x: tf.image.draw_bounding_boxes(x, [[[0.1, 0.2, 0.8, 0.9]]], [[1.0, 0.0, 0.0]]), [("1hw3", F)]), "cropnearest": (lambda x, y: tf.image.crop_and_resize(x, tf.abs(y), tf.zeros([3], I), [4, 5], "nearest"), [("nhw3", F), ("34", F)]),
    "nmsscores": (lambda x: tf.image.non_max_suppression_with_scores(tf.concat([x[:, :2], x[:, :2] + 0.5], 1), tf.abs(x[:, 2]), 3, 0.5, 0.2, 0.3), [("n4", F)]), "nmsoverlap": (lambda x: tf.image.non_max_suppression_overlaps(tf.abs(tf.matmul(x, x, transpose_b=True)), tf.abs(x[:, 0]), 3), [("n4", F)]), "maxpool3d": (lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), [("n4hw5", F)]), "avgpool3d": (lambda x: tf.nn.avg_pool3d(x, 2, 2, "VALID"), [("n4hw5", F)]), "fractional": (lambda x: tf.nn.avg_pool1d(x, 3, 2, "SAME"), [("nmk", F)]), "pooldilated": (lambda x: tf.nn.pool(x, [2, 2], "MAX", dilations=[2, 2], padding="VALID"), [("nhwk", F)]),
    "atrous": (lambda x: tf.nn.atrous_conv2d(x, tf.ones([3, 3, 5, 4]) * 0.1, 2, "SAME"), [("nhw5", F)]), "conv1dt": (lambda x: tf.nn.conv1d_transpose(x, tf.ones([3, 4, 5]) * 0.1, [2, 12, 4], 2), [("265", F)]), "conv3dt": (lambda x: tf.nn.conv3d_transpose(x, tf.ones([2, 2, 2, 3, 5]) * 0.1, [2, 8, 12, 12, 3], 2), [("24665", F)]), "explicit": (lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 5, 4]) * 0.1, [1, 2, 1, 1], [[0, 0], [2, 0], [1, 3], [0, 0]]), [("nhw5", F)]), "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 5, 2]) * 0.1, [1, 1, 1, 1], "SAME", dilations=[2, 2]), [("nhw5", F)]),
    "separable": (lambda x: tf.nn.separable_conv2d(x, tf.ones([3, 3, 5, 2]) * 0.1, tf.ones([1, 1, 10, 4]) * 0.1, [1, 1, 1, 1], "VALID"), [("nhw5", F)]), "convdyn": (lambda x, y: tf.nn.conv2d(x, tf.reshape(y, [1, 1, 5, 4]), 1, "SAME"), [("nhw5", F), ("54", F)]), "batchnorm": (lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0, 1, 2]), 0.1, 1.2, 1e-3), [("nhwk", F)]), "fusednorm": (lambda x: tf.compat.v1.nn.fused_batch_norm(x, [1.0, 2.0, 0.5], [0.1, 0.2, 0.3], is_training=True)[0], [("nhw3", F)]), "b2s": (lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), [("4hwk", F)]),
    "volumes": (lambda x: tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"), [("n4hw5", F)]), "mirror": (lambda x: tf.pad(x, [[0, 0], [2, 1], [1, 2], [0, 0]], "REFLECT"), [("nhwk", F)]), "symmetric": (lambda x: tf.pad(x, [[0, 0], [2, 1]], "SYMMETRIC"), [("nm", F)]), "padvalue": (lambda x: tf.pad(x, [[1, 0], [2, 1]], constant_values=-1.5), [("nm", F)]),
    # shapes, ragged and sparse tensors
    "raggedrows": (lambda x: tf.RaggedTensor.from_row_splits(x, [0, 2, 2, 5]).to_tensor(0.0, [3, 4, None]), [("5m", F)]), "raggedsum": (lambda x: tf.reduce_max(tf.RaggedTensor.from_row_lengths(x, [2, 1, 2]), axis=1), [("5m", F)]), "raggedconcat": (lambda x: tf.concat([tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]), tf.RaggedTensor.from_row_lengths(x, [1, 2, 2])], 1).to_tensor(), [("5m", F)]), "raggedrange": (lambda i: tf.ragged.range(i + 1).to_tensor(-1), [("n", I)]),
    "raggedmask": (lambda x: tf.ragged.boolean_mask(x, x > 0.0).to_tensor(9.0), [("nm", F)]), "raggedgather": (lambda x: tf.gather(tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]), [2, 0]).to_tensor(), [("5m", F)]), "raggedmap": (lambda x: tf.ragged.map_flat_values(tf.sin, tf.RaggedTensor.from_row_lengths(x, [2, 0, 3])).to_tensor(), [("5m", F)]), "raggedstack": (lambda x: tf.ragged.stack([x[0], x[1][:2], x[2][:0]]).to_tensor(), [("4m", F)]), "csr": (csr, [("nm", F)]),
    "sparseadd": (lambda x: tf.sparse.to_dense(tf.sparse.add(tf.sparse.from_dense(x), tf.sparse.from_dense(x * 0.5))), [("nm", F)]), "sparseslice": (lambda x: tf.sparse.to_dense(tf.sparse.slice(tf.sparse.from_dense(tf.nn.relu(x)), [0, 1], [2, 3])), [("nm", F)]), "sparseconcat": (lambda x: tf.sparse.to_dense(tf.sparse.concat(1, [tf.sparse.from_dense(tf.nn.relu(x))] * 2)), [("nm", F)]), "embedding": (lambda i: tf.nn.embedding_lookup(tf.reshape(tf.range(40.0), [10, 4]), i), [("nm", I)]),
    "safeembed": (lambda i: tf.nn.safe_embedding_lookup_sparse(tf.reshape(tf.range(40.0), [10, 4]), tf.sparse.from_dense(tf.cast(i, tf.int64)), combiner="mean"), [("nm", I)]), "embedsparse": (lambda i: tf.nn.embedding_lookup_sparse(tf.reshape(tf.range(40.0), [10, 4]), tf.sparse.from_dense(tf.cast(i + 1, tf.int64) % 10), None, combiner="sqrtn"), [("nm", I)]), "sparsesoft": (lambda x: tf.sparse.to_dense(tf.sparse.softmax(tf.sparse.from_dense(x))), [("nm", F)]),
    "slicedyn": (lambda x, i: tf.slice(x, [0, i[0] % 2], [-1, 3]), [("nm", F), ("n", I)]), "gatherbatch": (lambda x: tf.gather(x, [[0, 1, 1]] * 2, axis=2, batch_dims=1), [("2mk", F)]), "expand": (lambda x: tf.squeeze(x[tf.newaxis, :, tf.newaxis]), [("nm", F)]), "splitv": (lambda x: tf.split(x, [1, 2, -1], 1), [("nm", F)]), "reverseseq": (lambda x: tf.reverse(x, [0, 1]), [("nm", F)]), "rank": (lambda x: (tf.rank(x), tf.size(x), tf.shape(x)[-1]), [("nmk", F)]), "eye": (lambda x: x + tf.eye(tf.shape(x)[0], 5), [("n5", F)]),
    "fill": (lambda x: tf.fill(tf.shape(x)[:1], 3.5), [("nm", F)]), "whereboth": (lambda x, y: tf.where(x > y, x, tf.zeros_like(x)), [("nm", F), ("nm", F)]), "stitch": (lambda x: tf.dynamic_stitch([[0, 2], [1, 3]], [x[:, :2], x[:, 2:4]]), [("2m", F)]), "ensure": (lambda x: tf.ensure_shape(tf.reshape(x, [-1, 6]), [None, 6]), [("n6", F)]), "rollflat": (lambda x: tf.roll(x, 2, 1), [("nmk", F)]), "meshxy": (lambda x, y: tf.meshgrid(x, y, indexing="ij"), [("n", F), ("m", F)]), "range": (lambda x: tf.range(0.0, x[0, 0] + 3.0, 0.7), [("nm", F)]),
    "stridesnew": (lambda x: x[..., tf.newaxis, -2:, 0], [("nmk", F)]), "ellipsis": (lambda x: x[1, ..., ::-2], [("nmk", F)]), "onehotfloat": (lambda i: tf.one_hot(i, 5, dtype=F) @ tf.ones([5, 3]), [("n", I)]), "unravel": (lambda i: tf.unravel_index(i, [4, 5]), [("l", I)]), "broadcastdyn": (lambda x, y: tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y)), [("nm", F), ("nm", F)]), "upsample": (lambda x: tf.repeat(tf.repeat(x, 2, 1), 3, 2), [("nmk", F)]), "cumsum2": (lambda i: tf.cumsum(i, 0, reverse=True), [("nm", I)]), "parallel": (lambda x: tf.parallel_stack([x, x * 2.0]), [("5m", F)]),
    # text, tables and random numbers
    "vocabulary": (vocabulary, [("n", S)]), "length": (lambda s: tf.strings.length(s) + tf.strings.length(s, "UTF8_CHAR"), [("n", S)]), "upper": (lambda s: tf.strings.upper(tf.strings.join([s, "abc"])), [("n", S)]), "lower": (lambda s: tf.strings.lower(tf.strings.join(["ABC", s])), [("n", S)]), "asstring": (lambda i: tf.strings.as_string(i), [("n", I)]), "asfixed": (lambda x: tf.strings.as_string(x, precision=2), [("nm", F)]), "format": (lambda s: tf.strings.reduce_join(s, separator=","), [("n", S)]), "regex": (lambda s: tf.strings.regex_full_match(s, "[0-4]+"), [("n", S)]),
    "splitwords": (lambda s: tf.strings.split(tf.strings.join([s, "b c"], " ")).to_tensor(""), [("n", S)]), "whereword": (lambda s: tf.where(tf.equal(s, "7"), s, tf.strings.join([s, s])), [("n", S)]), "gatherword": (lambda s: tf.gather(s, [1, 0, 1]), [("n", S)]), "tonumber": (lambda s: tf.strings.to_number(s, I) * 2, [("n", S)]), "bytes": (lambda s: tf.strings.bytes_split(s).to_tensor(), [("n", S)]), "unicode": (lambda s: tf.strings.unicode_decode(s, "UTF-8").to_tensor(), [("n", S)]), "decode": (lambda s: tf.io.decode_raw(tf.strings.substr(tf.strings.join([s, "abcd"]), 0, 4), tf.uint8), [("n", S)]), "ngrams": (lambda s: tf.strings.ngrams(s, 2), [("n", S)]),
    "hash64": (lambda s: tf.strings.to_hash_bucket(s, 50), [("n", S)]), "stronghash": (lambda s: tf.strings.to_hash_bucket_strong(s, 50, [1, 2]), [("n", S)]), "categories": (lambda i: tf.random.stateless_categorical(tf.one_hot(i, 5), 3, [1, 2]), [("n", I)]), "truncated": (lambda x: x + tf.random.stateless_truncated_normal([4], [3, 4]), [("n4", F)]), "integers": (lambda x: tf.random.stateless_uniform([4], [3, 4], 0, 100, I), [("n4", F)]), "shuffled": (lambda x: tf.shape(tf.random.shuffle(x)), [("nm", F)]), "dropout": (lambda x: tf.shape(tf.nn.dropout(x, 0.3)), [("nm", F)]), "foldin": (lambda x: tf.random.stateless_uniform([4], tf.random.experimental.stateless_fold_in([3, 4], 7)), [("n4", F)]),
    "ctcbeam": (lambda x: tf.nn.ctc_beam_search_decoder(x, tf.fill([2], 5), 3, 1)[1], [("62k", F)]), "ctcloss": (lambda x: tf.nn.ctc_loss(tf.constant([[0, 1], [1, 0]]), x, tf.fill([2], 2), tf.fill([2], 5)), [("62k", F)]), "crf": (lambda x: tf.reduce_max(x[:, 0][:, :, None] + x[:, 1][:, None], 1), [("n2k", F)]), "attention": (lambda x, y: tf.nn.softmax(tf.matmul(x, y, transpose_b=True) / 3.0) @ y, [("nmk", F), ("njk", F)]), "assertion": (lambda x: tf.identity(tf.debugging.check_numerics(x, "no number") + 1.0), [("nm", F)]), "stopped": (lambda x: tf.stop_gradient(x) + tf.grad_pass_through(tf.round)(x), [("nm", F)]),
    "gradient": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.softmax(tf.tanh(x)) ** 2), x)[0], [("nm", F)]), "convgradient": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.conv2d(x, tf.ones([3, 3, 5, 4]) * 0.1, 2, "SAME") ** 2), x)[0], [("nhw5", F)]), "poolgradient": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "SAME") ** 2), x)[0], [("nhwk", F)]), "normgradient": (lambda x: tf.gradients(tf.reduce_sum(tf.nn.relu(tf.nn.l2_normalize(x, 1)) ** 2), x)[0], [("nm", F)]),
}  # fmt: skip

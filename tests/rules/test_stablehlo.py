"""StableHLO operators that no interpreter has kernels for: numpy is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnxruntime
import pytest
from nnrewrite.engine.dialects.operators import Catalogue

Array = np.ndarray[Any, Any]
X = np.array([[-1.5, 0.5, 2.0], [0.25, -0.75, 1.0]], np.float32)
Y = np.array([[2.0, -0.5, 1.5], [0.25, 3.0, -2.0]], np.float32)
DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def index(*values: int) -> tuple[Array, ...]:
    return tuple(np.array(value, np.int32) for value in values)


def drawn(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


A, B = drawn(2, 3, 4, 5), drawn(2, 5, 3, 6)

#: operator, operands, options, result
CASES: list[tuple[str, tuple[Array, ...], dict[str, Any], Array]] = [
    ("ABS", (X,), {}, np.abs(X)),
    ("CBRT", (X,), {}, np.cbrt(X)),
    ("COSINE", (X,), {}, np.cos(X)),
    ("EXPONENTIAL", (X,), {}, np.exp(X)),
    ("FLOOR", (X,), {}, np.floor(X)),
    ("LOG", (X + 2,), {}, np.log(X + 2)),
    ("LOGISTIC", (X,), {}, 1 / (1 + np.exp(-X))),
    ("NEGATE", (X,), {}, -X),
    ("RSQRT", (X + 2,), {}, 1 / np.sqrt(X + 2)),
    ("TANH", (X,), {}, np.tanh(X)),
    ("CONVERT", (X,), {}, X.astype(np.int32)),
    ("DIVIDE", (X, Y), {}, X / Y),
    ("SUBTRACT", (X, Y), {}, X - Y),
    ("POWER", (X + 2, Y), {}, (X + 2) ** Y),
    ("REMAINDER", (X, Y), {}, np.fmod(X, Y)),
    ("SELECT", (X > 0, X, Y), {}, np.where(X > 0, X, Y)),
    ("CLAMP", (np.array(-1, np.float32), X, np.array(1, np.float32)), {}, np.clip(X, -1, 1)),
    ("CONCATENATE", (X, Y), {"dimension": 1}, np.concatenate([X, Y], 1)),
    ("TRANSPOSE", (X,), {"permutation": [1, 0]}, X.T),
    ("RESHAPE", (X,), {}, X.reshape(3, 2)),
    ("SLICE", (A,), {"start_indices": [0, 1, 0, 2], "limit_indices": [1, 3, 4, 5], "strides": [1, 1, 2, 2]},
     A[0:1, 1:3, 0:4:2, 2:5:2]),
    ("BROADCAST_IN_DIM", (X,), {"broadcast_dimensions": [2, 0]}, np.broadcast_to(X.T[:, None], (3, 4, 2))),
    ("IOTA", (), {"iota_dimension": 1}, np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))),
    ("DYNAMIC_SLICE", (X, *index(1, 2)), {"slice_sizes": [1, 2]}, X[1:2, 1:3]),
    ("DYNAMIC_UPDATE_SLICE", (X, Y[:1, :2], *index(-1, 1)), {}, np.block([[X[0, :1], Y[0, :2]], [X[1:]]])),
    ("DOT_GENERAL", (A, B), {"lhs_batching_dimensions": [0], "rhs_batching_dimensions": [0],
     "lhs_contracting_dimensions": [1, 3], "rhs_contracting_dimensions": [2, 1]}, np.einsum("bicj,bjid->bcd", A, B)),
    *(("COMPARE", (X, Y.round()), {"comparison_direction": f"STABLEHLO_COMPARISON_DIRECTION_{name}"}, how(X, Y.round()))
      for name, how in DIRECTIONS.items()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options", "want"), CASES, ids=[case[0] for case in CASES])
def test_it_is_numpys(
    single: Callable[..., bytes], name: str, operands: tuple[Array, ...], options: dict[str, Any], want: Array
) -> None:
    shapes = {f"x{i}": (array.dtype.type, array.shape) for i, array in enumerate(operands)}
    source = single(f"STABLEHLO_{name}", shapes, [(want.dtype.type, want.shape)], **options)
    session = onnxruntime.InferenceSession(nnrewrite.convert(source).SerializeToString())
    [found] = session.run(None, {f"x{i}": array for i, array in enumerate(operands)})
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_every_one_of_them_is_tried(catalogue: Catalogue) -> None:
    operators = catalogue.find_dialect("tflite").operators.values()
    untried = {one.name for one in operators if one.name.startswith("STABLEHLO") and one.facts.fuzz.untried}
    assert untried - {"STABLEHLO_GATHER", "STABLEHLO_OR", "STABLEHLO_SORT"} == {
        f"STABLEHLO_{case[0]}" for case in CASES
    }

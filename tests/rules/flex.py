"""Operators of TensorFlow itself, which the interpreter has no kernels for, held against numbers known otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import nnrewrite
import numpy as np
import pytest
from nnrewrite.backends.probe import write_operator_model
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.subjects import list_subjects

onnxruntime = pytest.importorskip("onnxruntime")

Array = np.ndarray[Any, Any]
DRAWN = np.random.default_rng(0)


@dataclass(frozen=True, slots=True)
class Case:
    """An operator, its operands (those in `given` are inputs, the others constants), its options and what it yields."""

    operator: str
    operands: tuple[Array, ...]
    wanted: tuple[Array, ...]
    given: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.operator


def numbers(*shape: int, least: float = -2, most: float = 2) -> Array:
    return DRAWN.uniform(least, most, shape).astype(np.float32)


def one(operator: str, function: Callable[[Array], Any], x: Array) -> Case:
    return Case(operator, (x,), (np.asarray(function(x)),))


def two(operator: str, function: Callable[[Array, Array], Any], x: Array, y: Array) -> Case:
    return Case(operator, (x, y), (np.asarray(function(x, y)),), given=2)


def ints(*values: Any) -> Array:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def agree(case: Case, catalogue: Catalogue) -> None:
    """Convert a model of the operator alone, run it and compare; shapes and element types count too."""
    operands = {
        f"x{i}": (array.dtype, list(array.shape)) if i < case.given else array for i, array in enumerate(case.operands)
    }
    results = [(array.dtype, list(array.shape)) for array in case.wanted]
    model = nnrewrite.convert(write_operator_model(catalogue, case.operator, operands, results, **case.options))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(None, {f"x{i}": array for i, array in enumerate(case.operands[: case.given])})
    for wanted, actual in zip(case.wanted, found, strict=True):
        if wanted.dtype.kind == "U":
            np.testing.assert_array_equal(actual, wanted.astype(object), strict=True)
            continue
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5, strict=wanted.dtype != np.float64)


@functools.cache
def _rules() -> list[tuple[str, frozenset[str]]]:
    return [(rule.span.file, frozenset(rule.list_operators())) for rule in list_subjects(loader.load(("tflite2onnx",)))]


def operators(file: str) -> set[str]:
    """The operators of a dialect that the rules of one file are about."""
    return {operator for name, found in _rules() if name.endswith(f"/{file}") for operator in found}

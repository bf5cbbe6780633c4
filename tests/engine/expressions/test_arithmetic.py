"""Arithmetic of expressions."""

from __future__ import annotations

import numpy as np
import pytest
from nnrewrite.engine.expressions.functions import EvaluationError
from nnrewrite.engine.expressions.functions.registry import LIMIT
from nnrewrite.engine.expressions.values import ARITHMETIC


def test_arrays_as_long_as_those_of_a_model_are_computed_with() -> None:
    codes = np.ones((LIMIT // 256 + 1, 256), np.int8)
    assert ARITHMETIC["-"](codes, np.array([1], np.int8)).shape == codes.shape


def test_no_rule_makes_arrays_that_are_longer_than_its_operands_and_than_the_limit() -> None:
    row = np.ones((1, LIMIT // 256 + 1), np.int8)
    with pytest.raises(EvaluationError, match="an array of more than"):
        ARITHMETIC["*"](row, np.ones((256, 1), np.int8))

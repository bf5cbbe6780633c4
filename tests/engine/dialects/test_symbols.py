"""Polynomials over extents that runs decide."""

from __future__ import annotations

import pytest
from nnrewrite.engine.dialects.symbols import (
    Symbol,
    add,
    compare,
    divide,
    divide_exactly,
    find_sign,
    multiply,
    subtract,
)


def test_numbers_are_numbers() -> None:
    assert (add(2, 3), subtract(2, 3), multiply(2, 3), divide(7, 2)) == (5, -1, 6, "(7)/(2)")


def test_equal_polynomials_have_one_text() -> None:
    assert add("n", "m") == add("m", "n") and multiply(add("n", 1) or 0, 2) == add(multiply("n", 2) or 0, 2)
    assert subtract(add("n", 3) or 0, 3) == "n" and subtract("n", "n") == 0


@pytest.mark.parametrize("name", ["a+b", "2*n", "=n", "100%"])
def test_names_that_look_like_polynomials_stay_names(name: str) -> None:
    square = multiply(name, name)
    assert square is not None and divide_exactly(square, name) == name
    assert add(name, 1) != add("a", add("b", 1) or 0)


def test_quotients_are_exact_or_names_of_their_own() -> None:
    assert divide_exactly(multiply("n", 12) or 0, 4) == multiply("n", 3)
    assert divide(add(multiply("n", 4) or 0, 7) or 0, 4) == add("n", 1)  # where a number alone leaves a remainder
    assert divide_exactly("n", 2) is None and divide("n", 2) == divide("n", 2) != divide("n", 3)


def test_what_is_below_zero_by_some_extent_has_no_sign() -> None:
    found: list[Symbol | None] = [
        find_sign(add("n", 1) or 0),
        find_sign(subtract("n", 1) or 0),
        find_sign(0),
        compare(-1, "n"),
    ]
    assert found == [1, None, 0, -1]


def test_extents_without_a_name_in_the_source_may_be_zero() -> None:
    assert find_sign("unk__0") is None and find_sign(multiply("n", "unk__0") or 0) is None
    assert find_sign(add("unk__0", 1) or 0) == 1 == find_sign("n")

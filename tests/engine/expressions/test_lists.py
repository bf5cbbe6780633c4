"""Functions of lists."""

from __future__ import annotations

from typing import Any

import pytest
from nnrewrite.engine.expressions.functions import FUNCTIONS, EvaluationError


def call(name: str, *values: Any) -> Any:
    return FUNCTIONS[name].call(*values)


def test_items_are_found_where_they_first_stand() -> None:
    assert call("indices_of", [5, 7, 5], [7, 5, 9]).tolist() == [1, 0, 3]


def test_the_longest_way_is_as_many_steps_as_lead_on() -> None:
    assert call("longest_way", [[1, 1, 3, 3], [2, 1, 2, 3]]) == 2
    assert call("longest_way", [[0, 1], [0, 1]]) == 0
    assert call("longest_way", [[], []]) == 0


def test_ways_that_lead_round_are_refused() -> None:
    with pytest.raises(EvaluationError, match="round in circles"):
        call("longest_way", [[1, 0]])


def test_ways_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(EvaluationError, match="has one behind it"):
        call("longest_way", [[1, 2]])


def test_a_message_has_of_a_long_list_only_how_it_begins() -> None:
    with pytest.raises(EvaluationError) as raised:
        call("index_of", list(range(100_000)), -1)
    assert str(raised.value).startswith("-1 is not in [0, 1, 2,")
    assert str(raised.value).endswith("...") and len(str(raised.value)) < 200

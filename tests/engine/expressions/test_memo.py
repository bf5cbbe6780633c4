"""What guards find out about the elements of a constant is found out once for each constant."""

from __future__ import annotations

import gc

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.constants import NUMBERS
from nnrewrite.engine.expressions import compile, memo
from nnrewrite.engine.expressions.compile import Frame, evaluate
from nnrewrite.engine.expressions.functions import FUNCTIONS
from nnrewrite.engine.expressions.functions.registry import Function
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.parser import parse


def guard(text: str) -> tree.Expression:
    """An expression as the guard of a rule has it."""
    rules = f"ruleset demo : onnx -> onnx opset 13..25 rule r {{ y = Add(x, const w) where {text} => y = x }}"
    file = parse(rules, "demo.rules")
    rule = file.items[0]
    assert isinstance(rule, tree.Rule)
    clause = rule.clauses[0]
    assert isinstance(clause, tree.Where)
    return clause.condition


@pytest.fixture
def flattened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the constants that were made lists of."""
    seen: list[int] = []
    known = FUNCTIONS["flatten"]

    def flatten(array: np.ndarray) -> object:
        seen.append(array.size)
        return known.call(array)

    flatten.__module__ = known.call.__module__
    monkeypatch.setitem(FUNCTIONS, "flatten", Function("flatten", flatten, known.least, known.most))
    return seen


@pytest.mark.parametrize(
    "text", ["min(flatten(w)) == 0", "unique(flatten(w)) == [0]", "[v for v in flatten(w) if v != 0] == []"]
)
def test_a_large_constant_is_gone_through_once(text: str, flattened: list[int]) -> None:
    condition, weights = guard(text), np.zeros(1000, np.float32)
    assert [evaluate(condition, Frame({"w": weights})) for _ in range(3)] == [True] * 3
    assert flattened == [1000]


def test_another_constant_is_another_even_where_it_takes_the_place_of_one_that_is_gone(flattened: list[int]) -> None:
    condition = guard("max(flatten(w)) == 1")
    for turn in range(20):
        weights = np.full(1000, turn % 2, np.int8)
        assert evaluate(condition, Frame({"w": weights})) is bool(turn % 2)
        del weights
    assert len(flattened) == 20


def test_what_hangs_on_another_name_is_found_out_for_each_of_its_values(flattened: list[int]) -> None:
    condition, weights = guard("[v for v in flatten(w) if v == n] == []"), np.zeros(1000, np.int8)
    found = [evaluate(condition, Frame({"w": weights, "n": n})) for n in (1, 2, 1, True)]
    assert found == [True] * 4
    assert len(flattened) == 3  # a truth value is no number


def test_a_small_constant_and_a_long_result_are_not_kept(flattened: list[int]) -> None:
    small, distinct = np.zeros(8, np.int8), np.arange(1000)
    condition = guard("unique(flatten(w)) == [0]")
    for _ in range(2):
        assert evaluate(condition, Frame({"w": small})) is True
        assert evaluate(condition, Frame({"w": distinct})) is False
    assert flattened == [8, 1000, 8, 1000]


@pytest.mark.thorough
@pytest.mark.slow
def test_nothing_keeps_a_constant_alive() -> None:
    gc.collect()
    before = len(memo._known)
    weights = np.zeros(1000, np.int8)
    assert evaluate(guard("max(flatten(w)) == 0"), Frame({"w": weights})) is True
    assert len(memo._known) == before + 1
    del weights
    gc.collect()
    assert len(memo._known) == before


def test_the_code_of_expressions_of_many_packs_is_not_kept_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "_compiled", {})
    monkeypatch.setattr(compile, "_MOST", 4)
    conditions = [guard(f"n + {more} == {more + 1}") for more in range(9)]
    for _ in range(2):
        assert [evaluate(condition, Frame({"n": 1})) for condition in conditions] == [True] * 9
        assert len(compile._compiled) <= 4


@pytest.mark.parametrize("text", ["w != none", "w == none"])
def test_comparing_weights_with_nothing_does_not_read_them(text: str) -> None:
    class Unread(np.ndarray):
        def tolist(self) -> list[object]:
            raise AssertionError("the elements are read")

    weights = np.zeros(1000, np.float32).view(Unread)
    assert evaluate(guard(text), Frame({"w": weights})) is ("!=" in text)


def test_a_constant_whose_axes_have_other_names_is_asked_anew() -> None:
    text = """ruleset demo : onnx -> onnx opset 13..25
        def height(v) = v.H
        rule r { y = Conv(x, const w) where height(w) == 8 => y = x }"""
    definition, rule = parse(text, "demo.rules").items
    assert isinstance(definition, tree.Definition)
    assert isinstance(rule, tree.Rule)
    clause = rule.clauses[0]
    assert isinstance(clause, tree.Where)
    weights, definitions = np.zeros((8, 9, 2, 2), np.float32), {"height": definition}
    for layout, holds in (("HWIO", True), ("WHIO", False), ("HWIO", True)):
        frame = Frame({"w": weights, "opset": 18}, {"w": layout}, definitions)
        assert evaluate(clause.condition, frame) is holds


def test_a_dequantized_constant_is_computed_no_more_often_than_it_is_asked_for() -> None:
    asked: list[int] = []

    def real() -> np.ndarray:
        asked.append(1)
        return np.zeros(1000, np.float32)

    x = ir.Value(name="x")
    x.meta[NUMBERS] = real
    assert evaluate(guard("max(flatten(value(x))) == 0"), Frame({"x": x})) is True
    assert len(asked) == 1


def test_what_is_not_asked_for_need_not_be_bound() -> None:
    condition = guard("[v for v in [1] if v == 1 or v == n] == [1]")
    assert evaluate(condition, Frame({})) is True

"""The matcher: in which order the ways to fit are tried, what bounds their number, and what guards prune."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.engine.base import budget
from nnrewrite.engine.base.budget import Budget, TooManyError, limit_attempts
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.pass_list import convert_graph
from nnrewrite.engine.rewrite import apply
from nnrewrite.engine.rewrite.conditions import Guard
from nnrewrite.engine.rewrite.matcher import Matcher
from nnrewrite.engine.rewrite.rules import Rule, RuleSet
from nnrewrite.engine.syntax.parser import parse

Compile = Callable[[str], Rule]
OPSET = 18

#: pieces of one value that follow each other up to its end
THREE = """
    a = Slice(x, const s, const e)
    b = Slice(x, const t, const f)
    c = Slice(x, const u, const g)
    where g[0] == shape(x)[0] and e[0] == t[0] and f[0] == u[0]
"""


def rule_set(catalogue: Catalogue, left: str, right: str) -> RuleSet:
    text = f"ruleset demo : onnx -> onnx opset 13..25\nrule r stage simplify {{ {left} => {right} }}"
    return RuleSet([parse(text, "demo.rules")], catalogue, OPSET)


@pytest.fixture
def rule(catalogue: Catalogue) -> Compile:
    """Compile a rule by its left side, which names the root `y` or `c`."""

    def compiled(left: str) -> Rule:
        rules = rule_set(catalogue, left, "c = Relu(x)" if left == THREE else "y = Relu(x)")
        ((stage, (domain, operator)), *_) = rules.list_roots()
        (one,) = rules.list_candidates(stage, domain, operator)
        return one

    return compiled


def value(name: str, array: np.ndarray | None = None) -> ir.Value:
    tensor = None if array is None else ir.Tensor(array, name=name)
    dtype = ir.DataType.FLOAT if array is None else ir.DataType.from_numpy(array.dtype)
    shape = (6,) if array is None else array.shape
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=tensor)


def node(operator: str, *operands: ir.Value | None, **options: int) -> ir.Node:
    made = ir.Node("", operator, operands, [ir.AttrInt64(k, v) for k, v in options.items()], num_outputs=1)
    made.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    made.outputs[0].shape, made.outputs[0].name = ir.Shape((6,)), f"{operator}_{id(made)}"
    return made


def ways(matcher: Matcher, root: ir.Node, *names: str, **given: Any) -> list[tuple[Any, ...]]:
    """What some names stand for in each way to fit, in the order in which they are tried."""
    found: list[tuple[Any, ...]] = []

    def turn_down(bound: dict[str, Any]) -> None:
        found.append(tuple(bound[name] for name in names))

    assert matcher.search(root, turn_down, OPSET, **given) is None
    return found


def test_operands_of_a_commutative_operator_are_tried_as_they_stand_first(rule: Compile) -> None:
    x, z = value("x"), value("z")
    assert ways(rule("y = Add(x, z)").matcher, node("Add", x, z), "x", "z") == [(x, z), (z, x)]


def test_the_same_operand_twice_fits_once(rule: Compile) -> None:
    x = value("x")
    assert ways(rule("y = Add(x, z)").matcher, node("Add", x, x), "x", "z") == [(x, x)]


def test_alternatives_are_tried_in_the_order_they_are_written(rule: Compile) -> None:
    x = value("x")
    root = node("Add", node("Relu", x).outputs[0], node("Abs", x).outputs[0])
    matcher = rule("y = Add(Abs(x), z) | Add(Relu(x), z)").matcher
    assert [z.producer().op_type for (z,) in ways(matcher, root, "z")] == ["Relu", "Abs"]


def test_a_list_is_divided_with_the_fewest_values_to_the_first_name(rule: Compile) -> None:
    x = [value(f"x{i}") for i in range(3)]
    matcher = rule("y = Concat(before..., x, after...) {axis: 0}").matcher
    assert ways(matcher, node("Concat", *x, axis=0), "before", "x", "after") == [
        ([], x[0], x[1:]),
        (x[:1], x[1], x[2:]),
        (x[:2], x[2], []),
    ]


def test_what_one_way_binds_is_not_bound_in_the_next(rule: Compile) -> None:
    x, z = value("x"), value("z")
    relu = node("Relu", x)
    matcher = rule("y = Mul(Add(x, z), z)").matcher
    assert ways(matcher, node("Mul", node("Add", z, relu.outputs[0]).outputs[0], z), "x", "z") == [(relu.outputs[0], z)]


def test_the_search_ends_with_what_is_accepted(rule: Compile) -> None:
    x, z = value("x"), value("z")
    seen: list[Any] = []

    def accept(bound: dict[str, Any]) -> str:
        seen.append(bound["x"])
        return "made"

    assert rule("y = Add(x, z)").matcher.search(node("Add", x, z), accept, OPSET) == "made"
    assert seen == [x]


def test_why_a_pattern_does_not_fit_is_told(rule: Compile) -> None:
    told: list[str] = []
    root = node("Concat", value("x"), axis=1)
    assert not ways(rule("y = Concat(x) {axis: 0}").matcher, root, note=lambda span, text: told.append(text))
    assert told == ["option axis is 1, the rule asks for 0"]


# ---- equations that meet in a value


def slices(count: int) -> tuple[ir.Value, list[ir.Node]]:
    """Pieces of one value of as many elements, one after the other."""
    x = value("x")
    x.shape = ir.Shape((count,))
    ends = [(value("s", np.array([i])), value("e", np.array([i + 1]))) for i in range(count)]
    return x, [node("Slice", x, *pair) for pair in ends]


def tried(one: Rule, count: int, asks: bool) -> int:
    """How often a pattern is tried at the last of some pieces of a value; guards are asked early where `asks`."""
    _, pieces = slices(count)
    spent = Budget()

    def holds(guard: Guard, bound: dict[str, Any]) -> bool:
        return bool(apply.read_truth(apply.evaluate(guard.expression, apply.Frame(dict(bound)))))

    ways(one.matcher, pieces[-1], budget=spent, holds=holds if asks else None)
    return spent.tried


def test_guards_prune_the_users_of_a_shared_value(rule: Compile) -> None:
    one = rule(THREE)
    without, early = tried(one, 30, asks=False), tried(one, 30, asks=True)
    assert without > 29 * 28  # no two equations are one node
    assert early < 30 * 5


def test_a_guard_that_may_refuse_a_node_is_not_asked_early(rule: Compile) -> None:
    guarded = THREE.replace("where", 'where size(x) == 6 or fail("no")\n    where')
    assert rule(THREE).matcher._guards
    assert not rule_with(rule, guarded).matcher._guards


def rule_with(rule: Compile, left: str) -> Rule:
    return rule(left.replace("c = Slice", "y = Slice"))


def test_the_attempts_at_one_root_grow_with_n_log_n() -> None:
    assert limit_attempts(0) == budget.ATTEMPTS
    for size in (10_000, 100_000, 1_000_000):
        assert limit_attempts(size) <= 8 * size * (np.log2(size) + 1)


def test_a_search_beyond_its_attempts_is_given_up(rule: Compile) -> None:
    _, pieces = slices(30)
    with pytest.raises(TooManyError, match="more than 100 ways"):
        ways(rule(THREE).matcher, pieces[-1], budget=Budget(attempts=100))


def test_a_rule_that_is_given_up_at_a_node_is_told_and_leaves_the_graph_as_it_is(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = rule_set(catalogue, THREE.partition("where")[0] + "where s[0] < 0", "c = Relu(x)")
    monkeypatch.setattr(apply, "limit_attempts", lambda size: 20)
    x, pieces = slices(30)
    constants = [one for piece in pieces for one in piece.inputs[1:] if one is not None]
    for number, one in enumerate(constants):
        one.name = f"c{number}"
    graph = ir.Graph([x], [piece.outputs[0] for piece in pieces], nodes=pieces, initializers=constants, name="g")
    bounded = convert_graph(graph, rules).outcome.bounded
    assert dict(bounded) == {"r (demo.rules:2): its pattern could fit in more than 20 ways": 30}
    assert list(graph) == pieces

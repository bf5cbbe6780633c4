"""What rules need of nodes: it tells quickly of those that do not fit, and never turns down one that fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.conversion import compiled_rules, pipeline
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.rewrite import rules
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.syntax.parser import parse

INTEGER = ir.DataType.INT32

MayFit = Callable[[ir.Node], bool]


def value(name: str, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape((2,)))


def constant(*numbers: float) -> ir.Value:
    array = np.array(numbers, np.float32)
    return ir.Value(name="c", type=ir.TensorType(ir.DataType.FLOAT), const_value=ir.Tensor(array))


def node(operator: str, *operands: ir.Value | None) -> ir.Node:
    return ir.Node("", operator, operands, num_outputs=1)


@pytest.fixture
def early(catalogue: Catalogue) -> Callable[[str], MayFit]:
    """Whether a node may fit a left side whose root is `y = Add(...)`, as far as its needs tell."""

    def compiled(left: str) -> MayFit:
        text = f"ruleset demo : onnx -> onnx opset 13..25\nrule r stage simplify {{ {left} => y = Relu(x) }}"
        rules = RuleSet([parse(text, "demo.rules")], catalogue, 18)
        return lambda node: bool(list(rules.iterate_candidates("simplify", node)))

    return compiled


@pytest.mark.parametrize(
    ("left", "fitting", "other"),
    [
        ("y = Add(Relu(x), z)", [node("Relu", value("x")).outputs[0], value("z")], [value("x"), value("z")]),
        ("r = Relu(x) y = Add(r, z)", [node("Relu", value("x")).outputs[0], value("z")], [value("x"), value("z")]),
        ("y = Add(Relu(x), z)", [value("z"), node("Relu", value("x")).outputs[0]], [value("z"), value("x")]),
        ("y = Add(x, const c)", [value("x"), constant(1, 2)], [value("x"), value("z")]),
        ("y = Add(x, 1.0)", [value("x"), constant(1)], [value("x"), value("z")]),
        ('y = Add(x, z) where dtype(x) == "f32"', [value("x"), value("z")], [value("x", INTEGER), value("z", INTEGER)]),
    ],
)  # fmt: skip
def test_operators_constants_and_element_types_right_beneath_are_asked(
    early: Callable[[str], MayFit], left: str, fitting: list[ir.Value], other: list[ir.Value]
) -> None:
    may_fit = early(left)
    assert may_fit(node("Add", *fitting))
    assert not may_fit(node("Add", *other))


@pytest.mark.parametrize(
    ("left", "operands", "told"),
    [
        ("y = Add(Relu(x), z)", [node("Relu", value("x")).outputs[0], value("z")], True),
        ("y = Add(Relu(x), z)", [value("z"), node("Relu", value("x")).outputs[0]], True),
        ("y = Add(Relu(x), z)", [value("x"), value("z")], False),
        ("r = Relu(x) y = Add(r, z)", [value("x"), value("z")], False),
        ("r = Relu(x) y = Add(r?, z)", [None, value("z")], True),
        ("y = Add(Relu(x) | Abs(x), z)", [node("Abs", value("x")).outputs[0], value("z")], True),
        ("y = Add(any f(x), z)", [node("Abs", value("x")).outputs[0], value("z")], True),
        ("y = Add(x, const c)", [value("x"), constant(1, 2)], True),
        ("y = Add(x, const c)", [value("x"), value("z")], False),
        ("y = Add(x, const c?)", [value("x")], True),
    ],
)  # fmt: skip
def test_what_a_root_reads_is_asked_before_a_rule_is_compiled(
    catalogue: Catalogue, left: str, operands: list[ir.Value | None], told: bool
) -> None:
    text = f"ruleset demo : onnx -> onnx opset 13..25\nrule r stage simplify {{ {left} => y = Relu(x) }}"
    rules = RuleSet([parse(text, "demo.rules")], catalogue, 18)
    assert bool(list(rules.iterate_candidates("simplify", node("Add", *operands)))) is told


@pytest.mark.parametrize(
    ("left", "options", "told"),
    [
        ("y = Concat(xs...) {axis: 1}", {"axis": 1}, True),
        ("y = Concat(xs...) {axis: 1}", {"axis": 0}, False),
        ("y = Concat(xs...) {axis} where axis > 1", {"axis": 2}, True),
        ("y = Concat(xs...) {axis} where axis > 1", {"axis": 1}, False),
        ("y = Concat(xs...) {axis: a} where a in [0, 3] and a % 2 == 1", {"axis": 3}, True),
        ("y = Concat(xs...) {axis: a} where a in [0, 3] and a % 2 == 1", {"axis": 0}, False),
        ("y = Concat(xs...) {axis} where far(axis)", {"axis": 1}, False),  # what a definition asks for
        ("y = Concat(xs...) {axis} where axis > 1 or len(xs) == 1", {"axis": 0}, True),  # of more than the option
        ('y = Concat(xs...) {axis} where axis < 1 or fail("no") where axis > 1', {"axis": 0}, True),
        ("y = Concat(xs...) {axis} where axis[0] == 1", {"axis": 0}, True),  # the guard tells what is wrong
        ("y = Softmax(x) {axis: 2}", {}, False),  # where a node does not say it, its default is meant
        ("y = Softmax(x) {axis: -1}", {}, True),
    ],
)
def test_options_are_asked_by_what_names_them_alone(
    catalogue: Catalogue, left: str, options: dict[str, int], told: bool
) -> None:
    rule = f"def far(a) = a > 1\nrule r stage simplify {{ {left} => y = Abs(y) }}"
    text = f"ruleset demo : onnx -> onnx opset 13..25\n{rule}"
    rules = RuleSet([parse(text, "demo.rules")], catalogue, 18)
    made = node("Concat" if "Concat" in left else "Softmax", value("x"))
    made.attributes.update({name: ir.AttrInt64(name, number) for name, number in options.items()})
    assert bool(list(rules.iterate_candidates("simplify", made))) is told


def test_options_of_inner_nodes_are_asked(catalogue: Catalogue) -> None:
    text = (
        "ruleset demo : onnx -> onnx opset 13..25\n"
        "rule r stage simplify { y = Relu(Concat(xs...) {axis}) where axis == 0 => y = Abs(y) }"
    )
    rules = RuleSet([parse(text, "demo.rules")], catalogue, 18)
    for axis, told in ((0, True), (1, False)):
        inner = ir.Node("", "Concat", [value("x")], [ir.AttrInt64("axis", axis)])
        assert bool(list(rules.iterate_candidates("simplify", node("Relu", inner.outputs[0])))) is told


def test_an_operand_that_was_an_option_once_is_read_from_there(catalogue: Catalogue) -> None:
    rule = "rule r stage simplify { y = Clip(x, const least, _?) => y = Relu(x) }"
    text = f"ruleset demo : onnx -> onnx opset 7..25\n{rule}"
    rules = RuleSet([parse(text, "demo.rules")], catalogue, 7)
    older = ir.Node("", "Clip", [value("x")], [ir.AttrFloat32("min", 0.0)])
    assert list(rules.iterate_candidates("simplify", older))


def test_a_guard_behind_one_that_may_refuse_waits_for_it(early: Callable[[str], MayFit]) -> None:
    may_fit = early('y = Add(x, z) where rank(x) == 1 or fail("no") where dtype(x) == "f32"')
    assert may_fit(node("Add", value("x", INTEGER), value("z", INTEGER)))


def test_models_become_the_same_without_it(monkeypatch: pytest.MonkeyPatch, single: Callable[..., bytes]) -> None:
    weights = np.arange(36, dtype=np.float32).reshape(4, 3, 3, 1)
    sources = [
        single("CONV_2D", {"x": ("FLOAT32", [1, 5, 5, 1]), "w": weights, "b": np.zeros(4, np.float32)},
               [("FLOAT32", [1, 5, 5, 4])], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU6"),
        single("MEAN", {"x": ("FLOAT32", [1, 5, 5, 2]), "axes": np.array([1, 2], np.int32)}, [("FLOAT32", [1, 2])]),
        single("LOGISTIC", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]),
    ]  # fmt: skip
    quick = [pipeline.convert(source).SerializeToString() for source in sources]
    monkeypatch.setattr(rules, "may_match", lambda *_: True)
    compiled_rules._prepare.cache_clear()
    try:
        assert [pipeline.convert(source).SerializeToString() for source in sources] == quick
    finally:
        compiled_rules._prepare.cache_clear()

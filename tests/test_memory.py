"""What is remembered of rules and nodes, and what a first look tells: neither changes what comes out."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nnrewrite import pipeline
from nnrewrite.backends import probe, tflite
from nnrewrite.engine import coverage, firing, glance, memory
from nnrewrite.engine.likeness import Likenesses
from nnrewrite.engine.operators import load
from nnrewrite.options import DEFAULT


def value(name: str, shape: tuple[int, ...], array: np.ndarray | None = None) -> ir.Value:
    dtype = ir.DataType.FLOAT if array is None else ir.DataType.from_numpy(array.dtype)
    tensor = None if array is None else ir.Tensor(array, name=name)
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=tensor)


def node(*operands: ir.Value, name: str = "Add", **options: int) -> ir.Node:
    attributes = [ir.AttrInt64(key, number) for key, number in options.items()]
    made = ir.Node("", name, operands, attributes, num_outputs=1)
    made.outputs[0].type, made.outputs[0].shape = operands[0].type, operands[0].shape
    return made


class TestLikeness:
    def number(self, *nodes: ir.Node) -> list[int]:
        likenesses = Likenesses()
        found = [likenesses.of(one) for one in nodes]
        return [one.number for one in found if one is not None]

    def test_nodes_of_equal_options_types_and_extents_are_alike(self) -> None:
        a, b = self.number(node(value("a", (2, 3)), axis=1), node(value("b", (2, 3)), axis=1))
        assert a == b

    @pytest.mark.parametrize(
        "other",
        [
            node(value("b", (2, 3)), axis=2),
            node(value("b", (2, 3)), axis=1, keepdims=1),
            node(value("b", (3, 2)), axis=1),
            node(value("b", (2, 3)), value("c", (2, 3)), axis=1),
            node(value("b", (2, 3)), axis=1, name="Sub"),
            node(value("b", (2, 3), np.zeros((2, 3), np.float32)), axis=1),
        ],
    )
    def test_any_other_option_operator_shape_operand_or_constant_tells_nodes_apart(self, other: ir.Node) -> None:
        a, b = self.number(node(value("a", (2, 3)), axis=1), other)
        assert a != b

    def test_the_same_operand_twice_is_not_like_two_operands(self) -> None:
        twice, x, y = value("x", (2,)), value("x", (2,)), value("y", (2,))
        a, b = self.number(node(twice, twice), node(x, y))
        assert a != b

    def test_small_integers_are_told_apart_and_weights_are_not(self) -> None:
        x = value("x", (2, 3))
        shapes = [node(x, value("s", (2,), np.array(extents, np.int64))) for extents in ((3, 2), (6, 1))]
        weights = [node(x, value("w", (64,), np.full(64, number, np.float32))) for number in (1, 2)]
        a, b = self.number(*shapes)
        c, d = self.number(*weights)
        assert a != b
        assert c == d
        assert Likenesses().of(weights[0]).complete is False
        assert Likenesses().of(shapes[0]).complete is True


def model() -> bytes:
    """Layers that repeat, each with weights, shapes and activations of which some are those of another."""
    catalogue = load()
    dialect = catalogue.dialect("tflite")
    random = np.random.default_rng(0)
    nodes: list[ir.Node] = []
    constants: list[ir.Value] = []

    def constant(array: np.ndarray) -> ir.Value:
        constants.append(value(f"c{len(constants)}", array.shape, array))
        return constants[-1]

    def add(operator: str, operands: list[ir.Value], shape: tuple[int, ...], **options: object) -> ir.Value:
        spec = dialect.operators[operator]
        attributes = [probe.attribute(spec.options[key], option, dialect) for key, option in options.items()]
        result = value(f"v{len(nodes)}", shape)
        nodes.append(
            ir.Node(spec.domain, operator, operands, [one for one in attributes if one is not None], outputs=[result])
        )
        return result

    source = x = value("x", (1, 4, 6, 4))
    for i in range(12):
        operands = [x, constant(random.random((4, 1, 1, 4), np.float32)), constant(random.random(4, np.float32))]
        act = "RELU6" if i % 3 else "NONE"
        x = add(
            "CONV_2D", operands, (1, 4, 6, 4), padding="SAME", stride_h=1, stride_w=1, fused_activation_function=act
        )
        x = add("ADD", [x, x if i % 4 == 1 else constant(random.random(4, np.float32))], (1, 4, 6, 4))
        shape = (1, 24, 4, 1) if i % 2 else (1, 6, 4, 4)
        x = add("RESHAPE", [x, constant(np.array(shape, np.int32))], shape, new_shape=list(shape))
        x = add("RESHAPE", [x, constant(np.array((1, 4, 6, 4), np.int32))], (1, 4, 6, 4), new_shape=[1, 4, 6, 4])
    graph = ir.Graph([source], [x], nodes=nodes, initializers=constants, name="main")
    return b"".join(tflite.parts(ir.Model(graph, ir_version=10), catalogue))


def test_a_network_that_repeats_itself_becomes_the_same_with_and_without_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = model()
    kept = []
    keep = memory.Memory.keep
    monkeypatch.setattr(memory.Memory, "keep", lambda *given: kept.append(given[-1]) or keep(*given))
    with_memory = pipeline.convert(source)
    assert any(recipe is not None for recipe in kept)
    monkeypatch.setattr(memory.Memory, "likeness", lambda *_: None)
    assert pipeline.convert(source).SerializeToString() == with_memory.SerializeToString()


def test_coverage_is_noted_of_what_is_remembered_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = model()
    monkeypatch.setattr(coverage, "active", None)
    plain = pipeline.convert(source).SerializeToString()
    repeated = []
    repeat = firing.repeat
    monkeypatch.setattr(firing, "repeat", lambda *given: repeated.append(given) or repeat(*given))
    monkeypatch.setattr(coverage, "active", with_memory := coverage.Coverage())
    assert pipeline.convert(source).SerializeToString() == plain
    assert repeated
    monkeypatch.setattr(coverage, "active", without := coverage.Coverage())
    monkeypatch.setattr(memory.Memory, "likeness", lambda *_: None)
    assert pipeline.convert(source).SerializeToString() == plain
    assert with_memory == without


def test_what_a_first_look_rules_out_the_pattern_does_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    source = model()
    quick = pipeline.convert(source).SerializeToString()
    monkeypatch.setattr(glance, "glance", lambda *_: lambda node: True)
    monkeypatch.setattr("nnrewrite.engine.rules.glance", lambda *_: lambda node: True)
    pipeline._prepared.cache_clear()
    try:
        assert pipeline.convert(source).SerializeToString() == quick
    finally:
        pipeline._prepared.cache_clear()


def test_a_rule_that_looks_around_a_node_is_tried_on_each() -> None:
    rules = pipeline.prepare(DEFAULT.stacked, 18).rules
    for name, local in (("conv_2d", True), ("conv_2d_16", False)):
        stage = "lower" if local else "integers"
        (rule,) = [one for one in rules.candidates(stage, rules.source.domain, "CONV_2D") if one.name == name]
        assert rule.local is not None
        assert rule.local.templates is local


def test_onnx_accepts_what_is_made_by_memory() -> None:
    onnx.checker.check_model(pipeline.convert(model()), full_check=True)

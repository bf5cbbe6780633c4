"""The builder: what it makes of a template's calls, and that what it gives up leaves no trace."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.budget import Budget, Exhausted
from nnrewrite.engine.base.names import Scope
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.expressions.compile import Frame
from nnrewrite.engine.rewrite.builder import Builder
from nnrewrite.engine.rewrite.replacement import MalformedError
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.parser import parse

OPSET = 18


@pytest.fixture
def x() -> ir.Value:
    return ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape((2, 3)))


@pytest.fixture
def builder(catalogue: Catalogue, x: ir.Value) -> Builder:
    root = ir.Node("", "Relu", [x], num_outputs=1)
    graph = ir.Graph([x], [root.outputs[0]], nodes=[root], opset_imports={"": OPSET}, name="g")
    return Builder(Scope(graph), root, (catalogue.find_dialect("onnx"),), OPSET)


def build(builder: Builder, text: str, **values: object) -> Frame:
    """Evaluate the equations of a template."""
    file = parse(f"ruleset demo : onnx -> onnx opset 13..25 rule r {{ y = Relu(x) => {text} }}", "demo.rules")
    (rule,) = file.items
    assert isinstance(rule, tree.Rule)
    frame = Frame({"opset": OPSET, **values}, emitter=builder)
    for equation in rule.templates[0].equations:
        builder.evaluate_equation(equation, frame)
    return frame


def test_a_node_has_the_type_and_shape_that_its_schema_says(builder: Builder, x: ir.Value) -> None:
    found = build(builder, "y = Transpose(x) {perm: [1, 0]}", x=x).values["y"]
    assert [node.op_type for node in builder.nodes] == ["Transpose"]
    assert (found.dtype, found.shape) == (ir.DataType.FLOAT, ir.Shape((3, 2)))


def test_what_hangs_on_constants_alone_is_computed(builder: Builder) -> None:
    c = builder._scope.make_constant(np.array([1, 2], np.float32), "c")
    found = build(builder, "y = Add(c, c)", c=c).values["y"]
    assert builder.nodes == []
    assert found.const_value.numpy().tolist() == [2.0, 4.0]


def test_several_results_go_to_the_names_in_order(builder: Builder, x: ir.Value) -> None:
    values = build(builder, "a, y = Split(x, [1, 2]) {axis: 1}", x=x).values
    assert [tuple(values[name].shape) for name in ("a", "y")] == [(2, 1), (2, 2)]


def test_a_value_is_permuted_once(builder: Builder, x: ir.Value) -> None:
    assert builder.permute(x, [1, 0]) is builder.permute(x, [1, 0])
    assert builder.permute(x, [0, 1]) is x
    assert len(builder.nodes) == 1


def test_what_is_given_up_reads_nothing_any_more(builder: Builder, x: ir.Value) -> None:
    build(builder, "a = Relu(x)  y = Abs(a)", x=x)
    assert len(list(x.uses())) == 2
    builder.discard()
    assert builder.nodes == []
    assert len(list(x.uses())) == 1


def test_a_node_that_its_schema_does_not_admit_is_ill_where_it_is_written(builder: Builder, x: ir.Value) -> None:
    with pytest.raises(MalformedError, match="Concat") as raised:
        build(builder, "y = Concat(x, z) {axis: 0}", x=x, z=ir.Value(
            name="z", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape((2,))))  # fmt: skip
    assert raised.value.span.file == "demo.rules"


def test_numbers_that_inference_does_not_survive_are_refused_before(builder: Builder, x: ir.Value) -> None:
    with pytest.raises(MalformedError, match="GatherND: batch_dims is -1, which is none of 0 to 64"):
        build(builder, "y = GatherND(x, i) {batch_dims: -1}", x=x, i=np.zeros((2, 2), np.int64))


def test_a_template_builds_so_many_nodes_and_no_more(catalogue: Catalogue, x: ir.Value) -> None:
    root = ir.Node("", "Relu", [x], num_outputs=1)
    scope = Scope(ir.Graph([x], [], nodes=[root], name="g"))
    builder = Builder(scope, root, (catalogue.find_dialect("onnx"),), OPSET, Budget(nodes=3))
    with pytest.raises(Exhausted, match="nodes for one"):
        build(builder, "a = Relu(x)  b = Relu(a)  c = Relu(b)  y = Relu(c)", x=x)

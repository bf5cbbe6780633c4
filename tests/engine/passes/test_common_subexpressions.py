"""Nodes that compute the same are one, and all others stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.quantization import KEY, read_grid
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes import common_subexpressions
from nnrewrite.engine.passes.common_subexpressions import merge_constants, merge_nodes


def graph(*nodes: ir.Node) -> ir.Graph:
    """A graph that yields what some nodes over its input yield."""
    outputs = [node.outputs[0] for node in nodes]
    for number, output in enumerate(outputs):
        output.name = f"y{number}"
    return ir.Graph([nodes[0].inputs[0]], outputs, nodes=nodes, name="g")  # type: ignore[list-item]


def pair(operator: str, *attributes: dict[str, object]) -> ir.Graph:
    """A graph of nodes of one operator that differ in their attributes alone."""
    x = ir.Value(name="x")
    several = [[ir.convenience.convert_attribute(name, value) for name, value in one.items()] for one in attributes]
    return graph(*(ir.Node("", operator, [x], made, num_outputs=1) for made in several))


def test_many_nodes_that_differ_in_attributes_alone_are_not_compared_with_each_other(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ir.Node] = []

    def count(node: ir.Node, *rest: Any) -> Any:
        asked.append(node)
        return listed(node, *rest)

    listed = common_subexpressions._list_attributes
    monkeypatch.setattr(common_subexpressions, "_list_attributes", count)
    alike = pair("LeakyRelu", *({"alpha": 1.0 + number} for number in range(200)))
    merge_nodes(alike, catalogue.find_dialect("onnx"))
    assert len(alike) == 200
    assert len(asked) < 1000


@pytest.mark.parametrize(
    ("operator", "attributes", "left"),
    [
        ("Softmax", [{"axis": 1}, {"axis": 1}, {"axis": 1}], 1),
        ("Softmax", [{"axis": 1}, {"axis": 2}, {"axis": 1}], 2),
        ("Transpose", [{"perm": [1, 0]}, {"perm": [1, 0]}], 1),
        ("Transpose", [{"perm": [1, 0]}, {}], 2),
        ("LeakyRelu", [{"alpha": 1.0}, {"alpha": 0.5}], 2),
        ("RandomUniformLike", [{"low": 0.5}, {"low": 0.5}], 2),
        ("Bernoulli", [{}, {}], 2),
    ],
)
def test_equal_nodes_of_pure_operators_are_one(
    operator: str, attributes: list[dict[str, object]], left: int, catalogue: Catalogue
) -> None:
    made = pair(operator, *attributes)
    merge_nodes(made, catalogue.find_dialect("onnx"))
    assert len(made) == left and len({id(value) for value in made.outputs}) == left


def test_a_variable_is_read_again(catalogue: Catalogue) -> None:
    handle = ir.Value(name="handle")
    reads = graph(*(ir.Node("tflite", "READ_VARIABLE", [handle], num_outputs=1) for _ in range(2)))
    merge_nodes(reads, catalogue.find_dialect("tflite"))
    assert len(reads) == 2  # what is assigned between them is read by the second alone


def test_what_reads_two_equal_nodes_is_shared_after_them(catalogue: Catalogue) -> None:
    made = pair("Exp", {}, {})
    second = [ir.Node("", "Neg", [value], num_outputs=1) for value in made.outputs]
    made.extend(second)
    made.outputs[:] = [node.outputs[0] for node in second]
    merge_nodes(made, catalogue.find_dialect("onnx"))
    assert [node.op_type for node in made] == ["Exp", "Neg"]


def test_results_of_a_body_stay_values_of_their_own(catalogue: Catalogue) -> None:
    made = pair("Exp", {}, {})
    second = [ir.Node("", "Neg", [value], num_outputs=1) for value in made.outputs]
    made.extend(second)
    made.outputs[:] = [node.outputs[0] for node in second]
    merge_nodes(made, catalogue.find_dialect("onnx"), inner=True)
    assert [node.op_type for node in made] == ["Exp", "Neg", "Neg"] and len({id(one) for one in made.outputs}) == 2


def test_what_is_left_out_is_the_default_of_the_opset(catalogue: Catalogue) -> None:
    def make() -> ir.Graph:
        x = ir.Value(name="x")
        return graph(*(ir.Node("", "Softmax", [x], given, num_outputs=1) for given in ([], [ir.AttrInt64("axis", -1)])))

    newest, older = make(), make()
    merge_nodes(newest, catalogue.find_dialect("onnx"), 13)
    merge_nodes(older, catalogue.find_dialect("onnx"), 12)  # whose default is axis 1
    assert (len(newest), len(older)) == (1, 2)


def test_of_equal_constants_one_is_left(catalogue: Catalogue) -> None:
    x = ir.Value(name="x")
    constants = [ir.Value(name=f"c{i}", const_value=ir.tensor([1.0, float(i == 2)], name=f"c{i}")) for i in range(3)]
    nodes = [ir.Node("", "Add", [x, constant], num_outputs=1) for constant in constants]
    made = graph(*nodes)
    for constant in constants:
        made.register_initializer(constant)
    merge_constants(made)
    merge_nodes(made, catalogue.find_dialect("onnx"))
    assert list(made.initializers) == ["c0", "c2"] and len(made) == 2


def test_of_equal_large_constants_one_is_left(catalogue: Catalogue) -> None:
    elements = np.random.default_rng(0).standard_normal((260, 260)).astype(np.float32)
    other = elements.copy()
    other[-1, -1] += 1.0  # the first rows are equal
    x = ir.Value(name="x")
    constants = [
        ir.Value(name=f"c{i}", const_value=ir.tensor(one, name=f"c{i}"))
        for i, one in enumerate([elements, other, elements.copy()])
    ]
    made = graph(*(ir.Node("", "Add", [x, constant], num_outputs=1) for constant in constants))
    for constant in constants:
        made.register_initializer(constant)
    merge_constants(made)
    assert sorted(made.initializers) == ["c0", "c1"]
    merge_nodes(made, catalogue.find_dialect("onnx"))
    assert len(made) == 2


def test_codes_on_two_grids_are_two_constants() -> None:
    values = []
    for name, step in (("a", 0.5), ("b", 0.25), ("c", 0.5)):
        value = ir.Value(name=name, shape=ir.Shape([1]), type=ir.TensorType(ir.DataType.INT8))
        value.const_value = ir.Tensor(np.array([3], np.int8), name=name)
        value.meta[KEY] = read_grid(np.array(step), np.array(0))
        values.append(value)
    nodes = [ir.Node("", "Neg", [value], num_outputs=1) for value in values]
    made = ir.Graph([], [node.outputs[0] for node in nodes], nodes=nodes, initializers=values, name="g")
    merge_constants(made)
    assert [*made.initializers] == ["a", "b"]

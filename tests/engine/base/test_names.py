"""Names of what rules make: of values and of nodes, each given once."""

from __future__ import annotations

import onnx_ir as ir
from nnrewrite.engine.base.names import Scope


def test_a_node_that_is_called_like_the_result_of_another_keeps_its_name_to_itself() -> None:
    x = ir.Value(name="x")
    first = ir.Node("", "Transpose", [x], num_outputs=1, name="turn")
    last = ir.Node("", "Cast", first.outputs, num_outputs=1, name="turn_to_y")
    first.outputs[0].name, last.outputs[0].name = "turn_to_y", "y"
    graph = ir.Graph([x], last.outputs, nodes=[first, last], name="g")
    made = ir.Node("", "Reshape", [x], num_outputs=1)
    made.outputs[0].name = "turn_to_y"  # as it takes the place of the first
    Scope(graph).name_node(made, "y/Reshape")
    assert made.outputs[0].name == "turn_to_y"
    assert made.name == "turn_to_y_1"


def test_a_node_is_called_like_its_first_result() -> None:
    x = ir.Value(name="x")
    scope = Scope(ir.Graph([x], [], nodes=[], name="g"))
    made = [ir.Node("", "Relu", [x], num_outputs=1) for _ in range(2)]
    for node in made:
        scope.name_node(node, "y/Relu")
    assert [(node.name, node.outputs[0].name) for node in made] == [("y/Relu", "y/Relu"), ("y/Relu_1", "y/Relu_1")]

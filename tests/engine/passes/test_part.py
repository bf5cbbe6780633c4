"""Parts of models, and rules that are left out."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import CallError
from onnx import TensorProto, helper


def chain() -> bytes:
    """Four operators one behind the other, the second on two inputs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Add", ["a", "z"], ["b"]),
        helper.make_node("Abs", ["b"], ["c"]),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xyz"}
    graph = helper.make_graph(nodes, "net", [values["x"], values["z"]], [values["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(model.SerializeToString())


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_a_part_begins_and_ends_at_the_values_named() -> None:
    found = rewrite(chain(), inputs="b", outputs="c").model
    assert kinds(found) == ["Abs"]
    assert [value.name for value in found.graph.input] == ["b"]
    assert [value.name for value in found.graph.output] == ["c"]


def test_outputs_alone_leave_the_inputs_that_there_are() -> None:
    found = rewrite(chain(), outputs="a").model
    assert kinds(found) == ["Relu"] and [value.name for value in found.graph.input] == ["x", "z"]


def test_an_input_that_is_needed_besides_is_told() -> None:
    with pytest.raises(CallError, match="the outputs need z besides"):
        rewrite(chain(), inputs="a")


def with_default(*outputs: str) -> bytes:
    """A sum of two inputs, of which one has a default."""
    text = f"net (float[2] x, float[2] z = {{1, 2}}) => ({', '.join(f'float[2] {name}' for name in outputs)})"
    body = "{ y = Add(x, z) z_out = Neg(y) }"
    return bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text} {body}').SerializeToString())


def test_an_input_that_is_not_asked_for_is_what_it_is_by_default() -> None:
    for to in ("onnx", "tflite"):
        graph = rewrite(with_default("y"), inputs="x", to=to).graph
        assert [value.name for value in graph.inputs] == ["x"]
        [default] = (value.const_value for value in graph.initializers.values())
        assert default is not None and default.numpy().tolist() == [1, 2]
    graph = rewrite(with_default("y"), inputs=["x", "z"]).graph
    assert [value.name for value in graph.inputs] == ["x", "z"]


def test_an_input_that_is_fed_back_is_needed_though_it_has_a_default() -> None:
    with pytest.raises(CallError, match="the outputs need z besides"):
        rewrite(with_default("y", "z_out"), inputs="x")


def test_a_name_that_no_value_has_is_told_with_the_nearest() -> None:
    with pytest.raises(CallError, match="no value outt"):
        rewrite(chain(), outputs="outt")


def test_a_part_does_not_begin_or_end_at_a_constant() -> None:
    model = onnx.load_from_string(chain())
    model.graph.node.insert(0, helper.make_node("Constant", [], ["z"], value_float=1.0))
    del model.graph.input[1]
    for asked in ({"inputs": "z"}, {"outputs": "z"}):
        with pytest.raises(CallError, match="z is a constant"):
            rewrite(model.SerializeToString(), **asked)


def test_a_part_does_not_begin_at_what_no_type_is_known_of() -> None:
    model = onnx.load_from_string(chain())
    model.graph.node[1].domain = "com.example"
    model.opset_import.add(domain="com.example", version=1)
    with pytest.raises(CallError, match="b, which Add yields, has no element type that is known"):
        rewrite(model.SerializeToString(), inputs="b")


def test_rules_are_left_out_by_name_or_all_but_some() -> None:
    fired = rewrite(chain()).report.rules
    assert fired
    name = next(iter(fired))
    assert name not in rewrite(chain(), skip=name).report.rules
    assert set(rewrite(chain(), only=name).report.rules) == {name}


def test_a_rule_that_is_not_there_is_told() -> None:
    with pytest.raises(CallError, match="there is no rule simplifyy"):
        rewrite(chain(), skip="simplifyy")

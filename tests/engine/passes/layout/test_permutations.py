"""Permutations that undo each other are in no output, whoever put them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import nnrewrite
import onnx
import onnx.helper
import onnx_ir as ir
import pytest
from nnrewrite.conversion.compiled_rules import prepare
from nnrewrite.conversion.options import DEFAULT
from nnrewrite.engine.passes.pass_list import convert_graph

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
#: elementwise operators that a permutation may be moved through
THROUGH = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Relu", "Clip", "Sigmoid", "LeakyRelu"}


def permutation(node: onnx.NodeProto) -> list[int]:
    return list(onnx.helper.get_node_attr_value(node, "perm"))


def pairs(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Transposes right after another one, and those that undo one with nothing but elementwise operators between."""
    producers = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if node.op_type != "Transpose":
            continue
        before = producers.get(node.input[0])
        adjacent = True
        while before is not None and before.op_type in THROUGH:
            before, adjacent = producers.get(before.input[0]), False
        if before is not None and before.op_type == "Transpose":
            undone = [permutation(before)[axis] for axis in permutation(node)] == sorted(permutation(node))
            if adjacent or undone:
                yield before.name, node.name


@pytest.mark.parametrize(
    "name",
    [
        "carray_scenario_app_allon_sensor_tflm_cmsis_nn_person_detect_model_data",
        "mobilenet_v1_0.25_96_int8",
        "dperson_shufflenetv2",
        "ssd_slim_120x160x1_v1_int8",
        "resnet_layer0",
        "CNN_2L_model_quantized",
    ],
)
def test_no_model_keeps_a_pair_that_cancels(name: str, models_folder: Path) -> None:
    model = nnrewrite.convert(next(models_folder.rglob(f"{name}.tflite")))
    assert any(node.op_type == "Transpose" for node in model.graph.node)
    assert not list(pairs(model))


def rewritten(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> onnx.ModelProto:
    """A graph of codes with one scale after all rules of the target."""
    codes, axis = onnx.TensorProto.UINT8, [1, 8, 9, 4]
    floats = onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [0.25])
    zero = onnx.helper.make_tensor("z", codes, [], [3])
    wide = onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT, [], [0.5])
    inputs = [
        onnx.helper.make_tensor_value_info("x", codes, axis),
        onnx.helper.make_tensor_value_info("f", onnx.TensorProto.FLOAT, axis),
    ]
    ends = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = onnx.helper.make_graph(nodes, "demo", inputs, ends, [floats, zero, wide])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    model = ir.from_proto(onnx.shape_inference.infer_shapes(made, strict_mode=True))
    prepared = prepare(DEFAULT.stacked, 18)
    convert_graph(model.graph, prepared.rules)
    return ir.to_proto(model)


def node(operator: str, inputs: str, output: str, **options: object) -> onnx.NodeProto:
    return onnx.helper.make_node(operator, inputs.split(), output.split(), name=output.split()[0], **options)


@pytest.mark.parametrize(
    "between",
    [
        [node("DequantizeLinear", "a s z", "r"), node("QuantizeLinear", "r t z", "b")],
        [
            node("DequantizeLinear", "a s z", "r"),
            node("Sigmoid", "r", "n"),
            node("QuantizeLinear", "n t z", "b"),
        ],
    ],
    ids=["another scale", "an activation"],
)
def test_codes_are_not_permuted_and_permuted_back(between: Sequence[onnx.NodeProto]) -> None:
    nodes = [node("Transpose", "x", "a", perm=FIRST), *between, node("Transpose", "b", "y", perm=LAST)]
    kept = {one.op_type for one in rewritten(nodes, ["y"]).graph.node}
    assert kept == {one.op_type for one in between}


def test_floats_are_not_permuted_and_permuted_back_around_their_quantization() -> None:
    nodes = [
        node("Transpose", "f", "a", perm=FIRST),
        node("DynamicQuantizeLinear", "a", "b scale zero"),
        node("Transpose", "b", "y", perm=LAST),
    ]
    model = rewritten(nodes, ["y", "scale", "zero"])
    assert [one.op_type for one in model.graph.node] == ["DynamicQuantizeLinear"]


def test_two_permutations_in_a_row_are_one() -> None:
    nodes = [node("Transpose", "x", "a", perm=FIRST), node("Transpose", "a", "y", perm=[0, 1, 3, 2])]
    (one,) = rewritten(nodes, ["y"]).graph.node
    assert permutation(one) == [0, 3, 2, 1]

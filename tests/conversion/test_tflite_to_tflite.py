"""TensorFlow Lite models rewritten within their own dialect, and brought to ONNX and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.tflite_reader import Signature, read
from nnrewrite.verify import Interpreter, Kernels, compare_models

CATALOGUE = load()


class Graph:
    """A model made node by node, of one input of real numbers."""

    def __init__(self, *extents: int) -> None:
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Value] = []
        self.input = self.value("in_0", extents)

    def value(self, name: str, extents: Sequence[int], dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(extents))

    def constant(self, elements: npt.NDArray[Any]) -> ir.Value:
        tensor = ir.Tensor(elements)
        made = self.value(f"c{len(self.constants)}", elements.shape, tensor.dtype)
        made.const_value = tensor
        self.constants.append(made)
        return made

    def add(self, operator: str, inputs: Sequence[ir.Value], *extents: int, **options: Any) -> ir.Value:
        attributes = [ir.convenience.convert_attribute(name, value) for name, value in options.items()]
        node = ir.Node("tflite", operator, inputs, attributes, num_outputs=1, name=f"n{len(self.nodes)}")
        result = node.outputs[0]
        result.name, result.type, result.shape = f"v{len(self.nodes)}", self.input.type, ir.Shape(extents)
        self.nodes.append(node)
        return result

    def encode(self, output: ir.Value) -> bytes:
        graph = ir.Graph([self.input], [output], nodes=self.nodes, initializers=self.constants, name="main")
        model = ir.Model(graph, ir_version=10)
        model.meta["signatures"] = (Signature("detect", 0, {"image": "in_0"}, {"found": output.name or ""}),)
        model.meta["metadata"] = {"note": b"kept"}
        return write(model, CATALOGUE)


def encoded(made: nnrewrite.Conversion) -> bytes:
    assert isinstance(made.encoded, Encoded)
    return made.encoded.encode()


def run(model: bytes, x: npt.NDArray[np.float32], interpreter: Interpreter) -> npt.NDArray[Any]:
    ((found,),) = interpreter.run(model, [[x]], Kernels.DEFAULT)
    return found


def build_wasteful() -> tuple[bytes, npt.NDArray[np.float32]]:
    """A convolution, an activation and a dense layer, with nodes between them that change nothing."""
    random = np.random.default_rng(2)
    graph = Graph(1, 4, 4, 2)
    turned = graph.add("TRANSPOSE", [graph.input, graph.constant(np.array([0, 2, 1, 3], np.int32))], 1, 4, 4, 2)
    back = graph.add("TRANSPOSE", [turned, graph.constant(np.array([0, 2, 1, 3], np.int32))], 1, 4, 4, 2)
    weights = graph.constant(random.uniform(-1, 1, (3, 3, 3, 2)).astype(np.float32))
    bias = graph.constant(np.zeros(3, np.float32))
    conv = graph.add("CONV_2D", [back, weights, bias], 1, 2, 2, 3, padding="VALID", stride_h=1, stride_w=1)
    rest = graph.add("RELU", [conv], 1, 2, 2, 3)
    rest = graph.add("MUL", [rest, graph.constant(np.ones(1, np.float32))], 1, 2, 2, 3)
    flat = graph.add("RESHAPE", [rest, graph.constant(np.array([1, 12], np.int32))], 1, 12)
    dense = graph.constant(random.uniform(-1, 1, (5, 12)).astype(np.float32))
    half = graph.add("MUL", [graph.constant(np.full(5, 0.5, np.float32)), graph.constant(np.full(5, 3, np.float32))], 5)
    result = graph.add("FULLY_CONNECTED", [flat, dense, half], 1, 5)
    return graph.encode(result), random.uniform(-1, 1, (1, 4, 4, 2)).astype(np.float32)


def test_what_changes_nothing_goes_and_the_rest_stays(tmp_path: Path, interpreter: Interpreter) -> None:
    model, x = build_wasteful()
    (tmp_path / "a.tflite").write_bytes(model)
    made = nnrewrite.rewrite(tmp_path / "a.tflite", to="tflite")
    assert made.report.target_operators == {"CONV_2D": 1, "FULLY_CONNECTED": 1}
    np.testing.assert_allclose(run(encoded(made), x, interpreter), run(model, x, interpreter), atol=1e-6)
    again = read(encoded(made), CATALOGUE, "again")
    (signature,) = again.meta["signatures"]
    assert (signature.key, dict(signature.inputs)) == ("detect", {"image": "in_0"})
    assert signature.outputs["found"] == again.graph.outputs[0].name
    assert again.meta["metadata"]["note"] == b"kept"


def test_a_part_has_a_signature_of_its_own_inputs_and_outputs(interpreter: Interpreter) -> None:
    model, x = build_wasteful()
    made = nnrewrite.rewrite(model, to="tflite", outputs=["v2"])
    (signature,) = read(encoded(made), CATALOGUE, "part").meta["signatures"]
    assert (signature.key, dict(signature.inputs), dict(signature.outputs)) == (
        "detect",
        {"in_0": "in_0"},
        {"v2": "v2"},
    )
    assert run(encoded(made), x, interpreter).shape == (1, 2, 2, 3)


def test_codes_come_back_from_onnx_as_they_were(interpreter: Interpreter) -> None:
    graph = Graph(1, 2, 2, 3)
    first, last = ((0.02, 5), (0.05, -7))
    codes = graph.add("QUANTIZE", [graph.input], 1, 2, 2, 3)
    moved = graph.add(
        "AVERAGE_POOL_2D", [codes], 1, 1, 1, 3, padding="VALID", filter_height=2, filter_width=2, stride_h=1, stride_w=1
    )
    joined = graph.add("CONCATENATION", [moved, moved], 1, 1, 1, 6, axis=3)
    wide = graph.add("ADD", [joined, joined], 1, 1, 1, 6)
    result = graph.add("DEQUANTIZE", [wide], 1, 1, 1, 6)
    for value, (scale, zero) in ((codes, first), (moved, first), (joined, first), (wide, last)):
        value.type = ir.TensorType(ir.DataType.INT8)
        value.meta["quantization"] = Quantization(np.array([scale], np.float32), np.array([zero], np.int64))
    model = graph.encode(result)
    there = nnrewrite.rewrite(model, target="portable").model
    del there.metadata_props[:]
    back = nnrewrite.rewrite(there.SerializeToString(), to="tflite")
    assert back.report.target_operators == {
        "QUANTIZE": 1,
        "AVERAGE_POOL_2D": 1,
        "CONCATENATION": 1,
        "ADD": 1,
        "DEQUANTIZE": 1,
    }
    x = np.random.default_rng(4).uniform(-2, 2, (1, 2, 2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(encoded(back), x, interpreter), run(model, x, interpreter))


GRIDS = {
    "x": (0.05, 3),
    "v": (0.06, -5),
    "r": (0.07, 2),
    "y": (0.08, 7),
    "c": (0.02, 4),
    "w": (0.01, 0),
    "b": (5e-4, 0),
}


class Codes(Graph):
    """A model of int8 codes, each value on its grid."""

    def __init__(self, *extents: int) -> None:
        super().__init__(*extents)
        self.random = np.random.default_rng(5)
        self.put(self.input, "x")

    def put(self, value: ir.Value, grid: str) -> ir.Value:
        scale, zero = GRIDS[grid]
        value.type = ir.TensorType(ir.DataType.INT32 if grid == "b" else ir.DataType.INT8)
        value.meta["quantization"] = Quantization(np.array([scale], np.float32), np.array([zero], np.int64))
        return value

    def draw(self, grid: str, *extents: int) -> ir.Value:
        kind = np.int32 if grid == "b" else np.int8
        return self.put(self.constant(self.random.integers(-100, 100, extents).astype(kind)), grid)

    def step(self, grid: str, operator: str, inputs: Sequence[ir.Value], *extents: int, **options: Any) -> ir.Value:
        return self.put(self.add(operator, inputs, *extents, **options), grid)


def make_layer(graph: Codes, layer: str) -> ir.Value:
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    if layer == "FULLY_CONNECTED":
        return graph.step(
            "v", layer, [graph.input, graph.draw("w", 2, 2), graph.draw("b", 2)], 1, 3, 3, 2, keep_num_dims=1
        )
    extents = (2, 2, 2, 2) if layer == "CONV_2D" else (1, 2, 2, 2)
    more = {} if layer == "CONV_2D" else {"depth_multiplier": 1}
    return graph.step(
        "v", layer, [graph.input, graph.draw("w", *extents), graph.draw("b", 2)], 1, 3, 3, 2, **options, **more
    )


@pytest.mark.parametrize("behind", ["MUL", "ADD", "ADD ADD", "GATHER", "RESHAPE RELU"])
@pytest.mark.parametrize("layer", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_codes_are_no_numbers_that_layers_take_up(layer: str, behind: str, interpreter: Interpreter) -> None:
    graph = Codes(1, 3, 3, 2)
    v = make_layer(graph, layer)
    if behind == "GATHER":
        y = graph.step("v", behind, [v, graph.constant(np.array([1, 0], np.int32))], 1, 3, 3, 2, axis=3)
    elif behind == "RESHAPE RELU":
        flat = graph.step("v", "RESHAPE", [v, graph.constant(np.array([9, 2], np.int32))], 9, 2)
        y = graph.step("y", "RELU", [flat], 9, 2)
    else:
        if behind == "ADD ADD":
            v = graph.step("r", "ADD", [v, graph.input], 1, 3, 3, 2)
        y = graph.step("y", behind.split()[0], [v, graph.draw("c", 2)], 1, 3, 3, 2)
    model = graph.encode(y)
    verdict = compare_models(model, encoded(nnrewrite.rewrite(model, to="tflite")), interpreter=interpreter)
    assert verdict.passed, verdict.differences


@pytest.mark.parametrize("zero", [0, 40])
def test_codes_of_zero_are_added_where_grids_differ(zero: int, interpreter: Interpreter) -> None:
    graph = Codes(2, 3)
    zeros = graph.put(graph.constant(np.zeros(3, np.int8)), "c")
    zeros.meta["quantization"] = Quantization(np.array([0.02], np.float32), np.array([zero], np.int64))
    model = graph.encode(graph.step("y", "ADD", [graph.input, zeros], 2, 3))
    assert compare_models(model, encoded(nnrewrite.rewrite(model, to="tflite")), interpreter=interpreter).passed


@pytest.mark.parametrize("moved", ["TRANSPOSE", "MUL"])
def test_codes_that_a_view_puts_on_another_grid_stay_on_it(moved: str, interpreter: Interpreter) -> None:
    """A runtime does not load a model whose Transpose has two grids."""
    graph = Codes(4, 3)
    seen = graph.step("r", "RESHAPE", [graph.input, graph.constant(np.array([4, 3], np.int32))], 4, 3)
    if moved == "TRANSPOSE":
        y = graph.step("r", moved, [seen, graph.constant(np.array([1, 0], np.int32))], 3, 4)
    else:
        y = graph.step("y", moved, [seen, graph.draw("c", 3)], 4, 3)
    model = graph.encode(y)
    verdict = compare_models(model, encoded(nnrewrite.rewrite(model, to="tflite")), interpreter=interpreter)
    assert verdict.passed, verdict.differences


@pytest.mark.parametrize("second", ["CONCATENATION", "stack", "RELU"])
def test_codes_that_are_brought_to_another_grid_stay_so(second: str, interpreter: Interpreter) -> None:
    graph = Codes(4, 3)
    v = graph.step("c", "ADD", [graph.input, graph.draw("r", 3)], 4, 3)  # whose grid ends before that of the result
    if second == "stack":
        rows = [graph.step("c", "RESHAPE", [v, graph.constant(np.array([1, 4, 3], np.int32))], 1, 4, 3)]
        rows.append(graph.step("x", "RESHAPE", [graph.input, graph.constant(np.array([1, 4, 3], np.int32))], 1, 4, 3))
        y = graph.step("y", "CONCATENATION", rows, 2, 4, 3, axis=0)
    else:
        y = graph.step("y", second, [v], 4, 3, **({"axis": 0} if second == "CONCATENATION" else {}))
    if second != "RELU":  # of unsigned codes alone
        for value in (graph.input, *(one.outputs[0] for one in graph.nodes)):
            value.type = ir.TensorType(ir.DataType.UINT8)
        graph.nodes[0].replace_input_with(1, graph.put(graph.constant(np.array([3, 9, 99], np.uint8)), "r"))
        graph.constants[-1].type = ir.TensorType(ir.DataType.UINT8)
        del graph.constants[0]
        for value in (graph.input, *(one.outputs[0] for one in graph.nodes)):
            value.meta["quantization"] = Quantization(value.meta["quantization"].scale, np.array([9], np.int64))
    model = graph.encode(y)
    verdict = compare_models(model, encoded(nnrewrite.rewrite(model, to="tflite")), interpreter=interpreter)
    assert verdict.passed, verdict.differences


@pytest.mark.parametrize("layer", ["CONV_2D", "FULLY_CONNECTED"])
def test_a_layer_of_weights_that_are_codes_takes_up_a_bias_of_numbers(layer: str, interpreter: Interpreter) -> None:
    graph = Codes(1, 3, 3, 2)
    v = make_layer(graph, layer)
    (node,) = graph.nodes
    for value in (graph.input, v):
        value.type = ir.TensorType(ir.DataType.FLOAT)
        value.meta.clear()
    node.replace_input_with(2, graph.constant(np.array([0.5, -1], np.float32)))
    y = graph.add("ADD", [v, graph.constant(np.array([2, 3], np.float32))], 1, 3, 3, 2)
    model = graph.encode(y)
    made = nnrewrite.rewrite(model, to="tflite")
    assert made.report.target_operators == {layer: 1}
    assert compare_models(model, encoded(made), interpreter=interpreter).passed


# ---- rules of a target over codes

OWN = """ruleset own : tflite -> tflite opset 13..28

rule swish_written_out stage tune {
  y = HARD_SWISH(x)
  => y = MUL(x, RELU6(x))
  test x: f32[2, 3]
}

rule rows_turned stage tune {
  y = FULLY_CONNECTED(x, const w, b) {fused_activation_function, weights_format: _, keep_num_dims,
                                      asymmetric_quantize_inputs: _, quantized_bias_type: _}
  where keep_num_dims
  => y = FULLY_CONNECTED(x, REVERSE_V2(w, [0]), b) {fused_activation_function, keep_num_dims: false}
  test x: f32[2, 3], w: f32[3, 3], b: f32[3] for keep_num_dims in [true]
}
"""


def test_a_rule_that_knows_nothing_of_codes_leaves_them_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/own.rules").write_text(OWN)
    grid = Quantization(np.array([0.1], np.float32), np.array([3], np.int64))
    rows = Quantization(np.array([0.1, 0.2, 0.3], np.float32), np.zeros(3, np.int64))
    codes, sums = np.arange(9, dtype=np.int8).reshape(3, 3), np.zeros(3, np.int32)
    x, target = {"x": ("INT8", [2, 3], grid)}, f"{tmp_path / 'own'}"
    swish = probe.write_operator_model(CATALOGUE, "HARD_SWISH", x, [("INT8", [2, 3], grid)])
    weights = {**x, "w": (codes, rows), "b": sums}
    product = probe.write_operator_model(
        CATALOGUE, "FULLY_CONNECTED", weights, [("INT8", [2, 3], grid)], keep_num_dims=True
    )
    for model in (swish, product):
        assert not nnrewrite.rewrite(model, to="tflite", target=target).report.rules
    real = probe.write_operator_model(CATALOGUE, "HARD_SWISH", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])])
    assert nnrewrite.rewrite(real, to="tflite", target=target).report.rules["swish_written_out"] == 1

"""Models of TensorFlow Lite divided into parts of their own format, run by LiteRT."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from nnrewrite import rewrite
from nnrewrite.backends import probe
from nnrewrite.conversion.compiled_rules import prepare
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import tflite_reader
from nnrewrite.partition import load, partition, run
from onnx import TensorProto, helper, numpy_helper

Interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT runs the parts").Interpreter


STATEFUL = Path(__file__).parents[3] / "shared/models/pypi_pymicro_wakeword/hey_jarvis.tflite"


def graph(outputs: list[str] | None = None) -> bytes:
    """Two products with an activation each, a sine between them, and a constant."""
    draw = np.random.default_rng(0)
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Sin", ["b"], ["s"], name="sine"),
        helper.make_node("Add", ["s", "b"], ["c"], name="sum"),
        helper.make_node("Tanh", ["c"], ["y"], name="tanh"),
    ]
    shape = [1, 4, 8]
    known = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ["x", "y", "w"]}
    weights = numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32), "w")
    made = helper.make_graph(nodes, "net", [known["x"]], [known[name] for name in outputs or ["y"]], [weights])
    return bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    rewrite(graph(), to=".tflite").save(path)
    return path


def quantized(zero: int = 3, extents: list[int | str] | None = None) -> bytes:
    """A convolution and its activation, a sine of real numbers, and a sum, with everything else quantized."""
    draw = np.random.default_rng(0)
    codes = draw.integers(-127, 127, (8, 3, 3, 3)).astype(np.int8)
    constants = {"wq": codes, "ws": np.float32(0.02), "wz": np.int8(0), "s": np.float32(0.05), "z": np.int8(zero)}
    nodes = [helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], name="weights")]

    def step(kind: str, inputs: list[str], **attributes: list[int]) -> str:
        """A node whose result is quantized and made real again."""
        name = kind.lower()
        if kind:
            nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        nodes.append(helper.make_node("QuantizeLinear", [name or inputs[0], "s", "z"], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_d"]))
        return f"{name}_d"

    relu = step("Relu", [step("Conv", [step("", ["x"]), "wd"], pads=[1, 1, 1, 1])])
    last = step("Add", [step("Sin", [relu]), relu])
    shape = extents or [1, 3, 8, 8]
    made = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [shape[0], 8, *shape[2:]])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())


def compute(path: Path, x: np.ndarray) -> list[np.ndarray]:
    whole = Interpreter(f"{path}", num_threads=1)
    whole.allocate_tensors()
    whole.set_tensor(whole.get_input_details()[0]["index"], x)
    whole.invoke()
    return [whole.get_tensor(detail["index"]) for detail in whole.get_output_details()]


def check_run(folder: Path, manifest: dict, path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((1, 4, 8)).astype(np.float32)
    found = run(folder, {manifest["inputs"][0]["name"]: x})
    for entry, wanted in zip(manifest["outputs"], compute(path, x), strict=True):
        np.testing.assert_array_equal(found[entry["name"]], wanted)


def test_parts_are_files_of_their_own_format_and_compute_the_same(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest = partition(f"{model}", "xnnpack-litert").save(out)
    assert [step["on"] for step in manifest["steps"]] == ["device", "host", "device"]
    assert all((out / step["file"]).read_bytes()[4:8] == b"TFL3" for step in manifest["steps"])
    (host,) = [step for step in manifest["steps"] if step["on"] == "host"]
    assert [entry["operator"] for entry in host["reasons"]] == ["SIN"]
    check_run(out, manifest, model)


def test_the_delegate_takes_all_of_each_part(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest = partition(f"{model}", "xnnpack-litert").save(out)
    for step in manifest["steps"]:
        if step["on"] == "device":
            part = Interpreter(f"{out / step['file']}", num_threads=1)
            part.allocate_tensors()
            (delegate,) = [held for held in part._get_ops_details() if held["op_name"] == "DELEGATE"]
            assert set(delegate["outputs"]) == {held["index"] for held in part.get_output_details()}
            assert {held["index"] for held in part.get_input_details()} <= set(delegate["inputs"])


def test_the_model_of_the_host_has_a_custom_operator_for_each_part(model: Path, tmp_path: Path) -> None:
    manifest = partition(f"{model}", "xnnpack-litert").save(tmp_path / "out")
    assert manifest["host_model"] == "host.tflite"
    pack = prepare(("xnnpack-litert",), None).pack
    host = tflite_reader.read(tmp_path / "out/host.tflite", pack.catalogue)
    assert [node.op_type for node in host.graph] == ["part_0", "SIN", "part_1"]
    assert json.loads((tmp_path / "out/manifest.json").read_text()) == manifest


def test_a_model_of_another_format_is_converted_first(model: Path, tmp_path: Path) -> None:
    manifest = partition(graph(), "xnnpack-litert").save(tmp_path / "out")
    assert {Path(step["file"]).suffix for step in manifest["steps"]} == {".tflite"}
    check_run(tmp_path / "out", manifest, model)


def test_outputs_that_are_constants_come_from_the_host(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    rewrite(graph(["y", "w"]), to=".tflite").save(path)
    manifest = partition(f"{path}", "xnnpack-litert").save(tmp_path / "out")
    check_run(tmp_path / "out", manifest, path)


def test_a_model_that_the_target_takes_nothing_of_stays_on_the_host(model: Path, tmp_path: Path) -> None:
    manifest = partition(f"{model}", "ethos-u").save(tmp_path / "out")
    assert [step["on"] for step in manifest["steps"]] == ["host"]
    assert "quantized integers of 8 or 16 bits, this is f32" in json.dumps(manifest["steps"][0]["reasons"])
    check_run(tmp_path / "out", manifest, model)


def test_a_pack_of_a_few_lines_is_a_target(model: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/own.rules").write_text(
        "ruleset own : tflite -> tflite opset 13..25\n"
        "rule all stage support {\n  _y = any op(_x, _rest...) {..}\n  where op in [TANH, SIN]\n}\n"
    )
    manifest = partition(f"{model}", f"{tmp_path / 'own'}").save(tmp_path / "out")
    assert sum(step["nodes"] for step in manifest["steps"] if step["on"] == "device") == 0  # a part costs more
    (tmp_path / "own/target.yaml").write_text("partition: {gain: 1000000, part: 0}\n")
    manifest = partition(f"{model}", f"{tmp_path / 'own'}").save(tmp_path / "out")
    assert sum(step["nodes"] for step in manifest["steps"] if step["on"] == "device") == 2
    check_run(tmp_path / "out", manifest, model)


def test_a_target_of_a_dialect_that_no_parts_are_written_of_is_told(model: Path) -> None:
    with pytest.raises(CallError, match="its rules are about aten, parts are of onnx or tflite"):
        partition(f"{model}", "aten2onnx")


def test_a_variable_is_never_divided_from_what_changes_it(tmp_path: Path) -> None:
    """Of nodes that read and write one state, all are in one step."""
    import onnx_ir as ir
    from nnrewrite.partition.plan import _list_bound

    handle = ir.Node("tflite", "VAR_HANDLE", [], num_outputs=1)
    read = ir.Node("tflite", "READ_VARIABLE", [handle.outputs[0]], num_outputs=1)
    read.outputs[0].dtype = ir.DataType.FLOAT
    write = ir.Node("tflite", "ASSIGN_VARIABLE", [handle.outputs[0], read.outputs[0]], num_outputs=0)
    once = ir.Node("tflite", "CALL_ONCE", [], num_outputs=0)
    ir.Graph([], [read.outputs[0]], nodes=[once, handle, read, write], name="state")
    bound = _list_bound([(once,), (handle,), (read,), (write,)])
    assert {1, 2, 3} <= {unit for pair in bound for unit in pair}
    assert {(0, 1), (0, 2), (0, 3)} <= set(bound)


def test_outputs_of_onnx_models_may_be_constants_too(tmp_path: Path) -> None:
    manifest = partition(graph(["y", "w"]), "xnnpack").save(tmp_path / "out")
    x = np.ones((1, 4, 8), np.float32)
    found = run(tmp_path / "out", {"x": x})
    (wanted,) = [numpy_helper.to_array(one) for one in onnx.ModelProto.FromString(graph()).graph.initializer]
    np.testing.assert_array_equal(found[manifest["outputs"][1]["name"]], wanted)


CODES = Quantization(np.array([0.1], np.float32), np.array([3], np.int64))


@pytest.mark.parametrize(
    ("operator", "operands", "shape", "options", "why"),
    [
        ("MEAN", [np.int32([1, 2])], [1, 8], {}, None),
        ("MEAN", [np.int32([1, 2, 3])], [1], {}, "no MEAN of channels beside rows and columns"),
        ("STRIDED_SLICE", [np.int32([0, 1, 0, 0]), np.int32([1, 6, 6, 8]), np.int32([1] * 4)], [1, 5, 6, 8], {}, None),
        ("RESIZE_NEAREST_NEIGHBOR", [np.int32([12, 12])], [1, 12, 12, 8], {}, None),
        ("RESIZE_NEAREST_NEIGHBOR", [np.int32([18, 18])], [1, 18, 18, 8], {}, r"to \[2, 4, 8\] times the size alone"),
        ("EXPAND_DIMS", [np.int32(1)], [1, 1, 6, 6, 8], {}, None),
        ("SOFTMAX", [], [1, 6, 6, 8], {"beta": 1.0}, None),
    ],
)
def test_ethos_u_takes_what_its_compiler_tells(
    catalogue: Catalogue,
    operator: str,
    operands: list[np.ndarray],
    shape: list[int],
    options: dict[str, float],
    why: str | None,
) -> None:
    inputs = {"x": ("INT8", [1, 6, 6, 8], CODES), **{f"a{i}": one for i, one in enumerate(operands)}}
    model = probe.write_operator_model(catalogue, operator, inputs, [("INT8", shape, CODES)], **options)
    plan = partition(model, "ethos-u").plan
    assert len(plan.parts) == (why is None)
    assert why is None or re.search(why, *plan.reasons.values())


@pytest.mark.parametrize("target", ["edge-tpu", "ethos-u"])
def test_quantized_edges_stay_codes(target: str, tmp_path: Path) -> None:
    path = tmp_path / "codes.tflite"
    rewrite(quantized(), to=".tflite").save(path)
    manifest = partition(f"{path}", target).save(tmp_path / "out")
    parts = [step for step in manifest["steps"] if step["on"] == "device"]
    assert [part["nodes"] for part in parts] == [3, 2]
    assert {end["type"] for part in parts for end in (*part["inputs"], *part["outputs"])} == {"int8"}
    reasons = {one["operator"]: one["reason"] for step in manifest["steps"] for one in step.get("reasons", ())}
    assert "no rule of the target is about SIN" in reasons["SIN"]
    x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    (found,) = run(tmp_path / "out", {manifest["inputs"][0]["name"]: x}).values()
    np.testing.assert_array_equal(found, compute(path, x)[0])


def test_the_edge_tpu_takes_nothing_of_real_numbers(model: Path, tmp_path: Path) -> None:
    manifest = partition(f"{model}", "edge-tpu").save(tmp_path / "out")
    assert manifest["parts"] == 0
    assert "the Edge TPU computes MUL of quantized 8 bits, this is f32" in json.dumps(manifest)


@pytest.mark.slow
@pytest.mark.parametrize("zero", [0, 3])
def test_what_makes_weights_real_is_where_they_are_read(zero: int) -> None:
    """With zero points that TensorRT lacks the convolution alone is on the device, with what makes its weights real."""
    divided = partition(quantized(zero), "tensorrt")
    (part,) = divided.plan.parts
    assert {node.op_type for node in part.nodes} >= {"Conv", "DequantizeLinear"}
    assert len(part.nodes) == (2 if zero else len(divided.model.graph))


def test_sizes_that_are_computed_are_constants_where_the_shape_is_given(tmp_path: Path) -> None:
    """Of RESHAPE to [n, 8 m] both are read from the input, which has none known until they are given."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Shape", ["t"], ["s"], start=0, end=2),
        helper.make_node("Mul", ["s", "k"], ["to"]),
        helper.make_node("Reshape", ["t", "to"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m", 8])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "w"])]
    made = helper.make_graph(nodes, "net", inputs, outputs, [numpy_helper.from_array(np.array([1, 8], np.int64), "k")])
    source = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path = tmp_path / "free.tflite"
    rewrite(source.SerializeToString(), to=".tflite").save(path)
    free = partition(f"{path}", "xnnpack-litert")
    given = partition(f"{path}", "xnnpack-litert", Options(input_shape=("x=2,4,8",)))
    assert "SHAPE" in {node.op_type for node in free.model.graph}
    assert [node.op_type for node in given.model.graph] == ["TANH", "RESHAPE", "RELU"]
    assert not free.plan.parts and len(given.plan.parts) == 2
    for shape, divided in (((3, 5, 8), free), ((2, 4, 8), given)):
        manifest = divided.save(tmp_path / f"out{shape[0]}")
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        (found,) = run(tmp_path / f"out{shape[0]}", {manifest["inputs"][0]["name"]: x}).values()
        np.testing.assert_allclose(found, np.maximum(np.tanh(x), 0).reshape(shape[0], -1), rtol=1e-6, atol=1e-6)


def test_parts_are_rewritten_by_rules_of_their_target(model: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/own.rules").write_text(
        "ruleset own : tflite -> tflite opset 26..26\n"
        "rule all stage support {\n  _y = any op(_x, _rest...) {..}\n  where op in [MUL, RELU, TANH]\n}\n"
        "rule without_tanh stage tune {\n  y = TANH(x)\n  => y = 2.0 * LOGISTIC(2.0 * x) - 1.0\n"
        "  test x: f32[2, 3]\n}\n"
    )
    (tmp_path / "own/target.yaml").write_text("partition: {gain: 1000000, part: 1}\n")
    manifest = partition(f"{model}", f"{tmp_path / 'own'}").save(tmp_path / "out")
    parts = [step for step in manifest["steps"] if step["on"] == "device"]
    assert parts[-1]["rules"]["without_tanh"] == 1
    x = np.random.default_rng(1).standard_normal((1, 4, 8)).astype(np.float32)
    (found,) = run(tmp_path / "out", {manifest["inputs"][0]["name"]: x}).values()
    np.testing.assert_allclose(found, compute(model, x)[0], rtol=1e-5, atol=1e-5)


def test_a_loop_of_tensorflow_lite_is_written_with_its_bodies(tmp_path: Path) -> None:
    def branch(name: str, kind: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        return helper.make_graph([helper.make_node(kind, ["t"], [name])], name, [], [output])

    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("If", ["p"], ["b"], then_branch=branch("yes", "Abs"), else_branch=branch("no", "Neg")),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    inputs += [helper.make_tensor_value_info("p", TensorProto.BOOL, [1])]
    made = helper.make_graph(nodes, "net", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
    source = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path = tmp_path / "if.tflite"
    rewrite(source.SerializeToString(), to=".tflite").save(path)
    manifest = partition(f"{path}", "xnnpack-litert").save(tmp_path / "out")
    x = np.array([[-1.0, -0.5, 0.5, 1.0]], np.float32)
    for taken, wanted in ((True, np.abs(np.tanh(x))), (False, np.maximum(-np.tanh(x), 0))):
        (found,) = run(tmp_path / "out", {"x": x, "p": np.array([taken])}).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert [sum(part["nodes"] for part in body["parts"]) for body in manifest["bodies"]] == [1, 1]


def test_state_lasts_from_run_to_run_until_it_is_reset(tmp_path: Path) -> None:
    path = STATEFUL
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    partition(f"{path}", "ethos-u").save(tmp_path / "out")
    whole = Interpreter(f"{path}", num_threads=1)
    whole.allocate_tensors()
    (given,) = whole.get_input_details()
    opened = load(tmp_path / "out")
    steps = np.random.default_rng(0).integers(-128, 127, (4, *given["shape"]), dtype=np.int8)
    name = opened.manifest["inputs"][0]["name"]
    yielded = []
    for step in steps:
        (found,) = opened.run({name: step}).values()
        whole.set_tensor(given["index"], step)
        whole.invoke()
        np.testing.assert_array_equal(found, whole.get_tensor(whole.get_output_details()[0]["index"]))
        yielded.append(found)
    opened.reset()
    again = [next(iter(opened.run({name: step}).values())) for step in steps]
    np.testing.assert_array_equal(again, yielded)

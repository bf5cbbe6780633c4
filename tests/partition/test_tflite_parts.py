"""Models of TensorFlow Lite divided into parts of their own format, run by LiteRT."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from nnrewrite import rewrite
from nnrewrite.compiled_rules import prepare
from nnrewrite.engine.base.errors import CallError
from nnrewrite.frontends import tflite_reader
from nnrewrite.partition import partition, run
from onnx import TensorProto, helper, numpy_helper

Interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT runs the parts").Interpreter


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
    assert "quantized integers, this is f32" in json.dumps(manifest["steps"][0]["reasons"])
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

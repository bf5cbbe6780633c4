"""Models divided into files that compute together what the whole does."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
from click.testing import CliRunner
from nnrewrite.cli.commands.partition import command
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base.errors import CallError, DestinationError, ModelError, VerificationError
from nnrewrite.engine.dialects.operators import Dialect
from nnrewrite.partition import files, partition, run
from nnrewrite.verify.inputs import draw
from nnrewrite.verify.reference import Reference
from onnx import TensorProto, helper, numpy_helper

MODELS = Path(__file__).parents[3] / "shared/onnx_models"
WEIGHTS = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32), "w")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The target of `write_pack`, in a folder that no test changes: its rules are prepared once."""
    return write_pack(tmp_path_factory.mktemp("packs"))


def write_pack(folder: Path, first_opset: int = 13, more: str = "", least: int = 1) -> str:
    """Write a target that takes convolutions with what is behind them, and additions; `more` rules follow."""
    folder = folder / "npu"
    folder.mkdir()
    (folder / "support.rules").write_text(
        f"ruleset npu : onnx -> onnx opset {first_opset}..25\n"
        "rule activated stage support {\n  _y = Relu(Conv(x, const _w, _b?) {..})\n  where shape(x) != none\n}\n"
        "rule sums stage support {\n  _y = any op(x, _z)\n  where op in [Add]\n"
        '  require rank(x) == 4, "only images"\n}\n' + more
    )
    (folder / "target.yaml").write_text(f"partition: {{gain: 1000000, part: 10, least: {least}}}\n")
    return f"{folder}"


def model() -> bytes:
    """A convolution and its activation, a sine beside it, and a sum of both."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Sin", ["r"], ["s"], name="sine"),
        helper.make_node("Add", ["r", "s"], ["y"], name="sum"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        [WEIGHTS],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(made.SerializeToString())


def test_of_an_operator_that_rules_are_about_the_reason_is_where_they_do_not_fit(pack: str) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Add", ["r", "r"], ["a"], name="sum"),
        helper.make_node("Sub", ["a", "r"], ["y"], name="difference"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, 4, 4]) for name in "xky"]
    graph = helper.make_graph(nodes, "net", ends[:2], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    found = partition(made.SerializeToString(), pack)
    told = {node.name: why for node, why in found.plan.reasons.items()}
    assert told["relu"].startswith("_w (k) is not constant (rule activated, ")
    assert "support.rules:3:27" in told["relu"]
    assert told["difference"] == "no rule of the target is about Sub"


@pytest.mark.slow
def test_what_the_target_takes_is_in_parts_and_each_other_node_has_its_reason(pack: str, tmp_path: Path) -> None:
    manifest = partition(model(), pack).save(tmp_path / "out")
    parts = [step for step in manifest["steps"] if step["on"] == "device"]
    assert [step["nodes"] for step in parts] == [2, 1]
    (host,) = [step for step in manifest["steps"] if step["on"] == "host"]
    assert [entry["operator"] for entry in host["reasons"]] == ["Sin"]
    assert "no rule of the target is about Sin" in host["reasons"][0]["reason"]
    assert manifest == json.loads((tmp_path / "out/manifest.json").read_text())


@pytest.mark.slow
def test_steps_compute_together_what_the_whole_does(pack: str, tmp_path: Path) -> None:
    partition(model(), pack).save(tmp_path / "out")
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    asked = []

    def device(name: str, file: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        asked.append(name)
        session = onnxruntime.InferenceSession(f"{file}", providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))

    found = run(tmp_path / "out", {"x": x}, device)["y"]
    (whole,) = onnxruntime.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)
    assert asked == ["part_0", "part_1"]


@pytest.mark.slow
def test_the_model_of_the_host_has_a_node_for_each_part(pack: str, tmp_path: Path) -> None:
    partition(model(), pack).save(tmp_path / "out")
    host = onnx.load(tmp_path / "out/host.onnx")
    assert [(node.domain, node.op_type) for node in host.graph.node] == [
        ("nnrewrite.part", "part_0"),
        ("", "Sin"),
        ("nnrewrite.part", "part_1"),
    ]


@pytest.mark.slow
def test_the_picture_has_a_box_for_each_node_with_its_part_or_the_reason(pack: str, tmp_path: Path) -> None:
    partition(model(), pack).save(tmp_path / "out")
    picture = ElementTree.parse(tmp_path / "out/partition.svg")
    told = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert {"conv: part_0", "relu: part_0", "sum: part_1"} <= set(told)
    assert "sine: no rule of the target is about Sin" in told


def branches() -> bytes:
    """A convolution that is read in two branches, which the device takes a part of each: one captures the weights."""
    image = helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 8, 8, 8])

    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [1, 8, 8, 8])
        return helper.make_graph(nodes, name, [], [output])

    doubled = [helper.make_node("Add", ["r", "r"], ["d"], name="double"), helper.make_node("Sin", ["d"], ["yes_y"])]
    scaled = [helper.make_node("Cos", ["r"], ["t"]), helper.make_node("Add", ["t", "bias"], ["no_y"], name="shift")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node(
            "If", ["p"], ["y"], name="if", then_branch=branch("yes", doubled), else_branch=branch("no", scaled)
        ),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8]),
        helper.make_tensor_value_info("p", TensorProto.BOOL, []),
    ]
    bias = numpy_helper.from_array(np.arange(512, dtype=np.float32).reshape(1, 8, 8, 8), "bias")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])
    graph = helper.make_graph(nodes, "net", inputs, [output], [WEIGHTS, bias], value_info=[image])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(made.SerializeToString())


def test_whose_bodies_graphs_are_is_asked_once_for_each_node(
    pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ir.Node] = []
    known = files.list_bodies

    def list_bodies(node: ir.Node, dialect: Dialect, model: ir.Model) -> list[ir.Graph]:
        asked.append(node)
        return known(node, dialect, model)

    monkeypatch.setattr(files, "list_bodies", list_bodies)
    manifest = partition(branches(), pack).save(tmp_path / "out")
    assert len(manifest["bodies"]) == 2
    assert len(asked) == len(set(asked)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False])
def test_bodies_are_divided_and_a_host_with_functions_runs_as_it_is(pack: str, taken: bool, tmp_path: Path) -> None:
    manifest = partition(branches(), pack).save(tmp_path / "out", functions=True)
    found = {body["graph"]: (body["nodes"], len(body["parts"])) for body in manifest["bodies"]}
    assert found == {"yes": (["if"], 1), "no": (["if"], 1)}
    assert {part["name"] for body in manifest["bodies"] for part in body["parts"]} == {"part_1", "part_2"}
    assert {reason["operator"] for body in manifest["bodies"] for reason in body["reasons"]} == {"Sin", "Cos"}
    host = onnx.load(tmp_path / "out/host.onnx")
    assert sorted(function.name for function in host.functions) == ["part_0", "part_1", "part_2"]
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32), "p": np.array(taken)}
    (whole,) = onnxruntime.InferenceSession(branches(), providers=["CPUExecutionProvider"]).run(None, inputs)
    session = onnxruntime.InferenceSession(f"{tmp_path / 'out/host.onnx'}", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, inputs)[0], whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(tmp_path / "out", inputs)["y"], whole, rtol=1e-5, atol=1e-6)
    for body in manifest["bodies"]:
        for part in body["parts"]:
            onnx.checker.check_model(tmp_path / "out" / part["file"])


def untyped_between() -> bytes:
    """An operator that nobody knows, whose result is read on the host beside what the device makes of another one."""
    nodes = [
        helper.make_node("Twice", ["x"], ["t", "u"], name="twice", domain="own"),
        helper.make_node("Sin", ["x"], ["s"], name="sine"),
        helper.make_node("Add", ["s", "s"], ["a"], name="sum"),
        helper.make_node("Join", ["t", "a"], ["j"], name="join", domain="own"),
        helper.make_node("Cast", ["j"], ["y"], name="cast", to=TensorProto.FLOAT),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.mark.slow
def test_no_part_stands_between_a_tensor_without_a_type_and_its_reader(pack: str, tmp_path: Path) -> None:
    manifest = partition(untyped_between(), pack).save(tmp_path / "out")
    assert [step["on"] for step in manifest["steps"]] == ["host"]
    (why,) = [entry["reason"] for entry in manifest["steps"][0]["reasons"] if entry["node"] == "sum"]
    assert "t, which cannot leave a step" in why


@pytest.mark.slow
def test_models_of_opsets_before_the_rules_of_conversion_are_divided(tmp_path: Path) -> None:
    old = onnx.ModelProto.FromString(model())
    old.opset_import[0].version = 9
    pack = write_pack(tmp_path, first_opset=7)
    assert partition(old.SerializeToString(), pack).save(tmp_path / "out")["parts"] == 2


@pytest.mark.slow
def test_a_folder_written_anew_has_no_steps_of_the_partition_before(pack: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    partition(model(), pack).save(out)
    (out / "mine.onnx").write_bytes(b"kept")
    alone = onnx.ModelProto.FromString(model())
    del alone.graph.node[2:]
    alone.graph.node[1].output[0] = "y"
    manifest = partition(alone.SerializeToString(), pack).save(out)
    steps = {step["file"] for step in manifest["steps"]}
    assert {file.name for file in out.glob("*.onnx")} == {*steps, "host.onnx", "mine.onnx"}


@pytest.mark.slow
def test_inputs_with_defaults_are_constants(pack: str, tmp_path: Path) -> None:
    given = onnx.ModelProto.FromString(model())
    given.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 3, 3, 3]))
    manifest = partition(given.SerializeToString(), pack).save(tmp_path / "out")
    assert [entry["name"] for entry in manifest["inputs"]] == ["x"]
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    (whole,) = onnxruntime.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(run(tmp_path / "out", {"x": x})["y"], whole, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_strings_are_text_to_the_runtime_whether_bytes_or_text_are_given(pack: str, tmp_path: Path) -> None:
    strings = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "net", strings[:1], strings[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    partition(model.SerializeToString(), pack).save(tmp_path)
    for given in ([b"a", "\u00e9".encode()], ["a", "\u00e9"]):
        assert run(tmp_path, {"x": np.array(given, dtype=object)})["y"].tolist() == ["a", "\u00e9"]


def test_lists_of_tensors_pass_from_step_to_step_and_into_the_first(pack: str, tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (seq(float[1,2,3,3]) xs) => (int64 count, float[1,2,3,3] y)'
        " <int64 none = {0}> { x = SequenceAt(xs, none)  more = SequenceInsert(xs, x)  s = Sin(x)  a = Add(s, s)"
        "  all = SequenceInsert(more, a)  count = SequenceLength(all)  y = Sin(a) }"
    )
    manifest = partition(made.SerializeToString(), pack).save(tmp_path)
    assert [step["on"] for step in manifest["steps"]] == ["host", "device", "host"]
    x = np.ones((1, 2, 3, 3), np.float32)
    found = run(tmp_path, {"xs": [x, x]})
    assert found["count"] == 4
    np.testing.assert_allclose(found["y"], np.sin(2 * np.sin(x)), rtol=1e-6)


@pytest.mark.slow
def test_a_requirement_that_fails_is_the_reason(pack: str, tmp_path: Path) -> None:
    flat = onnx.ModelProto.FromString(model())
    del flat.graph.node[:]
    flat.graph.node.append(helper.make_node("Add", ["x", "x"], ["y"]))
    flat.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]))
    flat.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [4]))
    manifest = partition(flat.SerializeToString(), pack).save(tmp_path / "out")
    assert manifest["parts"] == 0
    assert manifest["steps"][0]["reasons"][0]["reason"] == "only images (rule sums)"


@pytest.mark.slow
def test_a_target_that_says_nothing_of_parts_is_told() -> None:
    with pytest.raises(CallError, match=r"no rules of the stage support.* can be divided for .*tensorrt"):
        partition(model(), "onnxruntime")
    with pytest.raises(CallError, match=r"there is no target tensort.* can be divided for .*tensorrt"):
        partition(model(), "tensort")


@pytest.mark.slow
def test_a_folder_without_a_manifest_and_a_missing_input_are_told(pack: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        run(tmp_path, {})
    partition(model(), pack).save(tmp_path / "out")
    with pytest.raises(CallError, match="input x is missing"):
        run(tmp_path / "out", {})


@pytest.mark.slow
def test_a_device_that_returns_other_than_its_outputs_by_name_is_told(pack: str, tmp_path: Path) -> None:
    partition(model(), pack).save(tmp_path / "out")
    given = {"x": np.zeros([1, 3, 8, 8], np.float32)}
    with pytest.raises(CallError, match="what runs part_0 returns its outputs by name, and not an object of type list"):
        run(tmp_path / "out", given, lambda *_: [])  # type: ignore[arg-type, return-value]
    with pytest.raises(CallError, match="what runs part_0 returns no output"):
        run(tmp_path / "out", given, lambda *_: {})


@pytest.mark.slow
def test_the_command_tells_what_is_where(pack: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(model())
    page = tmp_path / "page.html"
    asked = [f"{tmp_path / 'net.onnx'}", "--target", pack, "-d", f"{tmp_path / 'out'}", "--report", f"{page}"]
    done = CliRunner().invoke(command, asked)
    assert done.exit_code == 0, done.output
    shown = page.read_text(encoding="utf-8")
    assert (tmp_path / "out/partition.svg").read_text(encoding="utf-8") in shown
    assert "<td>no rule of the target is about Sin</td>" in shown
    assert "3 of 4 nodes in 2 parts" in done.output and "Sin x 1: no rule" in done.output


def runs(reference: Reference, path: str) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
    """What a model computes of inputs that it takes, and those."""
    for [sample] in draw(reference.describe(path).inputs):
        with contextlib.suppress(VerificationError):
            yield reference.run(path, [sample])[0], sample


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param("tv_shufflenet_v2_dyn", "tensorrt", marks=pytest.mark.thorough),
        ("hf_bert_4l_dyn", "tensorrt"),
        ("magika_v3_3", "tensorrt"),
        ("cf_cond_dyn", "tensorrt"),
        pytest.param("ultraface_slim320", "tensorrt", marks=pytest.mark.thorough),
        ("tv_shufflenet_v2_dyn", "xnnpack"),
        ("tf_kws_rnn", "xnnpack"),
    ],
)
def test_real_models_run_in_parts_as_a_whole(name: str, target: str, tmp_path: Path) -> None:
    path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    partition(f"{path}", target).save(tmp_path / "out")
    reference = Reference()
    signature = reference.describe(f"{path}")
    whole, sample = next(runs(reference, f"{path}"))
    found = run(tmp_path / "out", {tensor.name: array for tensor, array in zip(signature.inputs, sample, strict=True)})
    for tensor, wanted in zip(signature.outputs, whole, strict=True):
        np.testing.assert_allclose(found[tensor.name], wanted, rtol=1e-3, atol=1e-4)


def test_a_constant_that_only_the_host_reads_is_not_computed_on_the_device(tmp_path: Path) -> None:
    codes = "rule codes stage support {\n  _y = any op(_x, _s) {..}\n  where op in [DequantizeLinear]\n}\n"
    pack = write_pack(tmp_path, more=codes)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "d"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in "xy"]
    constants = [numpy_helper.from_array(np.eye(64, dtype=np.int8), "q"), numpy_helper.from_array(np.float32(0.5), "s")]
    made = helper.make_graph(nodes, "net", info[:1], info[1:], constants)
    source = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)
    manifest = partition(source.SerializeToString(), pack).save(tmp_path / "out")
    assert [step["on"] for step in manifest["steps"]] == ["host"] and manifest["bytes_moved"] == 0


@pytest.mark.slow
def test_sizes_that_are_known_at_run_time_alone_stay_free(pack: str, tmp_path: Path) -> None:
    source = onnx.ModelProto.FromString(model())
    for value in (*source.graph.input, *source.graph.output):
        for place, name in ((0, "n"), (2, "h"), (3, "w")):
            value.type.tensor_type.shape.dim[place].dim_param = name
    manifest = partition(source.SerializeToString(), pack).save(tmp_path / "out")
    assert manifest["parts"] == 2 and manifest["inputs"][0]["shape"] == ["n", 3, "h", "w"]
    session = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    for shape in ((1, 3, 8, 8), (2, 3, 5, 7)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(run(tmp_path / "out", {"x": x})["y"], session.run(None, {"x": x})[0], 1e-5, 1e-6)


@pytest.mark.slow
def test_a_part_of_too_few_nodes_goes_back_and_says_so(tmp_path: Path) -> None:
    pack = write_pack(tmp_path, least=2)
    manifest = partition(model(), pack).save(tmp_path / "out")
    assert manifest["parts"] == 1
    (why,) = [one["reason"] for step in manifest["steps"] for one in step.get("reasons", ()) if one["node"] == "sum"]
    assert "fewer than 2 nodes" in why


def stacked() -> bytes:
    """Two convolutions of one pixel with an activation between, a sine, and another one."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"]),
        helper.make_node("Sin", ["c"], ["s"]),
        helper.make_node("Conv", ["s", "w"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 5, 5]) for name in "xy"]
    weights = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype(np.float32), "w")
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], [weights])
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    )


@pytest.mark.slow
@pytest.mark.parametrize("functions", [False, True])
def test_each_part_is_in_the_layout_that_its_targets_rules_ask_for(functions: bool, tmp_path: Path) -> None:
    folder = tmp_path / "last"
    folder.mkdir()
    (folder / "last.rules").write_text(
        "ruleset last : onnx -> onnx opset 13..25\n"
        "rule taken stage support {\n  _y = any op(_x, _more...) {..}\n  where op in [Conv, Relu]\n}\n"
        "rule channels_last stage recover {\n  y @ NCHW = Conv(x @ NCHW, const w)\n    {auto_pad: _, kernel_shape: _}\n"
        "  where shape(w)[2] == 1 and shape(w)[3] == 1\n"
        "  => y @ NHWC = MatMul(x @ NHWC, Transpose(Reshape(w, [shape(w)[0], shape(w)[1]])))\n"
        "  test x: f32[1, 3, 2, 2], w: f32[4, 3, 1, 1]\n}\n"
    )
    (folder / "target.yaml").write_text("partition: {gain: 1000000, part: 10, least: 1}\n")
    manifest = partition(stacked(), folder).save(tmp_path / "out", functions=functions)
    steps = {step["name"]: step for step in manifest["steps"]}
    # One Transpose at each border of a part and none within, of 200 elements each.
    assert [steps[part]["transposes"] for part in ("part_0", "part_1")] == [2, 2]
    assert [steps[part]["transposed_elements"] for part in ("part_0", "part_1")] == [400, 400]
    assert steps["part_0"]["rules"]["channels_last"] == 2
    written = onnx.load(tmp_path / "out/part_0.onnx").graph.node
    assert [node.op_type for node in written] == ["Transpose", "MatMul", "Relu", "MatMul", "Transpose"]
    host = onnx.load(tmp_path / "out/host.onnx")
    assert [node.op_type for node in host.graph.node] == ["part_0", "Sin", "part_1"]
    # What the host runs is not what the target's rules make.
    assert {node.op_type for function in host.functions for node in function.node} <= {"Conv", "Relu"}
    x = np.random.default_rng(1).standard_normal((1, 8, 5, 5)).astype(np.float32)
    (whole,) = onnxruntime.InferenceSession(stacked(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(run(tmp_path / "out", {"x": x})["y"], whole, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", ["activations: int8", "exact: true", "hybrid: real", "keep_float16: true", "opset: 17"]
)
def test_what_a_target_asks_for_of_models_of_other_formats_is_no_matter(asked: str, tmp_path: Path) -> None:
    pack = Path(write_pack(tmp_path))
    with (pack / "target.yaml").open("a") as file:
        file.write(f"options: {{{asked}}}\n")
    manifest = partition(model(), f"{pack}").save(tmp_path / "out")
    assert manifest["parts"] == 2
    with pytest.raises(CallError, match="--exact is about"):
        partition(model(), f"{pack}", Options(exact=True))


@pytest.mark.slow
def test_a_partition_that_cannot_be_written_changes_nothing(
    pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    divided, folder = partition(model(), pack), tmp_path / "out"
    divided.save(folder)
    (folder / "manifest.json").write_bytes((folder / "manifest.json").read_bytes().replace(b"onnx", b"ONNX"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("nnrewrite.partition.files.write_host", fail)
    for place in (folder, tmp_path / "new"):
        with pytest.raises(DestinationError, match=f"{place}: cannot be written: No space left"):
            divided.save(place)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not (tmp_path / "new").exists()

"""Layouts of inputs and outputs as a user asks for them, and what is said about the Transposes that are left."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite.backends import probe, stream
from nnrewrite.backends.tflite_writer import write
from nnrewrite.cli.dispatch import app
from nnrewrite.conversion.inspection import draw_picture as drawn
from nnrewrite.conversion.inspection import explain
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.passes.layout.drawing import draw_picture, write_dot
from nnrewrite.engine.passes.layout.explain import Remaining
from nnrewrite.verify import compare_models


@pytest.fixture(scope="session")
def pool(single: Callable[..., bytes]) -> bytes:
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    return single("MAX_POOL_2D", {"x": ("FLOAT32", [1, 5, 6, 3])}, [("FLOAT32", [1, 5, 6, 3])], **options)


@pytest.fixture(scope="session")
def unary(single: Callable[..., bytes]) -> bytes:
    return single("ABS", {"x": ("FLOAT32", [1, 5, 6, 3])}, [("FLOAT32", [1, 5, 6, 3])])


def interface(model: onnx.ModelProto) -> list[list[int]]:
    values = [*model.graph.input, *model.graph.output]
    return [[extent.dim_value for extent in value.type.tensor_type.shape.dim] for value in values]


def metadata(model: onnx.ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props if "layout" in entry.key}


def test_inputs_and_outputs_keep_the_layout_of_the_source(pool: bytes) -> None:
    conversion = nnrewrite.rewrite(pool)
    assert interface(conversion.model) == [[1, 5, 6, 3], [1, 5, 6, 3]]
    assert conversion.report.permutations == 2
    assert metadata(conversion.model) == {"nnrewrite.layout": "source"}


def test_the_target_layout_leaves_no_transpose_and_is_recorded(pool: bytes) -> None:
    conversion = nnrewrite.rewrite(pool, layout="target")
    assert interface(conversion.model) == [[1, 3, 5, 6], [1, 3, 5, 6]]
    assert conversion.report.permutations == 0
    names = [value.name for value in (*conversion.model.graph.input, *conversion.model.graph.output)]
    assert conversion.report.layouts == dict.fromkeys(names, "NHWC:NCHW")
    recorded = {f"nnrewrite.layout.{name}": "NHWC:NCHW" for name in names}
    assert metadata(conversion.model) == {"nnrewrite.layout": "target", **recorded}


def test_a_tensor_can_be_kept_as_it_is_where_the_others_are_turned(pool: bytes) -> None:
    conversion = nnrewrite.rewrite(pool, layout=["target", "x=NHWC:NHWC"])
    assert interface(conversion.model) == [[1, 5, 6, 3], [1, 3, 5, 6]]
    assert list(conversion.report.layouts.values()) == ["NHWC:NCHW"]
    assert "x" not in conversion.report.layouts


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["source", "target", "x=NHWC:NCHW", "x=NHWC:CWHN"])
def test_verification_feeds_and_reads_each_layout(pool: bytes, layout: str) -> None:
    pytest.importorskip("ai_edge_litert")
    assert compare_models(pool, nnrewrite.convert(pool, layout=layout).SerializeToString()).passed


def test_layouts_of_onnx_models_are_recorded_beside_what_the_file_says(pool: bytes, tmp_path: Path) -> None:
    model = nnrewrite.convert(pool)
    model.metadata_props.add(key="author", value="somebody")
    name = model.graph.input[0].name
    nnrewrite.rewrite(model.SerializeToString(), to="onnx", layout=f"{name}=NHWC:NCHW").save(tmp_path / "made.onnx")
    assert compare_models(model.SerializeToString(), tmp_path / "made.onnx").passed
    said = {entry.key: entry.value for entry in onnx.load(tmp_path / "made.onnx").metadata_props}
    assert said["author"] == "somebody"
    assert said[f"nnrewrite.layout.{name}"] == "NHWC:NCHW"


def test_a_single_tensor_gets_a_layout_without_any_convolution(unary: bytes) -> None:
    model = nnrewrite.convert(unary, layout="x=NHWC:NCHW")
    assert interface(model) == [[1, 3, 5, 6], [1, 5, 6, 3]]
    assert [node.op_type for node in model.graph.node].count("Transpose") == 1


def test_all_tensors_given_a_layout_need_no_transpose(unary: bytes) -> None:
    output = nnrewrite.convert(unary).graph.output[0].name
    model = nnrewrite.convert(unary, layout=["x=NHWC:NCHW", f"{output}=NHWC:NCHW"])
    assert [node.op_type for node in model.graph.node] == ["Abs"]


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("sideways", "neither source, target nor of the form"),
        ("x=NHWC:NCH", "neither source, target nor of the form"),
        ("nobody=NHWC:NCHW", "the model has the inputs x"),
        ("x=NWC:NCW", "has 4 axes"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(unary: bytes, layout: str, said: str) -> None:
    with pytest.raises(CallError, match=said):
        nnrewrite.convert(unary, layout=layout)


def test_each_transpose_left_is_explained(pool: bytes) -> None:
    first, last = explain(nnrewrite.convert(pool))
    assert (first.elements, last.elements) == (90, 90)
    assert first.before == "input x"
    assert first.after.startswith("MaxPool")
    assert last.before.startswith("MaxPool")
    assert last.after.startswith("output ")
    assert f"{first}".startswith(first.name)


def test_lines_about_a_transpose_fit_a_terminal() -> None:
    ends = ["Conv " + "a" * 80, "Reshape " + "b" * 60 + " (from CONV_2D@0:1)"]
    forced = Remaining("model/" * 30 + "Transpose", (0, 3, 1, 2), 1_000_000, False, *ends)
    for one in (forced, replace(forced, purpose="for speed, by a_rule")):
        for width in (80, 100):
            first, second = one.format_lines(width)
            assert len(first) <= width and len(second) <= width
            assert first.endswith("/Transpose [0, 3, 1, 2] moves about 1,000,000 elements:")
    first, second = forced.format_lines(100)
    assert second.startswith("  Conv ...a") and " -> Reshape ...b" in second and second.endswith("(from CONV_2D@0:1)")
    short = replace(forced, name="T", before="input x", after="Conv y")
    assert (
        short.format_lines(80) == [f"{short}"] == ["T [0, 3, 1, 2] moves about 1,000,000 elements: input x -> Conv y"]
    )


def test_transposes_that_a_target_puts_in_to_be_quick_are_told_apart(models: list[Path], tmp_path: Path) -> None:
    path = next(path for path in models if path.name == "dperson_shufflenetv2.tflite")
    conversion = nnrewrite.rewrite(path)
    report = conversion.report
    assert report.runtime == "onnxruntime"
    assert 0 < report.for_speed["columns_beside_channels"] <= report.permutations
    purposes = [one.purpose for one in explain(conversion.model)]
    assert purposes.count("for speed, by columns_beside_channels") == report.for_speed["columns_beside_channels"]
    result = CliRunner().invoke(app, [f"{path}", "-d", f"{tmp_path}", "--explain-layout"])
    quick = sum(report.for_speed.values())
    assert f"({quick} of them put in by speed rules of target onnxruntime)" in " ".join(result.output.split())
    assert max(map(len, result.output.splitlines()[1:])) <= 80
    assert result.output.count("for speed, by ") == quick
    assert not nnrewrite.rewrite(path, target="portable").report.for_speed


def test_a_picture_shows_operators_and_the_cut(pool: bytes) -> None:
    model = nnrewrite.convert(pool)
    found = draw_picture(model, load().find_dialect("onnx"))
    assert [box.label for box in found.boxes if box.cut] == ["Transpose 0 3 1 2", "Transpose 0 2 3 1"]
    assert len({box.fill for box in found.boxes}) == 3
    assert {box.fill for box in found.boxes} <= {box.fill for box in found.legend}
    assert found.legend[-1].label == "the cut: 2 permutations"
    assert write_dot(found).startswith("digraph")
    assert ElementTree.fromstring(drawn(model)).tag.endswith("svg")


def test_boxes_of_a_picture_do_not_overlap(monkeypatch: pytest.MonkeyPatch, models: list[Path]) -> None:
    monkeypatch.setenv("PATH", "")  # without Graphviz
    path = next(path for path in models if path.name == "face_detection_front.tflite")
    root = ElementTree.fromstring(drawn(nnrewrite.convert(path)))
    names = ("x", "y", "width", "height")
    boxes = np.array([[float(box.get(n, 0)) for n in names] for box in root.findall(".//{*}g/{*}rect")])
    assert len(boxes) > 80
    for i, (x, y, width, height) in enumerate(boxes):
        others = np.delete(boxes, i, axis=0)
        apart = (others[:, 0] >= x + width) | (others[:, 0] + others[:, 2] <= x)
        assert (apart | (others[:, 1] >= y + height) | (others[:, 1] + others[:, 3] <= y)).all()


def test_the_command_says_what_became_of_the_layout(pool: bytes, tmp_path: Path) -> None:
    source, drawing = tmp_path / "pool.tflite", tmp_path / "pool.svg"
    source.write_bytes(pool)
    call = [
        f"{source}",
        "-d",
        f"{tmp_path}",
        "--layout",
        "x=NHWC:NCHW",
        "--explain-layout",
        "--layout-svg",
        f"{drawing}",
    ]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert "x NHWC:NCHW" in " ".join(result.output.split())
    assert "moves 90 elements" in result.output
    assert drawing.read_text().startswith(("<svg", "<?xml"))


def test_a_quiet_command_says_what_it_is_asked_about_and_nothing_else(pool: bytes, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tflite").write_bytes(pool)
    call = ["-d", f"{tmp_path}", "--explain-layout", "--quiet"]
    alone = CliRunner().invoke(app, [f"{tmp_path / 'a.tflite'}", *call]).output
    assert alone.count("moves 90 elements") == 2 and "->" in alone and "operators in" not in alone
    both = CliRunner().invoke(app, [f"{tmp_path}", *call]).output
    assert both == "".join(f"{tmp_path / name}.onnx\n{alone}" for name in ("a", "b"))
    told = CliRunner().invoke(app, [f"{tmp_path}", *call, "--json"]).output
    assert json.loads(told)["ok"]


def test_a_model_that_no_message_holds_is_explained_and_drawn(
    pool: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LIMIT", 1)
    source, drawing = tmp_path / "pool.tflite", tmp_path / "pool.svg"
    source.write_bytes(pool)
    call = [f"{source}", "-o", f"{tmp_path / 'x.onnx'}", "--explain-layout", "--layout-svg", f"{drawing}"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert result.output.count("moves 90 elements") == 2
    assert drawing.exists() and (tmp_path / "x.onnx.data").exists()


def test_a_picture_is_of_one_model(pool: bytes, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tflite").write_bytes(pool)
    result = CliRunner().invoke(app, [f"{tmp_path}", "-d", f"{tmp_path}", "--layout-svg", f"{tmp_path / 'a.svg'}"])
    assert result.exit_code == 2
    assert "--layout-svg draws one model, 2 are given" in result.output


def test_an_ill_formed_layout_is_a_mistake_in_the_call(pool: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(pool)
    result = CliRunner().invoke(app, [f"{tmp_path / 'a.tflite'}", "-d", f"{tmp_path}", "--layout", "upside-down"])
    assert result.exit_code == 2


@pytest.mark.slow
def test_layouts_reach_into_graphs_of_nodes_and_end_at_their_bounds(catalogue: Catalogue) -> None:
    image = ("FLOAT32", [1, 5, 6, 3])
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}

    def pools(count: int) -> ir.Model:
        model = probe.make_operator_model(catalogue, "MAX_POOL_2D", {"x": image}, [image], **options)
        graph = model.graph
        for number in range(1, count):
            last = graph.outputs[0]
            node = ir.Node("tflite", "MAX_POOL_2D", [last], graph[0].attributes.values(), num_outputs=1)
            result = node.outputs[0]
            result.name, result.type, result.shape = f"pool_{number}", last.type, last.shape
            graph.append(node)
            graph.outputs[0] = result
        return model

    branch = probe.make_operator_model(
        catalogue, "IF", {"yes": ("BOOL", [1]), "x": image}, [image], then_subgraph_index=1, else_subgraph_index=2
    )
    models = [branch, pools(3), pools(1)]
    branch.meta["subgraphs"] = [model.graph for model in models]
    source = write(branch, catalogue)
    for layout in ("source", "target"):
        model = nnrewrite.convert(source, layout=layout)
        (node,) = (node for node in model.graph.node if node.op_type == "If")
        bodies = {attribute.name: [n.op_type for n in attribute.g.node] for attribute in node.attribute}
        assert bodies == {
            "then_branch": ["Transpose", *["MaxPool"] * 3, "Transpose"],
            "else_branch": ["Transpose", "MaxPool", "Transpose"],
        }
        assert interface(model)[1:] == [[1, 5, 6, 3], [1, 5, 6, 3]]
        assert compare_models(source, model.SerializeToString()).passed

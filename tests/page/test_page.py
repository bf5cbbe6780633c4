"""Pages of conversions: whole without a network, of bounded size, and never led varied by what a model says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite.backends.probe import write_operator_model
from nnrewrite.cli.convert import command
from nnrewrite.engine.base.errors import Refusal, UnsupportedError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.page import Outcome, Timing, collect, render
from nnrewrite.page.graph_nodes import Texts, describe_graph
from nnrewrite.page.rule_texts import read_rules
from onnx import TensorProto, helper

ATTACKS = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "$data ${script} $$",
    "\u2028\u2029\x00\ud7ff",
)


class Page(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def chain(count: int, name: str = "x") -> ir.Graph:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"{name}{i}") for i in range(count)]
    ends = [helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, [1, 8]) for i in (0, count)]
    return ir.from_proto(helper.make_model(helper.make_graph(nodes, name, ends[:1], ends[1:]))).graph


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_model_says_adds_no_element(attack: str) -> None:
    error = UnsupportedError([Refusal(attack, attack, why=attack)])
    plain = Page(render(collect(Outcome("model", chain(2), chain(2), error=error))))
    hostile = Page(render(collect(Outcome(attack, chain(2, attack), chain(2, attack), error=error))))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert hostile.scripts[1:] == plain.scripts[1:]
    assert hostile.data["title"] == attack


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = Page(render(collect(Outcome("model", chain(2)))))
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in page.elements)
    (policy,) = [a["content"] or "" for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert len(re.findall("sha256-", policy)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layer/with/a/long/name/as/exporters/make/them/", "n" * 300 + "/"])
def test_ten_thousand_nodes_fit_into_ten_megabytes(name: str) -> None:
    text = render(collect(Outcome("model", chain(10_000, name), chain(10_000, f"{name}after/"))))
    assert len(text.encode()) < 10_000_000
    assert len(Page(text).data["before"]["nodes"]) == 10_000


def test_long_texts_are_cut() -> None:
    text = render(collect(Outcome("n" * 10**6, chain(2, "n" * 10**6))))
    assert len(text) < 1_000_000


def operators(data: dict[str, Any], graph: str) -> list[str]:
    return [data["texts"][node[0]] for node in data[graph]["nodes"]]


def save(path: Path, *operators: str) -> Path:
    ends = [helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, [1, 8]) for i in (0, len(operators))]
    nodes = [helper.make_node(one, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i, one in enumerate(operators)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, path)
    return path


@pytest.mark.slow
def test_a_conversion_writes_its_page(tmp_path: Path) -> None:
    model, report = save(tmp_path / "m.onnx", "Relu"), tmp_path / "r.html"
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path / 'o.onnx'}", "--report", f"{report}", "--quiet"])
    assert done.exit_code == 0, done.output
    data = Page(report.read_text(encoding="utf-8")).data
    assert data["verdict"] == "converted"
    assert operators(data, "after") == ["Relu"]
    assert "read" in f"{data['parts']}"


def test_a_model_that_cannot_be_read_writes_its_page(tmp_path: Path) -> None:
    model, report = tmp_path / "m.tflite", tmp_path / "r.html"
    model.write_bytes(b"no model at all")
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path / 'o.onnx'}", "--report", f"{report}"])
    assert done.exit_code == 1
    data = Page(report.read_text(encoding="utf-8")).data
    assert data["verdict"] == "refused" and "m.tflite" in f"{data['message']}"
    assert not (tmp_path / "o.onnx").exists()


def test_several_models_get_a_page_each_and_a_list(tmp_path: Path) -> None:
    models = [f"{save(tmp_path / name, operator)}" for name, operator in (("a.onnx", "Relu"), ("b.onnx", "Sigmoid"))]
    bad = tmp_path / "<b>.tflite"
    bad.write_bytes(b"no model at all")
    out, pages = f"{tmp_path / 'out'}", tmp_path / "pages"
    told = [*models, f"{bad}", "--to", "onnx", "-d", out, "--keep-going", "--quiet", "--report", f"{pages}/"]
    done = CliRunner().invoke(command, told)
    assert done.exit_code == 1
    listed = Page((pages / "index.html").read_text(encoding="utf-8"))
    leads = [attrs["href"] for tag, attrs in listed.elements if tag == "a"]
    assert leads == ["%3Cb%3E.onnx.html", "a.onnx.html", "b.onnx.html"]
    assert "script" not in [tag for tag, _ in listed.elements] and "b" not in [tag for tag, _ in listed.elements]
    shown = {name: Page((pages / name).read_text(encoding="utf-8")).data for name in ("a.onnx.html", "<b>.onnx.html")}
    assert [value["state"] for value in shown.values()] == ["converted", "refused"]


def test_the_list_names_the_operator_that_cannot_be_converted(tmp_path: Path, catalogue: Catalogue) -> None:
    model = tmp_path / "own.tflite"
    model.write_bytes(write_operator_model(catalogue, "Unheard", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    told = [f"{model}", "-d", f"{tmp_path / 'out'}", "--keep-going", "--report", f"{tmp_path / 'pages'}/"]
    assert CliRunner().invoke(command, told).exit_code == 1
    listed = (tmp_path / "pages/index.html").read_text(encoding="utf-8")
    assert "1 operator cannot be converted (1 node): Unheard x 1: Unheard_0" in listed


def test_one_file_shows_one_model(tmp_path: Path) -> None:
    models = [f"{save(tmp_path / name, 'Relu')}" for name in ("a.onnx", "b.onnx")]
    done = CliRunner().invoke(command, [*models, "-d", f"{tmp_path / 'out'}", "--report", f"{tmp_path / 'r.html'}"])
    assert done.exit_code != 0
    assert "a page shows one model, 2 are given: name a folder, r/" in f"{done.output}{done.exception}"
    assert not (tmp_path / "r.html").exists()


def test_a_page_takes_the_place_of_no_model(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "Relu")
    before = model.read_bytes()
    done = CliRunner().invoke(command, [f"{model}", "-d", f"{tmp_path / 'out'}", "--report", f"{model}"])
    assert done.exit_code != 0
    assert model.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("name", "operator"), [("o.tflite", "RELU"), ("o/", "ReLU"), ("o.onnx", "Relu")])
def test_a_page_shows_results_of_each_format(tmp_path: Path, name: str, operator: str) -> None:
    model, report = save(tmp_path / "m.onnx", "Relu"), tmp_path / "r.html"
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path}/{name}", "--report", f"{report}", "--quiet"])
    assert done.exit_code == 0, done.output
    data = Page(report.read_text(encoding="utf-8")).data
    assert operators(data, "after") == [operator]
    assert (data["cards"][-1][0] == "opset") == (name == "o.onnx")


def test_a_refused_node_is_marked_in_the_graph_of_the_source(tmp_path: Path) -> None:
    model, report = save(tmp_path / "m.onnx", "Relu", "GRUUnit"), tmp_path / "r.html"
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path / 'o.tflite'}", "--report", f"{report}"])
    assert done.exit_code == 1
    data = Page(report.read_text(encoding="utf-8")).data
    assert [node[4] for node in data["before"]["nodes"]] == ["either", "refused"]
    assert data["refusals"][0]["operator"] == "GRUUnit" and data["refusals"][0]["reasons"]


def test_the_text_of_a_rule_is_read_from_rule_files_alone(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("rule secret {\n}\n")
    mine = tmp_path / "mine.rules"
    mine.write_text("# why\nrule mine {\n  y = Relu(x) => y = Relu(x)\n}\nrule next {\n}\n")
    places = [f"secret ({secret}:1)", f"mine ({mine}:2)", f"mine ({mine}:99)", "none (missing.rules:1)", "odd"]
    assert read_rules(places) == {places[1]: "# why\nrule mine {\n  y = Relu(x) => y = Relu(x)\n}"}


def test_kernels_are_told_of_the_nodes_that_they_compute() -> None:
    times = [("layer0_nchwc", "Conv", 2.0), ("layer1", "Relu", 1.0), ("fused", "Odd", 0.5)]
    graph = chain(2, "layer")
    found = collect(Outcome("m", graph, graph, timing=Timing(kernels=times)))["latency"]["kernels"]
    assert found == [["layer0", "Conv", 2.0], ["layer1", "Relu", 1.0], ["fused", "Odd", 0.5]]


def test_what_computes_from_constants_alone_is_marked() -> None:
    nodes = [helper.make_node("Neg", ["w"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights))
    texts = Texts()
    found = describe_graph(ir.from_proto(model).graph, texts)
    assert [(texts.rows[node[0]], node[-1]) for node in found["nodes"]] == [("Neg", 1), ("Add", 0)]


def test_what_is_inside_a_node_is_counted() -> None:
    inner = helper.make_graph(
        [
            helper.make_node("Neg", ["x"], ["a"]),
            helper.make_node("Neg", ["a"], ["b"]),
            helper.make_node("Abs", ["b"], ["c"]),
        ],
        "inner",
        [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [2])],
    )
    nodes = [helper.make_node("If", ["t"], ["y"], then_branch=inner, else_branch=inner)]
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("t", TensorProto.BOOL, []),
    ]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    texts = Texts()
    describe_graph(ir.from_proto(helper.make_model(helper.make_graph(nodes, "g", given, result))).graph, texts)
    assert "then_branch: 3 nodes (Neg 2, Abs 1)" in " ".join(texts.rows)

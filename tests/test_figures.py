"""`make figures` puts what a benchmark prints where a page names it."""

from __future__ import annotations

from pathlib import Path
from subprocess import CalledProcessError

import pytest
from nnrewrite.benchmarks.figures import END, ROOT, list_figures, make_figures, missing

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def write_page(folder: Path, program: str) -> tuple[Path, str]:
    (folder / "two.py").write_text(program)
    command = f"{folder}/two.py $MODELS"
    page = folder / "page.md"
    page.write_text(
        f"Before.\n\n<!-- figures: {command} -->\nold\n{END}\n\nAfter.\n<!-- figures: other.py -->\nkept\n{END}\n"
    )
    return page, command


def test_figures_are_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, command = write_page(tmp_path, "import sys; print('| 2 |', sys.argv[1])")
    assert [*list_figures(page)] == [command, "other.py"]
    monkeypatch.delenv("MODELS", raising=False)
    assert missing(command) == ["MODELS"]
    monkeypatch.setenv("MODELS", "here")
    assert not missing(command)
    make_figures(page, command)
    after = f"After.\n<!-- figures: other.py -->\nkept\n{END}\n"
    assert page.read_text() == f"Before.\n\n<!-- figures: {command} -->\n| 2 | here\n{END}\n\n{after}"


def test_a_command_that_fails_leaves_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, command = write_page(tmp_path, "print('half'); raise SystemExit(1)")
    monkeypatch.setenv("MODELS", "here")
    before = page.read_text()
    with pytest.raises(CalledProcessError):
        make_figures(page, command)
    assert page.read_text() == before


def test_pages_name_benchmarks_that_there_are() -> None:
    commands = [command for page in PAGES for command in list_figures(page)]
    assert commands
    assert not [command for command in commands if not (ROOT / command.split()[0]).is_file()]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- figures: ") == text.count(END) == len([*list_figures(page)]), page

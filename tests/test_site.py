"""The documentation site: every page is in its contents, and the reference follows from the program."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from nnrewrite.cli.dispatch import COMMANDS

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = {"reference/commands", "reference/operator_table"}


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", DOCS / "generate_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(page: str) -> set[str]:
    """The pages that the contents of a page name."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: set[str] = set()
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        names |= {line for line in block.splitlines() if line and not line.startswith(":")}
    folder = page.rpartition("/")[0]
    return {f"{folder}/{name}" if folder else name for name in names}


def test_every_page_is_in_the_contents() -> None:
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.rglob("*")
        if path.suffix in (".md", ".ipynb")
    }
    assert listed("index") | listed("appendix/index") == (pages | GENERATED) - {"index"}


def test_the_reference_of_commands_has_each_with_its_options(reference: ModuleType) -> None:
    text = reference.write_commands()
    for name in set(COMMANDS) - {"convert", "help"}:
        assert f"## rewrite {name}\n" in text
    assert "`--report FILE.html`" in text and "`--per-layer`" in text


def test_what_the_reference_of_python_names_is_there() -> None:
    text = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    found = re.findall(r"\.\. auto\w+:: ([\w.]+)(?:\(\))?\n(?: +:members: (.*)\n)?", text)
    assert len(found) > 10
    for path, members in found:
        module, _, name = path.rpartition(".")
        named = getattr(importlib.import_module(module), name)
        assert [one for one in members.split(", ") if one and not hasattr(named, one)] == [], path


@pytest.mark.thorough
@pytest.mark.slow
def test_the_table_of_operators_has_rows_of_every_rule_set(reference: ModuleType) -> None:
    text = reference.write_operators()
    rows = re.findall(r"<tr data-pack=\"\w+\"><td>([^<]+)</td><td>([^<]+)</td><td>([^<]+)</td><td>([^<]+)</td>", text)
    assert {(source, target) for _, source, target, _ in rows} == {row[:2] for row in reference.PACKS.values()}
    assert ("CONV_2D", "TensorFlow Lite", "ONNX", "yes") in rows
    assert not [name for name, source, _, supported in rows if source == "PyTorch" and supported == "no"]


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "a.html").write_text("<p id='here'><a href='b.html#there'></a><a href='#here'></a><img src='c.png'>")
    (tmp_path / "b.html").write_text("<a href='a.html#here'></a><a href='https://example.org/x'></a>")
    assert module.check(tmp_path) == ["a.html: b.html#there", "a.html: c.png"]

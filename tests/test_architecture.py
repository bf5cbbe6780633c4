"""Rooms in layers: every import points the way that the table in docs/architecture.md says, and none in a circle."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from nnrewrite.engine.base.data_files import OPS

ROOT = OPS.parent
PACKAGE = "nnrewrite"
#: folders that are not the program
OUTSIDE = ("tests", "benchmarks", "docs", "build", "dist")


def layers() -> dict[str, int]:
    """The rooms of the table, each with its line."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("<!-- layers -->") : text.index("<!-- /layers -->")]
    rows = [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    return {room: line for line, rooms in enumerate(rows) for room in rooms}


def modules() -> dict[str, Path]:
    """The files of the program by the names of their modules; the package itself goes by its name."""
    found = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).parts
        if parts[0] not in OUTSIDE and not parts[0].startswith("."):
            name = ".".join(parts).removesuffix(".py").removesuffix("__init__").rstrip(".")
            found[name or PACKAGE] = file
    return found


def imported(name: str, file: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a module imports anywhere: at its top, in functions, and for type checkers."""
    package = [] if name == PACKAGE else name.split(".")
    folder = package if file.name == "__init__.py" else package[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*folder[: len(folder) - node.level + 1], *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                one = ".".join([*base, alias.name])
                yield one if one in known else ".".join(base) or PACKAGE


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: set(imported(name, file, known)) - {name} for name, file in known.items()}


def room(name: str, known: Mapping[str, int]) -> str | None:
    """The room of the table that a module is in."""
    parts = name.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in known), None)


@pytest.mark.slow
def test_every_module_is_in_a_room(graph: Mapping[str, set[str]]) -> None:
    known = layers()
    assert [name for name in graph if room(name, known) is None] == ["engine"]


@pytest.mark.slow
def test_every_room_has_modules(graph: Mapping[str, set[str]]) -> None:
    known = layers()
    assert set(known) == {room(name, known) for name in graph} - {None}


def test_imports_point_to_rooms_below(graph: Mapping[str, set[str]]) -> None:
    known = layers()
    upward = []
    for name, others in graph.items():
        for other in others:
            here, there = room(name, known), room(other, known)
            if here is not None and there is not None and known[there] > known[here]:
                upward.append(f"{name} imports {other}")
    assert not upward


def test_no_modules_import_each_other_in_a_circle(graph: Mapping[str, set[str]]) -> None:
    left = {name: set(others) & graph.keys() for name, others in graph.items()}
    while free := [name for name, others in left.items() if not others]:
        for name in free:
            del left[name]
        for others in left.values():
            others.difference_update(free)
    assert not left, f"a circle among {sorted(left)}"


def test_no_name_of_a_module_is_taken_twice() -> None:
    """But for those that are named for something else: a command, or what of a rule they check."""
    names = Counter(
        name.rpartition(".")[2]
        for name, file in modules().items()
        if file.name != "__init__.py" and not name.startswith(("cli.commands.", "engine.check."))
    )
    assert not {name for name, count in names.items() if count > 1}

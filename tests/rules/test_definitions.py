"""Definitions of rule packs: each is called, and what one says no other says again that the same files can call."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import Span
from nnrewrite.engine.packs import loader
from nnrewrite.engine.packs.headers import read_header
from nnrewrite.engine.syntax import parser, tree
from nnrewrite.engine.syntax.tree_traversal import walk

HOME = OPS.parent / "rules"
PACKS = sorted(path.name for path in HOME.iterdir() if any(path.glob("*.rules")))

#: packs that no other lies over: with each come those below it
HIGHEST = sorted({*PACKS} - {header.base.name for one in PACKS if (header := read_header(HOME / one)) and header.base})


def describe(node: Any, numbers: dict[str, int], said: dict[str, str]) -> str:
    """A syntax tree as text, variables by their numbers, and calls of definitions by what these say."""
    match node:
        case Span():
            return ""
        case tree.Name(name):
            return f"${numbers.setdefault(name, len(numbers))}"
        case tree.Attribute(name, value, _, spread):
            return f"{name}: {describe(value, numbers, said)} {spread}"
        case tree.Call():
            parts = (node.wildcard, node.arguments, node.attributes, node.rest)
            return f"{said.get(node.callee, node.callee)}({describe(parts, numbers, said)})"
        case tree.Comprehension() | tree.Fold():
            names = (*node.names, node.total) if isinstance(node, tree.Fold) else node.names
            bound = [numbers.setdefault(name, len(numbers)) for name in names]
            parts = tuple(getattr(node, f.name) for f in fields(node) if f.name not in {"names", "total"})
            return f"{type(node).__name__} {bound} {describe(parts, numbers, said)}"
        case tuple():
            return " ".join(describe(part, numbers, said) for part in node)
    if not is_dataclass(node):
        return repr(node)
    return f"{type(node).__name__}({describe(tuple(getattr(node, f.name) for f in fields(node)), numbers, said)})"


def find_twins(definitions: list[tree.Definition]) -> list[list[str]]:
    """Definitions with parameters that say the same, in groups; what those say that they call counts, not its name."""
    said = {one.name: "" for one in definitions}
    while True:
        forms = {one.name: describe(one.body, {}, said) for one in definitions}
        numbers = {form: f"#{index}" for index, form in enumerate(dict.fromkeys(forms.values()))}
        if len(numbers) == len(set(said.values())):
            break
        said = {name: numbers[form] for name, form in forms.items()}
    groups = defaultdict(list)
    for one in definitions:
        if one.parameters:  # numbers may be equal by chance
            groups[forms[one.name]].append(f"{one.span.file}:{one.span.line} {one.name}")
    return [group for group in groups.values() if len(group) > 1]


def list_below(name: str, files: Sequence[tree.RuleFile]) -> list[tree.Definition]:
    """The definitions of a pack and of those that it lies over."""
    bases = {file.name: file.base for file in files}
    reached = {name}
    while (base := bases[name]) is not None:
        reached.add(name := base)
    return [one for file in files if file.name in reached for one in file.items if isinstance(one, tree.Definition)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", HIGHEST)
def test_no_definition_says_what_another_says_that_the_same_files_can_call(name: str) -> None:
    assert find_twins(list_below(name.replace("-", "_"), loader.load((name,)).files)) == []


@pytest.mark.thorough
def test_every_definition_is_called() -> None:
    places, called = set[str](), set[str]()
    read: dict[Span, set[str]] = {}  # by place: most packs have most of their files in common
    for name in PACKS:
        items = [item for file in loader.load((name,)).files for item in file.items]
        found = {one.name: f"{one.span.file}:{one.span.line}" for one in items if isinstance(one, tree.Definition)}
        places |= set(found.values())
        for item in items:
            if item.span not in read:
                read[item.span] = {node.callee for node in walk(item) if isinstance(node, tree.Call)}
            called |= {found[callee] for callee in read[item.span] if callee in found}
    assert sorted(places - called) == []


def test_what_the_documents_use_of_a_pack_it_defines() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (OPS.parent / "docs").rglob("*.md"))
    asked = {
        (pack, name.split(" as ")[0].strip())
        for pack, names in re.findall(r"`use (\w+)\.(\{[^}]*\}|\w+)`", pages)
        for name in names.strip("{}").split(",")
        if pack in PACKS
    }
    texts = {pack: "".join(file.read_text() for file in (HOME / pack).glob("*.rules")) for pack, _ in asked}
    defined = {(pack, name) for pack, text in texts.items() for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE)}
    assert asked
    assert sorted(asked - defined) == []


def test_definitions_that_differ_in_names_alone_are_told() -> None:
    text = """ruleset p : onnx -> onnx opset 21..28
def first(x) = shape(x)[0]
def foremost(v) = shape(v)[0]
def twice(x) = first(x) + first(x)
def double(x) = foremost(x) + foremost(x)
def last(x) = shape(x)[-1]
"""
    items = [item for item in parser.parse(text, "p.rules").items if isinstance(item, tree.Definition)]
    groups = [[name.split()[-1] for name in group] for group in find_twins(items)]
    assert groups == [["first", "foremost"], ["twice", "double"]]

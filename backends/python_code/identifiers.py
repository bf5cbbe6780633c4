"""Names of a program: words of a model made into identifiers that mean nothing else."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

from .steps import Step

#: letters of the longest name
_LONGEST = 40


class Names:
    """The names of one scope, each given once."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._next: dict[tuple[str, int], int] = {}  # by a stem and the least number: all before are taken

    def give(self, wish: str, fallback: str = "value") -> str:
        """A name like an identifier that is wished for, and free."""
        base = wish if wish.isidentifier() and wish.isascii() else fallback
        if base in self._taken:
            return self._give_numbered(f"{base}_" if base[-1].isdigit() else base, 2)
        self._taken.add(base)
        return base

    def number_name(self, wish: str) -> str:
        """A name with a number behind it that is free."""
        return self._give_numbered(wish, 1)

    def _give_numbered(self, stem: str, least: int) -> str:
        count = self._next.get((stem, least), least)
        while (name := f"{stem}{count}") in self._taken:
            count += 1
        self._next[stem, least] = count + 1
        self._taken.add(name)
        return name


def make_identifier(text: str) -> str:
    """Words in lower case with underscores between them; nothing where a text has no letters of the alphabet."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower().lstrip("0123456789_")
    return words[:_LONGEST].rstrip("_")


def make_class_name(text: str) -> str:
    """Words with capitals and nothing between them; nothing where a text has no letters of the alphabet."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", text) if part]
    return "".join(part[0].upper() + part[1:] for part in parts).lstrip("0123456789")[:_LONGEST]


def make_snake(text: str) -> str:
    """The identifier of a name in capitals and small letters."""
    return make_identifier(text if text.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text))


def find_own_name(step: Step) -> str:
    """What the source calls a layer: by the names of weights that no other has, `conv1` of `layer1.conv1.weight`, or by
    the module that it is in."""
    if not step.layer:
        return ""
    paths = {operand: (value.name or "").split(".") for operand, value in step.held.items()}
    named = {operand: path[-2] for operand, path in paths.items() if len(path) > 1 and path[-1] == operand}
    own = [word for operand, word in named.items() if operand not in step.tied]
    word = next(iter([*own, *step.scope[-1:], *named.values()]), "")
    return "" if word.isdigit() else make_snake(word)


def list_identifiers(text: str) -> set[str]:
    """The names that a module refers to."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def select_functions(text: str, functions: Mapping[str, str]) -> list[str]:
    """The texts of those functions, by their names, that a module calls, and of those that these call."""
    called = list_identifiers(text)
    while more := {one for name in called & {*functions} for one in list_identifiers(functions[name])} - called:
        called |= more
    return [text for name, text in functions.items() if name in called]

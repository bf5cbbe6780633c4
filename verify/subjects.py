"""Subjects: the rules of a pack that can be tried, each with what its tests say."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.errors import Span
from ..engine.expressions import OPSET, Frame, evaluate
from ..engine.functions import plain
from ..engine.language import tree
from ..engine.operators import Dialect
from ..engine.packs import Pack
from ..engine.pattern import Defined, compile_equations, nodes
from ..engine.rules import STAGES, written_out


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One rule to try: the dialect and equations of its left side, its tests, and where it stands.

    `opsets` are those worth aiming at: the ends of the range, and both sides of each opset that the rules compare with.
    """

    name: str
    span: Span
    stage: str
    reads: Dialect
    equations: tuple[tree.Equation, ...]
    tests: tuple[tree.Test, ...]
    definitions: Mapping[str, tree.Definition]
    opsets: tuple[int, ...]

    @property
    def place(self) -> str:
        """The rule's name and where it stands."""
        return f"{self.name} ({self.span.file}:{self.span.line})"

    @property
    def of_source(self) -> bool:
        """Whether its left side is of the source dialect: then a whole conversion tries it."""
        return self.stage in STAGES[:2]

    def pattern(self, opset: int) -> tuple[Defined, ...]:
        """The left side as compiled for an opset."""
        return _pattern(self, opset)

    def domain(self, generator: tree.Generator) -> list[Any]:
        """The values that a test names for an option or a constant."""
        found = plain(evaluate(generator.domain, Frame({}, definitions=self.definitions)))
        return list(found)

    def operators(self) -> frozenset[str]:
        """The names of the operators at the root of its left side."""
        root = self.pattern(self.opsets[-1])[-1].value
        return frozenset(name for node in nodes(root) for name in node.specs)


@functools.cache
def _pattern(subject: Subject, opset: int) -> tuple[Defined, ...]:
    return compile_equations(subject.equations, subject.reads, opset)


def subjects(pack: Pack) -> list[Subject]:
    """All rules of a pack, tables and families written out."""
    definitions = {d.name: d for file in pack.files for d in file.items if isinstance(d, tree.Definition)}
    low, high = pack.opsets
    compared = sorted({n for bound in _bounds(pack.files) for n in (bound - 1, bound) if low <= n <= high})
    opsets = tuple(dict.fromkeys((low, *compared, high)))
    found = []
    for file, rule in written_out(pack.files):
        reads = pack.catalogue.dialect(file.source if rule.stage in STAGES[:2] else file.target)
        found.append(Subject(rule.name, rule.span, rule.stage, reads, rule.equations, rule.tests, definitions, opsets))
    return found


def _bounds(files: Iterable[tree.RuleFile]) -> set[int]:
    """The opsets that rules compare with."""
    return {
        node.right.value
        for file in files
        for node in tree.walk(tuple(file.items))
        if isinstance(node, tree.Binary)
        and isinstance(node.left, tree.Name)
        and node.left.name == OPSET
        and isinstance(node.right, tree.Literal)
        and isinstance(node.right.value, int)
    }

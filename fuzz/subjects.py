"""The rules of a pack that can be tried, each with what its tests say."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.base.errors import Span
from ..engine.dialects.operators import UNTRIED, Dialect
from ..engine.expressions.compile import OPSET, Frame, evaluate
from ..engine.expressions.functions import to_python
from ..engine.packs.loader import Pack
from ..engine.rewrite.pattern import Defined, compile_equations, nodes
from ..engine.rewrite.rules import OF_SOURCE, write_out
from ..engine.syntax import tree


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One rule to try: the dialect and equations of its left side, its tests, and where it stands.

    `opsets` are those worth aiming at: the ends of the range, and both sides of each opset that the rules compare with;
    `turning` those among them that the rule itself or a definition it uses compares with. `guarded` are the names that
    its clauses and the conditions of its templates speak of.
    """

    name: str
    span: Span
    stage: str
    reads: Dialect
    equations: tuple[tree.Equation, ...]
    tests: tuple[tree.Test, ...]
    definitions: Mapping[str, tree.Definition]
    opsets: tuple[int, ...]
    turning: tuple[int, ...] = ()
    guarded: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """The rule's name and where it stands."""
        return f"{self.name} ({self.span.file}:{self.span.line}:{self.span.column})"

    @property
    def of_source(self) -> bool:
        """Whether its left side is of the source dialect: then a whole conversion tries it."""
        return self.stage in OF_SOURCE

    @property
    def excuse(self) -> str:
        """Why no model that it is about can be tried, as ops.yaml says of all operators at its root; or nothing."""
        if not self.equations:
            return ""
        root = self.pattern(self.opsets[-1])[-1].value
        said = [f"{spec.facts.get(UNTRIED, '')}" for node in nodes(root) for spec in node.specs.values()]
        return said[0] if said and all(said) else ""

    def pattern(self, opset: int) -> tuple[Defined, ...]:
        """The left side as compiled for an opset."""
        return _pattern(self, opset)

    def domain(self, generator: tree.Generator) -> list[Any]:
        """The values that a test names for an option or a constant."""
        found = to_python(evaluate(generator.domain, Frame({}, definitions=self.definitions)))
        return list(found)

    def operators(self) -> frozenset[str]:
        """The names of the operators at the root of its left side."""
        root = self.pattern(self.opsets[-1])[-1].value
        return frozenset(name for node in nodes(root) for name in node.specs)


@functools.cache
def _pattern(subject: Subject, opset: int) -> tuple[Defined, ...]:
    return compile_equations(subject.equations, subject.reads, opset)


def subjects(pack: Pack, known: Container[str] = ()) -> list[Subject]:
    """The rules of a pack but for those `known` by name, tables and families written out."""
    definitions = {d.name: d for file in pack.files for d in file.items if isinstance(d, tree.Definition)}
    low, high = pack.opsets
    bounds = _Bounds(definitions)
    compared = _sides(bounds(item for file in pack.files for item in file.items), low, high)
    opsets = tuple(dict.fromkeys((low, *compared, high)))
    found = []
    for file, rule in write_out(pack.files, known):
        reads = pack.catalogue.dialect(file.source if rule.stage in OF_SOURCE else file.target)
        turning = _sides(bounds([rule]), low, high)
        conditions = (*rule.clauses, *(template.condition for template in rule.templates))
        guarded = frozenset(one.name for one in tree.walk(conditions) if isinstance(one, tree.Name))
        left = rule.equations, rule.tests
        found.append(Subject(rule.name, rule.span, rule.stage, reads, *left, definitions, opsets, turning, guarded))
    return found


def _sides(bounds: Iterable[int], low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted({n for bound in bounds for n in (bound - 1, bound) if low <= n <= high}))


class _Bounds:
    """The opsets that items of rule files compare with, themselves and by way of the definitions that they use."""

    def __init__(self, definitions: Mapping[str, tree.Definition]) -> None:
        self._definitions = definitions
        self._known: dict[str, tuple[set[int], set[str]]] = {}

    def __call__(self, items: Iterable[object]) -> set[int]:
        found: set[int] = set()
        seen: set[str] = set()
        waiting = [self._in(item) for item in items]
        while waiting:
            bounds, names = waiting.pop()
            found |= bounds
            waiting += [self._of(name) for name in names - seen]
            seen |= names
        return found

    def _of(self, name: str) -> tuple[set[int], set[str]]:
        if name not in self._known:
            self._known[name] = self._in(self._definitions[name])
        return self._known[name]

    def _in(self, item: object) -> tuple[set[int], set[str]]:
        """The opsets that one item compares with, and the definitions that it calls."""
        bounds, names = set(), set()
        for node in tree.walk(item):
            match node:
                case tree.Binary(left=tree.Name(name=name), right=tree.Literal(value=int(bound))) if name == OPSET:
                    bounds.add(bound)
                case tree.Call(callee=callee) if callee in self._definitions:
                    names.add(callee)
        return bounds, names

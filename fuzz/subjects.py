"""The rules of a pack that can be tried, each with what its tests say."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..engine.base.errors import Span
from ..engine.dialects.operators import FORM, Dialect
from ..engine.expressions.compile import OPSET, Frame, evaluate
from ..engine.expressions.functions import convert_to_python
from ..engine.packs.loader import Pack
from ..engine.rewrite.availability import Availability
from ..engine.rewrite.conditions import make_operator_test
from ..engine.rewrite.families import write_out
from ..engine.rewrite.pattern import Defined, NodePattern, compile_equations, iterate_nodes
from ..engine.rewrite.stages import ADAPT, OF_SOURCE, list_template_dialects
from ..engine.syntax import tree
from ..engine.syntax.tree_traversal import walk
from .landmarks import Landmarks, find_landmarks


@dataclass(frozen=True, eq=False)
class Subject:
    """One rule to try, written out, with the dialect of its left side and what its pack defines and compares with.

    `across` says that its pack leads from one dialect to another.

    What is worked out about it is kept with it: a pack may have two rules of one name, and a stand-in has that of one.
    """

    rule: tree.Rule
    reads: Dialect
    definitions: Mapping[str, tree.Definition]
    bounds: OpsetBounds
    across: bool = True
    patterns: dict[int, tuple[Defined, ...]] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The rule's name, with its member where it is one of a family or a table."""
        return self.rule.name

    @property
    def span(self) -> Span:
        """Where the rule stands."""
        return self.rule.span

    @property
    def tests(self) -> tuple[tree.Test, ...]:
        """What it is tried on."""
        return self.rule.tests

    def make_stand_in(self, name: str, span: Span) -> Subject:
        """One without equations, for cases that are drawn from the tests of several rules."""
        rule = replace(self.rule, name=name, span=span, equations=(), clauses=(), templates=(), tests=())
        return replace(self, rule=rule)

    @property
    def newest(self) -> int:
        """The newest opset of its pack."""
        return self.bounds.newest

    @property
    def opsets(self) -> tuple[int, ...]:
        """The opsets worth aiming at: the ends of the range, and both sides of each that rules of its pack compare
        with."""
        return self.bounds.list_of_pack()

    @functools.cached_property
    def turning(self) -> tuple[int, ...]:
        """Those among them that the rule itself or a definition it uses compares with."""
        return self.bounds.list_of_rule(self.rule)

    @functools.cached_property
    def guarded(self) -> frozenset[str]:
        """The names that its clauses and the conditions of its templates speak of."""
        conditions = (*self.rule.clauses, *(template.condition for template in self.rule.templates))
        return frozenset(one.name for one in walk(conditions) if isinstance(one, tree.Name))

    @functools.cached_property
    def constants(self) -> frozenset[str]:
        """The operands of its left side that are constant."""
        arguments = (one for call in walk(self.rule.equations) if isinstance(call, tree.Call) for one in call.arguments)
        return frozenset(one.value.name for one in arguments if one.const and isinstance(one.value, tree.Name))

    @functools.cached_property
    def landmarks(self) -> Landmarks:
        """What it names that cases are drawn around."""
        return find_landmarks(self.rule, self.definitions)

    @property
    def place(self) -> str:
        """The rule's name and where it stands."""
        return f"{self.name} ({self.span.file}:{self.span.line}:{self.span.column})"

    @property
    def of_source(self) -> bool:
        """Whether its left side is of a dialect that a conversion reads: then a whole conversion tries it."""
        return self.rule.stage in OF_SOURCE and self.across

    @property
    def adapts(self) -> bool:
        """Whether it writes another opset than it reads: then a conversion to that one tries it."""
        return self.rule.stage == ADAPT

    def choose_opset(self, opset: int | None) -> int:
        """The opset of what its left side reads, where `opset` is aimed at (None: the one that its pack aims at)."""
        if self.adapts:
            return self.newest
        return self.bounds.default_opset if opset is None else opset

    @property
    def interpreted(self) -> bool:
        """Whether its left side is of a dialect that the interpreter runs, and not ONNX Runtime."""
        return not self.reads.schemas

    @property
    def excuse(self) -> str:
        """Why no model that it is about can be tried, as ops.yaml says of all operators at its root, or of all forms
        that an operand may be; or nothing."""
        if not self.rule.equations:
            return ""
        roots = list(iterate_nodes(self.compile_pattern(self.newest)[-1].value))
        said = _explain_untried(roots)
        operands = [list(iterate_nodes(operand)) for node in roots for operand in node.operands]
        forms = [one for one in operands if all(FORM in spec.traits for node in one for spec in node.specs.values())]
        return next(filter(None, map(_explain_untried, forms)), said)

    def compile_pattern(self, opset: int) -> tuple[Defined, ...]:
        """The left side as compiled for an opset."""
        if opset not in self.patterns:
            self.patterns[opset] = compile_equations(self.rule.equations, self.reads, opset)
        return self.patterns[opset]

    def list_domain(self, generator: tree.Generator) -> list[Any]:
        """The values that a test names for an option or a constant."""
        found = convert_to_python(evaluate(generator.domain, Frame({}, definitions=self.definitions)))
        return list(found)

    def list_operators(self) -> frozenset[str]:
        """The names of the operators at the root of its left side, of those that its conditions admit."""
        admits = make_operator_test(self.rule.clauses, self.definitions, lambda name: self.reads.operators[name].words)
        nodes = iterate_nodes(self.compile_pattern(self.newest)[-1].value)
        return frozenset(
            name for node in nodes for name in node.specs if node.wildcard is None or admits(node.wildcard, name)
        )


def list_subjects(pack: Pack, known: Container[str] = ()) -> list[Subject]:
    """The rules of a pack but for those `known` by name, tables and families written out."""
    definitions = {d.name: d for file in pack.files for d in file.items if isinstance(d, tree.Definition)}
    bounds = OpsetBounds(pack, definitions)
    found = []
    for file, rule in write_out(pack.files, known):
        reads = pack.catalogue.find_dialect(file.source if rule.stage in OF_SOURCE else file.target)
        written = pack.target if file.source == pack.source else file.target  # as what lies over it leads there
        found.append(Subject(rule, reads, definitions, bounds, file.source != written))
    return found


class OpsetBounds:
    """The opsets that the rules of a pack compare with, themselves and by way of the definitions that they use.

    They are worked out when they are first asked for, as of hundreds of rules often one is tried.
    """

    def __init__(self, pack: Pack, definitions: Mapping[str, tree.Definition]) -> None:
        self._pack = pack
        self._definitions = definitions
        self._known: dict[str, tuple[set[int], set[str]]] = {}
        self._of_pack: tuple[int, ...] = ()
        self._availability = Availability(definitions)

    @property
    def newest(self) -> int:
        """The newest opset of the pack."""
        return self._pack.opsets[1]

    @property
    def default_opset(self) -> int:
        """The opset that the pack aims at."""
        return self._pack.default_opset

    def list_of_pack(self) -> tuple[int, ...]:
        """The ends of a pack's range, and both sides of each opset that it compares with, in order."""
        if not self._of_pack:
            low, high = self._pack.opsets
            compared = self._collect_sides(item for file in self._pack.files for item in file.items)
            self._of_pack = tuple(dict.fromkeys((low, *compared, high)))
        return self._of_pack

    def list_of_rule(self, rule: tree.Rule) -> tuple[int, ...]:
        """Both sides of each opset that a rule compares with, or from which on a template of its exists, in order."""
        find_dialect = self._pack.catalogue.find_dialect
        builds = list_template_dialects(rule.stage, find_dialect(self._pack.source), find_dialect(self._pack.target))
        low, high = self._pack.opsets
        turns = set()
        for template in rule.templates:
            there = self._availability.list_opsets(template.equations, builds, range(low, high + 1))
            turns |= {n for n in range(low + 1, high + 1) if (n in there) != (n - 1 in there)}
        return tuple(sorted({*self._collect_sides([rule]), *turns, *(n - 1 for n in turns)}))

    def _collect_sides(self, items: Iterable[object]) -> tuple[int, ...]:
        low, high = self._pack.opsets
        return tuple(sorted({n for bound in self._find(items) for n in (bound - 1, bound) if low <= n <= high}))

    def _find(self, items: Iterable[object]) -> set[int]:
        found: set[int] = set()
        seen: set[str] = set()
        waiting = [self._find_item_bounds(item) for item in items]
        while waiting:
            bounds, names = waiting.pop()
            found |= bounds
            waiting += [self._find_bounds(name) for name in names - seen]
            seen |= names
        return found

    def _find_bounds(self, name: str) -> tuple[set[int], set[str]]:
        if name not in self._known:
            self._known[name] = self._find_item_bounds(self._definitions[name])
        return self._known[name]

    def _find_item_bounds(self, item: object) -> tuple[set[int], set[str]]:
        """The opsets that one item compares with, and the definitions that it calls."""
        bounds, names = set(), set()
        for node in walk(item):
            match node:
                case tree.Binary(left=tree.Name(name=name), right=tree.Literal(value=int(bound))) if name == OPSET:
                    bounds.add(bound)
                case tree.Call(callee=callee) if callee in self._definitions:
                    names.add(callee)
        return bounds, names


def _explain_untried(nodes: Sequence[NodePattern]) -> str:
    """What ops.yaml says of all operators that a node may be of why none is tried; nothing where it does not of one."""
    said = [spec.facts.fuzz.untried or "" for node in nodes for spec in node.specs.values()]
    return said[0] if said and all(said) else ""

"""Rule files into rules: patterns compiled, indexed by stage and operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from ..base.constants import Elements
from ..base.errors import Span
from ..base.quantization import QUANTIZE_BY
from ..base.startup import dataclass, replace
from ..dialects.operators import Catalogue, Dialect, OperatorSpec
from ..syntax import tree
from ..syntax.tree_traversal import find_leading, walk
from .availability import Availability
from .conditions import collect_guards, make_operator_test
from .families import write_out_member
from .matcher import Matcher
from .needs import list_orders, may_match, may_match_producers
from .outlines import Contents, Key, Outline, outline_rules
from .pattern import (
    AnyOf,
    Defined,
    NodePattern,
    Operand,
    Variable,
    compile_equations,
    iterate_nodes,
)
from .stages import ADAPT, LOWER, NORMALIZE, OF_SOURCE, OPTIONAL, list_template_dialects

#: says of a node without a schema, by other means, what its results are: lets them have types and shapes, and returns
#: their elements where these are known already
Settle = Callable[[ir.Node], "Sequence[Elements] | None"]

#: of how many operands it is told by operators where they come from, before a node is looked at more closely
_LOOKED_AT = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ready to run at one opset."""

    name: str
    stage: str
    span: Span
    equations: tuple[Defined, ...]
    clauses: tuple[tree.Clause, ...]
    templates: tuple[tree.Template, ...]
    #: what of them exists at an opset
    availability: Availability
    layouts: Mapping[str, str]
    builds: tuple[Dialect, ...]
    order: tuple[int, int, int, int]
    #: the names that the left side gives to results of nodes
    results: frozenset[str]
    #: those of nodes that the root reads nothing of
    beside: frozenset[str]
    #: its name and where it stands
    place: str
    #: its name; its place where a pack that is tried before has a rule of the same name
    called: str
    #: it covers more than one node
    deep: bool
    #: its left side, ready to be tried at nodes
    matcher: Matcher

    @property
    def general(self) -> bool:
        """Whether its root may be a node of any operator."""
        root = self.equations[-1].value
        return isinstance(root, NodePattern) and root.wildcard is not None


class Override(NamedTuple):
    """A rule of one pack that takes the place of a rule of another, each with its place, and the operator it is of."""

    rule: str
    instead_of: str
    operator: str


class RuleSet:
    """The rules of checked files at one opset, by stage and by root operator, each compiled when it is first asked for.

    The first file names the dialects. `settle` says what the results of the target's nodes are, where no schema does,
    `settle_others` those of nodes of other domains, and `settle_source` those of nodes of the source.
    What is asked for is few of many: a model has a dozen kinds of operators, and reading all rules costs more than
    converting it.
    """

    def __init__(
        self,
        files: Sequence[tree.RuleFile],
        catalogue: Catalogue,
        opset: int,
        contents: Contents | None = None,
        settle: Settle | None = None,
        settle_others: Settle | None = None,
        settle_source: Settle | None = None,
    ) -> None:
        self._files, self._catalogue, self.opset = files, catalogue, opset
        self.highest = max(file.opsets[1] for file in files)
        self.settle, self.settle_others, self.settle_source = settle, settle_others, settle_source
        contents = contents or outline_rules(files, catalogue)
        leading = find_leading(files)
        self.source, self.target = catalogue.find_dialect(leading.source), catalogue.find_dialect(leading.target)
        self.definitions: Mapping[str, tree.Definition] = _Definitions(files, contents.definitions)
        self._compiled: dict[tuple[int, int, int, int], Rule] = {}
        self._outlined: dict[tuple[str, str, str, bool | None], list[Outline]] = {}
        self._near: dict[tuple[str, str, str, bool | None, tuple[str | None, ...]], list[Outline]] = {}
        self._found: dict[tuple[tuple[int, int, int, int], str], Rule | None] = {}
        self.availability = Availability(self.definitions)
        self._stages = frozenset(one.stage for one in contents.outlines)
        self._index: dict[tuple[str, Key], list[Outline]] = {}
        self._nearest: dict[str, int] = {}
        # a model of any opset has the newest forms where it is adapted to another
        self._find_source, self._find_target, self._find_newest = (
            _SpecTable(dialect, at).__getitem__
            for dialect, at in ((self.source, opset), (self.target, opset), (self.target, self.highest))
        )
        for one in contents.outlines:
            self._nearest[one.name] = min(one.order[0], self._nearest.get(one.name, one.order[0]))
            for key in one.roots:
                self._index.setdefault((one.stage, key), []).append(one)

    def list_candidates(self, stage: str, domain: str, operator: str) -> tuple[Rule, ...]:
        """The rules of a stage whose root may be an operator, the first to try first."""
        outlines = self.list_outlines(stage, domain, operator)
        found = (self.find_rule(one, operator) for one in outlines)
        return tuple(rule for rule in found if rule is not None)

    def iterate_candidates(self, stage: str, node: ir.Node, deep: bool | None = None) -> Iterator[Rule]:
        """Those of them that may fit at a node as far as their outlines tell: most are never compiled.

        `deep` asks for those that cover several nodes, or one alone.
        """
        find_spec = (
            self._find_source if stage in OF_SOURCE else self._find_newest if stage == ADAPT else self._find_target
        )
        operator = node.op_type
        made = tuple([None if one is None else _name_producer(one) for one in node.inputs[:_LOOKED_AT]])
        key = stage, node.domain, operator, deep, made
        outlines = self._near.get(key)
        if outlines is None:
            outlines = self._near[key] = self._list_near(*key)
        orders = list_orders(node, find_spec) if outlines else ()
        for one in outlines if orders else ():
            if may_match(one.needs, node, orders, find_spec):
                rule = self.find_rule(one, operator)
                if rule is not None:
                    yield rule

    def is_about(self, domain: str, operator: str) -> bool:
        """Whether a rule lowers an operator, or brings this very one to another form."""
        return bool(self.list_candidates(LOWER, domain, operator)) or any(
            not rule.general for rule in self.list_candidates(NORMALIZE, domain, operator)
        )

    def list_outlines(self, stage: str, domain: str, operator: str, deep: bool | None = None) -> list[Outline]:
        """The rules of a stage whose root may be an operator as they are known before they are compiled, in order.

        `deep` asks for those that cover several nodes, or one alone.
        """
        key = stage, domain, operator, deep
        if key not in self._outlined:
            found = [one for one in self._index.get((stage, (domain, operator)), ()) if deep in (None, one.deep)]
            self._outlined[key] = sorted(found, key=lambda one: one.order)
        return self._outlined[key]

    def _list_near(
        self, stage: str, domain: str, operator: str, deep: bool | None, made: tuple[str | None, ...]
    ) -> list[Outline]:
        """Those of the rules about an operator that may fit where its first operands come from these."""
        orders = [made, made[::-1]] if len(made) == 2 else [made]
        found = self.list_outlines(stage, domain, operator, deep)
        return [one for one in found if may_match_producers(one.needs, operator, orders)]

    def find_rule(self, one: Outline, operator: str) -> Rule | None:
        """The rule of an outline; None where it is for other operators or opsets."""
        key = one.order, operator
        if key not in self._found:
            rule = self._make_rule(one)
            there = any(operator in pattern.specs for pattern in iterate_nodes(rule.equations[-1].value))
            self._found[key] = rule if there and (one.stage != ADAPT or self._is_for_opset(one)) else None
        return self._found[key]

    def list_traits(self, operator: str) -> frozenset[str]:
        """What `trait` knows of an operator of the source or the target."""
        specs = (dialect.find_operator(operator) for dialect in (self.source, self.target))
        return next((spec.words for spec in specs if spec is not None), frozenset())

    def list_stages(self) -> frozenset[str]:
        """The stages that have rules."""
        return self._stages

    def list_roots(self) -> Iterator[tuple[str, Key]]:
        """Every stage and operator that rules are about."""
        yield from self._index

    def _is_for_opset(self, one: Outline) -> bool:
        low, high = self._files[one.file].opsets
        opsets = frozenset(range(low, high + 1))
        return self.opset in self.availability.list_adapted(self._write_out(one), self.target, opsets)

    def _write_out(self, one: Outline) -> tree.Rule:
        return write_out_member(self._files[one.file].items[one.item], one.member)

    def _make_rule(self, one: Outline) -> Rule:
        if one.order not in self._compiled:
            file = self._files[one.file]
            written = self._write_out(one)
            source, target = self._catalogue.find_dialect(file.source), self._catalogue.find_dialect(file.target)
            self._compiled[one.order] = _compile(written, source, target, one, self)
            if one.order[0] != self._nearest[one.name]:
                rule = self._compiled[one.order]
                self._compiled[one.order] = replace(rule, called=rule.place)
        return self._compiled[one.order]


def _name_producer(value: ir.Value) -> str:
    """The operator that a value comes from, "" where none makes it."""
    producer = value.producer()
    return "" if producer is None else producer.op_type


class _SpecTable(dict[str, "OperatorSpec | None"]):
    """The operators of a dialect at an opset, each looked up once."""

    def __init__(self, dialect: Dialect, opset: int) -> None:
        self._dialect, self._opset = dialect, opset

    def __missing__(self, name: str) -> OperatorSpec | None:
        found = self[name] = self._dialect.find_operator(name, self._opset)
        return found


class _Definitions(Mapping[str, tree.Definition]):
    """Definitions by name, each looked up where it stands when it is called."""

    def __init__(self, files: Sequence[tree.RuleFile], places: Mapping[str, tuple[int, int]]) -> None:
        self._files, self._places = files, places
        self._found: dict[str, tree.Definition] = {}

    def __getitem__(self, name: str) -> tree.Definition:
        if name not in self._found:
            file, item = self._places[name]
            found = self._files[file].items[item]
            assert isinstance(found, tree.Definition)
            self._found[name] = found
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _compile(rule: tree.Rule, source: Dialect, target: Dialect, one: Outline, rules: RuleSet) -> Rule:
    reads = source if rule.stage in OF_SOURCE else target
    # a model of any opset has the newest forms where it is adapted to another
    newest = rules.highest if rule.stage == ADAPT else rules.opset
    admits = make_operator_test(rule.clauses, rules.definitions, rules.list_traits)
    equations = compile_equations(rule.equations, reads, newest, admits)
    layouts = dict(_list_layouts(equations))
    # where types of values say grids, what is stored of a constant is not what the model computes with
    codes = not (rule.stage in OPTIONAL and source is target and target.has_role(QUANTIZE_BY))
    return Rule(
        rule.name,
        one.stage,
        rule.span,
        equations,
        rule.clauses,
        rule.templates,
        rules.availability,
        layouts,
        list_template_dialects(rule.stage, source, target),
        one.order,
        frozenset(target.name for equation in equations for target in equation.targets),
        _list_beside(rule.equations),
        f"{rule.name} ({rule.span.file}:{rule.span.line})",
        rule.name,
        one.deep,
        Matcher(equations, partial(collect_guards, rule.clauses, rules.definitions), codes),
    )


def _list_beside(equations: Sequence[tree.Equation]) -> frozenset[str]:
    """The names of results that are neither the root's nor operands of a pattern."""
    read = {one.name for equation in equations for one in walk(equation.value) if isinstance(one, tree.Name)}
    return frozenset(target.name for equation in equations[:-1] for target in equation.targets) - read


def _list_layouts(equations: Iterable[Defined]) -> Iterator[tuple[str, str]]:
    def list_operand_layouts(pattern: Operand) -> Iterator[tuple[str, str]]:
        if isinstance(pattern, Variable) and pattern.layout:
            yield pattern.name, pattern.layout
        for node in iterate_nodes(pattern) if isinstance(pattern, NodePattern | AnyOf) else ():
            for operand in node.operands:
                yield from list_operand_layouts(operand)

    for equation in equations:
        for target in equation.targets:
            if target.layout:
                yield target.name, target.layout
        yield from list_operand_layouts(equation.value)

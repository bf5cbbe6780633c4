"""Rule files into rules: families and tables written out, patterns compiled, indexed by stage and operator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import onnx_ir as ir

from ..base.constants import Elements
from ..base.errors import Span
from ..base.startup import dataclass, replace
from ..dialects.operators import Catalogue, Dialect, list_catalogue
from ..expressions.compile import Frame, Located, evaluate, read_truth
from ..syntax import tree
from ..syntax.tree_traversal import rebuild
from .availability import Availability
from .conditions import Condition, collect_guards, list_conditions, list_variables
from .matcher import Matcher
from .pattern import AnyOf, Defined, NodePattern, Operand, Variable, compile_equations, is_deep, iterate_nodes

#: in the order they run; what operators mean in others of the source is asked for where they are tried alone
STAGES = ("meaning", "integers", "normalize", "lower", "recover", "simplify", "tune", "accept", "support", "adapt")
MEANING, INTEGERS, NORMALIZE, LOWER, RECOVER, SIMPLIFY, TUNE, ACCEPT, SUPPORT, ADAPT = STAGES
#: those that read the source dialect, and those that go over each node once
OF_SOURCE, ONCE = STAGES[:4], (INTEGERS, LOWER)
#: those whose rules build nothing: they say what a target takes, of a whole graph or for a part of it
JUDGING = (ACCEPT, SUPPORT)


def list_template_dialects(stage: str, source: Dialect, target: Dialect) -> tuple[Dialect, ...]:
    """The dialects in which the templates of a stage are written, the one that infix operators stand for last."""
    return {MEANING: (source,), INTEGERS: (source, target), NORMALIZE: (source, target)}.get(stage, (target,))


#: what `SOURCE => Target` entries of an `over` family are called in its rule
FAMILY = ("SRC", "DST")

Key = tuple[str, str]

#: says of a node without a schema, by other means, what its results are: lets them have types and shapes, and returns
#: their elements where these are known already
Settle = Callable[[ir.Node], "Sequence[Elements] | None"]


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
    #: its name and where it stands
    place: str
    #: its name; its place where a pack that is tried before has a rule of the same name
    called: str
    #: it covers more than one node
    deep: bool
    #: its left side, ready to be tried at nodes
    matcher: Matcher


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a rule before it is compiled: where it stands, when it is tried, and at which operators.

    `member` is the position in a table or an `over` family, None for a rule that stands for itself.
    """

    name: str
    stage: str
    roots: tuple[Key, ...]
    order: tuple[int, int, int, int]
    file: int
    item: int
    member: int | None
    #: it covers more than one node
    deep: bool


@dataclass(frozen=True, slots=True)
class Contents:
    """What rule files hold, by name: rules in outline, and where each definition stands (file and item)."""

    outlines: tuple[Outline, ...]
    definitions: Mapping[str, tuple[int, int]]

    def select(self, skip: Sequence[str], only: Sequence[str]) -> Contents:
        """The same without the rules to `skip`, or with those alone that `only` names.

        A rule that stands for several is named by itself, or one of them as `rule.member`.
        """
        if not skip and not only:
            return self

        def is_named(one: Outline, names: Sequence[str]) -> bool:
            return one.name in names or one.name.partition(".")[0] in names

        kept = (one for one in self.outlines if not is_named(one, skip) and (not only or is_named(one, only)))
        return Contents(tuple(kept), self.definitions)

    def list_names(self) -> set[str]:
        """The names by which rules may be selected."""
        return {name for one in self.outlines for name in (one.name, one.name.partition(".")[0])}


class Override(NamedTuple):
    """A rule of one pack that takes the place of a rule of another, each with its place, and the operator it is of."""

    rule: str
    instead_of: str
    operator: str


class RuleSet:
    """The rules of checked files at one opset, by stage and by root operator, each compiled when it is first asked for.

    The first file names the dialects. `settle` says what the results of the target's nodes are, where no schema does.
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
    ) -> None:
        self._files, self._catalogue, self.opset = files, catalogue, opset
        self.highest = max(file.opsets[1] for file in files)
        self.settle = settle
        contents = contents or outline_rules(files, catalogue)
        self.source, self.target = catalogue.find_dialect(files[0].source), catalogue.find_dialect(files[0].target)
        self.definitions: Mapping[str, tree.Definition] = _Definitions(files, contents.definitions)
        self._compiled: dict[tuple[int, int, int, int], Rule] = {}
        self._found: dict[tuple[str, str, str, bool | None], tuple[Rule, ...]] = {}
        self.availability = Availability(self.definitions)
        self._stages = frozenset(one.stage for one in contents.outlines)
        self._index: dict[tuple[str, Key], list[Outline]] = {}
        self._nearest: dict[str, int] = {}
        for one in contents.outlines:
            self._nearest[one.name] = min(one.order[0], self._nearest.get(one.name, one.order[0]))
            for key in one.roots:
                self._index.setdefault((one.stage, key), []).append(one)

    def list_candidates(self, stage: str, domain: str, operator: str, deep: bool | None = None) -> tuple[Rule, ...]:
        """The rules of a stage whose root may be an operator, the first to try first.

        `deep` asks for those that cover several nodes, or one alone.
        """
        key = stage, domain, operator, deep
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = tuple(self._find_candidates(*key))
        return found

    def _find_candidates(self, stage: str, domain: str, operator: str, deep: bool | None) -> Iterator[Rule]:
        found = [one for one in self._index.get((stage, (domain, operator)), ()) if deep in (None, one.deep)]
        for one in sorted(found, key=lambda one: one.order):
            rule = self._make_rule(one)
            there = any(operator in pattern.specs for pattern in iterate_nodes(rule.equations[-1].value))
            if there and (stage != ADAPT or self._is_for_opset(one)):
                yield rule

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
        return _write_out_member(self._files[one.file].items[one.item], one.member)

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


def outline_rules(files: Sequence[tree.RuleFile], catalogue: Catalogue) -> Contents:
    """Outline the rules of checked files: of the packs that are laid over each other the last is tried first."""
    outlines: list[Outline] = []
    places = {
        item.name: (number, place)
        for number, file in enumerate(files)
        for place, item in enumerate(file.items)
        if isinstance(item, tree.Definition)
    }
    for number, file in enumerate(files):
        source, target = catalogue.find_dialect(file.source), catalogue.find_dialect(file.target)
        for place, item in enumerate(file.items):
            if isinstance(item, tree.Definition):
                continue
            for member, rule in _list_members(item):
                reads = source if rule.stage in OF_SOURCE else target
                equations = compile_equations(rule.equations, reads, file.opsets[1])
                weight = sum(min(n.compute_weight() for n in iterate_nodes(e.value)) for e in equations)
                order = (-file.rank, -rule.priority, -weight, len(outlines))
                roots = tuple(dict.fromkeys(_list_roots(rule.equations[-1].value, reads, file.opsets)))
                deep = is_deep(equations)
                outlines.append(Outline(rule.name, rule.stage, roots, order, number, place, member, deep))
    return Contents(tuple(outlines), places)


def _list_members(item: tree.Rule | tree.Table, known: Container[str] = ()) -> Iterator[tuple[int | None, tree.Rule]]:
    if isinstance(item, tree.Rule) and not item.over:
        if item.name not in known:
            yield None, item
        return
    for member, entry in enumerate(item.over if isinstance(item, tree.Rule) else item.entries):
        if f"{item.name}.{entry.source}" not in known:
            yield member, _write_out_member(item, member)


def _write_out_member(item: tree.Rule | tree.Table | tree.Definition, member: int | None) -> tree.Rule:
    """A rule, or the one that a member of a table or an `over` family stands for."""
    if isinstance(item, tree.Table):
        assert member is not None
        return _make_row_rule(item, item.entries[member])
    assert isinstance(item, tree.Rule)
    return item if member is None else _make_member(item, item.over[member])


def _list_roots(expression: tree.Expression, reads: Dialect, opsets: tuple[int, int]) -> Iterator[Key]:
    """The operators that a pattern may match at its root, at some of the opsets."""
    if isinstance(expression, tree.Choice):
        yield from _list_roots(expression.left, reads, opsets)
        yield from _list_roots(expression.right, reads, opsets)
    elif isinstance(expression, tree.Call) and expression.wildcard:
        options = {attribute.name for attribute in expression.attributes}
        for opset in opsets:
            known = list_catalogue(reads, opset).values()
            yield from ((spec.domain, spec.name) for spec in known if options <= spec.options.keys())
    elif isinstance(expression, tree.Call):
        named = reads.operators.get(expression.callee)
        yield reads.domain if named is None else named.domain, expression.callee


def write_out(files: Iterable[tree.RuleFile], known: Container[str] = ()) -> Iterator[tuple[tree.RuleFile, tree.Rule]]:
    """Every rule of some files but for those `known` by name, one for each entry of a table or an `over` family."""
    for file in files:
        for item in file.items:
            if not isinstance(item, tree.Definition):
                yield from ((file, rule) for _, rule in _list_members(item, known))


def expand_family(rule: tree.Rule) -> list[tree.Rule]:
    """The rules that an `over` family stands for; a rule without one stands for itself."""
    return [_make_member(rule, entry) for entry in rule.over] if rule.over else [rule]


def _make_member(rule: tree.Rule, entry: tree.Entry) -> tree.Rule:
    named = replace(rule, name=f"{rule.name}.{entry.source}", over=())
    found = rename_tree(named, dict(zip(FAMILY, (entry.source, entry.target), strict=True)))
    assert isinstance(found, tree.Rule)
    return found


def _make_row_rule(table: tree.Table, entry: tree.Entry) -> tree.Rule:
    span = entry.span

    def make_side(operator: str) -> tree.Equation:
        operands = tree.Argument(tree.Name("xs", span), False, False, True, None, span)
        call = tree.Call(operator, False, (operands,), (), False, span, span)
        return tree.Equation((tree.Target("ys", True, None, span),), call, span)

    template = tree.Template(None, (make_side(entry.target),), span)
    name = f"{table.name}.{entry.source}"
    return tree.Rule(name, LOWER, 0, (), (make_side(entry.source),), (), (template,), table.tests, span)


def rename_tree(node: Any, names: Mapping[str, str]) -> Any:
    """A syntax tree in which some operators, enumerants and functions have other names."""
    node = rebuild(node, lambda part: rename_tree(part, names))
    if isinstance(node, tree.Call) and node.callee in names:
        return replace(node, callee=names[node.callee])
    if isinstance(node, tree.Symbol) and node.name in names:
        return replace(node, name=names[node.name])
    return node


def _compile(rule: tree.Rule, source: Dialect, target: Dialect, one: Outline, rules: RuleSet) -> Rule:
    reads = source if rule.stage in OF_SOURCE else target
    # a model of any opset has the newest forms where it is adapted to another
    newest = rules.highest if rule.stage == ADAPT else rules.opset
    asked = list(list_conditions(rule.clauses, rules.definitions))
    equations = compile_equations(rule.equations, reads, newest, partial(_is_admitted, asked, rules.list_traits))
    layouts = dict(_list_layouts(equations))
    return Rule(
        rule.name,
        rule.stage,
        rule.span,
        equations,
        rule.clauses,
        rule.templates,
        rules.availability,
        layouts,
        list_template_dialects(rule.stage, source, target),
        one.order,
        frozenset(target.name for equation in equations for target in equation.targets),
        f"{rule.name} ({rule.span.file}:{rule.span.line})",
        rule.name,
        one.deep,
        Matcher(equations, asked, collect_guards(rule.clauses, rules.definitions)),
    )


def _is_admitted(
    asked: Sequence[Condition], traits: Callable[[str], frozenset[str]], wildcard: str, operator: str
) -> bool:
    """Whether the conditions that speak of a wildcard alone hold for an operator."""
    for one in itertools.takewhile(lambda one: one.certain, asked):
        names = list_variables(one.expression)
        if {one.meant.get(name, name) for name in names} != {wildcard}:
            continue
        try:
            if not read_truth(evaluate(one.expression, Frame(dict.fromkeys(names, operator), traits=traits))):
                return False
        except Located:
            continue  # the guard itself tells what is wrong
    return True


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

"""Rule files into rules: families and tables written out, patterns compiled, indexed by stage and operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .errors import Span
from .language import tree
from .operators import Catalogue, Dialect
from .pattern import AnyOf, Defined, NodePattern, Operand, Variable, compile_equations, nodes

#: in the order they run; the first two read the source dialect
STAGES = ("normalize", "lower", "recover", "simplify", "adapt")
#: what `SOURCE => Target` entries of an `over` family are called in its rule
FAMILY = ("SRC", "DST")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ready to run at one opset."""

    name: str
    stage: str
    span: Span
    equations: tuple[Defined, ...]
    clauses: tuple[tree.Where | tree.Require | tree.Let, ...]
    templates: tuple[tree.Template, ...]
    layouts: Mapping[str, str]
    builds: tuple[Dialect, ...]
    order: tuple[int, int, int]

    @property
    def results(self) -> frozenset[str]:
        """The names that the left side gives to results of nodes."""
        return frozenset(target.name for equation in self.equations for target in equation.targets)

    @property
    def place(self) -> str:
        """The rule's name and where it stands."""
        return f"{self.name} ({self.span.file}:{self.span.line})"

    @property
    def deep(self) -> bool:
        """Whether it covers more than one node."""
        operands = (o for e in self.equations for n in nodes(e.value) for o in n.operands)
        return len(self.equations) > 1 or any(isinstance(o, NodePattern | AnyOf) for o in operands)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a conversion at one opset, by stage and by root operator."""

    index: Mapping[str, Mapping[Key, tuple[Rule, ...]]]
    definitions: Mapping[str, tree.Definition]
    source: Dialect
    target: Dialect

    def candidates(self, stage: str, domain: str, operator: str) -> tuple[Rule, ...]:
        """The rules of a stage whose root may be an operator, the first to try first."""
        return self.index.get(stage, {}).get((domain, operator), ())


def compile_rules(files: Sequence[tree.RuleFile], catalogue: Catalogue, opset: int) -> RuleSet:
    """Compile checked rule files, the first of which names the dialects, for one opset."""
    definitions = {d.name: d for file in files for d in file.items if isinstance(d, tree.Definition)}
    index: dict[str, dict[Key, list[Rule]]] = {}
    for position, (file, rule) in enumerate(written_out(files)):
        compiled = _compile(rule, catalogue.dialect(file.source), catalogue.dialect(file.target), opset, position)
        roots = index.setdefault(rule.stage, {})
        for pattern in nodes(compiled.equations[-1].value):
            for spec in pattern.specs.values():
                entries = roots.setdefault((spec.domain, spec.name), [])
                if compiled not in entries:
                    entries.append(compiled)
    ordered = {
        stage: {key: tuple(sorted(entries, key=lambda rule: rule.order)) for key, entries in roots.items()}
        for stage, roots in index.items()
    }
    first = files[0]
    return RuleSet(ordered, definitions, catalogue.dialect(first.source), catalogue.dialect(first.target))


def written_out(files: Iterable[tree.RuleFile]) -> Iterator[tuple[tree.RuleFile, tree.Rule]]:
    """Every rule of some files, with one rule for each entry of a table or an `over` family."""
    for file in files:
        for item in file.items:
            if isinstance(item, tree.Table):
                for entry in item.entries:
                    yield file, _row(item, entry)
            elif isinstance(item, tree.Rule):
                for rule in family(item):
                    yield file, rule


def family(rule: tree.Rule) -> list[tree.Rule]:
    """The rules that an `over` family stands for; a rule without one stands for itself."""
    if not rule.over:
        return [rule]
    found = []
    for entry in rule.over:
        named = replace(rule, name=f"{rule.name}.{entry.source}", over=())
        found.append(_substitute(named, dict(zip(FAMILY, (entry.source, entry.target), strict=True))))
    return found


def _row(table: tree.Table, entry: tree.Entry) -> tree.Rule:
    span = entry.span

    def side(operator: str) -> tree.Equation:
        operands = tree.Argument(tree.Name("xs", span), False, False, True, None, span)
        call = tree.Call(operator, False, (operands,), (), False, span, span)
        return tree.Equation((tree.Target("ys", True, None, span),), call, span)

    template = tree.Template(None, (side(entry.target),), span)
    name = f"{table.name}.{entry.source}"
    return tree.Rule(name, "lower", 0, (), (side(entry.source),), (), (template,), table.tests, span)


def _substitute(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_substitute(item, names) for item in node)
    if isinstance(node, Span) or not hasattr(node, "__dataclass_fields__"):
        return node
    changed = {entry.name: _substitute(getattr(node, entry.name), names) for entry in fields(node)}
    if isinstance(node, tree.Call):
        changed["callee"] = names.get(node.callee, node.callee)
    elif isinstance(node, tree.Symbol):
        changed["name"] = names.get(node.name, node.name)
    return type(node)(**changed)


def _compile(rule: tree.Rule, source: Dialect, target: Dialect, opset: int, position: int) -> Rule:
    reads = source if rule.stage in STAGES[:2] else target
    builds = (source, target) if rule.stage == STAGES[0] else (target,)
    equations = compile_equations(rule.equations, reads, opset)
    layouts = dict(_layouts(equations))
    weight = sum(min(n.weight() for n in nodes(e.value)) for e in equations)
    order = (-rule.priority, -weight, position)
    return Rule(rule.name, rule.stage, rule.span, equations, rule.clauses, rule.templates, layouts, builds, order)


def _layouts(equations: Iterable[Defined]) -> Iterator[tuple[str, str]]:
    def operands(pattern: Operand) -> Iterator[tuple[str, str]]:
        if isinstance(pattern, Variable) and pattern.layout:
            yield pattern.name, pattern.layout
        for node in nodes(pattern) if isinstance(pattern, NodePattern | AnyOf) else ():
            for operand in node.operands:
                yield from operands(operand)

    for equation in equations:
        for target in equation.targets:
            if target.layout:
                yield target.name, target.layout
        yield from operands(equation.value)

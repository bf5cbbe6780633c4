"""The operators that rules support, and how, read from the rules themselves and from ops.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx.defs

from ..base.errors import CallError, Span
from ..base.startup import dataclass, replace
from ..dialects.onnx_schemas import find_schema
from ..dialects.operators import FORM, Catalogue, Dialect, OperatorSpec
from ..expressions.compile import TRAIT
from ..expressions.functions import convert_to_python
from ..expressions.opset_range import Opsets, find_possible
from ..rewrite.availability import Availability
from ..rewrite.families import write_out
from ..rewrite.stages import MEANING, NORMALIZE, OF_SOURCE, list_template_dialects
from ..syntax import tree
from ..syntax.diagnostics import spell, suggest
from ..syntax.tree_traversal import find_leading, walk
from .state import ROLES

#: an operator that rules take in every case, in some cases, or never
WHOLE, PART, NONE = "yes", "in part", "no"
#: an operator that no rule is about since the engine takes all of its role
STATE = "as state"
#: an operator that no rule is about and that becomes what its definition says that it is made of
MADE = "as it is made of others"
#: an operator of a dialect that rules rewrite into itself: some rules are about it, or none is and it stays as it is
SIMPLIFIED, KEPT = "simplified", "kept"

_ANY, _IGNORED = "any", "ignored"


@dataclass(frozen=True, slots=True)
class Use:
    """One rule about an operator: at which opsets it applies, under which conditions, and what it asks of options."""

    rule: str
    span: Span
    stage: str
    opsets: Opsets
    conditions: tuple[str, ...]
    demands: tuple[str, ...]
    options: Mapping[str, str]
    #: the pattern is one node
    alone: bool
    #: the rule is about `any` operator of a kind
    general: bool


@dataclass(frozen=True, slots=True)
class Support:
    """An operator with what rules make of it; `limits` says in words what is not taken."""

    operator: OperatorSpec
    uses: tuple[Use, ...]
    state: str
    options: Mapping[str, str]
    limits: tuple[str, ...]
    opsets: Opsets


def survey_support(
    files: Sequence[tree.RuleFile], catalogue: Catalogue, sources: Mapping[str, str] | None = None
) -> list[Support]:
    """What rules make of every operator of the dialect that they read, in the order of the operators' codes.

    `sources` holds the texts of the files, from which conditions are quoted.
    """
    leading = find_leading(files)
    dialect, within = catalogue.find_dialect(leading.source), leading.source == leading.target
    declared = frozenset(range(leading.opsets[0], leading.opsets[1] + 1))
    uses: dict[str, list[Use]] = {}
    definitions = {item.name: item for file in files for item in file.items if isinstance(item, tree.Definition)}
    availability = Availability(definitions)
    for file, rule in write_out(files):
        if (rule.stage not in OF_SOURCE and not within) or rule.stage == MEANING:
            continue
        builds = list_template_dialects(rule.stage, dialect, catalogue.find_dialect(file.target))
        there = [availability.list_opsets(template.equations, builds, declared) for template in rule.templates]
        for call in _iterate_calls(rule.equations[-1].value):
            for spec in _list_operators(call, rule, dialect):
                uses.setdefault(spec.name, []).append(_describe_use(rule, call, spec, file, sources or {}, there))
    told = [spec for spec in dialect.operators.values() if FORM not in spec.traits]
    if dialect.schemas:  # older forms of operators have names that no file has
        older = {name for spec in told for name in spec.facts.older.values()}
        told = [
            one for spec in told if spec.name not in older and (one := dialect.find_operator(spec.name)) is not None
        ]
    of_domain = [spec for spec in told if spec.domain == dialect.domain or not dialect.schemas]
    ranked = sorted(of_domain, key=lambda spec: (spec.code is None, spec.code or 0, spec.name))
    ranked += sorted((spec for spec in told if spec not in of_domain), key=_name_with_domain)

    def describe(spec: OperatorSpec) -> Support:
        found, named = uses.get(spec.name, []), spec
        if spec.domain != dialect.domain and dialect.schemas:
            named = replace(spec, name=_name_with_domain(spec))
        if within:
            return _describe_rewriting(named, found, declared)
        return _summarize_uses(named, found, declared, dialect)

    return [describe(spec) for spec in ranked]


def _name_with_domain(spec: OperatorSpec) -> str:
    """The name that files have for an operator, behind its domain."""
    return f"{spec.domain}.{spec.facts.called or spec.name}"


def find_operator(found: Sequence[Support], name: str) -> Support:
    """What is known of the operator of a name, in capitals or not; raises CallError where there is none, with one of a
    name like it."""
    names = {one.operator.name.casefold(): one for one in found}
    one = names.get(name.casefold())
    if one is None:
        close = suggest(name, [one.operator.name for one in found])
        raise CallError(f"there is no operator {name}" + (f": {close}" if close else ""))
    return one


def _iterate_calls(expression: tree.Expression) -> Iterator[tree.Call]:
    if isinstance(expression, tree.Choice):
        yield from _iterate_calls(expression.left)
        yield from _iterate_calls(expression.right)
    elif isinstance(expression, tree.Call):
        yield expression


def _list_operators(call: tree.Call, rule: tree.Rule, dialect: Dialect) -> list[OperatorSpec]:
    """The operators that a call in a pattern stands for: for `any`, those with the options and traits it asks for.

    One that asks for none says nothing of any operator.
    """
    if not call.wildcard:
        named = dialect.find_operator(call.callee)
        return [] if named is None else [named]
    wanted = {attribute.name for attribute in call.attributes}
    traits = {
        node.arguments[1].value.name
        for node in walk(tuple(clause for clause in rule.clauses if isinstance(clause, tree.Where)))
        if isinstance(node, tree.Call) and node.callee == TRAIT and isinstance(node.arguments[1].value, tree.Name)
    }
    asked = wanted or traits
    return [s for s in dialect.operators.values() if asked and wanted <= s.options.keys() and traits <= s.words]


def _describe_use(
    rule: tree.Rule,
    call: tree.Call,
    spec: OperatorSpec,
    file: tree.RuleFile,
    sources: Mapping[str, str],
    there: Sequence[Opsets],
) -> Use:
    """How a rule treats an operator; `there` are the opsets at which all that each of its templates builds exists."""
    opsets = frozenset(range(file.opsets[0], file.opsets[1] + 1))
    opsets, conditions, demands = _sort_clauses(rule, opsets, sources)
    reached = frozenset[int]()
    for template, known in zip(rule.templates, there, strict=True):
        reached |= known & (opsets if template.condition is None else find_possible(template.condition, opsets))
    for argument in call.arguments:
        if argument.const and isinstance(argument.value, tree.Name):
            conditions.append(f"{argument.value.name} is constant")
        elif isinstance(argument.value, tree.Literal):
            conditions.append("an operand is " + spell(argument.value.value))
    alone = len(rule.equations) == 1 and not any(isinstance(a.value, tree.Call | tree.Choice) for a in call.arguments)
    return Use(
        rule.name,
        rule.span,
        rule.stage,
        reached,
        tuple(conditions),
        tuple(demands),
        _describe_options(call, spec),
        alone,
        call.wildcard,
    )


def _sort_clauses(rule: tree.Rule, opsets: Opsets, sources: Mapping[str, str]) -> tuple[Opsets, list[str], list[str]]:
    """The opsets of some at which the clauses of a rule can hold, and of those that are not about opsets what makes it
    not fit and what it demands."""
    conditions: list[str] = []
    demands: list[str] = []
    for clause in rule.clauses:
        if isinstance(clause, tree.Let | tree.Remark):
            continue
        left = find_possible(clause.condition, opsets)
        if left != opsets:
            opsets = left
        elif isinstance(clause, tree.Require):
            demands.append(clause.message)
        else:
            conditions.append(_quote(clause.condition.span, sources))
    return opsets, conditions, demands


def _describe_options(call: tree.Call, spec: OperatorSpec) -> dict[str, str]:
    found = {}
    mentioned = {attribute.name: attribute.value for attribute in call.attributes}
    for option in spec.options.values():
        value = mentioned.get(option.name)
        if value is None:
            found[option.name] = _ANY if call.rest else spell(convert_to_python(option.default))
        elif isinstance(value, tree.Name):
            found[option.name] = _IGNORED if value.name == "_" else _ANY
        else:
            found[option.name] = (
                spell(value.value) if isinstance(value, tree.Literal) else getattr(value, "name", "some")
            )
    return found


def _summarize_uses(spec: OperatorSpec, uses: Sequence[Use], declared: Opsets, dialect: Dialect) -> Support:
    own = [use for use in uses if use.alone and not use.general]
    if not own:
        if not uses and dialect.schemas and _is_function(spec):
            return Support(spec, (), MADE, {}, (), declared)
        if not uses and spec.role in ROLES:
            return Support(spec, (), STATE, {}, (ROLES[spec.role],), declared)
        said = "only inside larger patterns" if uses else spec.unsupported or "no rule is about it"
        return Support(spec, tuple(uses), PART if uses else NONE, {}, (said,), frozenset())
    options = {name: _join_options([use.options[name] for use in own]) for name in spec.options}
    opsets = frozenset().union(*(use.opsets for use in own))
    limits: list[str] = []
    for name, taken in options.items():
        if taken in (_ANY, _IGNORED) or _is_removed(name, uses, dialect) or _is_distinguishing(name, spec, dialect):
            continue
        limits.append(f"{name} is {taken} only")
    alone = {use.conditions[0] for use in own if len(use.conditions) == 1}
    halves = any(f"`not {condition.strip('`')}`" in alone for condition in alone)
    if not halves and not any(not use.conditions for use in own):
        limits += dict.fromkeys("only where " + " and ".join(use.conditions) for use in own)
    limits += dict.fromkeys(f"refused: {demand}" for use in own for demand in use.demands)
    return Support(spec, tuple(uses), PART if limits else WHOLE, options, tuple(limits), opsets or declared)


def _is_function(spec: OperatorSpec) -> bool:
    """Whether the definition of an operator says what it is made of."""
    found: Any = find_schema(spec.name, onnx.defs.onnx_opset_version(), spec.domain)
    bodies = () if found is None else (found.function_opset_versions, found.context_dependent_function_opset_versions)
    return any(bodies)


def _describe_rewriting(spec: OperatorSpec, uses: Sequence[Use], declared: Opsets) -> Support:
    """An operator that needs no rule, as it may stand in the result, with the rules that are about it all the same."""
    own = [use for use in uses if not use.general]
    limits = (", ".join(dict.fromkeys(use.rule for use in own)),) if own else ()
    return Support(spec, tuple(own), SIMPLIFIED if own else KEPT, {}, limits, declared)


def _join_options(taken: Sequence[str]) -> str:
    """What several rules take of one option."""
    if _ANY in taken or set(taken) == {"true", "false"}:
        return _ANY
    return _IGNORED if _IGNORED in taken else " or ".join(dict.fromkeys(taken))


def _is_distinguishing(option: str, spec: OperatorSpec, dialect: Dialect) -> bool:
    """Whether an option distinguishes this operator from another one with the same code."""
    return any(option in other.when for other in dialect.operators.values() if other.code == spec.code)


def _is_removed(option: str, uses: Sequence[Use], dialect: Dialect) -> bool:
    return any(use.stage == NORMALIZE and use.options.get(option) == _ANY for use in uses)


def _quote(span: Span, sources: Mapping[str, str]) -> str:
    lines = sources.get(span.file, "").splitlines()[span.line - 1 : span.end_line]
    if not lines:
        return f"the guard at {span} holds"
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "`" + " ".join(" ".join(lines).split()) + "`"

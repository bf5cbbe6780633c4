"""Digests of rules and layout categories, which tell what changed since they were last tried at length."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ..engine.base.errors import Span
from ..engine.dialects.facts import OperatorFacts
from ..engine.dialects.operators import Dialect, OperatorSpec
from ..engine.dialects.trial_facts import OperatorTrials
from ..engine.packs.loader import Pack
from ..engine.rewrite.families import write_out
from ..engine.rewrite.stages import MEANING
from ..engine.syntax import tree
from ..engine.syntax.tree_traversal import walk
from .categories import list_categories

#: the trait of operators that `activation` names an option of
_ACTIVATED = "output_activation"
#: facts that change no rule and have tests of their own: by which constants are computed, and what grids kernels take
_BESIDE_RULES = frozenset({"computes", "between", "step_ratio", "unbounded"})
_WORD = re.compile(r"\b[A-Za-z_][\w.]*")


class RuleDigest(NamedTuple):
    """A digest of what one rule or category comes down to, and of how many entries of ops.yaml that is."""

    digest: str
    breadth: int


def digest_rules(pack: Pack, names: Collection[str]) -> dict[str, RuleDigest]:
    """Of each rule and layout category called by `names`: its text, the definitions and the entries of ops.yaml that
    it uses."""
    found: dict[str, RuleDigest] = {}
    if not names:
        return found
    definitions = {d.name: d for file in pack.files for d in file.items if isinstance(d, tree.Definition)}
    closed = functools.cache(lambda name: _format_closure(name, definitions, _format_node))
    specs = {name: (dialect, spec) for dialect in pack.catalogue.dialects.values()
             for name, spec in dialect.operators.items()}  # fmt: skip
    entry = functools.cache(lambda name: _format_entry(*specs[name]))
    meanings: dict[str, str] = {}
    for _, rule in write_out(map(_keep_meanings, pack.files)):
        for operator in _list_operators(rule):
            meanings[operator] = meanings.get(operator, "") + _format_node(rule)
    # What rules without tests make of an operator is tried with the rules that name it.
    helpers: dict[str, str] = {}
    for _, rule in write_out(pack.files):
        for operator in _list_operators(rule) if not rule.tests and rule.stage != MEANING else ():
            helpers[operator] = helpers.get(operator, "") + _format_node(rule)
    for _, rule in write_out(pack.files):
        if rule.name not in names:
            continue
        text = _format_node(rule)
        meant = [meanings[operator] for operator in sorted(_list_operators(rule)) if operator in meanings]
        meant += [helpers[operator] for operator in sorted(set(_WORD.findall(text)) & helpers.keys())]
        used = set(_WORD.findall(" ".join((text, *meant))))
        parts = [text, *meant, *(closed(word) for word in sorted(used & definitions.keys()))]
        named = sorted(set(_WORD.findall(" ".join(parts))) & specs.keys())
        found[rule.name] = RuleDigest(_digest([*parts, *map(entry, named)]), len(named))
    for category in list_categories(pack):
        if category.name in names:
            found[category.name] = RuleDigest(_digest([entry(category.operator)]), 1)
    return found


def _keep_meanings(file: tree.RuleFile) -> tree.RuleFile:
    """A file with nothing but the rules that say what operators mean."""
    return replace(file, items=tuple(i for i in file.items if isinstance(i, tree.Rule) and i.stage == MEANING))


def _list_operators(rule: tree.Rule) -> frozenset[str]:
    """The operators that the left side of a rule names."""
    calls = (node for node in walk(rule.equations) if isinstance(node, tree.Call))
    return frozenset(call.callee for call in calls)


def _digest(parts: Collection[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _format_node(node: Any) -> str:
    """A syntax tree as text, without the places where it stands."""
    kind: Any = type(node)
    if kind is str:
        return str(node)
    if kind is tuple or kind is list:
        return f"[{' '.join(map(_format_node, node))}]"
    if kind is Span:
        return ""
    names = _list_fields(kind)
    if names is None:
        return repr(node)
    return f"{kind.__name__}({' '.join([_format_node(getattr(node, name)) for name in names])})"


@functools.cache
def _list_fields(kind: type) -> tuple[str, ...] | None:
    if kind is tree.Template:  # what else is read of a side says nothing of what it makes
        return "condition", "equations", "span"
    if not is_dataclass(kind):
        return None
    # in which other stages a rule is tried says nothing of what it makes
    return tuple(field.name for field in fields(kind) if (kind, field.name) != (tree.Rule, "other_stages"))


def _format_closure(name: str, definitions: Mapping[str, tree.Definition], worded: Callable[[Any], str]) -> str:
    """A definition with all that it uses."""
    seen: dict[str, str] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = worded(definitions[one])
            waiting += sorted(set(_WORD.findall(seen[one])) & definitions.keys())
    return " ".join(seen[one] for one in sorted(seen))


def _format_entry(dialect: Dialect, spec: OperatorSpec) -> str:
    """What ops.yaml says of an operator, its table and its enumerations."""
    kinds = {option.type for option in spec.options.values()} & dialect.enums.keys()
    numbers = {kind: dict(dialect.enums[kind]) for kind in sorted(kinds)}
    facts = dialect.facts
    unions = [members.get(spec.table or "") for members in facts.unions.values()]
    kernels = facts.kernels.get(spec.name)
    more: list[object] = [
        {kind: _make_plain(found.get(kind)) for kind in sorted(kinds)} for found in (facts.fuzz.unheeded, facts.storage)
    ]
    more.append(facts.activation if _ACTIVATED in spec.traits else None)
    more.append(_make_plain(facts.begins) if any(operand.mutable for operand in spec.operands) else None)
    return repr((spec.domain, spec.operands, spec.results, dict(spec.options), spec.code, spec.table,
                 sorted(spec.traits), spec.role, spec.infix, _list_facts(spec.facts), numbers, unions, kernels,
                 more))  # fmt: skip


def _list_facts(facts: OperatorFacts | OperatorTrials) -> dict[str, Any]:
    """The facts that ops.yaml says, in its order, those of a section among the others."""
    found: dict[str, Any] = {}
    for name in facts.said:
        if name in _BESIDE_RULES:
            continue
        value = getattr(facts, name)
        found |= _list_facts(value) if isinstance(value, OperatorTrials) else {name: _make_plain(value)}
    return found


def _make_plain(value: Any) -> Any:
    """A value as it stands in ops.yaml."""
    if isinstance(value, dict):
        return {key: _make_plain(one) for key, one in value.items()}
    return [*map(_make_plain, value)] if isinstance(value, tuple) else value

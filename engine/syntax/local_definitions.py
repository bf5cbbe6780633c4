"""Definitions inside a rule: each becomes one beside the rules that is given the values of the rule which it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.errors import Diagnostic, Note, RuleError
from ..base.startup import replace
from . import tree
from .tree_traversal import list_child_fields, rebuild

#: what every definition knows without being given it
_KNOWN = frozenset({"opset"})

#: by the name that a rule calls it by: a definition as it stands beside the rules, and the values it is given besides
Lifted = Mapping[str, tuple[tree.Definition, tuple[str, ...]]]


class _Captured(Exception):
    """A value that a local definition uses and that means another one where the definition is called."""

    def __init__(self, name: str, call: tree.Call) -> None:
        self.name, self.call = name, call
        super().__init__(name)


def lift_definitions(file: tree.RuleFile, text: str) -> tree.RuleFile:
    """A file, read from a text, whose rules hold no definitions; raises RuleError for one that cannot stand alone."""
    items: list[tree.Rule | tree.Table | tree.Definition] = []
    beside = {item.name: item for item in file.items if isinstance(item, tree.Definition)}
    for item in file.items:
        if isinstance(item, tree.Rule) and item.definitions:
            try:
                items += _lift(item, beside)
            except RuleError as error:
                raise RuleError(error.diagnostics, {file.span.file: text}) from error
        else:
            items.append(item)
    return replace(file, items=tuple(items))


def _lift(rule: tree.Rule, beside: Mapping[str, tree.Definition]) -> Iterator[tree.Rule | tree.Definition]:
    """The definitions of a rule, and the rule without them."""
    lifted: dict[str, tuple[tree.Definition, tuple[str, ...]]] = {}
    for local in rule.definitions:
        first = lifted[local.name][0] if local.name in lifted else beside.get(local.name)
        if first is not None:
            note = Note("it is defined here", first.span)
            raise RuleError([Diagnostic(local.span, f"`{local.name}` is defined already", (note,))], {})
        try:
            body = _give(local.body, lifted, frozenset(local.parameters))
        except _Captured as error:
            raise RuleError([_make_diagnostic(error, lifted)], {}) from error
        used = tuple(dict.fromkeys(_list_free(body, frozenset(local.parameters) | _KNOWN)))
        name = f"{rule.name}.{local.name}"
        lifted[local.name] = tree.Definition(name, (*local.parameters, *used), body, local.span), used
    try:
        changed = replace(
            rule,
            clauses=_give(rule.clauses, lifted, frozenset()),
            templates=_give(rule.templates, lifted, frozenset()),
            definitions=(),
        )
    except _Captured as error:
        raise RuleError([_make_diagnostic(error, lifted)], {}) from error
    yield from (definition for definition, _ in lifted.values())
    yield changed


def _make_diagnostic(error: _Captured, lifted: Lifted) -> Diagnostic:
    definition, _ = lifted[error.call.callee]
    note = Note(f"`{error.call.callee}` uses `{error.name}` of the rule", definition.span)
    return Diagnostic(error.call.span, f"`{error.name}` is another value here", (note,), "give one another name")


def _give(node: Any, lifted: Lifted, bound: frozenset[str]) -> Any:
    """A syntax tree whose calls of local definitions hand over the values of the rule; `bound` are other values."""
    match node:
        case tree.Comprehension() | tree.Fold():
            inner, source = bound | _list_bound(node), node.source
            return rebuild(node, lambda part: _give(part, lifted, bound if part is source else inner))
    node = rebuild(node, lambda part: _give(part, lifted, bound))
    if isinstance(node, tree.Call) and node.callee in lifted:
        definition, used = lifted[node.callee]
        for name in used:
            if name in bound:
                raise _Captured(name, node)
        given = (tree.Argument(tree.Name(name, node.span), False, False, False, None, node.span) for name in used)
        return replace(node, callee=definition.name, arguments=(*node.arguments, *given))
    return node


def _list_free(node: Any, bound: frozenset[str]) -> Iterator[str]:
    """The variables that an expression uses and does not bind, in the order in which they are met."""
    match node:
        case tree.Name(name):
            if name not in bound:
                yield name
        case tree.Comprehension() | tree.Fold():
            yield from _list_free(node.source, bound)
            inner = bound | _list_bound(node)
            for name in list_child_fields(type(node)) or ():
                part = getattr(node, name)
                if name != "source" and (type(part) is tuple or list_child_fields(type(part)) is not None):
                    yield from _list_free(part, inner)
        case tuple():
            for part in node:
                yield from _list_free(part, bound)
        case _:
            for name in list_child_fields(type(node)) or ():
                yield from _list_free(getattr(node, name), bound)


def _list_bound(node: tree.Comprehension | tree.Fold) -> frozenset[str]:
    return frozenset(node.names) | ({node.total} if isinstance(node, tree.Fold) else frozenset())

"""Fragments: parts of patterns and lists of options that are written once, put in where a rule names them.

Those of the same file are put in as it is parsed; those of packs below, which a file names by `use`, once these are
known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..base.errors import RuleError
from ..base.startup import replace
from . import tree
from .diagnostics import ParseError
from .tree_traversal import rebuild, walk

Fragments = Mapping[str, tree.Fragment]


def expand_fragments(file: tree.RuleFile, text: str) -> tree.RuleFile:
    """A file, read from a text, with its fragments in place of their names; raises RuleError where one is misused.

    What it uses of other packs stays as it is. Fragments name no others, so that a file grows no more than by their
    length at each place.
    """
    known: dict[str, tree.Fragment] = {}
    used = {use.called for use in file.uses}
    try:
        for fragment in file.fragments:
            if fragment.name in known:
                raise ParseError(fragment.span, f"fragment `{fragment.name}` is written twice")
            known[fragment.name] = fragment
        for fragment in file.fragments:
            _require_plain(fragment, known)
        items = _expand(tuple(file.items), known, used - known.keys())
    except ParseError as error:
        raise RuleError([error.diagnostic], {file.span.file: text}) from error
    return replace(file, items=items, awaited=tuple(sorted(_list_awaited(items, used))))


def put_in_used(file: tree.RuleFile, known: Fragments) -> tree.RuleFile:
    """A file with fragments of other packs put in; raises RuleError where one is misused."""
    try:
        return replace(file, items=_expand(tuple(file.items), known, ()), awaited=())
    except ParseError as error:
        raise RuleError([error.diagnostic], {}) from error


def _list_awaited(items: Sequence[tree.Rule | tree.Table | tree.Definition], used: Collection[str]) -> set[str]:
    """The fragments of other packs that items name: options, clauses, and parts of patterns, which call no more."""
    spread = (one for one in walk(items) if isinstance(one, tree.Attribute | tree.Let) and one.spread)
    patterns = tuple(item.equations for item in items if isinstance(item, tree.Rule))
    called = {one.callee for one in walk(patterns) if isinstance(one, tree.Call)}
    return {one.name for one in spread} | (called & set(used))


def _require_plain(fragment: tree.Fragment, known: Fragments) -> None:
    for node in walk((fragment.body, fragment.clauses)):
        spread = isinstance(node, tree.Attribute | tree.Let) and node.spread
        if spread or (isinstance(node, tree.Call) and node.callee in known):
            raise ParseError(node.span, f"fragment `{fragment.name}` names another; it is to be written out here")


def _expand(node: Any, known: Fragments, used: Collection[str]) -> Any:
    """A syntax tree with the fragments that it names put in, but for those `used` of other packs."""
    node = rebuild(node, lambda part: _expand(part, known, used))
    if isinstance(node, tree.Call):
        if node.callee in known:
            return _put_in(node, known[node.callee])
        if any(one.spread for one in node.attributes):
            options = (item for one in node.attributes for item in _expand_options(one, known, used))
            return replace(node, attributes=tuple(options))
    if isinstance(node, tree.Rule) and any(isinstance(one, tree.Let) and one.spread for one in node.clauses):
        return replace(node, clauses=tuple(item for one in node.clauses for item in _expand_clauses(one, known, used)))
    return node


def _expand_options(attribute: tree.Attribute, known: Fragments, used: Collection[str]) -> Iterator[tree.Attribute]:
    """The options that one in braces stands for: itself, or those of a fragment."""
    if not attribute.spread or attribute.name in used:
        yield attribute
        return
    lists = {name: one.body for name, one in known.items() if isinstance(one.body, tuple)}
    if attribute.name not in lists:
        there = f"; there are {', '.join(lists)}" if lists else ", such as `fragment window = {strides, pads}`"
        raise ParseError(attribute.span, f"`{attribute.name}` is no fragment of options{there}")
    yield from (replace(one, span=attribute.span) for one in lists[attribute.name])


def _expand_clauses(clause: tree.Clause, known: Fragments, used: Collection[str]) -> Iterator[tree.Clause]:
    """The clauses that one stands for: itself, or those of a fragment."""
    if not (isinstance(clause, tree.Let) and clause.spread) or clause.name in used:
        yield clause
        return
    fragment = known.get(clause.name)
    if fragment is None or not fragment.clauses:
        raise ParseError(clause.span, f"`{clause.name}` is no fragment with clauses")
    yield from fragment.clauses


def _put_in(call: tree.Call, fragment: tree.Fragment) -> tree.Expression:
    """The body of a fragment for the arguments of a call."""
    if isinstance(fragment.body, tuple):
        shown = f"{{{fragment.name}...}}"
        raise ParseError(call.span, f"`{fragment.name}` is a fragment of options: it stands in braces, `{shown}`")
    if len(call.arguments) != len(fragment.parameters) or call.attributes:
        raise ParseError(call.span, f"the fragment is `{fragment.name}({', '.join(fragment.parameters)})`")
    body: tree.Expression = _fill(fragment.body, dict(zip(fragment.parameters, call.arguments, strict=True)), call)
    return body


def _fill(node: Any, given: Mapping[str, tree.Argument], call: tree.Call) -> Any:
    """A part of a fragment with arguments for its parameters, and names made from theirs."""
    match node:
        case tree.Argument(value=tree.Name(name)) if name in given:
            one = given[name]
            return replace(one, const=node.const or one.const, layout=one.layout or node.layout, operand=node.operand)
        case tree.Name(name) if name in given:
            return given[name].value
        case tree.Name(name, span) if "{" in name:
            return tree.Name(_make_name(name, given, call), span)
    return rebuild(node, lambda part: _fill(part, given, call))


def _make_name(written: str, given: Mapping[str, tree.Argument], call: tree.Call) -> str:
    """`{x}_scale` with the name of the variable that is given for x."""
    before, _, rest = written.partition("{")
    parameter, _, after = rest.partition("}")
    value = given[parameter].value if parameter in given else None
    if not isinstance(value, tree.Name):
        message = f"`{call.callee}` makes names from the one given as `{parameter}`, which is to be a variable"
        raise ParseError(call.span, message)
    return f"{before}{value.name}{after}"

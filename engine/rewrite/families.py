"""Families and tables of rules, written out: one rule for each member."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from ..base.startup import replace
from ..syntax import tree
from ..syntax.tree_traversal import rebuild
from .stages import LOWER

#: what `SOURCE => Target` entries of an `over` family are called in its rule
FAMILY = ("SRC", "DST")


def list_members(item: tree.Rule | tree.Table, known: Container[str] = ()) -> Iterator[tuple[int | None, tree.Rule]]:
    """The rules that an item stands for, but for those `known` by name, each with its place in a table or a family."""
    if isinstance(item, tree.Rule) and not item.over:
        if item.name not in known:
            yield None, item
        return
    for member, entry in enumerate(item.over if isinstance(item, tree.Rule) else item.entries):
        if f"{item.name}.{entry.source}" not in known:
            yield member, write_out_member(item, member)


def write_out_member(item: tree.Rule | tree.Table | tree.Definition, member: int | None) -> tree.Rule:
    """A rule, or the one that a member of a table or an `over` family stands for."""
    if isinstance(item, tree.Table):
        assert member is not None
        return _make_row_rule(item, item.entries[member])
    assert isinstance(item, tree.Rule)
    return item if member is None else _make_member(item, item.over[member])


def write_out(files: Iterable[tree.RuleFile], known: Container[str] = ()) -> Iterator[tuple[tree.RuleFile, tree.Rule]]:
    """Every rule of some files but for those `known` by name, one for each entry of a table or an `over` family."""
    for file in files:
        for item in file.items:
            if not isinstance(item, tree.Definition):
                yield from ((file, rule) for _, rule in list_members(item, known))


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

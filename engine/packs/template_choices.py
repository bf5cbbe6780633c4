"""Choices in templates, `a | b`: the first that exists at the opset, said as a condition on the opset."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..base.startup import replace
from ..check.checked import Item
from ..dialects.operators import Catalogue
from ..expressions.compile import OPSET
from ..rewrite.availability import Availability
from ..rewrite.stages import list_template_dialects
from ..syntax import tree
from ..syntax.tree_traversal import rebuild
from .parse_cache import Parses


def decide_choices(files: Sequence[tree.RuleFile], catalogue: Catalogue, parses: Parses) -> list[tree.RuleFile]:
    """Files whose templates and definitions hold no choices; those of patterns stay.

    What exists does so from some opset on, or up to one.
    """
    definitions = {item.name: item for file in files for item in file.items if isinstance(item, tree.Definition)}
    availability = Availability(definitions)
    found = []
    for file in files:
        items = [
            _decide(item, file, catalogue, availability, parses) if parses.mentions.has_choice(item) else item
            for item in file.items
        ]
        found.append(replace(file, items=tuple(items)))
    return found


def _decide(item: Item, file: tree.RuleFile, catalogue: Catalogue, availability: Availability, parses: Parses) -> Item:
    stage = item.stage if isinstance(item, tree.Rule) else None
    source, target = catalogue.find_dialect(file.source), catalogue.find_dialect(file.target)
    builds = list_template_dialects(stage, source, target) if stage else (target, source)
    opsets = range(file.opsets[0], file.opsets[1] + 1)
    conditions: list[tree.Expression | None] = []

    def change(node: Any) -> Any:
        if isinstance(node, tree.Test):
            return node
        if not isinstance(node, tree.Choice):
            return rebuild(node, change)
        there = availability.list_opsets(node.left, builds, opsets)
        if len(there) == len(opsets):
            return node  # which the checker tells of
        condition = _make_condition(there, opsets, node)
        conditions.append(condition)
        if condition is None:
            return change(node.right)
        return tree.Conditional(change(node.left), condition, change(node.right), node.span)

    if isinstance(item, tree.Rule):
        made: Item = replace(item, clauses=change(item.clauses), templates=change(item.templates))
    else:
        made = change(item)
    return parses.keep_decided(item, tuple(map(repr, conditions)), made) if conditions else item


def _make_condition(there: Collection[int], opsets: range, choice: tree.Choice) -> tree.Expression | None:
    """The condition under which an opset is among those where the first side of a choice exists; None for no such."""
    if not there:
        return None
    name = tree.Name(OPSET, choice.span)
    if max(there) == opsets[-1]:
        return tree.Binary(">=", name, tree.Literal(min(there), choice.span), choice.span)
    return tree.Binary("<=", name, tree.Literal(max(there), choice.span), choice.span)

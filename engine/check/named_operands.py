"""Operands by name: `LSTM(input: x, input_to_cell_weights: w)` written as the operator has its operands, by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import Diagnostic
from ..base.startup import replace
from ..dialects.operators import Dialect, OperatorSpec
from ..rewrite.stages import OF_SOURCE, STAGES, list_template_dialects
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.tree_traversal import rebuild
from .checked import Item


def place_operands(item: Item, source: Dialect, target: Dialect) -> tuple[Item, list[Diagnostic]]:
    """An item with all operands that it names in their places, and the mistakes made in naming them."""
    wrong: list[Diagnostic] = []
    if isinstance(item, tree.Definition):
        return replace(item, body=_place_all(item.body, (target, source), wrong)), wrong
    if isinstance(item, tree.Table) or item.stage not in STAGES:
        return item, wrong
    reads = source if item.stage in OF_SOURCE else target
    return replace(
        item,
        equations=_place_all(item.equations, (reads,), wrong),
        clauses=_place_all(item.clauses, (), wrong),  # where functions are called, whose operands have no names
        templates=_place_all(item.templates, list_template_dialects(item.stage, source, target), wrong),
    ), wrong


def _place_all(node: Any, dialects: Sequence[Dialect], wrong: list[Diagnostic]) -> Any:
    """A syntax tree whose calls have their operands by place."""
    node = rebuild(node, lambda part: _place_all(part, dialects, wrong))
    if isinstance(node, tree.Call) and any(argument.operand for argument in node.arguments):
        return replace(node, arguments=_order_operands(node, dialects, wrong))
    return node


def _order_operands(call: tree.Call, dialects: Sequence[Dialect], wrong: list[Diagnostic]) -> tuple[tree.Argument, ...]:
    """The operands of a call by place; optional ones that no name stands for are left out by `none`."""
    bare = tuple(replace(argument, operand=None) for argument in call.arguments)
    specs = (dialect.find_operator(call.callee) for dialect in dialects)
    spec = None if call.wildcard else next((one for one in specs if one is not None), None)
    if spec is None:
        if call.wildcard or not call.callee[0].isupper():
            wrong.append(Diagnostic(call.callee_span, f"operands of `{call.callee}` have no names"))
        return bare
    names = [operand.name for operand in spec.operands]
    given: dict[int, tree.Argument] = {}
    for position, (argument, plain) in enumerate(zip(call.arguments, bare, strict=True)):
        name = argument.operand
        if name is not None and name not in names:
            help = suggest(name, names, "its operands")
            wrong.append(Diagnostic(argument.span, f"`{spec.name}` has no operand `{name}`", (), help))
            return bare
        if name is None and any(other.operand for other in call.arguments[:position]):
            message = "an operand without a name stands before those that have one"
            wrong.append(Diagnostic(argument.span, message))
            return bare
        place = position if name is None else names.index(name)
        if place in given:
            wrong.append(Diagnostic(argument.span, f"operand `{name}` of `{spec.name}` is given twice"))
        given[place] = plain
    return tuple(
        given[place] if place in given else _make_absent(call, spec, place, wrong) for place in range(max(given) + 1)
    )


def _make_absent(call: tree.Call, spec: OperatorSpec, place: int, wrong: list[Diagnostic]) -> tree.Argument:
    operand = spec.operands[place]
    if not operand.optional:
        message = f"operand `{operand.name}` of `{spec.name}` is not given"
        wrong.append(Diagnostic(call.span, message, (), f"write `{operand.name}: ...`"))
    return tree.Argument(tree.Literal(None, call.span), False, False, False, None, call.span)

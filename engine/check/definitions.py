"""Definitions: which of them make nodes, which refuse, and which call themselves."""

from __future__ import annotations

from collections.abc import Mapping

from ..expressions.compile import TRAIT
from ..expressions.functions import FUNCTIONS
from ..syntax import tree
from ..syntax.diagnostics import Collector
from ..syntax.tree_traversal import walk

#: the function that refuses what is converted
FAIL = "fail"
#: how far definitions may call each other
_DEPTH = 32


def list_calls(definitions: Mapping[str, tree.Definition]) -> dict[str, frozenset[str]]:
    """What each definition calls: functions, other definitions, operators."""
    return {
        name: frozenset(node.callee for node in walk(definition.body) if isinstance(node, tree.Call))
        for name, definition in definitions.items()
    }


def find_builders(calls: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The definitions whose bodies name an operator, or call one that does."""
    return _add_callers({name for name, called in calls.items() if any(one[0].isupper() for one in called)}, calls)


def find_refusers(calls: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The definitions that may refuse what is converted, or call one that may."""
    return _add_callers({name for name, called in calls.items() if FAIL in called}, calls)


def _add_callers(found: set[str], calls: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Some definitions, those that call them, and so on."""
    while more := {name for name in calls.keys() - found if calls[name] & found}:
        found |= more
    return frozenset(found)


def report_recursion(
    definitions: Mapping[str, tree.Definition], called: Mapping[str, frozenset[str]], diagnosis: Collector
) -> set[str]:
    """Tell each cycle of definitions that call each other, and names that a definition cannot have.

    Returns the names of all definitions on a cycle.
    """
    calls = {name: called[name] & definitions.keys() for name in definitions}
    found: set[str] = set()
    for name, definition in definitions.items():
        if name in FUNCTIONS or name == TRAIT:
            diagnosis.add_error(definition.span, f"`{name}` is a function of the language and cannot be defined anew")
            found.add(name)
        if len(set(definition.parameters)) < len(definition.parameters):
            diagnosis.add_error(definition.span, f"`{name}` has two parameters of one name")
        if "opset" in definition.parameters:
            diagnosis.add_error(definition.span, "`opset` is the opset aimed at and cannot be a parameter")
        if name not in found:
            cycle = _find_cycle(name, calls)
            if cycle:
                found.update(cycle)
                way = " -> ".join([*cycle, name])
                diagnosis.add_error(
                    definition.span, f"`{name}` calls itself: {way}", "definitions do not recurse, so that rules end"
                )
    for name, further in _find_too_deep(calls, found).items():
        if not further:
            message = f"`{name}` calls definitions that call others, more than {_DEPTH} deep"
            diagnosis.add_error(definitions[name].span, message, "expressions and lists say in one what many do")
        found.add(name)
    return found


def _find_too_deep(calls: Mapping[str, frozenset[str]], cyclic: set[str]) -> dict[str, frozenset[str]]:
    """The definitions whose chains of calls are longer than admitted, each with those of them that it calls."""
    # Level by level, from the definitions that call no others: what is never reached lies too deep.
    left = {name: callees - cyclic for name, callees in calls.items() if name not in cyclic}
    for _ in range(_DEPTH):
        low = {name for name, callees in left.items() if not callees}
        left = {name: callees - low for name, callees in left.items() if name not in low}
    return left


def _find_cycle(start: str, calls: Mapping[str, frozenset[str]]) -> list[str]:
    """The shortest way from a definition back to itself, nothing where there is none."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for callee in sorted(calls[way[-1]]):
            if callee == start:
                return way
            if callee not in seen:
                seen.add(callee)
                ways.append([*way, callee])
    return []

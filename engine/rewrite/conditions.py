"""Guards split into conditions that must all hold, with the variables that each of them reads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.startup import dataclass
from ..expressions.compile import TRAIT, Frame, Located, evaluate, read_truth
from ..expressions.functions import FUNCTIONS
from ..expressions.functions.registry import fail
from ..syntax import tree
from ..syntax.tree_traversal import walk

#: how many definitions in each other are looked into
_DEEP = 8


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a guard that must hold: of the guard itself, or of a definition that it calls."""

    expression: tree.Expression
    #: what the parameters of that definition are in the rule
    meant: Mapping[str, str]

    @property
    def certain(self) -> bool:
        """Whether it holds or does not, and never refuses a node; what other definitions do is not looked into."""
        called = {node.callee for node in walk(self.expression) if isinstance(node, tree.Call)}
        return fail.__name__ not in called and called <= FUNCTIONS.keys() | {TRAIT}


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition as the rule writes it, which holds or does not and never refuses a node, and the names it needs."""

    expression: tree.Expression
    names: frozenset[str]


def collect_guards(clauses: Sequence[tree.Clause], definitions: Mapping[str, tree.Definition]) -> list[Guard]:
    """The conditions in front of all other clauses, up to one that may refuse a node; the shortest are first."""
    written = itertools.takewhile(lambda one: isinstance(one, tree.Where), clauses)
    conditions = itertools.chain.from_iterable(_split(one.condition) for one in written if isinstance(one, tree.Where))
    measured = ((_measure_length(one, definitions), one) for one in conditions)
    settled = itertools.takewhile(lambda found: found[0], measured)
    return [Guard(one, frozenset(list_variables(one))) for _, one in sorted(settled, key=lambda found: found[0])]


def list_conditions(clauses: Sequence[tree.Clause], definitions: Mapping[str, tree.Definition]) -> Iterator[Condition]:
    """What the guards in front of all other clauses ask for, one by one."""
    for clause in clauses:
        if not isinstance(clause, tree.Where):
            return
        yield from _split_conjunction(Condition(clause.condition, {}), definitions, _DEEP)


def list_certain(conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions in front of the first that may refuse a node, or that calls what is not looked into."""
    return list(itertools.takewhile(lambda one: one.certain, conditions))


def group_by_name(conditions: Iterable[Condition]) -> dict[str, list[Guard]]:
    """The conditions that read one variable of the rule each, by its name there."""
    found: dict[str, list[Guard]] = {}
    for one in conditions:
        names = frozenset(list_variables(one.expression))
        meant = {one.meant.get(name, name) for name in names}
        if len(meant) == 1:
            found.setdefault(meant.pop(), []).append(Guard(one.expression, names))
    return found


def may_hold(
    condition: Guard, value: Any, traits: Callable[[str], frozenset[str]] = lambda operator: frozenset()
) -> bool:
    """Whether a condition holds where all its names are a value; it may where that cannot be found out."""
    try:
        return read_truth(evaluate(condition.expression, Frame(dict.fromkeys(condition.names, value), traits=traits)))
    except Located:
        return True  # the guard itself tells what is wrong


def list_variables(expression: tree.Expression) -> set[str]:
    """The variables of an expression; the second operand of `trait` is a word."""
    calls = (node for node in walk(expression) if isinstance(node, tree.Call) and node.callee == TRAIT)
    words = {id(call.arguments[1].value) for call in calls}
    return {n.name for n in walk(expression) if isinstance(n, tree.Name) and id(n) not in words}


def _split(condition: tree.Expression) -> Iterator[tree.Expression]:
    if isinstance(condition, tree.Binary) and condition.operator == "and":
        yield from _split(condition.left)
        yield from _split(condition.right)
    else:
        yield condition


def _measure_length(condition: tree.Expression, definitions: Mapping[str, tree.Definition]) -> int:
    """The nodes of a condition, and of all that it calls; 0 where these do more than compute, or may refuse a node."""
    work, seen, found = [condition], set[str](), 0
    while work:
        for node in walk(work.pop()):
            found += 1
            if not isinstance(node, tree.Call) or node.callee in seen or node.callee == TRAIT:
                continue
            seen.add(node.callee)
            if node.callee in definitions:
                work.append(definitions[node.callee].body)
            elif node.callee not in FUNCTIONS or node.callee == fail.__name__:
                return 0
    return found


def _split_conjunction(one: Condition, definitions: Mapping[str, tree.Definition], deep: int) -> Iterator[Condition]:
    condition = one.expression
    if isinstance(condition, tree.Binary) and condition.operator == "and":
        yield from _split_conjunction(Condition(condition.left, one.meant), definitions, deep)
        yield from _split_conjunction(Condition(condition.right, one.meant), definitions, deep)
        return
    if deep and isinstance(condition, tree.Call) and condition.callee in definitions:
        definition = definitions[condition.callee]
        given = [
            each.value.name for each in condition.arguments if isinstance(each.value, tree.Name) and not each.spread
        ]
        if len(given) == len(condition.arguments) == len(definition.parameters):
            meant = [one.meant.get(name, name) for name in given]
            inner = Condition(definition.body, dict(zip(definition.parameters, meant, strict=True)))
            yield from _split_conjunction(inner, definitions, deep - 1)
            return
    yield one


def make_operator_test(
    clauses: Sequence[tree.Clause],
    definitions: Mapping[str, tree.Definition],
    list_traits: Callable[[str], frozenset[str]],
) -> Callable[[str, str], bool]:
    """Make what tells whether a wildcard may stand for an operator, by the conditions about the wildcard alone."""
    asked = group_by_name(list_certain(list_conditions(clauses, definitions)))
    return lambda wildcard, operator: all(may_hold(one, operator, list_traits) for one in asked.get(wildcard, ()))

"""Rules and tables with `<=>`, read from right to left: what one side makes, the other takes.

Attributes that the left side names and the right side computes are solved for: sums with a number, negatives, and
lists, item by item. Of an enumerant or a truth value in any other expression each is tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..base.errors import Span
from ..base.startup import dataclass, replace
from . import tree
from .tree_traversal import rebuild, walk

#: the enumerants of an option of an operator, or false and true; none where it has other values
Enumerants = Callable[[str, str], Sequence[str | bool]]

#: what the two operators of a family are called in its rule
_SWAPPED = {"SRC": "DST", "DST": "SRC"}
#: a value or an option of any kind
_ANY = "_"


class Irreversible(Exception):
    """A rule that cannot be read backwards: where, and why."""

    def __init__(self, span: Span, reason: str) -> None:
        super().__init__(reason)
        self.span, self.reason = span, reason


@dataclass(frozen=True, slots=True)
class _Solved:
    """An option of the right side: the variable it is bound to, what it is there, and what follows for the left side.

    `free` are the variables in its `value`; of `kinds`, where there are any, each is tried for the one.
    """

    name: str
    value: tree.Expression
    free: frozenset[str]
    clauses: tuple[tree.Clause, ...] = ()
    kinds: tuple[str | bool, ...] = ()


def is_reversible(item: tree.Rule | tree.Table | tree.Definition) -> bool:
    """Whether an item says somewhere that it holds both ways."""
    if isinstance(item, tree.Table):
        return any(entry.reversible for entry in item.entries)
    return isinstance(item, tree.Rule) and any(template.reversible for template in item.templates)


def reverse(item: tree.Rule | tree.Table, enumerants: Enumerants) -> tree.Rule | tree.Table:
    """A rule or a table read from right to left: of a table the entries with `<=>`.

    Raises Irreversible where that has no meaning.
    """
    if isinstance(item, tree.Table):
        return replace(item, entries=tuple(_swap(entry) for entry in item.entries if entry.reversible))
    one = _find_reversible(item)
    marks = {
        argument.value.name: argument
        for argument in _iterate_arguments(item.equations)
        if isinstance(argument.value, tree.Name)
    }
    solved: list[_Solved] = []
    options = {
        attribute.value.name: (call.callee, attribute.name)
        for call in _iterate_calls(item.equations)
        for attribute in call.attributes
        if isinstance(attribute.value, tree.Name)
    }
    pattern = _make_pattern(one.equations, marks, options, enumerants, solved)
    made = _make_template(item.equations)
    templates = [tree.Template(None, made, one.span)]
    for option in solved:
        if option.kinds:
            templates = [template for before in templates for template in _try_each(before, option)]
    clauses = tuple(clause for option in solved for clause in option.clauses)
    orders = _list_orders(item.equations), _list_orders(one.equations)
    found = replace(
        item,
        over=tuple(map(_swap, item.over)),
        equations=pattern,
        clauses=clauses + _leave_out_unread(item.clauses, made),
        templates=tuple(templates),
        tests=tuple(_reverse_test(_reorder(test, *orders), solved) for test in item.tests),
    )
    return _swap_operators(found) if item.over else found


def _find_reversible(rule: tree.Rule) -> tree.Template:
    """The right side that can be read backwards; raises Irreversible where there is none that has a meaning then."""
    one, *others = [template for template in rule.templates if template.reversible]
    if others or one.condition is not None:
        raise Irreversible(
            (others or [one])[0].span, "one right side alone can be read backwards, which has no condition"
        )
    if len({entry.target for entry in rule.over}) < len(rule.over):
        raise Irreversible(rule.span, "two operators of the family become the same")
    for clause in rule.clauses:
        if not isinstance(clause, tree.Where | tree.Let):
            raise Irreversible(clause.span, "what is required of one side says nothing of the other: write `where`")
    return one


def _swap(entry: tree.Entry) -> tree.Entry:
    return replace(entry, source=entry.target, target=entry.source)


def _swap_operators(node: Any) -> Any:
    node = rebuild(node, _swap_operators)
    if isinstance(node, tree.Call) and node.callee in _SWAPPED:
        return replace(node, callee=_SWAPPED[node.callee])
    return node


def _iterate_calls(equations: Sequence[tree.Equation]) -> Iterator[tree.Call]:
    return (node for equation in equations for node in walk(equation) if isinstance(node, tree.Call))


def _iterate_arguments(equations: Sequence[tree.Equation]) -> Iterator[tree.Argument]:
    return (argument for call in _iterate_calls(equations) for argument in call.arguments)


def _make_pattern(
    equations: tuple[tree.Equation, ...],
    marks: Mapping[str, tree.Argument],
    options: Mapping[str, tuple[str, str]],
    enumerants: Enumerants,
    solved: list[_Solved],
) -> tuple[tree.Equation, ...]:
    """The right side as a pattern, whose operands have the marks that those of the left side have."""

    def change(node: Any) -> Any:
        if not isinstance(node, tree.Call):
            return rebuild(node, change)
        arguments = []
        for argument in node.arguments:
            value = argument.value
            if isinstance(value, tree.Name):
                mark = marks.get(value.name, argument)
                argument = replace(argument, const=mark.const, optional=mark.optional)
            elif isinstance(value, tree.Call) and value.callee[0].isupper():
                argument = replace(argument, value=change(value))
            elif not isinstance(value, tree.Literal):
                raise Irreversible(argument.span, "an operand that is computed cannot be found again")
            arguments.append(argument)
        attributes = tuple(_solve_attribute(one, options, enumerants, solved) for one in node.attributes)
        return replace(node, arguments=tuple(arguments), attributes=attributes)

    return tuple(change(equation) for equation in equations)


def _make_template(equations: tuple[tree.Equation, ...]) -> tuple[tree.Equation, ...]:
    """The left side as a template: without marks, and without options that may be anything."""

    def change(node: Any) -> Any:
        node = rebuild(node, change)
        if isinstance(node, tree.Argument):
            if isinstance(node.value, tree.Name) and node.value.name == _ANY:
                raise Irreversible(node.span, "`_` says of no operand what it is")
            return replace(node, const=False, optional=False)
        if isinstance(node, tree.Call):
            if node.rest:
                raise Irreversible(node.span, "`..` says of no option what it is")
            kept = [a for a in node.attributes if not (isinstance(a.value, tree.Name) and a.value.name == _ANY)]
            return replace(node, attributes=tuple(kept))
        return node

    return tuple(change(equation) for equation in equations)


def _solve_attribute(
    attribute: tree.Attribute,
    options: Mapping[str, tuple[str, str]],
    enumerants: Enumerants,
    solved: list[_Solved],
) -> tree.Attribute:
    """An option of the right side as one of a pattern; what follows of it is added to what is solved."""
    value, span = attribute.value, attribute.span
    if attribute.spread or isinstance(value, tree.Name | tree.Literal | tree.Symbol):
        return attribute
    free = frozenset(node.name for node in walk(value) if isinstance(node, tree.Name)) & options.keys()
    name = f"{attribute.name}_{len(solved)}"
    try:
        clauses = tuple(_invert(value, tree.Name(name, span), free))
        solved.append(_Solved(name, value, free, clauses))
    except Irreversible:
        kinds = tuple(enumerants(*options[min(free)])) if len(free) == 1 else ()
        if not kinds:
            raise
        solved.append(_Solved(name, value, free, kinds=kinds))
    return replace(attribute, value=tree.Name(name, span))


def _invert(expression: tree.Expression, given: tree.Expression, free: frozenset[str]) -> Iterator[tree.Clause]:
    """What follows of the value of an expression for the variables in it, each of which it has once."""
    span = expression.span
    match expression:
        case tree.Name(name) if name in free:
            yield tree.Let(name, given, span)
        case tree.Literal() | tree.Symbol():
            yield tree.Where(tree.Binary("==", given, expression, span), None, span)
        case tree.ListOf(items):
            length = tree.Argument(given, False, False, False, None, span)
            count = tree.Call("len", False, (length,), (), False, span, span)
            yield tree.Where(tree.Binary("==", count, tree.Literal(len(items), span), span), None, span)
            for place, item in enumerate(items):
                yield from _invert(item, tree.Index(given, tree.Literal(place, span), span), free)
        case tree.Unary("-", operand):
            yield from _invert(operand, tree.Unary("-", given, span), free)
        case tree.Binary("+" | "-" as sign, left, tree.Literal() as number):
            yield from _invert(left, tree.Binary("-" if sign == "+" else "+", given, number, span), free)
        case tree.Binary("+", tree.Literal() as number, right):
            yield from _invert(right, tree.Binary("-", given, number, span), free)
        case tree.Binary("-", tree.Literal() as number, right):
            yield from _invert(right, tree.Binary("-", number, given, span), free)
        case _:
            raise Irreversible(span, "it is not said how this is solved for what the left side names")


def _leave_out_unread(clauses: tuple[tree.Clause, ...], made: tuple[tree.Equation, ...]) -> tuple[tree.Clause, ...]:
    """Clauses without names for what only the right sides that are not read mention."""
    kept: list[tree.Clause] = []
    read = {node.name for node in walk(made) if isinstance(node, tree.Name)}
    for clause in reversed(clauses):
        if not isinstance(clause, tree.Let) or clause.spread or clause.name in read:
            kept.insert(0, clause)
            read |= {node.name for node in walk(clause) if isinstance(node, tree.Name)}
    return tuple(kept)


def _list_orders(equations: Sequence[tree.Equation]) -> dict[str, str]:
    """The orders of axes that operands stand in, where these are named."""
    marked = [one for one in _iterate_arguments(equations) if one.layout is not None]
    return {one.value.name: one.layout or "" for one in marked if isinstance(one.value, tree.Name)}


def _reorder(test: tree.Test, before: Mapping[str, str], after: Mapping[str, str]) -> tree.Test:
    """A test whose operands have their extents in the orders of axes of the other side."""
    declarations = []
    for one in test.declarations:
        old, new = before.get(one.name), after.get(one.name)
        if old is not None and new is not None and len(old) == len(one.shape):
            one = replace(one, shape=tuple(one.shape[old.index(axis)] for axis in new))
        declarations.append(one)
    return replace(test, declarations=tuple(declarations))


def _substitute(node: Any, values: Mapping[str, tree.Expression]) -> Any:
    if isinstance(node, tree.Name):
        return values.get(node.name, node)
    return rebuild(node, lambda part: _substitute(part, values))


def _try_each(template: tree.Template, solved: _Solved) -> Iterator[tree.Template]:
    """A right side for each enumerant, where that fulfils what is bound."""
    span = solved.value.span
    for kind in solved.kinds:
        word = tree.Symbol(kind, span) if isinstance(kind, str) else tree.Literal(kind, span)
        values = {min(solved.free): word}
        met = tree.Binary("==", tree.Name(solved.name, span), _substitute(solved.value, values), span)
        both = met if template.condition is None else tree.Binary("and", template.condition, met, span)
        equations = tuple(_substitute(equation, values) for equation in template.equations)
        yield replace(template, condition=both, equations=equations)


def _reverse_test(test: tree.Test, solved: Sequence[_Solved]) -> tree.Test:
    """A test whose options are those of the right side: what those of the left side, as they are listed, make them."""
    generators = {one.name: one for one in test.generators}
    for one in solved:
        drawn = [generators.pop(name) for name in sorted(one.free & generators.keys())]
        lists = [generator.domain.items for generator in drawn if isinstance(generator.domain, tree.ListOf)]
        if len(lists) == len(one.free):
            names = [generator.name for generator in drawn]
            rows = (dict(zip(names, row, strict=True)) for row in itertools.product(*lists))
            items = tuple(_substitute(one.value, row) for row in rows)
            generators[one.name] = tree.Generator(one.name, tree.ListOf(items, one.value.span), one.value.span)
    return replace(test, generators=tuple(generators.values()))


__all__ = ["Enumerants", "Irreversible", "is_reversible", "reverse"]

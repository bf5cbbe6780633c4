"""Loops said as what they carry, written out as operands, inputs and results of a body, and results of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.errors import RuleError, Span
from ..base.startup import dataclass, replace
from . import tree
from .diagnostics import ParseError
from .tree_traversal import rebuild, walk


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a pattern calls the other values of a loop: they stand before, between and behind those that it names."""

    name: str
    #: the last values of those that the pattern names
    named: tuple[str | None, ...]

    def name_part(self, part: str, place: int) -> str:
        """The name of a list of first values, values within a turn, next or last values, or of how many there are."""
        return f"{self.name}_{part}_{place}"


def expand_loops(file: tree.RuleFile, text: str) -> tree.RuleFile:
    """A file, read from a text, with its loops written out; raises RuleError for what cannot be."""
    try:
        items = tuple(_expand_rule(item) if isinstance(item, tree.Rule) else item for item in file.items)
    except ParseError as error:
        raise RuleError([error.diagnostic], {file.span.file: text}) from error
    return replace(file, items=items)


def _expand_rule(rule: tree.Rule) -> tree.Rule:
    carrying = [node for node in walk(rule) if isinstance(node, tree.GraphOf) and node.carried]
    written = [*rule.equations, *(equation for template in rule.templates for equation in template.equations)]
    for equation in written:
        if not equation.targets and _find_body(equation) is None:
            raise ParseError(equation.span, "this has no result; only a loop that says what it carries stands alone")
        if equation.targets and _find_body(equation) is not None:
            raise ParseError(equation.span, "the results of a loop are named where it says what it carries")
    bodies = [body for body in map(_find_body, written) if body is not None]
    if (stray := next((one for one in carrying if not any(one is body for body in bodies)), None)) is not None:
        raise ParseError(stray.carried[0].span, "what is carried is said in the body of a loop that is an equation")
    if not carrying:
        return rule
    rests: dict[str, _Rest] = {}
    for equation in rule.equations:
        if (body := _find_body(equation)) is not None:
            rest = _find_rest(body)
            if rest is not None and rests.setdefault(rest.name, rest) is not rest:
                raise ParseError(equation.span, f"two loops carry `{rest.name}...`")
    return replace(
        rule,
        equations=tuple(_write_out(equation, rests, pattern=True) for equation in rule.equations),
        clauses=tuple(_join_rests(clause, rests) for clause in rule.clauses),
        templates=tuple(_write_out_template(template, rests) for template in rule.templates),
        tests=tuple(_declare_rests(test, rests) for test in rule.tests),
        definitions=tuple(_join_rests(one, rests) for one in rule.definitions),
    )


def _find_body(equation: tree.Equation) -> tree.GraphOf | None:
    """The graph that says what the loop of an equation carries."""
    if not isinstance(equation.value, tree.Call):
        return None
    values = (attribute.value for attribute in equation.value.attributes)
    return next((one for one in values if isinstance(one, tree.GraphOf) and one.carried), None)


def _find_rest(body: tree.GraphOf) -> _Rest | None:
    rest = [one for one in body.carried if one.first is None and one.next is None]
    if len(rest) > 1:
        raise ParseError(rest[1].span, "a loop says `carry name...` once")
    named = tuple(one.last for one in body.carried if one.first is not None)
    return _Rest(str(rest[0].name), named) if rest else None


def _write_out_template(template: tree.Template, rests: Mapping[str, _Rest]) -> tree.Template:
    equations = tuple(_write_out(equation, rests, pattern=False) for equation in template.equations)
    condition = None if template.condition is None else _join_rests(template.condition, rests)
    return replace(template, condition=condition, equations=equations)


def _write_out(equation: tree.Equation, rests: Mapping[str, _Rest], pattern: bool) -> tree.Equation:
    """The equation of a loop in full."""
    body = _find_body(equation)
    if body is None:
        return equation
    call, given = equation.value, _find_rest(body)
    assert isinstance(call, tree.Call)
    if given is not None and given.name not in rests:
        raise ParseError(equation.span, f"no loop of the pattern carries `{given.name}...`")
    rest = None if given is None else rests[given.name]
    firsts, values, nexts, lasts = [], [], [], []
    for one, place in _order_carried(body, rest):
        if isinstance(one, tree.Carried):
            values.append(tree.Target(str(one.name), False, None, one.span))
            firsts.append(one.first)
            nexts.append(one.next)
            lasts.append(tree.Target(str(one.last), False, None, one.span))
        else:
            count = one.name_part("count", place) if pattern and place < len(one.named) else None
            span = body.span
            values.append(tree.Target(one.name_part("value", place), True, None, span, count))
            lasts.append(tree.Target(one.name_part("last", place), True, None, span, count))
            firsts.append(_spread(one.name_part("first", place), count, span))
            nexts.append(_spread(one.name_part("next", place), count, span))
    collected = [one for one in body.carried if one.first is None and one.next is not None]
    full = replace(
        body,
        parameters=(*body.parameters, *values),
        results=(*body.results, *nexts, *(one.next for one in collected)),
        carried=(),
    )
    attributes = tuple(replace(one, value=full) if one.value is body else one for one in call.attributes)
    rows = (tree.Target(str(one.last), False, None, one.span) for one in collected)
    value = replace(call, arguments=(*call.arguments, *firsts), attributes=attributes)
    return replace(equation, targets=(*lasts, *rows), value=value)


def _spread(name: str, count: str | None, span: Span) -> tree.Argument:
    """`name...`, or `name[count]...`."""
    variable: tree.Expression = tree.Name(name, span)
    if count is not None:
        variable = tree.Index(variable, tree.Name(count, span), span)
    return tree.Argument(variable, False, False, True, None, span)


def _order_carried(body: tree.GraphOf, rest: _Rest | None) -> Iterator[tuple[tree.Carried | _Rest, int]]:
    """What a loop carries in the order of the pattern, each value with its place among those that the pattern names."""
    named = [one for one in body.carried if one.first is not None]
    if rest is None:
        yield from ((one, place) for place, one in enumerate(named))
        return
    places = {one.last: rest.named.index(one.last) for one in named if one.last in rest.named}
    free = iter(place for place in range(len(rest.named) + len(named)) if place not in places.values())
    at = {places[one.last] if one.last in places else next(free): one for one in named}
    for place in range(max([len(rest.named), *at]) + 1):
        if place <= len(rest.named):
            yield rest, place
        if place in at:
            yield at[place], place


def _join_rests(node: Any, rests: Mapping[str, _Rest]) -> Any:
    """An expression in which the other values of a loop are what the turns make of them, in one list."""
    match node:
        case tree.Name(name, span) if name in rests:
            rest = rests[name]
            joined: tree.Expression = tree.Name(rest.name_part("next", 0), span)
            for place in range(1, len(rest.named) + 1):
                joined = tree.Binary("++", joined, tree.Name(rest.name_part("next", place), span), span)
            return joined
    return rebuild(node, lambda part: _join_rests(part, rests))


def _declare_rests(test: tree.Test, rests: Mapping[str, _Rest]) -> tree.Test:
    """A test that says for each list of other values what it is said to be for all of them."""
    declarations: list[tree.Declaration] = []
    for one in test.declarations:
        rest = rests.get(one.name)
        names: Sequence[str] = [one.name]
        if rest is not None:
            names = [rest.name_part("first", place) for place in range(len(rest.named) + 1)]
        declarations += (replace(one, name=name) for name in names)
    return replace(test, declarations=tuple(declarations))

"""Connectivity of left sides: every equation must reach the last one through values that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..syntax import tree
from .kinds import VALUE
from .scope import Context, Variable


def list_operands(expression: tree.Expression) -> Iterator[str]:
    """The variables that a pattern mentions as operands, in the graphs of its nodes as well."""
    if isinstance(expression, tree.Name):
        yield expression.name
    elif isinstance(expression, tree.Choice):
        yield from list_operands(expression.left)
        yield from list_operands(expression.right)
    elif isinstance(expression, tree.Call):
        for argument in expression.arguments:
            yield from list_operands(argument.value)
        for attribute in expression.attributes:
            yield from list_operands(attribute.value) if isinstance(attribute.value, tree.GraphOf) else ()
    elif isinstance(expression, tree.GraphOf):
        for equation in expression.equations:
            yield from list_operands(equation.value)
        for argument in expression.results:
            yield from list_operands(argument.value)


def report_unconnected(
    equations: tuple[tree.Equation, ...], variables: Mapping[str, Variable], context: Context
) -> None:
    """Tell of each equation that cannot be reached from the last one, through values that they share."""

    def is_linking(name: str) -> bool:
        variable = variables.get(name)
        return variable is not None and VALUE in variable.kinds

    links = [
        {target.name for target in equation.targets if target.name != "_"}
        | {name for name in list_operands(equation.value) if is_linking(name)}
        for equation in equations
    ]
    reached = set(links[-1])
    left = list(range(len(equations) - 1))
    while near := [position for position in left if links[position] & reached]:
        left = [position for position in left if position not in near]
        for position in near:
            reached |= links[position]
    for position in left:
        context.report(
            equations[position].span,
            "this equation shares no value with the others",
            "equations of a pattern describe one connected part of the graph; the last one is its root",
        )

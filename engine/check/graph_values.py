"""Graph values: `graph(...) { ... yield ... }` built in a template, and graphs of the source called in one."""

from __future__ import annotations

from ..syntax import tree
from .kinds import ANY, GRAPH, LIST, RUNTIME, VALUE, VALUES, Kinds, may, one, words
from .scope import INSIDE, LOCAL, PARAMETER, Context, Variable
from .types import infer


@infer.register(tree.GraphOf)
def check_graph_value(expression: tree.GraphOf, context: Context) -> Kinds:
    """Check a graph that is an attribute: parameters, equations, and what it yields."""
    inner = context.inner(*(_bind(target, PARAMETER) for target in expression.parameters))
    for equation in expression.equations:
        _runtime(equation.value, inner)
        made = [_bind(target, LOCAL) for target in equation.targets]
        for variable in made:
            known = context.scope.get(variable.name)
            if known is not None and known.bound_as != INSIDE:
                context.error(variable.span, f"`{variable.name}` is bound outside the graph already")
            elif known is not None:
                variable.used = True  # wherever the graph of the pattern uses it
        inner = inner.inner(*made)
    for argument in expression.results:
        _runtime(argument.value, inner)
    for name, variable in inner.scope.items():
        if variable.bound_as == LOCAL and name not in context.scope and not variable.used and not name.startswith("_"):
            context.error(variable.span, f"`{name}` is never used", f"call it `_{name}` to ignore it on purpose")
    return one(GRAPH)


def check_graph_call(expression: tree.Call, context: Context) -> Kinds:
    """Check the call of a graph that the pattern bound: its nodes take the place of the call."""
    if not context.emits:
        context.error(expression.span, f"graphs are called in templates only: `{expression.callee}`")
    if expression.attributes or expression.rest:
        context.error(expression.span, f"`{expression.callee}` is a graph and takes no options in braces")
    for argument in expression.arguments:
        _runtime(argument.value, context)
    return frozenset({VALUE, VALUES})


def _runtime(expression: tree.Expression, context: Context) -> None:
    kinds = infer(expression, context)
    if not may(kinds, ANY & (RUNTIME | one(VALUES) | one(LIST))):
        context.error(expression.span, f"a graph computes with values, and this is {words(kinds)}")


def _bind(target: tree.Target, bound_as: str) -> Variable:
    return Variable(target.name, target.span, bound_as, one(VALUES if target.spread else VALUE), target.layout)

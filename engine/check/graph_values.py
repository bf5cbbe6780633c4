"""Graph values: `graph(...) { ... yield ... }` built in a template, and graphs of the source called in one."""

from __future__ import annotations

from ..syntax import tree
from .kinds import ANY, GRAPH, LIST, RUNTIME, VALUE, VALUES, Kinds, can_be, make_single, name_kinds
from .scope import INSIDE, LOCAL, PARAMETER, Context, Variable
from .types import infer


@infer.register(tree.GraphOf)
def check_graph_value(expression: tree.GraphOf, context: Context) -> Kinds:
    """Check a graph that is an attribute: parameters, equations, and what it yields."""
    inner = context.extend(*(_make_variable(target, PARAMETER) for target in expression.parameters))
    for equation in expression.equations:
        _check_runtime(equation.value, inner)
        made = [_make_variable(target, LOCAL) for target in equation.targets]
        for variable in made:
            known = context.scope.get(variable.name)
            if known is not None and known.bound_as != INSIDE:
                context.report(variable.span, f"`{variable.name}` is bound outside the graph already")
            elif known is not None:
                variable.used = True  # wherever the graph of the pattern uses it
        inner = inner.extend(*made)
    for argument in expression.results:
        _check_runtime(argument.value, inner)
    for name, variable in inner.scope.items():
        if variable.bound_as == LOCAL and name not in context.scope and not variable.used and not name.startswith("_"):
            context.report(variable.span, f"`{name}` is never used", f"call it `_{name}` to ignore it on purpose")
    return make_single(GRAPH)


def check_graph_call(expression: tree.Call, context: Context) -> Kinds:
    """Check the call of a graph that the pattern bound: its nodes take the place of the call."""
    if not context.emits:
        context.report(expression.span, f"graphs are called in templates only: `{expression.callee}`")
    if expression.attributes or expression.rest:
        context.report(expression.span, f"`{expression.callee}` is a graph and takes no options in braces")
    for argument in expression.arguments:
        _check_runtime(argument.value, context)
    return frozenset({VALUE, VALUES})


def _check_runtime(expression: tree.Expression, context: Context) -> None:
    kinds = infer(expression, context)
    if not can_be(kinds, ANY & (RUNTIME | make_single(VALUES) | make_single(LIST))):
        context.report(expression.span, f"a graph computes with values, and this is {name_kinds(kinds)}")


def _make_variable(target: tree.Target, bound_as: str) -> Variable:
    return Variable(target.name, target.span, bound_as, make_single(VALUES if target.spread else VALUE), target.layout)

"""Calls of functions and definitions, in templates and compile-time expressions."""

from __future__ import annotations

import re
from dataclasses import replace

from ..base.data_files import BUILT_IN
from ..base.errors import Span, times
from ..expressions.compile import TRAIT
from ..expressions.functions import DTYPES, FUNCTIONS
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.habits import function
from .graph_values import check_graph_call
from .kinds import ANY, ELEMENT, GRAPH, OPERATOR, RUNTIME, STRING, VALUES, Kinds, may, one, signature, words
from .messages import placeholders
from .operations import Given, check_arranged, check_matched_operator, operator
from .scope import WILDCARD, Context, parameter
from .types import equality, infer
from .vocabulary import operators, traits


@infer.register(tree.Call)
def call(expression: tree.Call, context: Context) -> Kinds:
    """Check a call; the kinds of what it yields."""
    name = expression.callee
    if expression.wildcard:
        context.error(expression.span, "`any` stands in patterns only", f"call the variable: `{name}(...)`")
        return ANY
    variable = context.scope.get(name)
    if variable is not None and variable.bound_as == WILDCARD:
        variable.used = True
        return check_matched_operator(expression, context)
    if variable is not None and GRAPH in variable.kinds:
        variable.used = True
        return check_graph_call(expression, context)
    if name[0].isupper():
        return operator(expression, context)
    definition = context.world.definitions.get(name)
    _no_options(expression, context, arranges=definition is not None and name not in FUNCTIONS)
    if name == TRAIT:
        return _trait(expression, context)
    if name in FUNCTIONS:
        return _function(expression, context)
    if definition is not None:
        return _definition(definition, expression, context)
    for argument in expression.arguments:
        infer(argument.value, context)
    if variable is not None:
        variable.used = True
        context.error(expression.callee_span, f"`{name}` is a variable, not a function")
    elif context.world.complete:
        known = {*FUNCTIONS, *context.world.definitions, TRAIT}
        offered = operators(context.builds[-1], context.opsets) if context.emits else ()
        help = function(name, offered) or _elsewhere(name) or suggest(name, known)
        context.error(expression.callee_span, f"there is no function `{name}`", help)
    return ANY


def _elsewhere(name: str) -> str | None:
    """How to call a definition of a pack that comes with the program, where it is not among those that are read."""
    for file in sorted(BUILT_IN.rglob("*.rules")):
        if re.search(rf"^def {re.escape(name)}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            pack = file.relative_to(BUILT_IN).parts[0]
            return (
                f"{pack} defines it: begin the files by `ruleset NAME over {pack} : ...`, or give --rules {pack} first"
            )
    return None


# ---- functions and definitions


def _no_options(expression: tree.Call, context: Context, arranges: bool = False) -> None:
    if expression.attributes or expression.rest:
        context.error(expression.span, f"`{expression.callee}` is a function and takes no options in braces")
    for argument in expression.arguments:
        mark = "const" if argument.const else "?" if argument.optional else "@" if argument.layout else None
        if mark == "@" and arranges:
            check_arranged(argument, context)
        elif mark:
            context.error(argument.span, f"`{mark}` does not belong into the call of a function")


def _infer_arguments(expression: tree.Call, context: Context) -> list[Given]:
    found = []
    for argument in expression.arguments:
        kinds = infer(argument.value, context)
        if argument.spread and not may(kinds, frozenset({"list", "array", VALUES})):
            context.error(argument.span, f"`...` spreads a list, and this is {words(kinds)}")
        found.append(Given(argument, ANY if argument.spread else kinds))
    return found


def _arity(expression: tree.Call, least: int, most: int | None, shown: str, context: Context) -> bool:
    fixed = sum(not argument.spread for argument in expression.arguments)
    spread = any(argument.spread for argument in expression.arguments)
    if (spread or fixed >= least) and (most is None or fixed <= most):
        return True
    wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    plural = "argument" if wanted == "1" else "arguments"
    given = f"{times(fixed, 'argument')} {'is' if fixed == 1 else 'are'} given"
    context.error(
        expression.span, f"`{expression.callee}` takes {wanted} {plural}, {given}", f"it is written `{shown}`"
    )
    return False


def _trait(expression: tree.Call, context: Context) -> Kinds:
    if not _arity(expression, 2, 2, f"{TRAIT}(op, word)", context):
        return one("bool")
    operator, word = (argument.value for argument in expression.arguments)
    kinds = infer(operator, context)
    if not may(kinds, one(OPERATOR)):
        context.error(operator.span, f"`{TRAIT}` asks about an operator, and this is {words(kinds)}")
    known = traits(context.source) | traits(context.target)
    if not isinstance(word, tree.Name):
        context.error(word.span, "a trait is a word, written without quotes")
    elif word.name not in known:
        context.error(
            word.span, f"no operator has the trait `{word.name}`", suggest(word.name, known, "the traits in use")
        )
    return one("bool")


def _function(expression: tree.Call, context: Context) -> Kinds:
    function = FUNCTIONS[expression.callee]
    taken = signature(function.name)
    variadic = function.most is None
    shown = ", ".join([*taken.names[:-1], f"{taken.names[-1]}..."]) if variadic else ", ".join(taken.names)
    given = _infer_arguments(expression, context)
    if not _arity(expression, function.least, function.most, f"{function.name}({shown})", context):
        return taken.result
    for position, (argument, kinds) in enumerate(given):
        last = min(position, len(taken.parameters) - 1)
        if not may(kinds, taken.parameters[last]):
            like = [name for name in operators(context.builds[-1], context.opsets) if name.lower() == function.name]
            of_graph = bool(like) and context.emits and bool(kinds) and kinds <= RUNTIME | one(VALUES)
            help = function.doc
            if of_graph:
                help = f"of values of the graph it is the operator `{like[0]}`"
            elif kinds and kinds <= RUNTIME:
                help += " `const x` in the pattern gives the elements of an operand, `shape(x)` its extents."
            what = f"`{taken.names[last]}` of `{function.name}` cannot be {words(kinds)}"
            context.error(argument.span, what, help)
        elif position in taken.elements:
            _element(argument, context)
    if function.name == "fail" and expression.arguments:
        message = expression.arguments[0].value
        if isinstance(message, tree.Literal) and isinstance(message.value, str):
            placeholders(message.value, message.span, context)
    return taken.result


def _element(argument: tree.Argument, context: Context) -> None:
    word = argument.value
    if isinstance(word, tree.Literal) and isinstance(word.value, str):
        equality(word, one(STRING), word, one(ELEMENT), word, context)
    elif isinstance(word, tree.Symbol):
        context.error(
            word.span,
            f"`{word.name}` is an enumerant, not the short name of an element type",
            f"`dtype({word.name})` is its short name; the short names are {', '.join(DTYPES)}",
        )


def _definition(definition: tree.Definition, expression: tree.Call, context: Context) -> Kinds:
    given = _infer_arguments(expression, context)
    count = len(definition.parameters)
    shown = f"{definition.name}({', '.join(definition.parameters)})"
    if not _arity(expression, count, count, shown, context):
        return ANY
    if definition.name in context.world.builders and not context.emits:
        context.error(expression.span, f"`{definition.name}` makes nodes, so it is called in templates only")
        return ANY
    kinds = [found.kinds for found in given] if len(given) == count else [ANY] * count
    layouts: list[str | None] = [None] * count
    if len(given) == count:
        layouts = [_layout(argument, context) for argument, _ in given]
    if any(argument.spread for argument, _ in given):
        kinds, layouts = [ANY] * count, [None] * count
    return body(definition, kinds, layouts, context, expression.span)


def _layout(argument: tree.Argument, context: Context) -> str | None:
    """The names that the dimensions of an argument have, which go with it into a definition."""
    variable = context.scope.get(argument.value.name) if isinstance(argument.value, tree.Name) else None
    return argument.layout or (variable.layout if variable is not None else None)


def body(
    definition: tree.Definition,
    kinds: list[Kinds],
    layouts: list[str | None],
    context: Context,
    caller: Span | None = None,
) -> Kinds:
    """Check the body of a definition for arguments of some kinds and layouts; what it yields."""
    dialects = tuple(dialect.name for dialect in context.builds)
    key = (definition.name, tuple(kinds), tuple(layouts), context.opsets, dialects, context.emits, context.general)
    bodies = context.world.bodies
    if key not in bodies:
        bodies[key] = ANY  # what calls itself has been told and yields anything
        span = definition.span
        given = zip(definition.parameters, kinds, layouts, strict=True)
        parameters = [parameter(name, span, kind, layout) for name, kind, layout in given]
        opset = context.scope["opset"]
        inner = replace(context, scope={variable.name: variable for variable in (opset, *parameters)})
        if caller is None:
            bodies[key] = infer(definition.body, inner)
            _report_unused(definition, inner)
        else:
            with context.world.diagnosis.noting(f"`{definition.name}` is called here", caller):
                bodies[key] = infer(definition.body, inner)
    return bodies[key]


def _report_unused(definition: tree.Definition, inner: Context) -> None:
    for name in definition.parameters:
        if not inner.scope[name].used and not name.startswith("_"):
            inner.error(definition.span, f"parameter `{name}` of `{definition.name}` is never used")

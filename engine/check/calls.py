"""Calls of functions and definitions, in templates and compile-time expressions."""

from __future__ import annotations

import re
from dataclasses import replace

from ..base.data_files import BUILT_IN
from ..base.errors import Span, format_count
from ..expressions.compile import TRAIT
from ..expressions.functions import DTYPES, FUNCTIONS
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.habits import suggest_for_function
from .graph_values import check_graph_call
from .kinds import (
    ANY,
    ELEMENT,
    GRAPH,
    OPERATOR,
    RUNTIME,
    STRING,
    VALUES,
    Kinds,
    can_be,
    find_signature,
    make_single,
    name_kinds,
)
from .messages import check_placeholders
from .operations import Given, check_arranged, check_matched_operator, check_operator
from .scope import WILDCARD, Context, make_parameter
from .types import check_equality, infer
from .vocabulary import list_operators, list_traits


@infer.register(tree.Call)
def check_call(expression: tree.Call, context: Context) -> Kinds:
    """Check a call; the kinds of what it yields."""
    name = expression.callee
    if expression.wildcard:
        context.report(expression.span, "`any` stands in patterns only", f"call the variable: `{name}(...)`")
        return ANY
    variable = context.scope.get(name)
    if variable is not None and variable.bound_as == WILDCARD:
        variable.used = True
        return check_matched_operator(expression, context)
    if variable is not None and GRAPH in variable.kinds:
        variable.used = True
        return check_graph_call(expression, context)
    if name[0].isupper():
        return check_operator(expression, context)
    definition = context.world.definitions.get(name)
    _refuse_options(expression, context, arranges=definition is not None and name not in FUNCTIONS)
    if name == TRAIT:
        return _check_trait(expression, context)
    if name in FUNCTIONS:
        return _check_function(expression, context)
    if definition is not None:
        return _check_definition(definition, expression, context)
    for argument in expression.arguments:
        infer(argument.value, context)
    if variable is not None:
        variable.used = True
        context.report(expression.callee_span, f"`{name}` is a variable, not a function")
    elif context.world.complete:
        known = {*FUNCTIONS, *context.world.definitions, TRAIT}
        offered = list_operators(context.builds[-1], context.opsets) if context.emits else ()
        help = suggest_for_function(name, offered) or _suggest_other_pack(name, context) or suggest(name, known)
        context.report(expression.callee_span, f"there is no function `{name}`", help)
    return ANY


def _suggest_other_pack(name: str, context: Context) -> str | None:
    """The help for a name that a built-in pack defines which is not among those read, and which may lie below them.

    It may where it has the same dialects as these rules, or leads from their source dialect to itself.
    """
    leads = rf"^ruleset [^:]*: {context.source.name} -> (?:{context.source.name}|{context.target.name}) opset "
    for file in sorted(BUILT_IN.rglob("*.rules")):
        text = file.read_text(encoding="utf-8")
        if re.search(rf"^def {re.escape(name)}\(", text, re.MULTILINE) and re.search(leads, text, re.MULTILINE):
            pack = file.relative_to(BUILT_IN).parts[0]
            return (
                f"{pack} defines it: begin the files by `ruleset NAME over {pack} : ...`, or give --rules {pack} first"
            )
    return None


# ---- functions and definitions


def _refuse_options(expression: tree.Call, context: Context, arranges: bool = False) -> None:
    if expression.attributes or expression.rest:
        context.report(expression.span, f"`{expression.callee}` is a function and takes no options in braces")
    for argument in expression.arguments:
        mark = "const" if argument.const else "?" if argument.optional else "@" if argument.layout else None
        if mark == "@" and arranges:
            check_arranged(argument, context)
        elif mark:
            context.report(argument.span, f"`{mark}` does not belong into the call of a function")


def _infer_arguments(expression: tree.Call, context: Context) -> list[Given]:
    found = []
    for argument in expression.arguments:
        kinds = infer(argument.value, context)
        if argument.spread and not can_be(kinds, frozenset({"list", "array", VALUES})):
            context.report(argument.span, f"`...` spreads a list, and this is {name_kinds(kinds)}")
        found.append(Given(argument, ANY if argument.spread else kinds))
    return found


def _check_arity(expression: tree.Call, least: int, most: int | None, shown: str, context: Context) -> bool:
    fixed = sum(not argument.spread for argument in expression.arguments)
    spread = any(argument.spread for argument in expression.arguments)
    if (spread or fixed >= least) and (most is None or fixed <= most):
        return True
    wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    plural = "argument" if wanted == "1" else "arguments"
    given = f"{format_count(fixed, 'argument')} {'is' if fixed == 1 else 'are'} given"
    context.report(
        expression.span, f"`{expression.callee}` takes {wanted} {plural}, {given}", f"it is written `{shown}`"
    )
    return False


def _check_trait(expression: tree.Call, context: Context) -> Kinds:
    if not _check_arity(expression, 2, 2, f"{TRAIT}(op, word)", context):
        return make_single("bool")
    operator, word = (argument.value for argument in expression.arguments)
    kinds = infer(operator, context)
    if not can_be(kinds, make_single(OPERATOR)):
        context.report(operator.span, f"`{TRAIT}` asks about an operator, and this is {name_kinds(kinds)}")
    known = list_traits(context.source) | list_traits(context.target)
    if not isinstance(word, tree.Name):
        context.report(word.span, "a trait is a word, written without quotes")
    elif word.name not in known:
        context.report(
            word.span, f"no operator has the trait `{word.name}`", suggest(word.name, known, "the traits in use")
        )
    return make_single("bool")


def _check_function(expression: tree.Call, context: Context) -> Kinds:
    function = FUNCTIONS[expression.callee]
    taken = find_signature(function.name)
    variadic = function.most is None
    shown = ", ".join([*taken.names[:-1], f"{taken.names[-1]}..."]) if variadic else ", ".join(taken.names)
    given = _infer_arguments(expression, context)
    if not _check_arity(expression, function.least, function.most, f"{function.name}({shown})", context):
        return taken.result
    for position, (argument, kinds) in enumerate(given):
        last = min(position, len(taken.parameters) - 1)
        if not can_be(kinds, taken.parameters[last]):
            like = [
                name for name in list_operators(context.builds[-1], context.opsets) if name.lower() == function.name
            ]
            of_graph = bool(like) and context.emits and bool(kinds) and kinds <= RUNTIME | make_single(VALUES)
            help = function.doc
            if of_graph:
                help = f"of values of the graph it is the operator `{like[0]}`"
            elif kinds and kinds <= RUNTIME:
                help += " `const x` in the pattern gives the elements of an operand, `shape(x)` its extents."
            what = f"`{taken.names[last]}` of `{function.name}` cannot be {name_kinds(kinds)}"
            context.report(argument.span, what, help)
        elif position in taken.elements:
            _check_element(argument, context)
    if function.name == "fail" and expression.arguments:
        message = expression.arguments[0].value
        if isinstance(message, tree.Literal) and isinstance(message.value, str):
            check_placeholders(message.value, message.span, context)
    return taken.result


def _check_element(argument: tree.Argument, context: Context) -> None:
    word = argument.value
    if isinstance(word, tree.Literal) and isinstance(word.value, str):
        check_equality(word, make_single(STRING), word, make_single(ELEMENT), word, context)
    elif isinstance(word, tree.Symbol):
        context.report(
            word.span,
            f"`{word.name}` is an enumerant, not the short name of an element type",
            f"`dtype({word.name})` is its short name; the short names are {', '.join(DTYPES)}",
        )


def _check_definition(definition: tree.Definition, expression: tree.Call, context: Context) -> Kinds:
    given = _infer_arguments(expression, context)
    count = len(definition.parameters)
    shown = f"{definition.name}({', '.join(definition.parameters)})"
    if not _check_arity(expression, count, count, shown, context):
        return ANY
    if definition.name in context.world.builders and not context.emits:
        context.report(expression.span, f"`{definition.name}` makes nodes, so it is called in templates only")
        return ANY
    kinds = [found.kinds for found in given] if len(given) == count else [ANY] * count
    layouts: list[str | None] = [None] * count
    if len(given) == count:
        layouts = [_find_layout(argument, context) for argument, _ in given]
    if any(argument.spread for argument, _ in given):
        kinds, layouts = [ANY] * count, [None] * count
    return check_body(definition, kinds, layouts, context, expression.span)


def _find_layout(argument: tree.Argument, context: Context) -> str | None:
    """The names that the dimensions of an argument have, which go with it into a definition."""
    variable = context.scope.get(argument.value.name) if isinstance(argument.value, tree.Name) else None
    return argument.layout or (variable.layout if variable is not None else None)


def check_body(
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
        parameters = [make_parameter(name, span, kind, layout) for name, kind, layout in given]
        opset = context.scope["opset"]
        inner = replace(context, scope={variable.name: variable for variable in (opset, *parameters)})
        if caller is None:
            bodies[key] = infer(definition.body, inner)
            _report_unused(definition, inner)
        else:
            with context.world.diagnosis.add_note(f"`{definition.name}` is called here", caller):
                bodies[key] = infer(definition.body, inner)
    return bodies[key]


def _report_unused(definition: tree.Definition, inner: Context) -> None:
    for name in definition.parameters:
        if not inner.scope[name].used and not name.startswith("_"):
            inner.report(definition.span, f"parameter `{name}` of `{definition.name}` is never used")

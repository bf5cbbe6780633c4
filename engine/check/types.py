"""Compile-time expressions: every name resolved, and the kind of every value as far as it can be known."""

from __future__ import annotations

import difflib
import functools

from ..expressions.functions import CONSTANTS, DTYPES, FUNCTIONS
from ..expressions.opset_range import decide, find_impossible, find_possible
from ..expressions.values import ORDER
from ..syntax import tree
from ..syntax.diagnostics import join_words, suggest
from ..syntax.habits import suggest_for_module
from .kinds import (
    ANY,
    ARRAY,
    BOOL,
    ELEMENT,
    ENUM,
    LIST,
    LISTED,
    NONE,
    NOTHING,
    NUMBER,
    NUMERIC,
    OLD,
    OPERATOR,
    REAL,
    RUNTIME,
    STRING,
    VALUE,
    VALUES,
    Kinds,
    are_comparable,
    can_be,
    make_enumerant,
    make_single,
    name_kinds,
)
from .scope import ITEM, Context, Variable


@functools.singledispatch
def infer(expression: tree.Expression, context: Context) -> Kinds:
    """The kinds that an expression may have; its mistakes are told on the way.

    Calls, graphs and members are registered by the modules that are about them.
    """
    match expression:
        case tree.Literal(value):
            return _infer_literal(value)
        case tree.Name():
            return _infer_name(expression, context)
        case tree.Symbol():
            return _infer_symbol(expression, context)
        case tree.Unary("not", operand):
            check_condition(operand, context)
            return make_single(BOOL)
        case tree.Unary(symbol, operand, span):
            return _infer_arithmetic(symbol, (operand,), expression, context)
        case tree.Binary():
            return _infer_binary(expression, context)
        case tree.Conditional(then, test, other):
            check_condition(test, context)
            yes, no = find_possible(test, context.opsets), find_impossible(test, context.opsets)
            kinds = infer(then, context.restrict(yes)) if yes else NOTHING
            return kinds | infer(other, context.restrict(no)) if no else kinds
        case tree.Choice(left, right, span):
            help = "a template that depends on something is `a if c else b`"
            context.report(span, "`|` stands in patterns, and behind what does not exist at each opset", help)
            return infer(left, context) | infer(right, context)
        case tree.Index(value, index, span):
            _expect(index, infer(index, context), NUMERIC, "an index is a number", context)
            kinds = infer(value, context)
            _expect(value, kinds, LISTED, "only a list or a constant can be indexed", context)
            return _infer_items(kinds)
        case tree.ListOf(items):
            found = [infer(item, context) for item in items]
            return (
                make_single(VALUES)
                if found and all(kinds and kinds <= RUNTIME for kinds in found)
                else make_single(LIST)
            )
        case tree.Numbers():
            return make_single(LIST)
        case tree.Comprehension():
            return _infer_comprehension(expression, context)
        case tree.Fold():
            return _fold(expression, context)
    raise TypeError(f"no module is about {type(expression).__name__}")


def check_condition(expression: tree.Expression, context: Context) -> None:
    """Check an expression whose truth is asked for."""
    allowed = frozenset({BOOL, NUMBER})
    _expect(expression, infer(expression, context), allowed, "a condition is true or false", context)


def _expect(expression: tree.Expression, kinds: Kinds, allowed: Kinds, rule: str, context: Context) -> None:
    if not can_be(kinds, allowed):
        context.report(expression.span, f"{rule}, and this is {name_kinds(kinds)}")


def _infer_literal(value: object) -> Kinds:
    if value is None:
        return make_single(NONE)
    if isinstance(value, bool):
        return make_single(BOOL)
    return (
        make_single(STRING)
        if isinstance(value, str)
        else make_single(REAL)
        if isinstance(value, float)
        else make_single(NUMBER)
    )


def _infer_name(expression: tree.Name, context: Context) -> Kinds:
    name, span = expression.name, expression.span
    variable = context.scope.get(name)
    if variable is None:
        if name in FUNCTIONS or name in context.world.definitions:
            help: str | None = f"`{name}` is a function: call it, `{name}(...)`"
        elif name == "_":
            help = "`_` stands for what is ignored; give it a name to use it"
        else:
            help = suggest_for_module(name) or suggest(name, context.scope)
            if help is None and (short := _shorten(name)) in DTYPES:
                help = f'an element type is a string: `"{short}"`'
            help = help or suggest(name, context.scope, "the variables here")
            for close in difflib.get_close_matches(name, context.scope, 2, 0.7):
                context.scope[close].used = True  # it would have been, without the slip
        context.report(span, f"there is no variable `{name}` here", help)
        return ANY
    variable.used = True
    if variable.partial:
        context.report(
            span,
            f"`{name}` is bound in some alternatives of the pattern only",
            "bind it in every alternative, or write a rule for each",
        )
    return variable.kinds


def _infer_symbol(expression: tree.Symbol, context: Context) -> Kinds:
    name = expression.name
    if name in CONSTANTS:
        return make_single(NUMBER)
    kinds = make_enumerant(enum for enum, values in context.enums.items() if name in values)
    if any(dialect.find_operator(name) is not None for dialect in (context.source, context.target)):
        kinds |= make_single(OPERATOR)
    if kinds:
        return kinds
    if name in ("SRC", "DST"):
        context.report(expression.span, f"`{name}` stands in `over` families only")
    else:
        known = {value for values in context.enums.values() for value in values}
        context.report(
            expression.span,
            f"there is no enumerant or constant `{name}`",
            suggest(name, known | set(CONSTANTS) | {"true", "false", "none"}),
        )
    return ANY


def _infer_items(kinds: Kinds) -> Kinds:
    """What the items of a list of some kinds may be."""
    found: Kinds = NOTHING
    for kind in kinds:
        found |= make_single(VALUE) if kind == VALUES else frozenset({NUMBER, BOOL, ARRAY}) if kind == ARRAY else ANY
    return found or ANY


def _infer_comprehension(expression: tree.Comprehension, context: Context) -> Kinds:
    kinds = infer(expression.source, context)
    _expect(expression.source, kinds, LISTED, "a comprehension runs over a list", context)
    each = _infer_items(kinds) if len(expression.names) == 1 else ANY
    if len(set(expression.names)) < len(expression.names):
        context.report(expression.span, "a comprehension names one variable twice")
    inner = context.extend(*(Variable(name, expression.span, ITEM, each, used=True) for name in expression.names))
    if expression.condition is not None:
        check_condition(expression.condition, inner)
    item = infer(expression.item, inner)
    return make_single(VALUES) if item and item <= RUNTIME else make_single(LIST)


def _fold(expression: tree.Fold, context: Context) -> Kinds:
    kinds = infer(expression.source, context)
    _expect(expression.source, kinds, LISTED, "a fold runs over a list", context)
    start = infer(expression.start, context)
    names = (expression.total, *expression.names)
    if len(set(names)) < len(names):
        context.report(expression.span, "a fold names one variable twice")
    each = _infer_items(kinds) if len(expression.names) == 1 else ANY
    items = [Variable(name, expression.span, ITEM, each, used=True) for name in expression.names]
    # What it comes to is not known before the body is, which may make a value of a number.
    total = Variable(expression.total, expression.span, ITEM, start if start <= RUNTIME else ANY)
    found = infer(expression.body, context.extend(*items, total))
    if not total.used and expression.total not in expression.names:
        help = "without it the fold is no more than what its body is for the last item"
        context.report(expression.span, f"`{expression.total}` is never used in its fold", help)
    return found | start


# ---- infix operators


def _infer_binary(expression: tree.Binary, context: Context) -> Kinds:
    symbol, left, right = expression.operator, expression.left, expression.right
    if symbol in ("and", "or"):
        check_condition(left, context)
        decided = {decide(left, opset) for opset in context.opsets}
        if decided != {symbol == "or"}:
            check_condition(right, context)
        return make_single(BOOL)
    if symbol in ("==", "!="):
        check_equality(left, infer(left, context), right, infer(right, context), expression, context)
        return make_single(BOOL)
    if symbol in ("in", "not in"):
        kinds, items = infer(left, context), infer(right, context)
        _expect(right, items, LISTED, f"`{symbol}` asks for a list on its right", context)
        if isinstance(right, tree.ListOf):
            for item in right.items:
                check_equality(left, kinds, item, infer(item, context), item, context)
        return make_single(BOOL)
    if symbol == "++":
        both = [infer(side, context) for side in (left, right)]
        for side, kinds in zip((left, right), both, strict=True):
            _expect(side, kinds, LISTED, "`++` joins lists", context)
        return make_single(VALUES) if all(kinds == make_single(VALUES) for kinds in both) else make_single(LIST)
    if symbol in ORDER:
        for side in (left, right):
            _expect(side, infer(side, context), NUMERIC, f"`{symbol}` compares numbers", context)
        return make_single(BOOL)
    return _infer_arithmetic(symbol, (left, right), expression, context)


def check_equality(
    left: tree.Expression,
    kinds: Kinds,
    right: tree.Expression,
    others: Kinds,
    place: tree.Expression,
    context: Context,
) -> None:
    """Tell where two expressions that are compared can never be equal."""
    for side, text, against in ((left, kinds, others), (right, others, kinds)):
        enums = [context.enums[kind.removeprefix(f"{ENUM} ")] for kind in against if kind.startswith(f"{ENUM} ")]
        word = side.value if isinstance(side, tree.Literal) else side.name if isinstance(side, tree.Symbol) else None
        if not isinstance(word, str):
            continue
        if against == make_single(ELEMENT) and word not in DTYPES:
            context.report(side.span, f"there is no element type `{word}`", suggest_element_type(word))
            return
        if enums and OPERATOR not in against and not any(word in values for values in enums) and text != ANY:
            known = [value for values in enums for value in values]
            context.report(side.span, f"`{word}` is none of the values that stand here", suggest(word, known, "those"))
            return
    if not are_comparable(kinds, others):
        context.report(
            place.span,
            f"{name_kinds(kinds)} is never equal to {name_kinds(others)}",
            _explain_difference(left, kinds, others),
        )


#: what to say where nothing like an element type was written
_TYPES = f"element types are {join_words(DTYPES, 'and')}"


def _shorten(word: str) -> str:
    """The short form of an element type as other programs call it: `float32` is `f32`, `uint8` is `u8`."""
    word = word.lower()
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if word.startswith(long):
            return short + (word.removeprefix(long) or "32")
    return {"double": "f64", "half": "f16"}.get(word, word)


def suggest_element_type(word: str) -> str:
    """What may have been meant by a word that is no element type."""
    short = _shorten(word)
    return f"did you mean `{short}`?" if short in DTYPES else suggest(short, DTYPES) or _TYPES


def _explain_difference(left: tree.Expression, kinds: Kinds, others: Kinds) -> str | None:
    for kind in (kinds, others):
        if kind & RUNTIME and NONE in kinds | others:
            return "only an operand that may be left out, written `x?` in the pattern, can be none"
    if (kinds | others) & RUNTIME:
        return "write `const x` in the pattern for an operand whose value the rule needs"
    return None


def _infer_arithmetic(
    symbol: str, sides: tuple[tree.Expression, ...], expression: tree.Expression, context: Context
) -> Kinds:
    found = [infer(side, context) for side in sides]
    for side, kinds in zip(sides, found, strict=True):
        if not can_be(kinds, NUMERIC | RUNTIME):
            _expect(side, kinds, NUMERIC, f"`{symbol}` computes with numbers", context)
            return frozenset({NUMBER})
    certain = any(kinds and kinds <= RUNTIME | make_single(NONE) for kinds in found)
    if not certain and make_single(REAL) in found and all(kinds <= frozenset({NUMBER, REAL, BOOL}) for kinds in found):
        return make_single(REAL)
    if not certain:
        return ANY if any(kinds & RUNTIME for kinds in found) else NUMERIC
    if not context.emits:
        context.report(
            expression.span,
            "run-time values are computed in templates only",
            "write `const x` in the pattern for an operand of a known value, or name it behind `=>`, `v = ...`",
        )
    elif context.builds[-1].find_infix(symbol) is None:
        context.report(
            expression.span, f"`{symbol}` on run-time values has no operator in dialect {context.builds[-1].name}"
        )
    for side, kinds in zip(sides, found, strict=True):
        refuse_replaced(side, kinds, context)
    return make_single(VALUE)


def refuse_replaced(expression: tree.Expression, kinds: Kinds, context: Context) -> None:
    """Tell where what a rule replaces stands as an operand of what it is replaced by."""
    if kinds == make_single(OLD):
        context.report(
            expression.span,
            f"{_quote_name(expression)} is what the rule replaces and cannot be an operand of what it is replaced by",
        )


def _quote_name(expression: tree.Expression) -> str:
    return f"`{expression.name}`" if isinstance(expression, tree.Name) else "this"

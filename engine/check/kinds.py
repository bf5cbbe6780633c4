"""What kinds of value an expression may have, as far as that can be known without a model."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Iterable

import numpy as np

from ..base.startup import dataclass
from ..dialects.operators import Option
from ..expressions.functions import FUNCTIONS, ElementType

Kinds = frozenset[str]

NUMBER, BOOL, STRING, LIST, ARRAY, NONE = "number", "bool", "string", "list", "array", "none"
#: a number that is surely a floating-point one
REAL = f"{NUMBER} real"
#: an element type by its short name; a subgraph; the name of an operator; an enumerant of no enumeration in particular
ELEMENT, GRAPH, OPERATOR, ENUM = "element type", "subgraph", "operator", "enum"
#: what is known at run time only: one value, several, and the value that the rule replaces
VALUE, VALUES, OLD = "value", "values", "old"

ANY: Kinds = frozenset({NUMBER, BOOL, STRING, LIST, ARRAY, NONE, ELEMENT, GRAPH, OPERATOR, ENUM, VALUE, VALUES, OLD})
#: what has no value, such as `fail`
NOTHING: Kinds = frozenset()

NUMERIC: Kinds = frozenset({NUMBER, BOOL, ARRAY})
LISTED: Kinds = frozenset({LIST, ARRAY, VALUES})
TEXT: Kinds = frozenset({STRING, ELEMENT, ENUM, OPERATOR})
RUNTIME: Kinds = frozenset({VALUE, OLD})

_WORDS = {
    NUMBER: "a number",
    BOOL: "true or false",
    STRING: "a string",
    LIST: "a list",
    ARRAY: "a constant",
    NONE: "none",
    ELEMENT: "an element type",
    GRAPH: "a subgraph",
    OPERATOR: "the name of an operator",
    ENUM: "an enumerant",
    VALUE: "a run-time value",
    VALUES: "several run-time values",
    OLD: "the value that the rule replaces",
}


def make_single(kind: str) -> Kinds:
    """The set of a single kind."""
    return frozenset({kind})


def make_enumerant(names: Iterable[str]) -> Kinds:
    """The kind of an enumerant of one of some enumerations."""
    return frozenset(f"{ENUM} {name}" for name in names)


def can_be(kinds: Kinds, allowed: Kinds) -> bool:
    """Whether an expression of some kinds may be of an allowed kind; what has no value may stand anywhere."""
    # What may be none is told by the functions that meet it; here the rest of its kinds counts.
    certain = kinds - {NONE} or kinds
    return not kinds or any(_generalize(kind) in allowed or kind in allowed for kind in certain)


def name_kinds(kinds: Kinds) -> str:
    """Format kinds for a message."""
    found = dict.fromkeys(_WORDS[_generalize(kind)] for kind in sorted(kinds) if kind != NONE or len(kinds) == 1)
    return " or ".join(found)


def are_comparable(left: Kinds, right: Kinds) -> bool:
    """Whether values of two sets of kinds can be equal at all."""
    if not left or not right or left >= ANY or right >= ANY:
        return True
    return any(_can_be_equal(a, b) for a in left for b in right)


def _can_be_equal(left: str, right: str) -> bool:
    if left.startswith(ENUM + " ") and right.startswith(ENUM + " "):
        return left == right
    return bool(_CLASSES[_generalize(left)] & _CLASSES[_generalize(right)])


_CLASSES: dict[str, frozenset[str]] = {
    NUMBER: frozenset({"number"}),
    BOOL: frozenset({"number"}),
    ARRAY: frozenset({"number", "list"}),
    LIST: frozenset({"list"}),
    VALUES: frozenset({"list"}),
    STRING: frozenset({"text"}),
    ELEMENT: frozenset({"text"}),
    ENUM: frozenset({"text"}),
    OPERATOR: frozenset({"operator"}),
    NONE: frozenset({"none"}),
    GRAPH: frozenset({"graph"}),
    VALUE: frozenset({"value"}),
    OLD: frozenset({"value"}),
}


def _generalize(kind: str) -> str:
    return ENUM if kind.startswith(ENUM) else NUMBER if kind == REAL else kind


def can_fit(kinds: Kinds, option: Option) -> bool:
    """Whether a value of some kinds may be that of an option or one of its items, as far as integers need no others."""
    return not option.type.strip("[]").startswith(("int", "uint")) or kinds - {NONE} != make_single(REAL)


def find_option_kinds(option: Option, enums: Iterable[str]) -> Kinds:
    """The kinds of an option's value in a pattern."""
    kind = option.type
    if kind in enums:
        found = make_enumerant([kind])
    elif kind.startswith("["):
        found = make_single(LIST)
    else:
        found = {
            "bool": make_single(BOOL),
            "float": make_single(REAL),
            "string": make_single(STRING),
            "bytes": ANY,
            "subgraph": make_single(GRAPH),
            "tensor": make_single(ARRAY),
        }.get(kind, make_single(NUMBER) if kind.startswith(("int", "uint")) else ANY)
    absent = option.default is None and not option.required
    return found | make_single(NONE) if absent else found


def find_attribute_kinds(option: Option) -> Kinds:
    """The kinds that a template may give to an attribute; `none` leaves it out."""
    kind = option.type
    if kind.startswith("["):
        return frozenset({LIST, ARRAY, NUMBER, BOOL, NONE})
    if kind == "string":
        return TEXT | make_single(NONE)
    if kind == "bool" or kind == "float" or kind.startswith(("int", "uint")):
        return NUMERIC | frozenset({LIST, NONE})
    if kind == "subgraph":
        return frozenset({GRAPH, NONE})
    return ANY - RUNTIME - make_single(VALUES)


# ---- functions


@dataclass(frozen=True, slots=True)
class Signature:
    """The kinds that a function takes, the last for all further arguments, and those it yields."""

    names: tuple[str, ...]
    parameters: tuple[Kinds, ...]
    result: Kinds
    #: the positions of parameters that take the short name of an element type
    elements: frozenset[int]


@functools.cache
def find_signature(name: str) -> Signature:
    """The signature of a function of the language, from the annotations of what computes it."""
    call = FUNCTIONS[name].call
    hints = typing.get_type_hints(call, include_extras=True)
    result = hints.pop("return", typing.Any)
    names = tuple(inspect.signature(call).parameters)
    yields = NOTHING if result is type(None) else _read_kinds(result, result=True)
    parameters = tuple(_read_kinds(hints.get(name, typing.Any)) for name in names)
    elements = frozenset(position for position, name in enumerate(names) if hints.get(name) == ElementType)
    return Signature(names, parameters, yields, elements)


#: the kinds that the annotations of functions.py stand for
_TAKEN: dict[str, Kinds] = {
    "element type": TEXT,
    "tensor": NUMERIC | RUNTIME | frozenset({LIST, NONE}),
    "number": NUMERIC | make_single(NONE),
    "numbers": NUMERIC | frozenset({LIST, NONE}),
    "elements": LISTED | NUMERIC | TEXT,
    "items": LISTED | NUMERIC,
    "sequences": LISTED | make_single(STRING),
}


def _read_kinds(hint: typing.Any, result: bool = False) -> Kinds:
    if typing.get_origin(hint) is typing.Annotated:
        _, said = typing.get_args(hint)
        return make_single(ELEMENT) if result and hint == ElementType else _TAKEN[said]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return frozenset().union(*(_read_kinds(part, result) for part in typing.get_args(hint)))
    hint = typing.get_origin(hint) or hint
    if hint is bool:
        return make_single(BOOL)
    if hint is int or hint is float:
        # Extents that are not known are `none`; the functions that need them say so when they meet one.
        return make_single(REAL if hint is float else NUMBER) if result else NUMERIC | make_single(NONE)
    if hint is str:
        return make_single(STRING) if result else TEXT
    if hint is list:
        return make_single(LIST) if result else LISTED
    if hint is np.ndarray:
        return make_single(ARRAY)
    return make_single(NONE) if hint is type(None) else ANY

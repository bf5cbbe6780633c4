"""The keys of ops.yaml, read from the classes that declare them: what each says, and the type of what it holds."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from ..base.startup import dataclass
from ..syntax.diagnostics import join_words
from .operators import Dialect, OperatorSpec
from .trial_facts import Member

#: what a file says besides keys: its dialects
DOCUMENT = Mapping[str, Dialect]


@dataclass(frozen=True, slots=True)
class Key:
    """A key: what it says, the type of what it holds in a file, and whether it must be there."""

    name: str
    text: str
    type: Any
    required: bool = False


@functools.cache
def list_keys(kind: type[Any]) -> Mapping[str, Key]:
    """The keys that a class declares, with those of facts that stand among them; none for a class that has none."""
    found: dict[str, Key] = {}
    if not isinstance(kind, type) or not hasattr(kind, "__annotations__"):
        return found
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            held, text, *written = get_args(hint)
            found[name] = Key(name, text, written[0] if written else held, is_typeddict(kind))
        elif name == "facts":
            found |= list_keys(hint)
    return found


@dataclass(frozen=True, slots=True)
class Home:
    """Where keys may stand, in words."""

    place: str
    keys: Mapping[str, Key]


@functools.cache
def list_homes() -> tuple[Home, ...]:
    """All places with keys, those inside of others behind these."""
    found = []
    for place, kind in (("an operator", OperatorSpec), ("a dialect", Dialect)):
        found.append(Home(place, list_keys(kind)))
        found += [
            Home(f"`{key.name}` of {place}", list_keys(held))
            for key in list_keys(kind).values()
            for held in list_alternatives(key.type)
            if list_keys(held)
        ]
    return tuple(found)


def list_alternatives(kind: Any) -> tuple[Any, ...]:
    """The types of which a value may have any."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def describe(kind: Any) -> str:
    """A type in words."""
    origin = get_origin(kind)
    if kind is type(None):
        return "null"
    if len(several := list_alternatives(kind)) > 1:
        return join_words(describe(one) for one in several if one is not type(None))
    if origin is Literal:
        return join_words(f"`{word}`" for word in get_args(kind))
    if origin is tuple:
        inner = get_args(kind)
        return "a list" if inner[-1] is Ellipsis else f"a list of {len(inner)}: {' and '.join(map(describe, inner))}"
    if origin is Annotated:
        return describe(get_args(kind)[0])
    words = {
        str: "a text",
        Member: "a text",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
    }
    return words.get(kind, "a mapping")

"""Whether nodes of a YAML document are of the types that keys hold, and keys where they belong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import yaml

from ..syntax.diagnostics import join_words, suggest
from .keys import Key, describe, list_alternatives, list_homes, list_keys
from .trial_facts import Member

#: what YAML calls the types of scalars
_TAGS: Mapping[Any, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("int",),
    float: ("int", "float"),
    str: ("str",),
    Member: ("str",),
    type(None): ("null",),
}
_PREFIX = "tag:yaml.org,2002:"

#: a node that does not fit, what is wrong with it, and what may be meant
Misfit = tuple[yaml.Node, str, str | None]


def list_misfits(node: yaml.Node, kind: Any, name: str) -> Iterator[Misfit]:
    """What of a node, which stands for `name`, is not of a type, each with the innermost node that is not."""
    found = [list(_find_misfits(node, one, name)) for one in list_alternatives(kind) if _is_alike(node, one)]
    if [] in found:
        return
    if len(found) == 1:
        yield from found[0]
    else:
        yield node, f"`{name}` is {describe(kind)}", _suggest_help(node, kind)


def list_members(node: yaml.Node, kind: Any) -> Iterator[yaml.ScalarNode]:
    """The names of operands, results and options in a node of a type, which fits it."""
    for one in list_alternatives(kind):
        inner = get_args(one)
        if one is Member and isinstance(node, yaml.ScalarNode) and str(node.tag) == f"{_PREFIX}str":
            yield node
        elif isinstance(node, yaml.SequenceNode) and get_origin(one) is tuple:
            for item in node.value:
                yield from list_members(item, inner[0])
        elif isinstance(node, yaml.MappingNode) and inner:
            for key, value in node.value:
                yield from (*list_members(key, inner[0]), *list_members(value, inner[1]))
        elif isinstance(node, yaml.MappingNode):
            keys = list_keys(one)
            for key, value in node.value:
                if key.value in keys:
                    yield from list_members(value, keys[key.value].type)


def list_unknown(node: yaml.MappingNode, keys: Mapping[str, Key], place: str) -> Iterator[Misfit]:
    """The keys of a mapping that does not have them."""
    for key, _ in node.value:
        if key.value not in keys:
            yield key, f"{place} has no `{key.value}`", _propose(key.value, keys, place)


def _propose(name: str, keys: Mapping[str, Key], place: str) -> str | None:
    """What may be meant by a key that a place has not: one that stands elsewhere, or one that is spelt alike."""
    others = [home for home in list_homes() if home.place != place]
    there = [home.place for home in others if name in home.keys]
    if there:
        return f"it belongs to {join_words(there)}"
    found = suggest(name, keys)
    if found is None:
        near = ((home.place, suggest(name, home.keys)) for home in others)
        return next((f"{found} It belongs to {at}" for at, found in near if found is not None), None)
    return found


def _is_alike(node: yaml.Node, kind: Any) -> bool:
    """Whether a node is a mapping, a list or a scalar as a type is."""
    origin = get_origin(kind)
    if kind is Any:
        return True
    if origin is tuple:
        return isinstance(node, yaml.SequenceNode)
    if origin is Annotated or origin is Literal or kind in _TAGS:
        return isinstance(node, yaml.ScalarNode)
    return isinstance(node, yaml.MappingNode)


def _find_misfits(node: yaml.Node, kind: Any, name: str) -> Iterator[Misfit]:
    inner = get_args(kind)
    if kind is Any:
        return
    if isinstance(node, yaml.SequenceNode):
        kinds = [inner[0]] * len(node.value) if inner[-1] is Ellipsis else inner
        if len(kinds) != len(node.value):
            yield node, f"`{name}` is {describe(kind)}", None
            return
        for item, one in zip(node.value, kinds, strict=True):
            yield from list_misfits(item, one, name)
    elif isinstance(node, yaml.MappingNode) and (keys := list_keys(kind)):
        yield from list_unknown(node, keys, _describe_place(kind, name))
        given = {key.value: value for key, value in node.value}
        for key in keys.values():
            if key.required and key.name not in given:
                yield node, f"`{name}` has no `{key.name}`", None
        for word, value in given.items():
            if word in keys:
                yield from list_misfits(value, keys[word].type, word)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from ((at, f"a key of {said}", help) for at, said, help in list_misfits(key, inner[0], name))
            yield from list_misfits(value, inner[1], f"{name}.{key.value}")
    elif not _is_of_kind(node, kind):
        yield node, f"`{name}` is {describe(kind)}", _suggest_help(node, kind)


def _describe_place(kind: Any, name: str) -> str:
    return next((home.place for home in list_homes() if home.keys == list_keys(kind)), f"`{name}`")


def _is_of_kind(node: yaml.Node, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return node.value in get_args(kind)
    if get_origin(kind) is Annotated:
        base, pattern = get_args(kind)
        return _is_of_kind(node, base) and re.search(pattern, node.value) is not None
    return str(node.tag).removeprefix(_PREFIX) in _TAGS[kind]


def _suggest_help(node: yaml.Node, kind: Any) -> str | None:
    """What to do about a scalar that is of none of some types."""
    words = [word for one in list_alternatives(kind) if get_origin(one) is Literal for word in get_args(one)]
    if isinstance(node, yaml.ScalarNode) and words:
        return suggest(node.value, words)
    if isinstance(node, yaml.ScalarNode) and not {str, Member}.isdisjoint(list_alternatives(kind)):
        return "a text that could be something else stands in quotes"
    return None

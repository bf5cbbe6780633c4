"""Ways through syntax trees: all nodes, nodes made anew where something below them is, the calls in which one ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..base.startup import replace
from . import tree

#: the types, as annotations say them, of fields below which there is no node
_LEAVES = frozenset({"Span", "str", "bool", "int", "tuple[int, int]", "tuple[str, ...]", "tuple[str, str]"})

_below: dict[type[Any], tuple[str, ...] | None] = {}


def list_child_fields(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a class of syntax nodes in which other nodes may stand; None for all other classes."""
    if kind not in _below:
        _below[kind] = _list_fields(kind) if kind.__module__ == tree.__name__ else None
    return _below[kind]


def _list_fields(kind: type[Any]) -> tuple[str, ...] | None:
    names: tuple[str, ...] | None = getattr(kind, "__match_args__", None)
    return names and tuple([name for name in names if not _is_leaf(kind.__annotations__[name])])


def _is_leaf(annotation: str) -> bool:
    return annotation.removesuffix(" | None") in _LEAVES


def walk(node: object) -> Iterator[Any]:
    """Yield a node and all nodes below it, parents first."""
    work = [node]
    while work:
        one = work.pop()
        if type(one) is tuple:
            work += one[::-1]
        elif (names := list_child_fields(type(one))) is not None:
            yield one
            work += [getattr(one, name) for name in names[::-1]]


def rebuild(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node, or a tuple of them, whose parts are what a function makes of them; the same one where it changes none."""
    if type(node) is tuple:
        items = tuple([change(item) for item in node])
        return node if all(new is old for new, old in zip(items, node, strict=True)) else items
    changed = {}
    for name in list_child_fields(type(node)) or ():
        old = getattr(node, name)
        if (type(old) is tuple or list_child_fields(type(old)) is not None) and (new := change(old)) is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def iterate_tails(expression: tree.Expression) -> Iterator[tree.Call]:
    """The calls whose results an expression may be."""
    if isinstance(expression, tree.Call):
        yield expression
    elif isinstance(expression, tree.Conditional):
        yield from iterate_tails(expression.then)
        yield from iterate_tails(expression.other)


def find_leading(files: Sequence[tree.RuleFile]) -> tree.RuleFile:
    """The first of some files whose rules lead from one dialect to another: what lies over or below them stays within
    one of the two. The first of all where none does."""
    return next((file for file in files if file.source != file.target), files[0])

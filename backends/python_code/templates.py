"""Expressions of Python as ops.yaml has them, and what becomes of them when their names stand for something."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

#: what a name of a template stands for: an expression, several of them, or nothing
Filling: TypeAlias = "ast.expr | Sequence[ast.expr] | None"


@functools.cache
def parse_template(text: str) -> ast.expr:
    """Read an expression; raises SyntaxError where it is none."""
    return ast.parse(text, mode="eval").body


@functools.cache
def list_arguments(text: str) -> Mapping[str, Any]:
    """The arguments of a call by the names that stand for them, with their defaults; Ellipsis where there is none."""
    call = parse_template(text)
    assert isinstance(call, ast.Call)
    found: dict[str, Any] = {argument.id: ... for argument in call.args if isinstance(argument, ast.Name)}
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Name):
            found[keyword.value.id] = ...
        elif isinstance(keyword.value, ast.BoolOp):
            name, usual = keyword.value.values
            found[name.id if isinstance(name, ast.Name) else ""] = ast.literal_eval(usual)
        elif keyword.arg is not None:
            found[keyword.arg] = ast.literal_eval(keyword.value)
    return found


@functools.cache
def list_names(text: str) -> frozenset[str]:
    """The names in an expression, and those that its arguments are given by."""
    nodes = list(ast.walk(parse_template(text)))
    words = {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg is not None}
    return frozenset(words | {node.id for node in nodes if isinstance(node, ast.Name)})


def name_call(text: str) -> str:
    """The last name of what a template calls: `Conv2d` of `nn.Conv2d(...)`."""
    call = parse_template(text)
    function = call.func if isinstance(call, ast.Call) else call
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "value")


def make_literal(value: Any) -> ast.expr:
    """The expression of a number, a truth value, a text, nothing, or a list of these as a tuple."""
    if isinstance(value, list | tuple):
        return ast.Tuple([make_literal(item) for item in value])
    if isinstance(value, np.generic):
        value = float(str(value)) if isinstance(value, np.floating) else value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float"), [ast.Constant(str(value))], [])
    if isinstance(value, int | float) and not isinstance(value, bool) and (value < 0 or str(value) == "-0.0"):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    if not isinstance(value, bool | int | float | str | None):
        raise TypeError(f"{type(value).__name__} is no literal")
    return ast.Constant(value)


def make_attribute(name: str) -> ast.expr:
    """What a class holds, by its name."""
    return ast.Attribute(ast.Name("self"), name)


def fill(node: ast.expr, names: Mapping[str, Filling]) -> ast.expr:
    """An expression with other expressions in the place of names; arguments that have their default are left out."""
    filled = _fill(node, names)
    return ast.Constant(None) if filled is None else filled


def _fill(node: ast.expr, names: Mapping[str, Filling]) -> ast.expr | None:
    if isinstance(node, ast.Name) and node.id in names:
        found = names[node.id]
        assert found is None or isinstance(found, ast.expr), node.id
        return found
    if isinstance(node, ast.Call):
        positional = list(_spread(node.args, names))
        while positional and positional[-1] is None:
            positional.pop()
        keywords = [made for keyword in node.keywords if (made := _fill_keyword(keyword, names)) is not None]
        return ast.Call(fill(node.func, names), [one or ast.Constant(None) for one in positional], keywords)
    if isinstance(node, ast.Tuple | ast.List):
        items = list(_spread(node.elts, names))
        if any(item is None for item in items):
            return None
        each = items[0] if isinstance(node, ast.List) and len(items) == 1 else None
        if isinstance(each, ast.Starred) and isinstance(each.value, ast.Name):
            return each.value  # a list that has a name
        return type(node)([item for item in items if item is not None])
    if isinstance(node, ast.Subscript):
        return ast.Subscript(fill(node.value, names), _fill_places(node.slice, names))
    if isinstance(node, ast.Attribute):
        return ast.Attribute(fill(node.value, names), node.attr)
    if isinstance(node, ast.BinOp):
        return ast.BinOp(fill(node.left, names), node.op, fill(node.right, names))
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, fill(node.operand, names))
    if isinstance(node, ast.Compare):
        return ast.Compare(fill(node.left, names), node.ops, [fill(one, names) for one in node.comparators])
    return node


def _spread(items: Sequence[ast.expr], names: Mapping[str, Filling]) -> Iterator[ast.expr | None]:
    for item in items:
        found = names.get(item.value.id) if isinstance(item, ast.Starred) and isinstance(item.value, ast.Name) else None
        if isinstance(item, ast.Starred):
            yield from _make_list(found)
        else:
            yield _fill(item, names)


def _make_list(found: Filling) -> Sequence[ast.expr]:
    if found is None:
        return []
    if isinstance(found, ast.GeneratorExp):
        return [ast.Starred(found)]
    return found.elts if isinstance(found, ast.Tuple | ast.List) else [found] if isinstance(found, ast.expr) else found


def _fill_keyword(keyword: ast.keyword, names: Mapping[str, Filling]) -> ast.keyword | None:
    name, value = keyword.arg, keyword.value
    if isinstance(value, ast.BoolOp):  # of another name, and its default
        made, usual = (_fill(one, names) for one in value.values)
        return None if made is None or (usual is not None and _are_equal(made, usual)) else ast.keyword(name, made)
    if isinstance(value, ast.Constant | ast.UnaryOp):  # a default
        if name is None or name not in names:
            return keyword
        found = names[name]
        if not isinstance(found, ast.expr) or _are_equal(found, value):
            return None
        return ast.keyword(name, found)
    used = [names[one.id] for one in ast.walk(value) if isinstance(one, ast.Name) and one.id in names]
    if used and all(one is None or one == [] for one in used):
        return None
    return ast.keyword(name, fill(value, names))


def _are_equal(one: ast.expr, other: ast.expr) -> bool:
    try:
        a, b = ast.literal_eval(one), ast.literal_eval(other)
    except ValueError:
        return False
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _fill_places(node: ast.expr, names: Mapping[str, Filling]) -> ast.expr:
    """What stands in brackets: a starred number is so many whole axes."""
    if isinstance(node, ast.Slice):
        lower, upper, step = (None if one is None else _fill(one, names) for one in (node.lower, node.upper, node.step))
        return ast.Slice(lower, upper, step)
    if not isinstance(node, ast.Tuple):
        return fill(node, names)
    places: list[ast.expr] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            places += [ast.Slice(None, None, None)] * int(ast.literal_eval(fill(item.value, names)))
        else:
            places.append(_fill_places(item, names))
    return places[0] if len(places) == 1 else ast.Tuple(places)

"""Memoized expressions: what they find out about the elements of a large constant is found out once."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..syntax import tree
from ..syntax.tree_traversal import list_child_fields
from .frame import Frame
from .functions import FUNCTIONS, lists, numbers
from .functions.registry import SCALARS, fail
from .functions.tensors import value

#: constants of so many elements are gone through each time
_FEW = 64
#: what is kept of an expression: as many results, of so many items each
_RESULTS, _ITEMS = 1024, 64

_numbers = itertools.count()
#: the number of each large constant that is alive, by its identity
_known: dict[int, tuple[weakref.ref[np.ndarray[Any, Any]], int]] = {}


def make_key(value: Any) -> Any:
    """A key for a compile-time value, which tells 1 from 1.0 and from true; None for one that has none.

    A large constant has a number of its own as long as it lives, a small one is no key.
    """
    kind = type(value)
    if kind in SCALARS:
        return kind, value
    if kind is np.ndarray:
        return None if value.size <= _FEW else (kind, _hash_elements(value))
    if kind is not list:
        return None
    parts = []
    for item in value:
        part = make_key(item)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def is_small(value: Any) -> bool:
    """Whether a value takes so little that it may outlive the constants that it was computed of."""
    if type(value) is np.ndarray:
        return False  # which may be a view of a constant
    return not isinstance(value, list) or (len(value) <= _ITEMS and all(type(item) in SCALARS for item in value))


def memoize(code: Callable[[Frame], Any], leaves: Sequence[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    """The code of an expression that keeps what it yields of large constants; `leaves` yield what it depends on."""
    kept: dict[Any, Any] = {}

    def run(frame: Frame) -> Any:
        given = [leaf(frame) for leaf in leaves]
        large = any(type(one) is np.ndarray and one.size > _FEW for one in given)
        key = make_key(given) if large else None
        if key is None:
            return code(frame)
        if key not in kept:
            found = code(frame)
            if not is_small(found):
                return found
            if len(kept) >= _RESULTS:
                kept.clear()
            kept[key] = found
        return kept[key]

    return run


def may_visit_elements(expression: tree.Expression) -> bool:
    """Whether an expression may look at the elements of a list or a constant one by one."""
    if isinstance(expression, tree.Comprehension | tree.Fold):
        return True
    found = FUNCTIONS.get(expression.callee) if isinstance(expression, tree.Call) else None
    return found is not None and found.call.__module__ in (lists.__name__, numbers.__name__)


def list_inputs(expression: tree.Expression) -> list[Callable[[Frame], Any]] | None:
    """What yields the variables that an expression depends on, and `value` of one; None where it may depend on more."""
    found: dict[str, Callable[[Frame], Any]] = {}
    work: list[tuple[Any, frozenset[str]]] = [(expression, frozenset())]
    while work:
        one, bound = work.pop()
        match one:
            case tree.Name(name):
                if name not in bound:
                    found[name] = _read_variable(name)
            case tree.Call(callee) if callee == value.__name__ and isinstance(one.arguments[0].value, tree.Name):
                if one.arguments[0].value.name in bound:
                    return None
                found[f"{callee} {one.arguments[0].value.name}"] = _compile_elements(one.arguments[0].value.name)
            case tree.Argument(layout=layout) if layout is not None:
                return None
            case tree.Call(callee) if callee not in FUNCTIONS or callee == fail.__name__:
                return None
            case tree.Comprehension(item, names, source, condition):
                work += [(source, bound), (item, bound.union(names)), (condition, bound.union(names))]
            case tree.Fold(total, start, names, source, body):
                work += [(start, bound), (source, bound), (body, bound.union(names, (total,)))]
            case tree.Member() | tree.Symbol() | tree.GraphOf():
                return None
            case tuple():
                work += [(item, bound) for item in one]
            case _:
                work += [(getattr(one, field), bound) for field in list_child_fields(type(one)) or ()]
    return list(found.values()) or None


def _read_variable(name: str) -> Callable[[Frame], Any]:
    return lambda frame: frame.values.get(name)


def _compile_elements(name: str) -> Callable[[Frame], Any]:
    """What `value` yields of a variable whose elements are stored; else the value itself, which is no key."""

    def read_elements(frame: Frame) -> Any:
        bound = frame.values.get(name)
        found = read_initializer(bound) if type(bound) is ir.Value else None
        return bound if found is None else found

    return read_elements


def _hash_elements(array: np.ndarray[Any, Any]) -> int:
    identity = id(array)
    known = _known.get(identity)
    if known is not None and known[0]() is array:
        return known[1]
    number = next(_numbers)
    # What Python calls as an array goes must run no code: an interruption that came there would be lost.
    _known[identity] = weakref.ref(array, functools.partial(_known.pop, identity)), number
    return number

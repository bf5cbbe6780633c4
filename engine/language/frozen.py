"""Syntax trees and operator specs as bytes and back: data alone, so that reading them can run nothing."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, overload

from .. import errors, operators, rules
from . import tree

_T = TypeVar("_T")

#: all classes that may be kept, by number; a change of this code changes the key of what is kept
_CLASSES: list[type[Any]] = [
    kind
    for module in (errors, operators, rules, tree)
    for kind in vars(module).values()
    if isinstance(kind, type) and "__match_args__" in vars(kind)
]
_NUMBERS = {kind: number for number, kind in enumerate(_CLASSES)}


def freeze(value: Any) -> bytes:
    """Turn plain data, syntax trees and operator specs into bytes."""
    return marshal.dumps(_packed(value))


def thaw(data: bytes) -> Any:
    """Turn bytes of `freeze` back; raises ValueError, TypeError or EOFError for others."""
    return _unpacked(marshal.loads(data))


def _packed(value: Any) -> Any:
    if type(value) in _NUMBERS:
        # An object is a tuple that begins with an ellipsis, which occurs nowhere else.
        parts = (_packed(getattr(value, field.name)) for field in fields(value))
        return (..., _NUMBERS[type(value)], *parts)
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_packed(item) for item in value)
    return value


def _unpacked(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        if value and value[0] is ...:
            return _CLASSES[value[1]](*[_unpacked(item) if type(item) in _NESTED else item for item in value[2:]])
        return tuple([_unpacked(item) for item in value])
    if kind is dict:
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if kind is list else value


_NESTED = (tuple, dict, list)


class Lazy(Sequence[_T]):
    """A sequence whose items are thawed one by one, each when it is first asked for."""

    __slots__ = ("_found", "_frozen")

    def __init__(self, frozen: Sequence[bytes]) -> None:
        self._frozen = frozen
        self._found: dict[int, _T] = {}

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index not in self._found:
            self._found[index] = thaw(self._frozen[index])
        return self._found[index]

    def __len__(self) -> int:
        return len(self._frozen)

    def __iter__(self) -> Iterator[_T]:
        return (self[index] for index in range(len(self)))

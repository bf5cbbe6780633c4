"""Syntax trees and operator specs as bytes and back: data alone, so that reading them can run nothing."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, overload

from ..base import errors
from ..dialects import dialect_facts, facts, operators
from ..rewrite import needs, outlines
from ..syntax import tree

_T = TypeVar("_T")

#: all classes that may be kept, by where they stand; a change of this code changes the key of what is kept
_CLASSES: dict[tuple[str, str], type[Any]] = {
    (kind.__module__, kind.__qualname__): kind
    for module in (errors, dialect_facts, facts, needs, operators, outlines, tree)
    for kind in vars(module).values()
    if isinstance(kind, type) and "__match_args__" in vars(kind)
}


def freeze(value: Any) -> bytes:
    """Turn plain data, syntax trees and operator specs into bytes; raises PicklingError for other objects."""
    file = io.BytesIO()
    _Freezer(file, 5).dump(value)
    return file.getvalue()


def thaw(data: bytes) -> Any:
    """Turn bytes of `freeze` back; raises UnpicklingError for those that name anything but its classes."""
    return _Thawer(io.BytesIO(data)).load()


class _Reducers(dict[type[Any], Callable[[Any], Any]]):
    """How an object of each class is written: as its class and its fields."""

    def __missing__(self, kind: type[Any]) -> NoReturn:
        raise pickle.PicklingError(f"{kind.__qualname__} is no plain data")


def _reduce(kind: type[Any]) -> Callable[[Any], Any]:
    names = kind.__match_args__
    if len(names) < 2:  # of one name, attrgetter yields no tuple
        return lambda value: (kind, tuple([getattr(value, name) for name in names]))
    read = attrgetter(*names)
    return lambda value: (kind, read(value))


class _Freezer(pickle.Pickler):
    dispatch_table = _Reducers({kind: _reduce(kind) for kind in _CLASSES.values()})


class _Thawer(pickle.Unpickler):
    """Reads what `_Freezer` writes: only classes that hold data can be called."""

    def find_class(self, module: str, name: str) -> type[Any]:
        if (module, name) not in _CLASSES:
            raise pickle.UnpicklingError(f"{module}.{name} is no class of rules or operators")
        return _CLASSES[module, name]


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


class LazyMapping(Mapping[str, _T]):
    """A mapping whose values are thawed one by one, each when it is first asked for."""

    __slots__ = ("_found", "_frozen")

    def __init__(self, frozen: Mapping[str, bytes]) -> None:
        self._frozen = frozen
        self._found: dict[str, _T] = {}

    def __getitem__(self, name: str) -> _T:
        if name not in self._found:
            self._found[name] = thaw(self._frozen[name])
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frozen)

    def __len__(self) -> int:
        return len(self._frozen)

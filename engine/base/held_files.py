"""Files taken as they are when they are first looked at: what they say is found out once while they are held."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Found = TypeVar("Found")

#: what functions found out since files are held, by the function and its arguments; None while they are not
_HELD: ContextVar[dict[Any, Any] | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def hold_files() -> Iterator[None]:
    """Take files as they are when they are first looked at, however often they are asked for inside."""
    known = _HELD.get()
    token = _HELD.set({} if known is None else known)
    try:
        yield
    finally:
        _HELD.reset(token)


def read_once(read: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """A function of hashable arguments that reads files, and while they are held each only once."""

    @functools.wraps(read)
    def ask(*given: Asked.args, **named: Asked.kwargs) -> Found:
        known = _HELD.get()
        if known is None:
            return read(*given, **named)
        key = (read, given, tuple(named.items()))
        if key not in known:
            known[key] = read(*given, **named)
        found: Found = known[key]
        return found

    return ask

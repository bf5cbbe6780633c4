"""Imports of the command line: packages that take longer to load than a small conversion wait until they are used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: onnx_ir computes with symbolic extents by it, which no conversion does; it takes as long to load as all the rest
_HEAVY = "sympy"


def light() -> None:
    """Import onnx_ir without the package that only arithmetic on symbolic extents needs."""
    if "onnx_ir" in sys.modules:
        return
    try:
        with _defer(_HEAVY):
            importlib.import_module("onnx_ir")
    except (AttributeError, TypeError):
        # Another release of onnx_ir, which uses the package as it is imported: then it has to be there.
        importlib.import_module("onnx_ir")


class _Deferred(ModuleType):
    """Stands for a module in those that are imported meanwhile; the module itself is imported on first use."""

    imported = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._later(name) if not self.imported else self._now(name)

    def _now(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)

    def _later(self, name: str) -> Callable[..., Any]:
        """A function that may be put into a table before the module is there."""

        def call(*arguments: Any, **named: Any) -> Any:
            return self._now(name)(*arguments, **named)

        return call


@contextmanager
def _defer(name: str) -> Iterator[None]:
    """Let what imports a module get a stand-in for it, unless it is there already."""
    if name in sys.modules:
        yield
        return
    standing = sys.modules[name] = _Deferred(name)
    try:
        yield
    finally:
        standing.imported = True
        del sys.modules[name]

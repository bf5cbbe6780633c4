"""Readers of the formats that models come in: how a file of each is known, and the module that reads it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import onnx_ir as ir

from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Catalogue
from .mapping import load

#: so many bytes of a file tell its format: the first member of an archive is in a folder of any name that files have
_HEAD = 512


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader of one format: the dialect of its graphs, the endings of its files, and the module that reads them.

    The module, imported when it is wanted, has `recognize(head)`, which tells by the first bytes of a file whether it
    is one, and `read(source, catalogue, name)`, which makes a graph of it: see there for what a reader returns.
    """

    name: str
    dialect: str
    suffixes: tuple[str, ...]
    module: str

    def recognize(self, head: bytes) -> bool:
        """Whether a file begins as those of the format do."""
        found: bool = self._import_function("recognize")(head)
        return found

    def read(self, source: str | bytes | memoryview, catalogue: Catalogue, name: str | None = None) -> ir.Model:
        """Read a model from a path or from bytes; `name` is what errors call it. Raises ModelError for what is none."""
        model: ir.Model = self._import_function("read")(source, catalogue, name)
        return model

    def _import_function(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(importlib.import_module(self.module, __package__), name)
        return function


#: the first is what a file is taken for that none recognizes, so that its reader says what is wrong with it
READERS = (
    Reader("TensorFlow Lite", "tflite", (".tflite", ".lite", ".task"), ".tflite_reader"),
    Reader("ONNX", "onnx", (".onnx",), ".onnx_reader"),
    Reader("PyTorch", "aten", (".pt2", ".pt", ".pth"), ".pt2_reader"),
)
#: the endings by which models are found in a folder
SUFFIXES = tuple(suffix for one in READERS for suffix in one.suffixes)


def find_reader(source: str | bytes | memoryview) -> Reader:
    """The reader of a model: by the ending of its name, or by its first bytes where that says nothing.

    Raises ModelError when the file cannot be read.
    """
    if isinstance(source, str):
        suffix = PurePath(source).suffix.lower()
        if (named := next((one for one in READERS if suffix in one.suffixes), None)) is not None:
            return named
        source = load(source)
    head = bytes(source[:_HEAD])
    return next((one for one in READERS if one.recognize(head)), READERS[0])

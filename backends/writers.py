"""Writers of the formats that models are written in: the dialect of their graphs, and the module that encodes them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import onnx_ir as ir

from ..engine.base.startup import dataclass, field
from ..engine.dialects.operators import Dialect


class Encoded(Protocol):
    """A model as its file will have it; large constants are read when it is saved."""

    @property
    def size(self) -> int:
        """How many bytes the model takes."""

    @staticmethod
    def list_files(path: Path) -> list[Path]:
        """The files that a model may be written as when it is saved to a path: that of the name, and what is beside."""

    def save(self, path: Path, external_data: bool) -> int:
        """Write the model to a file, which takes the place of an older one when it is whole; the bytes written."""


@dataclass(frozen=True, slots=True)
class Output:
    """A graph that is to be written, and what is to stand beside it.

    `names` are those of its outputs, `opset` is the version of its dialect. `origin` is the model as it was read where
    that is of the same dialect, so that what no rule is about stays as it was; else None.
    """

    graph: ir.Graph
    names: Sequence[str]
    dialect: Dialect
    opset: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    origin: ir.Model | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """The writer of one format, whose files have one of some endings and a `runtime`, or which fills a folder.

    Its module, imported when needed, has `encode(output)`, which returns an `Encoded` of the module.
    """

    name: str
    dialect: str
    suffixes: tuple[str, ...]
    module: str
    folder: bool = False
    runtime: bool = True

    def encode(self, output: Output) -> Encoded:
        """Encode a graph; raises RewriteError for one that the format cannot hold."""
        encoded: Encoded = self._import_module().encode(output)
        return encoded

    def list_files(self, path: Path) -> list[Path]:
        """The files that a model may be written as: that of the name, and what is beside it or in the folder."""
        files: list[Path] = self._import_module().Encoded.list_files(path)
        return files

    def _import_module(self) -> Any:
        return importlib.import_module(self.module, __package__)


#: the first is what is written where nobody says
WRITERS = (
    Writer("ONNX", "onnx", (".onnx",), ".onnx_writer"),
    Writer("TensorFlow Lite", "tflite", (".tflite",), ".tflite_file"),
    Writer("TensorFlow Lite Micro", "tflite", (".cc",), ".c_array", runtime=False),
    Writer("PyTorch code", "torch", (".torch",), ".python_writer", folder=True, runtime=False),
    Writer("Keras code", "keras", (".keras",), ".python_writer", folder=True, runtime=False),
)


def find_dialect_writer(dialect: str) -> Writer | None:
    """The first writer of graphs of a dialect; None where there is none."""
    return next((one for one in WRITERS if one.dialect == dialect), None)


def find_writer(suffix: str) -> Writer | None:
    """The writer of files with an ending, of folders for "/"; None where there is none."""
    if suffix == "/":
        return next((one for one in WRITERS if one.folder), None)
    return next((one for one in WRITERS if suffix.lower() in one.suffixes), None)

"""The formats that steps are written in: their endings, what stands for a part in the host's model, and the encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import onnx_ir as ir

from ..backends import stream, tflite_file
from ..backends.writers import Output
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Dialect

#: the least version of the format that files are given
_VERSION = 8


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """How the graphs of a dialect become files: `domain` is that of the nodes that stand for parts."""

    dialect: Dialect
    suffix: str
    domain: str

    def save(self, path: Path, view: ir.GraphView, model: ir.Model) -> None:
        """Write some nodes of a model as a file; raises DestinationError for what the system refuses, ModelError for
        what the format cannot hold."""
        _SAVES[self.dialect.name](path, view, model, self.dialect)


def find_files(dialect: Dialect) -> ModelFiles:
    """The files of a dialect."""
    suffix, domain = _FORMS[dialect.name]
    return ModelFiles(dialect, suffix, domain)


def _save_onnx(path: Path, view: ir.GraphView, model: ir.Model, dialect: Dialect) -> None:
    version = max(model.ir_version or 0, _VERSION)
    held = ir.Model(cast(ir.Graph, view), ir_version=version, producer_name="nnrewrite")
    stream.Encoded.of(held).save(path)


def _save_tflite(path: Path, view: ir.GraphView, model: ir.Model, dialect: Dialect) -> None:
    # What is in the main graph twice, as two values of one tensor, has one name.
    names = [value.name or "" for value in view.outputs]
    tflite_file.encode(Output(cast(ir.Graph, view), names, dialect, 1, origin=model)).save(path)


_SAVES: Mapping[str, Callable[[Path, ir.GraphView, ir.Model, Dialect], None]] = {
    "onnx": _save_onnx,
    "tflite": _save_tflite,
}
_FORMS: Mapping[str, tuple[str, str]] = {"onnx": (".onnx", "nnrewrite.part"), "tflite": (".tflite", "tflite.custom")}
#: the endings of files
SUFFIXES = tuple(suffix for suffix, _ in _FORMS.values())
#: the dialects whose models are divided
DIALECTS = tuple(_FORMS)

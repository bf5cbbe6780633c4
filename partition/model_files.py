"""The formats that steps are written in: their endings, what stands for a part in the host's model, and the encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

import onnx_ir as ir

from ..backends import stream, tflite_file
from ..backends.writers import Output
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Dialect
from ..engine.rewrite.subgraphs import list_called
from ..engine.rewrite.traversal import walk_nodes

#: the least version of the format that files are given
_VERSION = 8


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """How the graphs of a dialect become files: `domain` is that of the nodes that stand for parts,
    `functions` whether these can be functions of a model."""

    dialect: Dialect
    suffix: str
    domain: str
    functions: bool

    def list_files(self, path: Path) -> list[Path]:
        """The files that a model may be written as: that of the name, and what is beside it."""
        return _ENCODED[self.dialect.name].list_files(path)

    def save(
        self,
        path: Path,
        view: ir.Graph | ir.GraphView,
        model: ir.Model,
        functions: Sequence[ir.Function] = (),
        bodies: Mapping[ir.Graph, ir.Graph] = MappingProxyType({}),
    ) -> None:
        """Write some nodes of a model as a file, with functions that they call.

        `bodies` has what is written in the place of graphs that nodes name by numbers. Raises DestinationError for what
        the system refuses, ModelError for what the format cannot hold.
        """
        _SAVES[self.dialect.name](path, _Content(view, model, functions, bodies), self.dialect)


def find_files(dialect: Dialect) -> ModelFiles:
    """The files of a dialect."""
    return ModelFiles(dialect, *_FORMS[dialect.name])


@dataclass(frozen=True, slots=True)
class _Content:
    """What a file is to hold."""

    view: ir.Graph | ir.GraphView
    model: ir.Model
    functions: Sequence[ir.Function]
    bodies: Mapping[ir.Graph, ir.Graph]


def _save_onnx(path: Path, content: _Content, dialect: Dialect) -> None:
    own = content.model.functions
    called = [*content.view, *(node for function in content.functions for node in function)]
    functions = list(content.functions)
    if any(node.op_identifier() in own for node in walk_nodes(called)):
        functions += own.values()
    held = ir.Model(
        cast(ir.Graph, content.view),
        ir_version=max(content.model.ir_version or 0, _VERSION),
        producer_name="nnrewrite",
        functions=functions,
    )
    stream.Encoded.encode(held).save(path)


def _save_tflite(path: Path, content: _Content, dialect: Dialect) -> None:
    # What is in the main graph twice, as two values of one tensor, has one name.
    names = [value.name or "" for value in content.view.outputs]
    graphs = content.model.meta["subgraphs"]
    origin = None
    if list_called(content.view, dialect, graphs):
        origin = ir.Model(content.model.graph, ir_version=_VERSION)
        origin.meta["subgraphs"] = [content.bodies.get(graph, graph) for graph in graphs]
    output = Output(cast(ir.Graph, content.view), names, dialect, 1, origin=origin)
    tflite_file.encode(output).save(path)


_SAVES: Mapping[str, Callable[[Path, _Content, Dialect], None]] = {
    "onnx": _save_onnx,
    "tflite": _save_tflite,
}
_ENCODED: Mapping[str, type[stream.Encoded] | type[tflite_file.Encoded]] = {
    "onnx": stream.Encoded,
    "tflite": tflite_file.Encoded,
}
_FORMS: Mapping[str, tuple[str, str, bool]] = {
    "onnx": (".onnx", "nnrewrite.part", True),
    "tflite": (".tflite", "tflite.custom", False),
}
#: the endings of files
SUFFIXES = tuple(suffix for suffix, *_ in _FORMS.values())
#: the dialects whose models are divided
DIALECTS = tuple(_FORMS)

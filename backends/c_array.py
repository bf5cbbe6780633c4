"""Graphs of the dialect `tflite` as C++ sources for TensorFlow Lite Micro: the model as an array, and what it needs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir

from ..engine.base.atomic_write import check_own, open_replacement
from ..engine.base.errors import DestinationError, ModelError
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Dialect
from . import tflite_file
from .memory_plan import plan_memory
from .writers import Output

#: what no name in quotes may have: what ends it, and bytes that are no text
_UNQUOTABLE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
#: bytes on a line
_ROW = 16
#: the bytes that the interpreter keeps for each tensor and each operator, on a machine of 32 bits
_TENSOR, _OPERATOR = 16, 64


@dataclass(frozen=True, slots=True)
class Encoded:
    """A model as a source file, with a header of the same name beside it."""

    model: bytes
    methods: tuple[str, ...]
    arena: int

    @property
    def size(self) -> int:
        """How many bytes the model takes on the device."""
        return len(self.model)

    def encode(self) -> bytes:
        """The model as a TensorFlow Lite file."""
        return self.model

    @staticmethod
    def list_files(path: Path) -> list[Path]:
        """The source, and its header; where the source is a link, beside what that points to."""
        return [path, Path(os.path.realpath(path)).with_suffix(".h")]

    def save(self, path: Path, external_data: bool = False) -> int:
        """Write the source and the header; the bytes of the model.

        Raises DestinationError for what the system refuses, for a name that no source can include, and for a header
        that this program did not write.
        """
        path, header = self.list_files(Path(os.path.realpath(path)))  # both lie where a link points to
        if _UNQUOTABLE.search(header.name):
            raise DestinationError(f"{path.name!r}: no source can include a header of such a name: name another output")
        name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
        name = f"model_{name}" if name[:1].isdigit() else name
        check_own([header], header, _begin_register(name))
        with open_replacement(header) as beside, open_replacement(path) as file:
            beside.writelines(f"{line}\n".encode() for line in self._write_header(name))
            file.writelines(f"{line}\n".encode() for line in self._write_source(name, header))
        return self.size

    def _write_header(self, name: str) -> Iterator[str]:
        yield "#pragma once"
        yield ""
        yield "#include <cstddef>"
        yield ""
        yield '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"'
        yield ""
        yield f"extern const unsigned char {name}_data[];"
        yield f"constexpr size_t {name}_size = {len(self.model)};"
        yield ""
        yield "// What all tensors take that are alive at once, and what the interpreter keeps about them. What kernels"
        yield "// keep for themselves comes on top: MicroInterpreter::arena_used_bytes() tells the sum."
        yield f"constexpr size_t {name}_arena = {self.arena};"
        yield ""
        yield f"constexpr unsigned int {name}_operators = {len(self.methods)};"
        yield ""
        yield f"{_begin_register(name)}& resolver) {{"
        for method in self.methods:
            yield f"  if (resolver.{method}() != kTfLiteOk) return kTfLiteError;"
        yield "  return kTfLiteOk;"
        yield "}"

    def _write_source(self, name: str, header: Path) -> Iterator[str]:
        yield f'#include "{header.name}"'
        yield ""
        yield f"alignas(16) const unsigned char {name}_data[] = {{"
        for start in range(0, len(self.model), _ROW):
            yield "  " + " ".join(f"0x{byte:02x}," for byte in self.model[start : start + _ROW])
        yield "};"


def _begin_register(name: str) -> str:
    """How the function begins that registers operators, by which a header is known to be of this program."""
    return f"inline TfLiteStatus {name}_register(tflite::MicroMutableOpResolver<{name}_operators>"


def encode(output: Output) -> Encoded:
    """Encode a graph as sources.

    Raises ModelError for operators that TensorFlow Lite Micro does not register, and where the format cannot hold the
    graph.
    """
    graphs = [output.graph, *output.graph.subgraphs()]
    methods = _list_methods(graphs, output.dialect)
    arena = sum(plan_memory(graph).size for graph in graphs) + _count_kept(graphs)
    return Encoded(tflite_file.encode(output, recorded=False).encode(), methods, arena)


def _list_methods(graphs: list[ir.Graph], dialect: Dialect) -> tuple[str, ...]:
    found: Counter[str] = Counter()
    lacking: set[str] = set()
    for node in (node for graph in graphs for node in graph):
        spec = dialect.find_operator(node.op_type)
        if spec is not None and spec.domain != node.domain:
            spec = None
        if spec is not None and spec.role == "copy":
            continue
        if spec is None or spec.facts.micro is None:
            lacking.add(node.op_type)
        else:
            found[spec.facts.micro] += 1
    if lacking:
        raise ModelError(f"TensorFlow Lite Micro registers no {', '.join(sorted(lacking))}")
    return tuple(sorted(found))


def _count_kept(graphs: list[ir.Graph]) -> int:
    nodes = [node for graph in graphs for node in graph]
    values = {value for node in nodes for value in (*node.inputs, *node.outputs) if value is not None}
    return len(values) * _TENSOR + len(nodes) * _OPERATOR

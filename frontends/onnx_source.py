"""ONNX models as their files have them, without what a conversion makes of them."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from .external_data import TensorFiles
from .onnx_graphs import forget_maps, read_proto
from .onnx_sparse import densify


def read_graph(model: str | bytes) -> ir.Model:
    """Read a model from its path or its bytes as its file has it; constants in other files stay there, sparse ones have
    all their elements, values that are maps have no type."""
    proto = read_proto(model, external_data=False)
    name, folder = ("model", None) if isinstance(model, bytes) else (Path(model).name, Path(model).parent)
    densify(proto.graph, TensorFiles(name, memoryview(b""), folder))
    forget_maps(proto.graph)
    read = ir.from_proto(proto)
    if folder is not None:
        ir.external_data.set_base_dir(read.graph, folder)
    return read

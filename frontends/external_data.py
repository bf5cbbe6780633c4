"""Tensors of ONNX models as constants: views of the mapped files that hold their bytes."""

from __future__ import annotations

import math
import os
from pathlib import Path

import onnx_ir as ir

from ..engine.base.errors import ModelError, join_lines
from ..engine.base.startup import dataclass, field
from . import constant
from .mapping import load
from .protobuf_outline import LOCATION


@dataclass(slots=True, eq=False)
class TensorFiles:
    """The files that tensors of one model lie in: its own, and those in its folder that it names.

    `folder` is None for a model that is no file, which has no others.
    """

    name: str
    own: memoryview
    folder: Path | None
    opened: dict[str, memoryview] = field(default_factory=dict)

    def read_constant(self, tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        """A tensor as the engine holds it: a view, without a copy of its bytes where they are in a file as they are.

        Raises ModelError for external data that leads out of the model's folder, is not there or too short, and for
        bytes that are not those of the tensor's type and shape.
        """
        said, shape = tensor.name or "a tensor", tensor.shape
        extents = tuple(n for n in shape if isinstance(n, int) and n >= 0)
        if len(extents) != len(shape):
            raise ModelError(f"{self.name}: malformed: {said} has the shape {shape}")
        if tensor.dtype == ir.DataType.STRING:
            if not isinstance(tensor, ir.StringTensor) or len(tensor.string_data()) != math.prod(extents):
                raise ModelError(
                    f"{self.name}: malformed: {said} of shape {shape} has not that many strings of its own"
                )
            return tensor
        try:
            if isinstance(tensor, ir.ExternalTensor):
                size = -(-math.prod(extents) * tensor.dtype.bitwidth // 8)
                return constant.make_tensor(self._read_bytes(tensor, size), tensor.dtype, extents, said)
            if tensor.dtype.bitwidth < 8:
                return constant.make_tensor(memoryview(tensor.tobytes()), tensor.dtype, extents, said)
            return ir.Tensor(tensor.numpy(), tensor.dtype, name=tensor.name)
        except (ValueError, TypeError, AssertionError) as error:
            raise ModelError(f"{self.name}: malformed: {said}: {join_lines(error)}") from error

    def _read_bytes(self, tensor: ir.ExternalTensor, size: int) -> memoryview:
        data, offset = self._open_file(os.fspath(tensor.location), tensor.name or ""), tensor.offset or 0
        length = size if tensor.length is None else tensor.length
        if offset < 0 or length < 0 or offset + length > len(data):
            where = f"bytes {offset} to {offset + length} of {len(data)}"
            raise ModelError(f"{self.name}: truncated: {tensor.name} takes {where} of its external data")
        return data[offset : offset + length]

    def _open_file(self, location: str, tensor: str) -> memoryview:
        """A file that tensors name, mapped once."""
        if location == LOCATION:
            return self.own
        if location not in self.opened:
            path = self._find_path(location, tensor)
            self.opened[location] = load(path) if path.stat().st_size else memoryview(b"")
        return self.opened[location]

    def _find_path(self, location: str, tensor: str) -> Path:
        """The path of external data; raises ModelError where it is not inside the model's folder, links followed."""
        asked = f"{self.name}: external data of {tensor} is in {location!r}"
        if self.folder is None:
            raise ModelError(f"{asked}, and a model that is given as bytes has no folder: give its path")
        if not location or "\0" in location or Path(location).is_absolute():
            raise ModelError(f"{asked}, which is no path in the model's folder")
        folder = self.folder.resolve()
        path = (folder / location).resolve()
        if folder not in path.parents:
            raise ModelError(f"{asked}, which leads out of the model's folder")
        if not _is_file(path):
            raise ModelError(f"{asked}, and there is no such file beside the model")
        return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than any file has
        return False

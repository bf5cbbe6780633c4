"""Tensors of a TensorFlow Lite file as values of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..engine.base.constants import STATEFUL
from ..engine.base.errors import ModelError, quote_name
from ..engine.base.quantization import KEY, Quantization
from ..engine.base.startup import dataclass, field
from ..engine.dialects.inference import make_shape
from ..engine.dialects.operators import Dialect
from . import constant
from .flatbuffer_reader import FlatBuffer, Record

#: number of the buffer that stands for no data
_NO_BUFFER = 0


def make_unique_names(tensors: list[Record], first: list[int]) -> list[str]:
    """Names for tensors, none empty and none twice; those of the tensors in `first` keep theirs before others."""
    names = [""] * len(tensors)
    taken: set[str] = set()
    for i in dict.fromkeys((*first, *range(len(tensors)))):
        wanted = name = tensors[i]["name"] or f"tensor_{i}"
        while name in taken:
            name = f"{name}_{i}" if name == wanted else f"{name}_"
        names[i] = name
        taken.add(name)
    return names


@dataclass(slots=True)
class Subgraph:
    """A subgraph being read: its tensors, and the value that each stands for so far."""

    index: int
    record: Record
    tensors: list[Record]
    names: list[str]
    inputs: frozenset[int]
    #: what some operator yields
    produced: frozenset[int]
    values: dict[int, ir.Value] = field(default_factory=dict)
    constants: list[ir.Value] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    #: tensors of no extents are told apart: scalars, and those whose rank is not known
    says_rank: bool = False

    def rename(self, i: int, suffix: str) -> str:
        """Give a tensor another name that no tensor has, and tell it."""
        if not self.taken:
            self.taken.update(self.names)
        name = self.names[i] + suffix
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.names[i] = name
        return name

    def label_tensor(self, i: int) -> str:
        """How errors call a tensor."""
        return f"tensor {i} ({quote_name(self.names[i])})"


class TensorReader:
    """Makes values of the tensors of one file; every method raises ModelError on a malformed one."""

    def __init__(self, file: FlatBuffer, dialect: Dialect, buffers: list[Record]) -> None:
        self.file = file
        self.dialect = dialect
        self.buffers = buffers
        self.types: dict[int, tuple[str, ir.DataType | None]] = {
            entry["code"]: (name, None if entry["dtype"] is None else ir.DataType[entry["dtype"]])
            for name, entry in dialect.types.items()
        }

    def read_content(self, number: int, what: str) -> memoryview | None:
        """The bytes of a buffer, which may lie outside the tables of the file; None where it has none, ModelError
        where the file has no such buffer."""
        if number == _NO_BUFFER:
            return None
        if number >= len(self.buffers):
            raise self.file.make_error(f"malformed: {what} has buffer {number}, the file has {len(self.buffers)}")
        record = self.buffers[number]
        if record["data"] is None and record["offset"] > 1:
            return self.file.read_span(what, record["offset"], record["size"])
        data: memoryview | None = record["data"]
        return data

    def find_value(self, subgraph: Subgraph, i: int) -> ir.Value:
        """The value that a tensor stands for, made on first use."""
        value = subgraph.values.get(i)
        if value is None:
            value = subgraph.values[i] = self._make(subgraph, i)
        return value

    def _make(self, subgraph: Subgraph, i: int) -> ir.Value:
        record = subgraph.tensors[i]
        if record["type"] not in self.types:
            raise self._make_error(subgraph, i, f"has the unknown element type {record['type']}")
        type_name, dtype = self.types[record["type"]]
        static = self._read_static_shape(subgraph, i)
        item = self._find_item(subgraph, i) if dtype is None else None
        if item is not None:
            return item
        if record["external_buffer"]:
            raise self._make_error(subgraph, i, "keeps its elements in another file, which is not supported")
        value = ir.Value(name=subgraph.names[i], type=None if dtype is None else ir.TensorType(dtype))
        if dtype is None:
            value.meta["type"] = type_name
        data = self.read_content(record["buffer"], f"tensor {i}") if record["buffer"] else None
        if record["is_variable"]:
            value.meta[STATEFUL] = True
        elif (data or 0 in static) and dtype and i not in subgraph.inputs and i not in subgraph.produced:
            value.const_value = self._read_constant(subgraph, i, data or memoryview(b""), dtype, static, value)
            subgraph.constants.append(value)
        value.shape = self._read_shape(subgraph, i, static, value)
        if record["quantization"] is not None:
            quantization = self._read_quantization(record["quantization"], static, subgraph, i)
            if quantization is not None:
                self._require_codes(quantization, dtype, subgraph, i)
                value.meta[KEY] = quantization
        return value

    def _find_item(self, subgraph: Subgraph, i: int) -> ir.Value | None:
        """The value of a list of tensors: as one tensor, its items one behind the other; None for any other value.

        Extents of the items that are not known are stored as 0 or -1.
        """
        items = subgraph.tensors[i]["variant_tensors"] or []
        dtype = self.types.get(items[0]["type"], ("", None))[1] if len(items) == 1 else None
        if dtype is None:
            return None
        extents = items[0]["shape"].tolist() if items[0]["shape"] else []
        self.file.charge(len(extents))
        shape = ir.Shape([None, *(n if n > 0 else None for n in extents)]) if items[0]["has_rank"] else None
        return ir.Value(name=subgraph.names[i], type=ir.TensorType(dtype), shape=shape)

    def _require_codes(self, known: Quantization, dtype: ir.DataType | None, subgraph: Subgraph, i: int) -> None:
        """Raise ModelError where the integers that stand for zero are none of a tensor's type."""
        if dtype is None or not dtype.is_integer() or not known.zero_point.size:
            return
        low, high = (dtype.min, dtype.max)
        if not low <= known.zero_point.min() <= known.zero_point.max() <= high:
            code = next(int(code) for code in known.zero_point.ravel() if not low <= code <= high)
            raise self._make_error(subgraph, i, f"has the zero point {code}, its type holds {low} to {high}")

    def _make_error(self, subgraph: Subgraph, i: int, message: str) -> ModelError:
        return self.file.make_error(f"{subgraph.label_tensor(i)} {message}")

    def _read_static_shape(self, subgraph: Subgraph, i: int) -> tuple[int, ...]:
        shape = subgraph.tensors[i]["shape"]
        if not shape:
            return ()
        self.file.charge(len(shape))
        static = tuple(shape)
        if min(static) < 0:
            raise self._make_error(subgraph, i, f"has the shape {list(static)[:16]}")
        return static

    def _read_shape(self, subgraph: Subgraph, i: int, static: tuple[int, ...], value: ir.Value) -> ir.Shape | None:
        record = subgraph.tensors[i]
        if value.const_value is not None:
            return make_shape(static)
        if not static and not record["has_rank"] and (i not in subgraph.inputs or subgraph.says_rank):
            # Also how files from before the field say scalar; an operator's result can be inferred, an input cannot.
            return None
        signature = record["shape_signature"]
        if signature is None or len(signature) != len(static) or -1 not in signature.tolist():
            return make_shape(static)
        value.meta["static_shape"] = static
        symbol = value.name if i in subgraph.inputs else None
        return ir.Shape([n if n >= 0 else symbol and f"{symbol}_d{axis}" for axis, n in enumerate(signature)])

    def _read_constant(
        self,
        subgraph: Subgraph,
        i: int,
        data: memoryview,
        dtype: ir.DataType,
        shape: tuple[int, ...],
        value: ir.Value,
    ) -> ir.TensorProtocol:
        record = subgraph.tensors[i]
        try:
            if record["sparsity"] is None:
                if dtype == ir.DataType.STRING:
                    self.file.charge(len(data) // 4)
                return constant.make_tensor(data, dtype, shape, subgraph.names[i])
            sparsity = self._read_sparsity(record["sparsity"], data, dtype)
            self.file.charge(len(data))
            value.meta["sparsity"] = sparsity
            return ir.Tensor(constant.densify(sparsity, shape, self.file.size), dtype, name=subgraph.names[i])
        except constant.ConstantError as error:
            raise self.file.make_error(f"{subgraph.label_tensor(i)}: {error}") from error

    def _read_sparsity(self, record: Record, data: memoryview, dtype: ir.DataType) -> constant.Sparsity:
        if dtype == ir.DataType.STRING or dtype.bitwidth < 8 or len(data) * 8 % dtype.bitwidth:
            raise constant.ConstantError(f"{len(data)} bytes of sparse {dtype.name}")
        levels = []
        for level in record["dim_metadata"] or []:
            if level["format"] == self.dialect.enums["DimensionType"]["DENSE"]:
                levels.append(constant.Level(level["dense_size"]))
                continue
            segments, indices = (
                None if level[part] is None else self.file.read_table(*level[part])["values"]
                for part in ("array_segments", "array_indices")
            )
            if segments is None or indices is None:
                raise constant.ConstantError("a sparse dimension has no segments or no indices")
            levels.append(constant.Level(0, np.asarray(segments), np.asarray(indices)))
        order, blocks = record["traversal_order"], record["block_map"]
        return constant.Sparsity(
            tuple(order or ()), tuple(blocks or ()), tuple(levels), np.frombuffer(data, dtype.numpy())
        )

    def _read_quantization(
        self, record: Record, shape: tuple[int, ...], subgraph: Subgraph, i: int
    ) -> Quantization | None:
        axis = record["quantized_dimension"]
        if record["details"] is not None:
            details = self.file.read_table(*record["details"])
            if "scales" in details:
                return self._read_blockwise(details, axis, shape, subgraph, i)
        scales, zeros = record["scale"], record["zero_point"]
        if not scales:
            return None
        scale = np.asarray(scales)
        zero = np.asarray(zeros) if zeros else np.zeros(1, np.int64)
        if len(scale) > 1:
            if len(shape) == 1:
                axis = 0  # some writers give a bias the axis of its filter
            if shape and (not 0 <= axis < len(shape) or shape[axis] != len(scale)):
                message = f"of shape {list(shape)} has {len(scale)} scales along axis {axis}"
                raise self._make_error(subgraph, i, message)
            if len(zero) == 1:
                zero = np.broadcast_to(zero, scale.shape)
        if len(zero) != len(scale):
            raise self._make_error(subgraph, i, f"has {len(scale)} scales and {len(zero)} zero points")
        return Quantization(scale, zero, axis)

    def _read_blockwise(
        self, details: Record, axis: int, shape: tuple[int, ...], subgraph: Subgraph, i: int
    ) -> Quantization:
        """Scales and zero points that are tensors of their own; no zero points (tensor 0 or less) are zeros.

        Some writers name the axis that is divided into blocks, some another: the number of scales tells.
        """
        scale = self._read_numbers(details["scales"], subgraph, i)
        number = details["zero_points"]
        zero = self._read_numbers(number, subgraph, i) if number > 0 else np.zeros(scale.shape, np.int64)
        if scale.shape != zero.shape:
            raise self._make_error(subgraph, i, f"has scales of shape {scale.shape}, zero points of {zero.shape}")
        axes = tuple(details.get("quantized_dimensions") or ())
        size = details["block_size"]
        for along in (axis, *range(len(shape))[::-1]):
            extents = [-(-n // size) if a == along else n for a, n in enumerate(shape)] if size > 0 else []
            if along not in axes and scale.shape == tuple(extents):
                return Quantization(scale, zero, along, size, axes)
        message = f"of shape {list(shape)} has scales of shape {list(scale.shape)} for blocks of {size}"
        raise self._make_error(subgraph, i, message)

    def _read_numbers(self, number: int, subgraph: Subgraph, i: int) -> npt.NDArray[Any]:
        if not 0 <= number < len(subgraph.tensors):
            message = f"has its scales in tensor {number} of {len(subgraph.tensors)}"
            raise self._make_error(subgraph, i, message)
        record = subgraph.tensors[number]
        dtype = self.types.get(record["type"], ("", None))[1]
        data = self.read_content(record["buffer"], subgraph.label_tensor(number))
        if dtype is None or dtype == ir.DataType.STRING or data is None:
            raise self._make_error(subgraph, i, f"has its scales in tensor {number}, which holds no numbers")
        try:
            return constant.make_tensor(data, dtype, self._read_static_shape(subgraph, number), "").numpy()
        except constant.ConstantError as error:
            raise self.file.make_error(f"{subgraph.label_tensor(number)}: {error}") from error

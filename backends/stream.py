"""ONNX files written part by part: lengths first, then the bytes of large constants from where they lie."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx_ir import serde

from ..engine.base.atomic_write import open_replacement, read_mode, remove
from ..engine.base.errors import DestinationError, ModelError, RewriteError
from ..engine.base.startup import dataclass, field
from ..frontends.mapping import load
from ..frontends.onnx_graphs import list_nodes
from ..frontends.protobuf_outline import WireError, encode_external, encode_varint, outline_model
from .wire import Encoder, encode_tag

#: constants of as many bytes are written from where they lie, smaller ones with the nodes
LARGE = 1 << 12
#: what one protobuf message can hold, some space left
LIMIT = (1 << 31) - (1 << 16)
#: so many bytes are in memory at once beside a constant that has to be arranged anew
_CHUNK = 1 << 20
#: external data begins at multiples of a page, so that it can be mapped
_PAGE = mmap.PAGESIZE
#: so many bytes of memory reach the processor at a time, and so many stay near it
_LINE, _CACHE = 64, 1 << 15
#: the first version of the format whose constants need not be inputs
CONSTANTS = 4
_GRAPH = encode_tag(onnx.ModelProto, "graph")
_INITIALIZER = encode_tag(onnx.GraphProto, "initializer")
_RAW = encode_tag(onnx.TensorProto, "raw_data")

Buffer: TypeAlias = bytes | memoryview


class TooLargeError(RewriteError):
    """A model that exceeds what one protobuf message can hold."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A large constant: what a tensor says of itself, and the tensor whose bytes follow."""

    head: bytes
    tensor: ir.TensorProtocol

    @property
    def size(self) -> int:
        """How many bytes the message takes."""
        return len(self.head) + len(_encode_prefix(_RAW, self.tensor.nbytes)) + self.tensor.nbytes

    def list_parts(self) -> Iterator[Buffer]:
        """The message."""
        yield self.head + _encode_prefix(_RAW, self.tensor.nbytes)
        yield from iterate_content(self.tensor)

    def encode_external(self, location: str, offset: int) -> bytes:
        """The message, when the bytes are in another file at an offset."""
        return self.head + encode_external(location, offset, self.tensor.nbytes)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A model in the wire format: itself, its graph, and apart from both the constants that are large.

    Nothing of a large constant is in memory before it is written, if it is a view of a mapped file or lazy.
    """

    head: bytes
    graph: bytes
    weights: tuple[Weight, ...]
    #: whether constants are inputs as well, as the first versions of the format ask
    declared: bool = False
    _kept: list[onnx.ModelProto] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def encode(cls, model: ir.Model, described: bool = True) -> Encoded:
        """Encode a model, its inner values `described` by types and shapes; its graph stays as it is."""
        small: list[bytes] = []
        weights: list[Weight] = []
        for value in model.graph.initializers.values():
            tensor, name = value.const_value, value.name or ""
            if tensor is None or tensor.dtype == ir.DataType.STRING:
                small.append(_encode_strings(name, tensor))
                continue
            weight = Weight(_encode_header(name, tensor), tensor)
            # A state's initial value is an input as well, and stands with the inputs.
            if tensor.nbytes >= LARGE and not value.is_graph_input():
                weights.append(weight)
            else:
                small.append(b"".join(weight.list_parts()))
        proto = onnx.ModelProto(
            ir_version=model.ir_version, producer_name=model.producer_name, doc_string=model.doc_string
        )
        proto.functions.extend(serde.serialize_function(one) for one in model.functions.values())
        proto.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in model.opset_imports.items())
        onnx.helper.set_model_props(proto, dict(model.metadata_props))
        declared = model.ir_version < CONSTANTS
        defaults = model.graph.initializers.values() if declared else ()
        graph = Encoder().encode_graph(model.graph, small, defaults, described)
        return cls(proto.SerializeToString(), graph, tuple(weights), declared)

    @staticmethod
    def list_files(path: Path) -> list[Path]:
        """The model, and what its large constants may be in; where the model is a link, beside what that points to."""
        real = Path(os.path.realpath(path))
        return [path, real.with_name(f"{real.name}.data")]

    def save(self, path: Path, external_data: bool = False) -> int:
        """Write the model to a file, with `external_data` or above 2 GB its large constants to a second, `PATH.data`.

        Files of an older model give way when the new one is whole, its second file as well. Raises DestinationError for
        what the system refuses, and for a name that no model can refer to.
        """
        path, beside = self.list_files(Path(os.path.realpath(path)))  # both lie where a link points to
        if not external_data and self.size <= LIMIT:
            stale = stat.S_ISREG(read_mode(beside)) and beside in list_data_files(path)
            with open_replacement(path) as file:
                size = write(file, self.list_parts())
            if stale:
                remove(beside)
            return size
        try:
            head, parts = self.separate_weights(beside.name)
        except UnicodeEncodeError as error:
            raise DestinationError(f"{path.name!r} is no text: no model can refer to weights beside it") from error
        with open_replacement(path) as file, open_replacement(beside) as data:
            return file.write(head) + write(data, parts)

    @property
    def size(self) -> int:
        """How many bytes the model takes as one message."""
        body = self._body
        return len(self.head) + len(_encode_prefix(_GRAPH, body)) + body

    @property
    def _body(self) -> int:
        sizes = (weight.size for weight in self.weights)
        return len(self.graph) + sum(len(_encode_prefix(_INITIALIZER, size)) + size for size in sizes)

    def list_parts(self) -> Iterator[Buffer]:
        """The model as one message; raises TooLargeError where it does not fit into one."""
        if self.size > LIMIT:
            raise TooLargeError(f"the model of {self.size:,} bytes exceeds the 2 GB that one message can hold")
        yield self.head + _encode_prefix(_GRAPH, self._body) + self.graph
        for weight in self.weights:
            yield _encode_prefix(_INITIALIZER, weight.size)
            yield from weight.list_parts()

    def separate_weights(self, location: str) -> tuple[bytes, Iterator[Buffer]]:
        """The model as a message that has its large constants in the file `location`, and what that file holds."""
        messages, offsets, end = [], [], 0
        for weight in self.weights:
            offsets.append(end + -end % _PAGE)
            end = offsets[-1] + weight.tensor.nbytes
            message = weight.encode_external(location, offsets[-1])
            messages.append(_encode_prefix(_INITIALIZER, len(message)) + message)
        body = self.graph + b"".join(messages)
        return self.head + _encode_prefix(_GRAPH, len(body)) + body, self._align(offsets)

    def _align(self, offsets: Sequence[int]) -> Iterator[Buffer]:
        end = 0
        for weight, offset in zip(self.weights, offsets, strict=True):
            yield bytes(offset - end)
            yield from iterate_content(weight.tensor)
            end = offset + weight.tensor.nbytes

    def make_outline(self) -> bytes:
        """The model with inputs in the place of its large constants, to be checked without them."""
        heads = [onnx.TensorProto.FromString(weight.head) for weight in self.weights]
        inputs = [onnx.helper.make_tensor_value_info(head.name, head.data_type, head.dims) for head in heads]
        body = self.graph + onnx.GraphProto(input=() if self.declared else inputs).SerializeToString()
        return self.head + _encode_prefix(_GRAPH, len(body)) + bytes(body)

    def sketch(self) -> onnx.ModelProto:
        """The model as a ModelProto whose large constants are said to be in a file, which there need not be."""
        model: onnx.ModelProto = onnx.ModelProto.FromString(self.separate_weights("elsewhere")[0])
        return model

    def make_proto(self) -> onnx.ModelProto:
        """The model as a ModelProto, the same each time; raises TooLargeError where it does not fit into one."""
        if not self._kept:
            if self.size > LIMIT:
                raise TooLargeError(f"the model of {self.size:,} bytes exceeds the 2 GB that one message can hold")
            model = onnx.ModelProto.FromString(self.head)
            model.graph.MergeFromString(self.graph)
            for weight in self.weights:
                tensor = model.graph.initializer.add()
                tensor.MergeFromString(weight.head)
                tensor.raw_data = b"".join(iterate_content(weight.tensor))
            self._kept.append(model)
        return self._kept[0]


def write(file: BinaryIO, parts: Iterator[Buffer]) -> int:
    """Write parts one behind the other; how many bytes they are."""
    return sum(file.write(part) for part in parts)


def iterate_content(tensor: ir.TensorProtocol) -> Iterator[Buffer]:
    """The bytes of a tensor as TensorProto.raw_data has them; what was mapped for it is given back."""
    if isinstance(tensor, ir.PackedTensor):
        array = tensor.numpy_packed()
    elif tensor.dtype.bitwidth < 8:
        yield tensor.tobytes()
        return
    else:
        array = tensor.numpy()
    if not array.flags.c_contiguous:
        step = max(1, len(array) * _CHUNK // array.nbytes)
        for start in range(0, len(array), step):
            yield _view_bytes(_copy_permuted(array[start : start + step]))
    else:
        yield _view_bytes(array)
    release(array)


def release(array: np.ndarray[Any, Any]) -> None:
    """Give back the memory into which a mapped file was read for an array; it can be read anew all the same."""
    if array.nbytes < _PAGE:
        return
    owner: Any = array
    while isinstance(owner, np.ndarray):
        array, owner = owner, owner.base
    held = getattr(owner, "obj", owner)
    if not isinstance(held, mmap.mmap) or not hasattr(held, "madvise"):
        return
    start = array.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    first = start + -start % _PAGE
    whole = (start + array.nbytes - first) // _PAGE * _PAGE
    if whole > 0:
        held.madvise(mmap.MADV_DONTNEED, first, whole)


def _copy_permuted(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in the order of the axes, made so that whatever is read of memory is used before it leaves the cache."""
    made = np.empty(array.shape, array.dtype)
    last = array.shape[-1]
    # Reading along the last axis touches a line an element: a whole row of them would push each other out.
    step = max(1, _LINE // array.itemsize) if last * _LINE > _CACHE and abs(array.strides[-1]) >= _LINE else last
    for start in range(0, last, step):
        made[..., start : start + step] = array[..., start : start + step]
    return made


def _view_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _encode_header(name: str, tensor: ir.TensorProtocol) -> bytes:
    """What a tensor says of itself before its bytes."""
    head = onnx.TensorProto(name=name, data_type=int(tensor.dtype), dims=tensor.shape.numpy())
    return bytes(head.SerializeToString())


def _encode_strings(name: str, tensor: ir.TensorProtocol | None) -> bytes:
    """A tensor of strings."""
    if tensor is None:
        raise ValueError(f"initializer {name} has no elements")
    message = serde.serialize_tensor(tensor)
    message.name = name
    return bytes(message.SerializeToString())


def _encode_prefix(tag: bytes, size: int) -> bytes:
    """What stands before the bytes of a field."""
    return tag + encode_varint(size)


def list_data_files(path: Path) -> set[Path]:
    """The files beside a model that constants of it lie in, links followed; what is no ONNX model has none."""
    try:
        model = onnx.ModelProto.FromString(outline_model(load(path)))
    except (ModelError, WireError, DecodeError):
        return set()
    attributes = [
        one for body in (model.graph, *model.functions) for node in list_nodes(body) for one in node.attribute
    ]
    graphs = [model.graph, *(graph for one in attributes for graph in (one.g, *one.graphs))]
    tensors = [tensor for one in attributes for tensor in (one.t, *one.tensors)]
    tensors += [tensor for graph in graphs for tensor in graph.initializer]
    entries = [entry for tensor in tensors for entry in tensor.external_data if entry.key == "location"]
    return {Path(os.path.realpath(path.parent / one.value)) for one in entries if "\0" not in one.value}

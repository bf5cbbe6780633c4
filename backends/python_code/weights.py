"""Files of tensors in the format of safetensors: the length of a header, the header as JSON, then the bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from ...engine.base.errors import RewriteError
from ..stream import Buffer, iterate_content

#: the names that the format has for element types, by those of ONNX
_TYPES = {
    "FLOAT": "F32",
    "FLOAT16": "F16",
    "BFLOAT16": "BF16",
    "DOUBLE": "F64",
    "INT8": "I8",
    "INT16": "I16",
    "INT32": "I32",
    "INT64": "I64",
    "UINT8": "U8",
    "UINT16": "U16",
    "UINT32": "U32",
    "UINT64": "U64",
    "BOOL": "BOOL",
}
#: the header is filled with blanks, so that tensors begin at multiples of as many bytes
_ALIGNMENT = 8


def write_tensors(tensors: Sequence[tuple[str, ir.Value]]) -> Iterator[Buffer]:
    """The parts of a file of named constants, each read when its turn comes.

    Raises RewriteError for element types that the format has no name for. Source: the format's own description, at
    huggingface.co/docs/safetensors.
    """
    header: dict[str, object] = {}
    end = 0
    for name, value in tensors:
        tensor = value.const_value
        assert tensor is not None
        if tensor.dtype.name not in _TYPES:
            raise RewriteError(f"{value.name}: a file of tensors holds no {tensor.dtype.name}")
        begin, end = end, end + tensor.nbytes
        shape = [int(extent) for extent in tensor.shape.numpy()]
        header[name] = {"dtype": _TYPES[tensor.dtype.name], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    yield struct.pack("<Q", len(text)) + text
    for _, value in tensors:
        assert value.const_value is not None
        yield from iterate_content(value.const_value)

"""Protobuf messages of ONNX without the bytes of their large tensors, which stay where they lie in the file.

Sources: the wire format at https://protobuf.dev/programming-guides/encoding, the messages in onnx.proto.
"""

from __future__ import annotations

import onnx
from google.protobuf.descriptor import Descriptor

from ..engine.base.startup import dataclass, field

#: the key of external data by which an outline says that the bytes are in the model's own file
LOCATION = "\0self"
#: tensors of as many bytes are left out; messages that are smaller are taken as they are
_LARGE = 1 << 10
#: messages nest so deep at most, as in the protobuf library
_DEPTH = 100
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_TENSOR = onnx.TensorProto.DESCRIPTOR
_RAW = _TENSOR.fields_by_name["raw_data"].number


class WireError(ValueError):
    """Bytes that are no protobuf message."""


@dataclass(slots=True, eq=False)
class _Walk:
    """One file being walked: the descriptors' fields that hold messages, by their numbers."""

    data: memoryview
    inner: dict[str, dict[int, Descriptor]] = field(default_factory=dict)

    def list_fields(self, kind: Descriptor) -> dict[int, Descriptor]:
        known = self.inner.get(kind.full_name)
        if known is None:
            known = {one.number: one.message_type for one in kind.fields if one.message_type is not None}
            self.inner[kind.full_name] = known
        return known


def outline_model(data: memoryview) -> bytes:
    """A serialized ModelProto in which large raw data is external, at its offset in `data` and in LOCATION.

    Takes time by the number of nodes and tensors, and memory by what is left. Raises WireError for other bytes.
    """
    parts = _outline_message(_Walk(data), 0, len(data), onnx.ModelProto.DESCRIPTOR, _DEPTH)
    return bytes(data) if parts is None else b"".join(parts)


def _outline_message(walk: _Walk, at: int, end: int, kind: Descriptor, depth: int) -> list[bytes | memoryview] | None:
    """The parts of a message with something left out; None where it stays as it is."""
    if not depth:
        raise WireError(f"messages nest deeper than {_DEPTH}")
    data, inner = walk.data, walk.list_fields(kind)
    is_tensor = kind is _TENSOR
    parts: list[bytes | memoryview] = []
    # Behind all that the message says of the place of its bytes: of several entries the last one counts.
    place: list[bytes | memoryview] = []
    kept = at
    while at < end:
        start = at
        key, at = _read_varint(data, at, end)
        number, form = key >> 3, key & 7
        if form == _BYTES:
            size, at = _read_varint(data, at, end)
            if size > end - at:
                raise WireError(f"field {number} at byte {start} has {size} bytes, {end - at} are left")
            if size >= _LARGE:
                found: list[bytes | memoryview] | None = None
                if is_tensor and number == _RAW:
                    place, found = [encode_external(LOCATION, at, size)], []
                elif number in inner:
                    within = _outline_message(walk, at, at + size, inner[number], depth - 1)
                    if within is not None:
                        found = [_encode_field(number, sum(map(len, within))), *within]
                if found is not None:
                    parts += [data[kept:start], *found]
                    kept = at + size
            at += size
        elif form == _VARINT:
            _, at = _read_varint(data, at, end)
        elif form in (_EIGHT, _FOUR):
            at += 8 if form == _EIGHT else 4
        else:
            raise WireError(f"field {number} at byte {start} has the unknown wire type {form}")
        if at > end:
            raise WireError(f"field {number} at byte {start} ends at byte {at} of {end}")
    return [*parts, data[kept:end], *place] if parts else None


def encode_external(location: str, offset: int, size: int) -> bytes:
    """What a tensor says of its bytes where these lie in another file."""
    told = {"location": location, "offset": f"{offset}", "length": f"{size}"}
    entries = [onnx.StringStringEntryProto(key=key, value=value) for key, value in told.items()]
    place = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL, external_data=entries)
    return bytes(place.SerializeToString())


def _encode_field(number: int, size: int) -> bytes:
    return encode_varint(number << 3 | _BYTES) + encode_varint(size)


def encode_varint(number: int) -> bytes:
    """A number of at least 0 by seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number of at most 64 bits, seven to a byte and the lowest first, and the place behind it."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise WireError(f"the number before byte {at} does not end")

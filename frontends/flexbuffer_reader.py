"""FlexBuffers: the self-describing maps that custom operators keep their options in.

The format is described at https://flatbuffers.dev/internals (section FlexBuffers). Only what an option can be is read:
a map of scalars, strings, and flat vectors of them.
"""

from __future__ import annotations

import struct
from typing import Any

_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING = range(6)
_INDIRECT_INT, _INDIRECT_UINT, _INDIRECT_FLOAT, _MAP, _VECTOR = range(6, 11)
_TYPED_FIRST, _TYPED_STRING = 11, 15
_FIXED_FIRST, _FIXED_LAST = 16, 24
_BLOB, _BOOL, _BOOLS = 25, 26, 36

_SCALARS = {
    _INT: ("b", "h", "i", "q"),
    _UINT: ("B", "H", "I", "Q"),
    _FLOAT: ("", "e", "f", "d"),
    _BOOL: ("?", "H", "I", "Q"),
}


class FlexBufferError(ValueError):
    """Bytes that are not a FlexBuffers map, or hold what an option cannot be."""


def read_options(data: memoryview) -> dict[str, Any]:
    """Read a map of options: bool, int, float, str, and lists of these; an entry of another type is left out.

    Raises FlexBufferError when the bytes are not a map: custom operators may keep anything in their options.
    """
    reader = _Reader(data)
    return reader.read_map(*reader.find_root(_MAP, "not a map"))


def read_blobs(data: memoryview) -> list[bytes]:
    """Read a vector of strings, which may hold any bytes; raises FlexBufferError when the bytes are not one."""
    reader = _Reader(data)
    return reader.read_blobs(*reader.find_root(_VECTOR, "not a vector"))


class _Reader:
    """Bounds-checked access to the bytes; the work done is bounded by their number."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.budget = len(data)

    def find_root(self, kind: int, otherwise: str) -> tuple[int, int]:
        """Where the outermost value begins and how wide its entries are.

        Raises FlexBufferError, which says `otherwise` where it is not of that kind.
        """
        if len(self.data) < 3:
            raise FlexBufferError("too short")
        width = self.data[-1]
        if width not in (1, 2, 4, 8) or self.data[-2] >> 2 != kind:
            raise FlexBufferError(otherwise)
        return self.follow(len(self.data) - 2 - width, width), 1 << (self.data[-2] & 3)

    def read_span(self, start: int, length: int) -> memoryview:
        if start < 0 or length < 0 or start + length > len(self.data):
            raise FlexBufferError("an offset leaves the bytes")
        self.budget -= 1
        if self.budget < 0:
            raise FlexBufferError("the same data again and again")
        return self.data[start : start + length]

    def read_unsigned(self, at: int, width: int) -> int:
        return int.from_bytes(self.read_span(at, width), "little")

    def follow(self, at: int, width: int) -> int:
        return at - self.read_unsigned(at, width)

    def read_map(self, at: int, width: int) -> dict[str, Any]:
        count = self.read_unsigned(at - width, width)
        keys = self.follow(at - 3 * width, width)
        key_width = self.read_unsigned(at - 2 * width, width)
        if key_width not in (1, 2, 4, 8) or count * width > len(self.data):
            raise FlexBufferError("a malformed map")
        types = self.read_span(at + count * width, count)
        result = {}
        for i in range(count):
            key = self.read_key(self.follow(keys + i * key_width, key_width))
            value = self.read_value(at + i * width, width, types[i])
            if value is not None:
                result[key] = value
        if list(result) != sorted(result):
            raise FlexBufferError("keys out of order")
        return result

    def read_blobs(self, at: int, width: int) -> list[bytes]:
        length = self.read_unsigned(at - width, width)
        if length * width > len(self.data):
            raise FlexBufferError("a vector leaves the bytes")
        found = []
        for i, packed in enumerate(self.read_span(at + length * width, length)):
            if packed >> 2 != _STRING:
                raise FlexBufferError("not a vector of strings")
            target, inner = self.follow(at + i * width, width), 1 << (packed & 3)
            found.append(bytes(self.read_span(target, self.read_unsigned(target - inner, inner))))
        return found

    def read_key(self, at: int) -> str:
        self.read_span(at, 1)
        end = at
        while end < len(self.data) and self.data[end]:
            end += 1
        return self.decode_text(self.read_span(at, end - at))

    def decode_text(self, content: memoryview) -> str:
        self.budget -= len(content) // 2
        try:
            return bytes(content).decode()
        except UnicodeDecodeError as error:
            raise FlexBufferError("a string is not UTF-8") from error

    def read_scalar(self, at: int, width: int, kind: int) -> Any:
        code = _SCALARS[kind][width.bit_length() - 1]
        if not code:
            raise FlexBufferError("a float of one byte")
        value = struct.unpack(f"<{code}", self.read_span(at, width))[0]
        return bool(value) if kind == _BOOL else value

    def read_value(self, at: int, parent: int, packed: int) -> Any:
        """Read the entry at `at`, stored in `parent` bytes; None for what an option cannot be."""
        kind, width = packed >> 2, 1 << (packed & 3)
        if kind in _SCALARS:
            return self.read_scalar(at, parent, kind)
        if kind in (_INDIRECT_INT, _INDIRECT_UINT, _INDIRECT_FLOAT):
            return self.read_scalar(self.follow(at, parent), width, kind - _INDIRECT_INT + _INT)
        if kind in (_NULL, _MAP) or (kind > _FIXED_LAST and kind != _BOOLS):
            return None
        target = self.follow(at, parent)
        if kind == _KEY:
            return self.read_key(target)
        if _FIXED_FIRST <= kind <= _FIXED_LAST:
            length, inner = (kind - _FIXED_FIRST) // 3 + 2, (kind - _FIXED_FIRST) % 3 + _INT
            return [self.read_scalar(target + i * width, width, inner) for i in range(length)]
        length = self.read_unsigned(target - width, width)
        if kind == _STRING:
            return self.decode_text(self.read_span(target, length))
        return self.read_vector(target, width, kind, length)

    def read_vector(self, at: int, width: int, kind: int, length: int) -> list[Any] | None:
        if length * width > len(self.data):
            raise FlexBufferError("a vector leaves the bytes")
        if kind != _VECTOR:
            inner = _BOOL if kind == _BOOLS else kind - _TYPED_FIRST + _INT
            packed = inner << 2 | (0 if kind == _TYPED_STRING else width.bit_length() - 1)
            items = [self.read_value(at + i * width, width, packed) for i in range(length)]
        else:
            types = self.read_span(at + length * width, length)
            if any(_MAP <= packed >> 2 <= _FIXED_LAST or packed >> 2 == _BOOLS for packed in types):
                return None
            items = [self.read_value(at + i * width, width, packed) for i, packed in enumerate(types)]
        return None if any(item is None for item in items) else items

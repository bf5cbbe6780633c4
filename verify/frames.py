"""Frames: a JSON header and numpy arrays over a byte stream, the language between a worker and its client."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class FrameSink(Protocol):
    """What frames are written to."""

    def write(self, data: bytes | memoryview, /) -> object: ...
    def flush(self) -> object: ...


class FrameSource(Protocol):
    """What frames are read from: `readinto` fills a part of a view and says how much, 0 at the end."""

    def readinto(self, view: memoryview, /) -> int | None: ...


LENGTH = struct.Struct("<Q")
_AT_ONCE = 1 << 20


def send(stream: FrameSink, header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Write one frame: the header's length, the header, then each array's bytes.

    Arrays of strings have dtype object and hold bytes; their header entry lists the length of each.
    """
    entries: list[dict[str, Any]] = []
    blobs: list[bytes | memoryview] = []
    for array in arrays:
        entry: dict[str, Any] = {"shape": list(array.shape), "dtype": array.dtype.name}
        if array.dtype == object:
            items = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel()]
            entry["lengths"] = [len(item) for item in items]
            blobs.append(b"".join(items))
        else:
            blobs.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        entries.append(entry)
    text = json.dumps({**header, "arrays": entries}).encode()
    blobs[:0] = [LENGTH.pack(len(text)), text]
    if sum(map(len, blobs)) <= _AT_ONCE:  # each write wakes the reader
        blobs = [b"".join(blobs)]
    for blob in blobs:
        stream.write(blob)
    stream.flush()


def receive(stream: FrameSource) -> tuple[dict[str, Any], list[Array]]:
    """Read one frame back; raises EOFError where the stream ends before the frame does."""
    (length,) = LENGTH.unpack(_read_exactly(stream, LENGTH.size))
    header: dict[str, Any] = json.loads(_read_exactly(stream, length))
    arrays: list[Array] = []
    for entry in header.pop("arrays"):
        shape = tuple(entry["shape"])
        if "lengths" in entry:
            items = np.empty(len(entry["lengths"]), dtype=object)
            for position, size in enumerate(entry["lengths"]):
                items[position] = bytes(_read_exactly(stream, size))
            arrays.append(items.reshape(shape))
            continue
        dtype = find_dtype(entry["dtype"])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        arrays.append(np.frombuffer(_read_exactly(stream, size), dtype).reshape(shape))
    return header, arrays


def find_dtype(name: str) -> np.dtype[Any]:
    """Find a dtype by name; the small floats (bfloat16, float8) are registered by ml_dtypes when it is imported."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def _read_exactly(stream: FrameSource, size: int) -> bytearray:
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        # A raw pipe hands over what is there, a buffered one fills the view.
        count = stream.readinto(view[filled:])
        if not count:
            raise EOFError("the stream ended inside a frame")
        filled += count
    return data

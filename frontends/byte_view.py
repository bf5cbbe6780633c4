"""Bytes in memory, read as a file."""

from __future__ import annotations

import io
from typing import Any


class ByteView(io.RawIOBase):
    """Bytes as a file, without a copy of them."""

    def __init__(self, data: memoryview) -> None:
        super().__init__()
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if at < 0:
            raise ValueError(f"there is no byte {at}")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        content = self._data[self._at : self._at + len(buffer)]
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

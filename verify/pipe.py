"""Pipe: both ways to another process, held to a time limit."""

from __future__ import annotations

import os
import select
import time


class Pipe:
    """A stream over two file descriptors, to write to and to read from.

    What is written and read must be done within so many seconds from now; raises TimeoutError where it is not,
    BrokenPipeError where nobody reads.
    """

    def __init__(self, writing: int, reading: int, seconds: float) -> None:
        self._writing, self._reading = writing, reading
        self._until = time.monotonic() + seconds
        os.set_blocking(writing, False)
        self._writable, self._readable = select.poll(), select.poll()
        self._writable.register(writing, select.POLLOUT)
        self._readable.register(reading, select.POLLIN)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of some bytes."""
        rest = memoryview(data)
        while rest:
            self._wait(self._writable)
            rest = rest[os.write(self._writing, rest) :]

    def flush(self) -> None:
        """Nothing is held back."""

    def readinto(self, view: memoryview) -> int:
        """Read what is there, at least a byte and at most what the view holds; 0 where the stream has ended."""
        self._wait(self._readable)
        return os.readv(self._reading, [view])

    def _wait(self, poll: select.poll) -> None:
        if not poll.poll(max(0.0, self._until - time.monotonic()) * 1000):
            raise TimeoutError

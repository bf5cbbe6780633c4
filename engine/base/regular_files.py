"""Files that can be read to their end, which a pipe that nobody writes to has none of."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """What a file holds; raises OSError for what cannot be read, and for what is neither file nor folder, unopened."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return path.read_bytes()


def read_text(path: Path) -> str:
    """The text of a file, with one kind of line ends; raises what `read_bytes` does, UnicodeDecodeError for no text.

    A byte order mark, which some editors of Windows write in front, is none of it.
    """
    return read_bytes(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def explain_failure(error: OSError | ValueError) -> str:
    """What kept a file from being read, without its name."""
    return (error.strerror if isinstance(error, OSError) else None) or f"{error}"

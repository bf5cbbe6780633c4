"""Files mapped into memory."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from ..engine.base.errors import ModelError


def load(path: str | os.PathLike[str]) -> memoryview:
    """Map a file into memory; raises ModelError when it cannot be read, is empty, or is no regular file."""
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to open a pipe may take for ever
            raise ModelError(f"{os.fspath(path)}: not a regular file, which models are read from")
        with Path(path).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ModelError(f"{os.fspath(path)}: the file is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelError(f"{os.fspath(path)}: {reason}") from error

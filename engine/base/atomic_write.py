"""Atomic writes: files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import RewriteError


class DestinationError(RewriteError):
    """A file that cannot be written: names it and what the system says."""


@contextlib.contextmanager
def open_replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place when the block ends, and is removed when the block raises.

    The folder is made where it is missing. Raises DestinationError for what the system refuses.
    """
    # A link is followed, so that what it points to is replaced and not the link.
    path = Path(os.path.realpath(path))
    part = path.with_name(f".rewrite-{os.urandom(6).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                yield file
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DestinationError(f"{path}: cannot be written: {error.strerror or error}") from error


def remove(path: Path) -> None:
    """Remove a file that nothing refers to any more; raises DestinationError for what the system refuses."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DestinationError(f"{path}: cannot be removed: {error.strerror or error}") from error

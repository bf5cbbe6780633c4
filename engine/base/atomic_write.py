"""Atomic writes: files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import CallError, DestinationError
from .regular_files import read_bytes


def read_mode(path: str | os.PathLike[str]) -> int:
    """What kind of file there is and who may read it, as the system says it; 0 for none, and for a name it refuses."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):  # of a name with a null in it
        return 0


def check_name(path: str) -> None:
    """Raise CallError for a path that no file can have on any system."""
    try:
        if b"\0" in os.fsencode(path):
            raise CallError(f"{path!r}: no file has a name with a null in it")
    except UnicodeEncodeError as error:
        raise CallError(f"{path!r}: no file has a name that is no text") from error


def accept_destination(path: str | os.PathLike[str]) -> Path:
    """The path that something is to be written to; raises CallError for what is none."""
    if not isinstance(path, str | os.PathLike):
        raise CallError(f"what is written goes to a path, got an object of type {type(path).__name__}")
    text = os.fsdecode(path)
    if not text:
        raise CallError("the path to write to is empty")
    check_name(text)
    return Path(text)


def check_replaceable(path: Path) -> None:
    """Raise DestinationError for what is there and no regular file, as a device, a pipe or a folder."""
    if (mode := read_mode(path)) and not stat.S_ISREG(mode):
        raise DestinationError(f"{path}: not a regular file, cannot be replaced")


@contextlib.contextmanager
def open_replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place when the block ends, and is removed when the block raises.

    The folder is made where it is missing, and who may read a file that is replaced may read the new one. Raises
    DestinationError for what the system refuses, and for what is no file to be replaced, as a device or a pipe.
    """
    # A link is followed, so that what it points to is replaced and not the link.
    path = Path(os.path.realpath(path))
    if (mode := read_mode(path)) and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DestinationError(f"{path}: not a regular file, cannot be replaced")
    part = path.with_name(f".rewrite-{os.urandom(6).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                if mode:
                    with contextlib.suppress(OSError):  # a file system without permissions
                        part.chmod(mode & 0o777)
                yield file
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DestinationError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def open_folder(folder: Path, last: str) -> Iterator[Path]:
    """Open a folder within `folder` whose files take their places there as the block ends, one called `last` after the
    others; when the block raises nothing is changed.

    `folder` is made where it is missing. Raises DestinationError for what the system refuses.
    """
    folder = Path(os.path.realpath(folder))
    made = not folder.exists()
    part = folder / f".rewrite-{os.urandom(6).hex()}.part"
    try:
        part.mkdir(parents=True)
        yield part
        for file in sorted(part.iterdir(), key=lambda file: (file.name == last, file.name)):
            place = Path(os.path.realpath(folder / file.name))
            if mode := read_mode(place):
                with contextlib.suppress(OSError):
                    file.chmod(mode & 0o777)
            _move_file(file, place)
    except DestinationError as error:  # of a file in there
        raise DestinationError(f"{error}".replace(f"{part}", f"{folder}")) from error
    except OSError as error:
        raise DestinationError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # of which nothing has come


def _move_file(file: Path, place: Path) -> None:
    """Put a file where another may be, also where a link leads to another file system."""
    try:
        file.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with open_replacement(place) as out, file.open("rb") as content:
            shutil.copyfileobj(content, out)


def remove(path: Path) -> None:
    """Remove a file that nothing refers to any more; raises DestinationError for what the system refuses."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DestinationError(f"{path}: cannot be removed: {error.strerror or error}") from error


def check_own(paths: Iterable[Path], marked: Path, mark: str) -> None:
    """Raise DestinationError for files that are there, unless a marked one says that they are of this program."""
    try:
        own = mark.encode() in read_bytes(marked)
    except OSError:
        own = False
    for path in () if own else paths:
        if os.path.lexists(path):
            raise DestinationError(f"{path}: was not written by nnrewrite, and is not replaced: name another output")

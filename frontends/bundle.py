"""Bundles of models: zip archives, such as MediaPipe's `.task` files, that hold TensorFlow Lite files."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator

from ..engine.base.errors import ModelError, join_lines, quote_name
from .byte_view import ByteView
from .mapping import load
from .zip_members import HEADER, MALFORMED, read_member

#: what tells a TensorFlow Lite file, at bytes 4 to 8
_IDENTIFIER = b"TFL3"
#: what tells the end of a directory
_END = b"PK\x05\x06"
#: the end of a directory is 22 bytes and a comment of at most 65535
_TAIL = 22 + 65535
#: bundles in bundles are followed so deep
_DEPTH = 4


def is_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive of models and not a model; raises ModelError when it cannot be read.

    A model with an archive appended, as models carry their labels, is a model.
    """
    return _is_archive(load(path))


def list_members(path: str | os.PathLike[str]) -> list[str]:
    """Names of the models in a bundle, those of a bundle inside it as `inner.task/name`; none for a plain file.

    Raises ModelError when the file cannot be read or its archive is malformed.
    """
    data = load(path)
    return [name for name, _ in _iterate_models(data, os.fspath(path), "")] if _is_archive(data) else []


def open_member(path: str | os.PathLike[str], member: str) -> memoryview:
    """The bytes of a model in a bundle: a view of the mapped file where the archive stores it uncompressed.

    Raises ModelError when the file cannot be read, is no bundle, or has no such model.
    """
    data, name = load(path), os.fspath(path)
    if not _is_archive(data):
        raise ModelError(f"{name}: not a bundle of models")
    known = []
    for found, content in _iterate_models(data, name, ""):
        if found == member:
            return content
        known.append(quote_name(found))
    raise ModelError(
        f"{name}: there is no model {quote_name(member)} in this bundle, only {', '.join(known) or 'none at all'}"
    )


def _is_archive(data: memoryview) -> bool:
    if bytes(data[4:8]) == _IDENTIFIER:
        return False
    return bytes(data[:4]) == HEADER or _END in bytes(data[-_TAIL:])


def _iterate_models(data: memoryview, name: str, prefix: str, depth: int = 1) -> Iterator[tuple[str, memoryview]]:
    """All models of an archive, with those of archives inside it."""
    try:
        with zipfile.ZipFile(io.BufferedReader(ByteView(data))) as archive:
            for entry in archive.infolist():
                if not entry.filename or entry.filename.endswith("/"):
                    continue
                content = read_member(archive, entry, data, name)
                path = f"{prefix}{entry.filename}"
                if bytes(content[4:8]) == _IDENTIFIER or entry.filename.endswith(".tflite"):
                    yield path, content
                elif entry.filename.endswith(".task") and depth < _DEPTH and _is_archive(content):
                    yield from _iterate_models(content, name, f"{path}/", depth + 1)
    except MALFORMED as error:
        raise ModelError(f"{name}: malformed archive: {join_lines(error)}") from error

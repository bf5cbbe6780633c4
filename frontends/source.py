"""Sources: what a model can be given as, and the path or the bytes that this comes to."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from ..engine.base.atomic_write import check_name
from ..engine.base.errors import CallError, ModelError, join_lines


class Program(Protocol):
    """A torch.export.ExportedProgram, which only a caller that has torch can have."""

    graph_module: Any


#: a model: the path of its file, the bytes of it, a file that is open for reading bytes, or a program of PyTorch
Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Program

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def accept(source: Source) -> str | bytes:
    """The path of a model, or its bytes: those of a buffer, of a `BytesIO` whole, of an open file from where it stands,
    of a program as torch saves it.

    Raises CallError for what is no model at all, ModelError for a URL and for a file that cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        if not path:
            raise CallError("a model's path is empty")
        check_name(path)
        if is_remote(path):
            raise ModelError(f"{path}: models are read from files, not from the network: download it first")
        return path
    if isinstance(source, bytes):
        return source
    if isinstance(source, bytearray | memoryview):
        return bytes(source)
    if isinstance(source, io.BytesIO):
        return source.getvalue()
    if type(source).__module__.startswith("torch.export."):
        return _save(source)
    return _read(source)


def _save(program: Any) -> bytes:
    """The bytes of an exported program as the torch that made it saves them."""
    torch = sys.modules["torch"]
    stream = io.BytesIO()
    try:
        torch.export.save(program, stream)
    except Exception as error:  # of any kind, as what a program holds saves itself
        raise ModelError(f"torch cannot save the program: {join_lines(error)}") from error
    return stream.getvalue()


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL, also one that has lost a slash, and not that of a file after all."""
    return _REMOTE.match(os.fspath(path)) is not None and not Path(path).exists()


def _read(file: Any) -> bytes:
    if not hasattr(file, "read"):
        help = ": give its SerializeToString()" if hasattr(file, "SerializeToString") else ""
        raise CallError(f"a model is a path, bytes or a file open for reading, got {_describe_kind(file)}{help}")
    try:
        content = file.read()
    except (OSError, ValueError) as error:
        raise ModelError(f"{getattr(file, 'name', 'the model')}: cannot be read: {error}") from error
    if not isinstance(content, bytes):
        raise CallError(
            f"a model's file is read as bytes, this one gives {_describe_kind(content)}: open it with mode 'rb'"
        )
    return content


def _describe_kind(value: object) -> str:
    return f"an object of type {type(value).__name__}"

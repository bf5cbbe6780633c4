"""Digests of packs: the keys under which what was made of them is kept between runs."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from ..base.data_files import BUILT_IN, OPERATORS


def digest_pack(entries: Sequence[Path], texts: Mapping[str, str]) -> str:
    """A name for everything that a pack in its final form depends on."""
    digest = digest_code([*OPERATORS, *entries])
    digest.update(_digest_program(BUILT_IN, (".rules",)))
    for name, text in texts.items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def digest_code(files: Sequence[Path]) -> hashlib._Hash:
    """A name for this code, and some files besides."""
    digest = hashlib.sha256(f"{sys.version} {onnx.__version__}".encode())
    digest.update(_digest_program(Path(__file__).parent.parent, (".py", ".lark")))
    for file in files:
        digest.update(file.read_bytes())
    return digest


@functools.cache  # a conversion of two steps asks three times, 4 of 300 ms of a first command each
def _digest_program(folder: Path, endings: tuple[str, ...]) -> bytes:
    """A name for files of the program, which stay as they are while it runs: their sizes and times, as reading them all
    takes eight times as long."""
    known = ((name, Path(name).stat()) for name in sorted(_list_below(folder, endings)))
    return hashlib.sha256("".join(f"{n}\0{s.st_size}\0{s.st_mtime_ns}\0" for n, s in known).encode()).digest()


def _list_below(folder: Path, endings: tuple[str, ...]) -> Iterator[str]:
    """The files below a folder with certain endings; four times as fast as Path.rglob."""
    for place, _, names in os.walk(folder):
        yield from (f"{place}{os.sep}{name}" for name in names if name.endswith(endings))

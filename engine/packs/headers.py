"""What the headers of a pack's rule files say of it, read without the rules."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from ..base.data_files import BUILT_IN
from . import loader
from .entries import read_text

_DIALECTS = re.compile(r"^\s*ruleset\s+\w+[^:]*:\s*(\w+)\s*->\s*(\w+)", re.MULTILINE)


def read_pair(name: str) -> tuple[str, str] | None:
    """The dialects that a pack's rules lead from and to; None for a pack without rules.

    Raises CallError for an unknown pack.
    """
    if name in _list_built_in():
        return _pair_of_built_in(name)
    return _read_pair(*loader.folders([name]))


def find_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """The dialects that some packs lead from and to, by the first of them that has rules; raises as `read_pair`."""
    return next((pair for name in names if (pair := read_pair(name)) is not None), None)


@functools.cache
def _list_built_in() -> frozenset[str]:
    return frozenset(loader.list_built_in())


@functools.cache
def _pair_of_built_in(name: str) -> tuple[str, str] | None:
    return _read_pair(BUILT_IN / name)


def _read_pair(folder: Path) -> tuple[str, str] | None:
    file = min(folder.glob("**/*.rules"), default=None)
    said = None if file is None else _DIALECTS.search(read_text(file))
    return None if said is None else (said[1], said[2])

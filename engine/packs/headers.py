"""What the headers of a pack's rule files say of it, read without the rules.

All files of a pack begin alike, so the first tells. A header with mistakes is told of where the pack is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..base.startup import dataclass
from .folders import find_built_in, find_folder, read_folder_once, read_text

_COMMENT = re.compile(r"#[^\n]*")
_HEADER = re.compile(r"^\s*ruleset\s+[\w-]+\s*(?P<packs>[^:]*):\s*(?P<source>\w+)\s*->\s*(?P<target>\w+)", re.MULTILINE)
_PACK = re.compile(r"\b(over|after)\s+([\w-]+)(?:\s+without\s+(\w+(?:\s*,\s*\w+)*))?")


@dataclass(frozen=True, slots=True)
class PackReference:
    """A pack that a header names, and the rules of it that do not hold."""

    name: str
    without: frozenset[str]


@dataclass(frozen=True, slots=True)
class Header:
    """The dialects that a pack's rules lead from and to, the pack that it lies over, and that which it comes after."""

    pair: tuple[str, str] | None
    base: PackReference | None = None
    after: PackReference | None = None


def read_pair(name: str) -> tuple[str, str] | None:
    """The dialects that a pack's rules lead from and to; None for a pack without rules.

    Raises CallError for an unknown pack.
    """
    header = read_header(find_folder(name))
    return None if header is None else header.pair


def find_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """The dialects that some packs lead from and to, by the first of them that has rules; raises as `read_pair`."""
    return next((pair for name in names if (pair := read_pair(name)) is not None), None)


def has_stage(name: str, stage: str) -> bool:
    """Whether a pack has rules of a stage in files of its own; raises CallError for an unknown pack."""
    rule = re.compile(rf"^\s*rule\s+\w+\s[^{{]*\bstage\s+(?:\w+\s*,\s*)*{stage}\b", re.MULTILINE)
    return any(rule.search(read_text(file)) for file in find_folder(name).glob("**/*.rules"))


def list_lineage(name: str) -> tuple[tuple[Path, frozenset[str]], ...]:
    """The folders of a pack and of those that it lies over, the lowest first, each with the rules left out of it."""
    return _list_lineage(find_folder(name))


@read_folder_once
def _list_lineage(folder: Path) -> tuple[tuple[Path, frozenset[str]], ...]:
    without = frozenset[str]()
    found = [(folder, without)]
    while (header := read_header(found[0][0])) is not None and header.base is not None:
        below = find_built_in(header.base.name)
        if below is None or below in [one for one, _ in found]:
            break
        without |= header.base.without
        found.insert(0, (below, without))
    return tuple(found)


def add_bases(names: Sequence[str]) -> tuple[str, ...]:
    """Packs in their order, each behind the pack that it lies over; raises CallError for an unknown one."""
    found = ((*(folder.name for folder, _ in list_lineage(name)[:-1]), name) for name in names)
    return tuple(dict.fromkeys(one for several in found for one in several))


@read_folder_once
def read_header(folder: Path) -> Header | None:
    """The header of a pack's rule files; None for a pack without rules."""
    file = min(folder.glob("**/*.rules"), default=None)
    if file is None:
        return None
    header = _HEADER.search(_COMMENT.sub("", read_text(file)))
    if header is None:
        return Header(None)
    named = {
        word: PackReference(name, frozenset(re.findall(r"\w+", without)))
        for word, name, without in _PACK.findall(header["packs"])
    }
    return Header((header["source"], header["target"]), named.get("over"), named.get("after"))

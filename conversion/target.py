"""Targets: what a pack of rules for a runtime asks of a conversion besides its rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from ..engine.base import file_cache
from ..engine.base.atomic_write import read_mode
from ..engine.base.data_files import BUILT_IN
from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.packs import folders, headers, loader
from ..engine.syntax import tree
from ..engine.syntax.tree_traversal import walk

#: the file of a pack that makes it more than rules
FILE = "target.yaml"

_RULE = re.compile(r"(?:rule|table)\s+(\w+)")
_PLACE = re.compile(r"\((.+):(\d{1,9})\)$")


def describe(name: str) -> str:
    """What a target is, in a few words; empty where its pack does not say."""
    return str(_read_document(_find_lineage(name)[-1][0]).get("about", ""))


def find_dialect(name: str) -> str | None:
    """The dialect of the models that a target is for, None where its pack has no rules; raises CallError as
    `read_defaults`."""
    header = headers.read_header(_find_lineage(name)[-1][0])
    return None if header is None or header.pair is None else header.pair[1]


def read_defaults(name: str) -> Mapping[str, Any]:
    """The options that a target sets where the user does not, by the names that Options gives them; those of packs that
    it lies over hold where it says nothing.

    Raises CallError for an unknown pack, or one whose `target.yaml` is not what it should be.
    """
    said: dict[str, Any] = {}
    for folder, _ in _find_lineage(name):
        said |= _read_document(folder).get("options", {})
    return {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}


def read_prices(name: str) -> Mapping[str, int]:
    """What a partition for a target is judged by, as its `target.yaml` says; raises CallError as `read_defaults`."""
    said: dict[str, int] = {}
    for folder, _ in _find_lineage(name):
        said |= _read_document(folder).get("partition", {})
    return said


def find_small_target(name: str) -> str:
    """The target that lies over one and leaves constants as they are stored; empty where it says none, or is that one.

    Raises CallError as `read_defaults`.
    """
    folders = [folder for folder, _ in _find_lineage(name)]
    said = [str(_read_document(folder).get("small", "")) for folder in folders]
    return next((other for other in reversed(said) if other not in ("", *(folder.name for folder in folders))), "")


def list_extensions(name: str) -> list[str]:
    """The built-in targets that lie over one, itself left out; raises CallError as `read_defaults`."""
    folder = _find_lineage(name)[-1][0]
    names = (one for one in folders.list_built_in() if (BUILT_IN / one / FILE).is_file())
    return [one for one in names if folder in [below for below, _ in headers.list_lineage(one)[:-1]]]


@dataclass(frozen=True, slots=True)
class Change:
    """A rule of a target: its name, where it stands, and the comment above it, which says why."""

    rule: str
    file: str
    line: int
    why: str


def list_changes(name: str) -> list[Change]:
    """The rules that a target adds, those of packs that it lies over among them, with their reasons, in the order of
    their files; raises CallError as `read_defaults`."""
    found: list[Change] = []
    for folder, without in _find_lineage(name):
        texts = loader.read_sources([f"{folder}"]) if any(folder.glob("**/*.rules")) else {}
        for file, text in texts.items():
            lines = text.splitlines()
            for place, line in enumerate(lines):
                if (stated := _RULE.match(line)) and stated[1] not in without:
                    found.append(Change(stated[1], file, place + 1, _read_comment_above(lines, place)))
    return found


def find_reason(place: str) -> str:
    """The comment above a rule, by its place as models record it, `rule (file:line)`; empty where it is not found."""
    found = find_line(place)
    return _read_comment_above(*found) if found is not None and _RULE.match(found[0][found[1]]) else ""


def find_line(place: str) -> tuple[list[str], int] | None:
    """The lines of the rule file that a place `rule (file:line)` names, and which of them, counted from 0, it is.

    A place is what a model says: nothing but files of rules is read.
    """
    written = _PLACE.search(place)
    file = _find_file(written[1]) if written is not None and written[1].endswith(".rules") else None
    if written is None or file is None:
        return None
    lines, at = file.read_text(encoding="utf-8", errors="replace").splitlines(), int(written[2]) - 1
    return (lines, at) if 0 <= at < len(lines) else None


def find_introducing(
    name: str, files: Sequence[tree.RuleFile], operator: str, places: Iterable[str]
) -> Mapping[str, str]:
    """Of rules by their places, those of a target that make nodes of an operator of which they find none, with names.

    `files` are those of the conversion, which has the target's among them.
    """
    own = tuple(f"{folder.name if BUILT_IN in folder.parents else folder}/" for folder, _ in _find_lineage(name))
    found: dict[str, str] = {}
    for place in set(places):
        written = _PLACE.search(place)
        if written is None or not written[1].startswith(own):
            continue
        items = (item for one in files if one.span.file == written[1] for item in one.items)
        rule = next((item for item in items if item.span.line == int(written[2])), None)
        if isinstance(rule, tree.Rule) and not _is_finding(rule, operator):
            found[place] = rule.name
    return found


def _is_finding(rule: tree.Rule, operator: str) -> bool:
    calls = (node for node in walk(rule.equations) if isinstance(node, tree.Call))
    return any(call.wildcard or call.callee == operator for call in calls)


def _find_file(written: str) -> Path | None:
    """A rule file by the name it has in messages."""
    return next((one for one in (BUILT_IN / written, Path(written)) if S_ISREG(read_mode(one))), None)


def _read_comment_above(lines: Sequence[str], place: int) -> str:
    """The comment that ends right above a line, or stands behind it, as one line."""
    start = place
    while start and lines[start - 1].startswith("#"):
        start -= 1
    behind = lines[place].partition("#")[2]
    return " ".join([*(line.lstrip("# ") for line in lines[start:place]), behind.strip()]).strip()


def _find_lineage(name: str) -> tuple[tuple[Path, frozenset[str]], ...]:
    try:
        return headers.list_lineage(name)
    except folders.UnknownPackError as error:
        known = [pack for pack in folders.list_built_in() if (BUILT_IN / pack / FILE).is_file()]
        raise CallError(f"there is no target {name}: it is neither {', '.join(known)} nor a folder") from error


@folders.read_folder_once
def _read_document(folder: Path) -> Mapping[str, Any]:
    file = folder / FILE
    if not file.is_file():
        return {}
    return _parse(file, file.read_bytes())


def _parse(file: Path, data: bytes) -> Mapping[str, Any]:
    # Each conversion asks, and reading YAML takes longer than a small one.
    key = hashlib.sha256(b"settings" + data).hexdigest()
    kept = file_cache.fetch(key)
    if kept is None:
        kept = json.dumps(_read(file, data)).encode()
        file_cache.keep(key, kept)
    document: dict[str, Any] = json.loads(kept)
    return document


def _read(file: Path, data: bytes) -> Mapping[str, Any]:
    import yaml

    from .target_settings import find_mistakes

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CallError(f"{file}: cannot be read: {error}") from error
    for found in find_mistakes(file, text):
        raise CallError(f"{found.span}: {found.message}" + (f"; {found.help}" if found.help else ""))
    document: Mapping[str, Any] = yaml.safe_load(text) or {}
    return document

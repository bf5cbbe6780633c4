"""Targets: what a pack of rules for a runtime asks of a conversion besides its rules."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .engine.base import file_cache
from .engine.base.data_files import BUILT_IN
from .engine.base.errors import CallError
from .engine.base.startup import dataclass
from .engine.packs import loader
from .engine.syntax import tree

#: the file of a pack that makes it more than rules
FILE = "target.yaml"

_RULE = re.compile(r"(?:rule|table)\s+(\w+)")
_PLACE = re.compile(r"\((.+):(\d+)\)$")


def about(name: str) -> str:
    """What a target is, in a few words; empty where its pack does not say."""
    return str(_document(name).get("about", ""))


def defaults(name: str) -> Mapping[str, Any]:
    """The options that a target sets where the user does not, by the names that Options gives them.

    Raises CallError for an unknown pack, or one whose `target.yaml` is not what it should be.
    """
    found: Mapping[str, Any] = _document(name).get("options", {})
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """A rule of a target: its name, where it stands, and the comment above it, which says why."""

    rule: str
    file: str
    line: int
    why: str


def changes(name: str) -> list[Change]:
    """The rules that a target adds, with their reasons, in the order of their files; raises CallError as `defaults`."""
    found: list[Change] = []
    folder = _folder(name)
    texts = loader.sources([name]) if any(folder.glob("**/*.rules")) else {}
    for file, text in texts.items():
        lines = text.splitlines()
        for place, line in enumerate(lines):
            if stated := _RULE.match(line):
                found.append(Change(stated[1], file, place + 1, _above(lines, place)))
    return found


def reason(place: str) -> str:
    """The comment above a rule, by its place as models record it, `rule (file:line)`; empty where it is not found."""
    if (written := _PLACE.search(place)) is None:
        return ""
    file = _file(written[1])
    lines = [] if file is None else file.read_text(encoding="utf-8").splitlines()
    at = int(written[2]) - 1
    return _above(lines, at) if at < len(lines) and _RULE.match(lines[at]) else ""


def introducing(name: str, files: Sequence[tree.RuleFile], operator: str, places: Iterable[str]) -> Mapping[str, str]:
    """Of rules by their places, those of a target that make nodes of an operator of which they find none, with names.

    `files` are those of the conversion, which has the target's among them.
    """
    folder = _folder(name)
    found: dict[str, str] = {}
    for place in set(places):
        written = _PLACE.search(place)
        file = _file(written[1]) if written is not None else None
        if written is None or file is None or folder.resolve() not in file.resolve().parents:
            continue
        items = (item for one in files if one.span.file == written[1] for item in one.items)
        rule = next((item for item in items if item.span.line == int(written[2])), None)
        if isinstance(rule, tree.Rule) and not _finds(rule, operator):
            found[place] = rule.name
    return found


def _finds(rule: tree.Rule, operator: str) -> bool:
    calls = (node for node in tree.walk(rule.equations) if isinstance(node, tree.Call))
    return any(call.wildcard or call.callee == operator for call in calls)


def _file(written: str) -> Path | None:
    """A rule file by the name it has in messages."""
    return next((one for one in (BUILT_IN / written, Path(written)) if one.is_file()), None)


def _above(lines: Sequence[str], place: int) -> str:
    """The comment that ends right above a line, or stands behind it, as one line."""
    start = place
    while start and lines[start - 1].startswith("#"):
        start -= 1
    behind = lines[place].partition("#")[2]
    return " ".join([*(line.lstrip("# ") for line in lines[start:place]), behind.strip()]).strip()


def _folder(name: str) -> Path:
    try:
        (folder,) = loader.folders([name])
    except loader.UnknownPackError as error:
        known = [pack for pack in loader.list_built_in() if (BUILT_IN / pack / FILE).is_file()]
        raise CallError(
            f"there is no target {name}: it is neither {', '.join(known)}, portable nor a folder"
        ) from error
    return folder


def _document(name: str) -> Mapping[str, Any]:
    folder = _folder(name)
    file = folder / FILE
    if not file.is_file():
        return {}
    return _parse(file, file.read_bytes())


@functools.lru_cache(maxsize=16)
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

    from .target_settings import mistakes

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CallError(f"{file}: cannot be read: {error}") from error
    for found in mistakes(file, text):
        raise CallError(f"{found.span}: {found.message}" + (f"; {found.help}" if found.help else ""))
    document: Mapping[str, Any] = yaml.safe_load(text) or {}
    return document

"""The operator entries that packs have: their own, and those of the dialects that they read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..base.data_files import BUILT_IN
from ..base.errors import CallError

#: how a rule file says what dialect it reads
_SOURCE = re.compile(r"^\s*ruleset\s+\w+[^:]*:\s*(?P<source>\w+)\s*->", re.MULTILINE)


def read_text(file: Path) -> str:
    """The text of a file of a pack; raises CallError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{file}: cannot be read: {error}") from error


def list_entries(paths: Sequence[Path]) -> list[Path]:
    """The ops.yaml of packs, behind those of the program's packs that describe the dialects which they read."""
    own = [path / "ops.yaml" for path in paths if (path / "ops.yaml").is_file()]
    lent = [entry for path in paths for entry in _find_source_entries(path) if entry not in own]
    return [*dict.fromkeys(lent), *own]


def _find_source_entries(path: Path) -> list[Path]:
    file = min(path.glob("**/*.rules"), default=None)
    said = None if file is None else _SOURCE.search(read_text(file))
    if said is None:
        return []
    begins = re.compile(rf"^{said['source']}:", re.MULTILINE)
    found = sorted(BUILT_IN.glob(f"*2{said['source']}/ops.yaml"))
    return [entry for entry in found if begins.search(read_text(entry))]

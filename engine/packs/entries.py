"""The operator entries that packs have: their own, and those of the dialects that they read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..base.data_files import BUILT_IN
from .folders import read_folder_once, read_text
from .headers import read_header


def list_entries(paths: Sequence[Path]) -> list[Path]:
    """The ops.yaml of packs, behind those of the program's packs that describe the dialects which they read."""
    own = [path / "ops.yaml" for path in paths if (path / "ops.yaml").is_file()]
    lent = [entry for path in paths for entry in _find_source_entries(path) if entry not in own]
    return [*dict.fromkeys(lent), *own]


@read_folder_once
def _find_source_entries(path: Path) -> list[Path]:
    header = read_header(path)
    if header is None or header.pair is None:
        return []
    source, _ = header.pair
    found = sorted(BUILT_IN.glob(f"*2{source}/ops.yaml"))
    return [entry for entry in found if f"\n{source}:" in f"\n{read_text(entry)}"]

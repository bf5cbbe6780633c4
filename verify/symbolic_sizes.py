"""Symbolic sizes: those of free axes that their names say are sums of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: how models that remember words call the number of all words, that of those before, and that of new ones
_TOTAL, _PAST, _NEW = "total_", "past_", "sequence_length"


def compute_size(name: object, sizes: Mapping[Any, int]) -> int | None:
    """The size that a name says is the sum of others: `a + b` and `a + 1`, or `total_X` of `past_X` and new words, as
    ONNX Runtime's builder of language models calls them. None for any other name.
    """
    if not isinstance(name, str):
        return None
    past = f"{_PAST}{name.removeprefix(_TOTAL)}"
    parts = [past, _NEW] if name.startswith(_TOTAL) else [part.strip() for part in name.split("+")]
    known = [int(part) if part.isdecimal() else sizes.get(part) for part in parts]
    return None if len(parts) < 2 or None in known else sum(size for size in known if size is not None)

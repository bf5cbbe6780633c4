"""Packs with all of their files checked: rules, operators, and what a target asks of a conversion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..engine.base.errors import RuleError
from ..engine.packs import loader
from ..engine.packs.folders import find_folders, read_text
from .target import FILE
from .target_settings import find_mistakes

#: the pack with which one is read that has no rules
_ALONE = "onnx"


def read_checked(names: Sequence[str]) -> loader.Pack:
    """The packs of some names; raises RuleError with the mistakes of all their files, CallError for one that is not
    there and for some that cannot lie over each other.

    What has no rules is read with those over the target that every pack has with it.
    """
    settings = list_settings(names)
    sources = {str(file): read_text(file) for file in settings}
    wrong, opsets, pack = [], None, None
    try:
        pack = loader.read(names if loader.read_sources(names, empty=True) else [_ALONE, *names])
        pack.require_stackable()
        opsets = pack.opsets
    except RuleError as error:
        wrong, sources = [*error.diagnostics], {**sources, **error.sources}
    wrong += [one for file in settings for one in find_mistakes(file, sources[str(file)], opsets)]
    if pack is None or wrong:
        raise RuleError(wrong, sources)
    return pack


def list_settings(names: Sequence[str]) -> list[Path]:
    """The files of packs that say what they ask of a conversion as targets."""
    return [folder / FILE for folder in find_folders(names) if (folder / FILE).is_file()]

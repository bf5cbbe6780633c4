"""Files that writing a model would replace although a model that is read consists of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..engine.base.atomic_write import read_mode
from ..engine.base.errors import DestinationError
from ..frontends.readers import SUFFIXES


def find_replaced(written: Iterable[Path], read: Iterable[Path]) -> Mapping[Path, str]:
    """The files that are both written and read, links followed, with what each is: a model, or weights of one."""
    files = {Path(os.path.realpath(path)) for path in written}
    present = [path for path in read if read_mode(path)]  # that a model is missing is told when it is read
    originals = dict.fromkeys(_list_weights(present, files), "weights of a model")
    originals |= {Path(os.path.realpath(path)): "a model" for path in present}
    return {path: what for path, what in originals.items() if path in files}


def check_replaced(path: Path, written: Iterable[Path], read: Iterable[Path]) -> None:
    """Raise DestinationError for a file that writing to a path would replace although it is read."""
    for file, what in find_replaced(written, read).items():
        raise DestinationError(f"{path}: {file} would be replaced, {what} that is read: name another path")


def _list_weights(models: Iterable[Path], written: Iterable[Path]) -> set[Path]:
    """The files that have the weights of models, where something that is written could be one of them."""
    replaced = [path for path in written if path.suffix.lower() not in SUFFIXES and stat.S_ISREG(read_mode(path))]
    folders = {folder for path in replaced for folder in path.parents}
    # Weights are in the folder of the path that is given, also where that is a link.
    holders = [path for path in models if Path(os.path.realpath(path.parent)) in folders]
    if not holders:
        return set()
    from .stream import list_data_files

    return {file for path in holders for file in list_data_files(path)}

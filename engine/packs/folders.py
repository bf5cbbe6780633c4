"""The folders of rule packs, found by a built-in name, a path, or a name that an installed package offers."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import ParamSpec, TypeVar

from ..base import regular_files
from ..base.atomic_write import read_mode
from ..base.data_files import BUILT_IN
from ..base.errors import CallError, suggest_nearest
from ..base.held_files import read_once

#: the group of entry points by which an installed package offers a pack: name = "package:folder"
ENTRY_POINTS = "nnrewrite.rules"


Asked = ParamSpec("Asked")
Found = TypeVar("Found")

#: how many answers about packs of the program are kept, of one function
_KEPT = 1024


class UnknownPackError(CallError):
    """A name that is neither a folder, a pack that comes with the program, nor one that a package offers."""


def read_packs_once(read: Callable[Asked, Found], is_built_in: Callable[..., bool]) -> Callable[Asked, Found]:
    """A function of hashable arguments that reads packs, and does so once while files are held.

    Where all the packs come with the program, as the arguments tell, they are read once for all conversions.
    """
    held = read_once(read)
    kept: Callable[..., Found] = functools.lru_cache(_KEPT)(read)

    @functools.wraps(read)
    def ask(*given: Asked.args, **named: Asked.kwargs) -> Found:
        return kept(*given, **named) if is_built_in(*given, **named) else held(*given, **named)

    return ask


@functools.cache
def _is_program_folder(folder: Path) -> bool:
    """Whether a folder is one of those that come with the program, which stay as they are while it runs."""
    return folder.parent == BUILT_IN


def read_folder_once(read: Callable[[Path], Found]) -> Callable[[Path], Found]:
    """A function that reads files of a pack's folder, and each folder once: see `read_packs_once`."""
    return read_packs_once(read, _is_program_folder)


def find_folders(names: Sequence[str]) -> list[Path]:
    """The folders of packs given by built-in name, path or entry point; raises CallError for an unknown one."""
    return [find_folder(name) for name in names]


def find_folder(name: str) -> Path:
    """The folder of a pack given by built-in name, path or entry point; raises CallError for an unknown one."""
    return find_built_in(name) or _find_external(name)


@functools.cache
def find_built_in(name: str) -> Path | None:
    """The folder of a pack that comes with the program; None where none has the name."""
    named = name.strip(".") and os.sep not in name and S_ISDIR(read_mode(BUILT_IN / name))
    return BUILT_IN / name if named else None


@read_once
def _find_external(name: str) -> Path:
    """The folder of a pack given by path or entry point; raises CallError for an unknown one."""
    if not name:
        raise CallError("an empty name is none of a pack")
    if S_ISDIR(read_mode(name)):
        return Path(name)
    from importlib import metadata, util  # takes longer than to load all rules, and most packs are folders

    for point in metadata.entry_points(group=ENTRY_POINTS, name=name):
        module, _, folder = point.value.partition(":")
        package = point.dist.name if point.dist is not None else "a package"
        where = f"{package} offers the rule set {name} as {point.value}"
        try:
            spec = util.find_spec(module)
        except Exception as error:  # to find a module runs the package around it, which may raise anything
            raise CallError(f"{where}, and {module} cannot be found: {type(error).__name__}: {error}") from error
        if spec is None or spec.origin is None:
            raise CallError(f"{where}, and there is no module {module}")
        found = Path(spec.origin).parent / folder
        if not found.is_dir():
            raise CallError(f"{where}, and there is no folder {found}")
        return found
    known = list_built_in()
    if S_ISREG(read_mode(name)):
        raise CallError(f"{name} is a file: a rule set is a folder of *.rules files")
    said = f"there is no rule set {name}: it is neither a folder nor one of {', '.join(known)}"
    raise UnknownPackError(said + suggest_nearest(name, known))


def list_built_in() -> list[str]:
    """The names of the packs that come with the program."""
    return sorted(path.name for path in BUILT_IN.iterdir() if any(path.glob("*.rules")))


def is_built_in(path: Path) -> bool:
    """Whether a folder is that of a pack which comes with the program."""
    return BUILT_IN.resolve() in path.resolve().parents


def read_text(file: Path) -> str:
    """The text of a file of a pack; raises CallError where it cannot be read."""
    try:
        return regular_files.read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{file}: cannot be read: {regular_files.explain_failure(error)}") from error

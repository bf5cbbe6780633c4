"""Jobs: which models a call means, and the file that each is written to."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..backends.replaced_files import find_replaced
from ..engine.base.atomic_write import read_mode
from ..engine.base.errors import CallError, RewriteError
from ..engine.base.startup import dataclass, replace
from ..frontends.file_kinds import explain_folder
from ..frontends.readers import SUFFIXES

if TYPE_CHECKING:
    from ..backends.writers import Writer

#: what files are written for besides models
_OPTIONS = ("-d", "--layout-svg", "--report")
#: what other programs take for their standard output
_STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Job:
    """One model to convert: its file, the bundle's member or None, the file to write, one signature or None, and the
    page to write about it, if any."""

    source: Path
    member: str | None
    target: Path
    signature: str | None = None
    page: Path | None = None

    @property
    def name(self) -> str:
        """The model as errors and reports name it: its path, and its name in a bundle after a colon."""
        return f"{self.source}" if self.member is None else f"{self.source}:{self.member}"


def plan_jobs(
    models: Sequence[Path],
    output: Path | None,
    folder: Path | None,
    member: str | None,
    members: Callable[[Path], Sequence[str]],
    ending: str = ".onnx",
    folders: bool = False,
) -> list[Job]:
    """Find the models and name the output of each; `members` lists the models in a bundle, none for a plain file.

    A folder stands for the models below it whose `ending` is not that of the outputs, or for all where there are none
    of another; subfolders are kept. A model of a bundle is written to `<bundle>.<model><ending>`. Where outputs are
    `folders`, there may be one already.
    Raises CallError where the outputs cannot be what was asked: one file for several models, the same file twice, a
    model's own file, something that is no regular file.
    """
    if output is not None and folder is not None:
        raise CallError("-o names one file and -d a folder: give one of them")
    if output == _STANDARD_OUTPUT:
        raise CallError(
            "-o names a file, which is put in place when it is whole: there is no writing to standard output"
        )
    jobs: list[Job] = []
    for model in models:
        for path, place in _list_files(model, ending):
            base = (folder or Path()) / place
            names = [member] if member is not None else _list_members(path, members)
            jobs += [Job(path, name, base / f"{path.stem}.{_make_stem(name)}{ending}") for name in names]
            if not names:
                jobs.append(Job(path, None, base / f"{path.stem}{ending}"))
    if output is not None:
        if len(jobs) > 1:
            raise CallError(f"-o names one file, but there are {len(jobs)} models: use -d DIR")
        if output.is_dir() and not folders:
            raise CallError(f"{output}: a folder is not a regular file, as -o names one: use -d to write into a folder")
        jobs = [Job(job.source, job.member, output) for job in jobs]
    _check(jobs, folders)
    return jobs


def split_signatures(
    jobs: Sequence[Job], signatures: Callable[[Path, str | None], Sequence[str]], folders: bool = False
) -> list[Job]:
    """Part each job into one for each signature of its model, written to `<output>.<signature>.onnx`.

    Models without signatures stay as they are. Raises CallError as `plan_jobs` does.
    """
    parted: list[Job] = []
    for job in jobs:
        try:
            names = signatures(job.source, job.member)
        except RewriteError:
            names = ()  # the conversion meets the same error
        stem, ending = job.target.with_suffix(""), job.target.suffix
        for name in names:
            target = stem.with_name(f"{stem.name}.{name.replace('/', '_')}{ending}")
            parted.append(Job(job.source, job.member, target, name))
        if not names:
            parted.append(job)
    _check(parted, folders)
    return parted


def assign_pages(jobs: Sequence[Job], page: Path, folder: bool) -> list[Job]:
    """Give each job its page: the file, or in a folder one named like the output, below the same subfolders.

    Raises CallError for one file for several models.
    """
    if len(jobs) > 1 and not folder:
        raise CallError(f"--report {page}: a page shows one model, {len(jobs)} are given: name a folder, {page.stem}/")
    common = Path(os.path.commonpath([job.target.parent.resolve() for job in jobs])) if jobs else Path()
    return [
        replace(job, page=page / f"{job.target.resolve().relative_to(common)}.html" if folder else page) for job in jobs
    ]


def list_files(jobs: Iterable[Job], writer: Writer) -> list[tuple[str, Path]]:
    """Every file that is written for models and for pages about them, as `check_files` takes them."""
    models = [(job.name, path) for job in jobs for path in writer.list_files(job.target)]
    return models + [("--report", job.page) for job in jobs if job.page is not None]


def check_files(written: Iterable[tuple[str, Path]], read: Iterable[Path]) -> None:
    """Raise CallError for a file that would be written twice or in the place of one that is read, links followed.

    Before each that is written stands the model, or the option, that it is written for. Of a model that is read, the
    files that have its weights are read as well.
    """
    found: defaultdict[Path, list[tuple[str, Path]]] = defaultdict(list)
    for name, path in written:
        found[Path(os.path.realpath(path))].append((name, path))
    clashes = [f"  {path}: {', '.join(name for name, _ in ones)}" for path, ones in found.items() if len(ones) > 1]
    if clashes:
        raise CallError("\n".join(["several outputs would be written to the same file:", *clashes]))
    for path, what in find_replaced(found, read).items():
        [(name, given)] = found[path]
        option, how = (f"{name} ", "") if name in _OPTIONS else ("", " by -o or -d")
        raise CallError(f"{option}{given}: the output would replace {what} that is read: name another{how}")


def _list_files(model: Path, ending: str) -> list[tuple[Path, Path]]:
    """A model's file, or those below a folder, each with the subfolder that its output keeps."""
    if not model.is_dir():
        return [(model, Path())]
    files = sorted(path for path in model.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise CallError(f"{model}: no {', '.join(SUFFIXES)} file in this folder{explain_folder(model)}")
    others = [path for path in files if path.suffix.lower() != ending]
    return [(path, path.parent.relative_to(model)) for path in others or files]


def _list_members(path: Path, members: Callable[[Path], Sequence[str]]) -> Sequence[str]:
    try:
        return members(path)
    except RewriteError:
        # The conversion meets the same error, and tells it where one model's failure belongs.
        return ()


def _make_stem(member: str) -> str:
    """A member's name without its ending, folders inside the bundle set off by dots."""
    path = PurePosixPath(member)
    return ".".join(part for part in (*path.parts[:-1], path.stem) if part not in ("/", ".."))


def _check(jobs: Sequence[Job], folders: bool = False) -> None:
    check_files([(job.name, job.target) for job in jobs], [job.source for job in jobs])
    for job in jobs:
        mode = read_mode(job.target)
        if mode and not (stat.S_ISDIR(mode) if folders else stat.S_ISREG(mode)):
            raise CallError(f"{job.target}: not a regular file, cannot be replaced")

"""Rule packs: folders of rule files and operator entries, found, read, checked and cached."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx.defs

from ..base import file_cache
from ..base.data_files import BUILT_IN
from ..base.errors import CallError, Diagnostic, RuleError, suggest_nearest
from ..base.held_files import read_once
from ..base.startup import dataclass, replace
from ..dialects import ops_files
from ..dialects.operators import Catalogue
from ..rewrite.outlines import Contents, outline_rules
from ..rewrite.rules import Override
from ..syntax import tree
from ..syntax.diagnostics import find_unknown_dialects, suggest
from ..syntax.tree_traversal import find_leading
from .digests import digest_code, digest_pack
from .entries import list_entries
from .folders import find_built_in, find_folders, is_built_in, list_built_in, read_folder_once, read_text
from .headers import add_bases, read_pair
from .parse_cache import Parses
from .reversed_rules import add_reversed
from .scopes import separate_definitions
from .serialization import Lazy, LazyMapping, freeze, thaw
from .shared_fragments import put_in_fragments
from .template_choices import decide_choices


@dataclass(frozen=True, slots=True)
class Pack:
    """Parsed and checked rule files, and the operators they speak of."""

    files: tuple[tree.RuleFile, ...]
    catalogue: Catalogue
    contents: Contents
    overrides: tuple[Override, ...] = ()

    @property
    def source(self) -> str:
        """The dialect that is read."""
        return find_leading(self.files).source

    @property
    def target(self) -> str:
        """The dialect that is written."""
        return find_leading(self.files).target

    @property
    def opsets(self) -> tuple[int, int]:
        """The lowest and the highest opset that every file admits."""
        return max(f.opsets[0] for f in self.files), min(f.opsets[1] for f in self.files)

    @property
    def default_opset(self) -> int:
        """The opset aimed at where the user names none: the first that a file declares, else the highest."""
        return next((f.default_opset for f in self.files if f.default_opset is not None), self.opsets[1])

    def require_stackable(self) -> None:
        """Raise CallError where rules of these files cannot be over each other: their dialects or opsets differ."""
        leading = find_leading(self.files)
        pair = leading.source, leading.target
        for file in self.files:
            if (file.source, file.target) != pair and not (file.source == file.target and file.source in pair):
                directions = f"{_describe_direction(leading)}, {_describe_direction(file)}"
                raise CallError(f"{leading.name} and {file.name} cannot lie over each other: {directions}")
        low, high = self.opsets
        if low > high:
            least, most = max(self.files, key=lambda f: f.opsets[0]), min(self.files, key=lambda f: f.opsets[1])
            ranges = f"opsets of {least.name} begin at {low}, those of {most.name} end at {high}"
            raise CallError(f"{least.name} and {most.name} cannot lie over each other: {ranges}")


def _describe_direction(file: tree.RuleFile) -> str:
    """Which dialects the rules of a file lead from and to."""
    if file.source == file.target:
        return f"{file.name} stays in {file.source}"
    return f"{file.name} leads from {file.source} to {file.target}"


def load(names: Sequence[str]) -> Pack:
    """Load rule packs, and after them the rules of the dialect they aim at.

    Raises RuleError with all mistakes of all files, CallError for an unknown pack or one without rules.
    """
    paths = find_folders(names)
    files = _read_texts(paths)
    digest = digest_pack(list_entries(paths), files)
    kept = file_cache.fetch(digest)
    if kept is not None:
        return _thaw(kept)
    parses = _open_parses(digest_code([]).hexdigest())
    found = _read(paths, files, parses)
    file_cache.keep(digest, _freeze(found, parses))
    return found


@read_once
def make_stamp(names: tuple[str, ...]) -> tuple[str, ...]:
    """What changes when a file of some packs does, as far as their folders tell: digests of times and sizes."""
    return tuple(_digest_states(path) for path in find_folders(names))


@read_folder_once
def _digest_states(folder: Path) -> str:
    """A digest of the times and sizes of a pack's files."""
    return hashlib.sha256(f"{_list_states(folder)}".encode()).hexdigest()


def _list_states(folder: Path) -> list[tuple[str, int, int]]:
    """The files of a pack with their times and sizes; each conversion asks, and `Path.glob` takes ten times as long."""
    found, left = [], [os.fspath(folder)]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                elif entry.name.endswith(".rules") or entry.name == "ops.yaml":
                    state = entry.stat()
                    found.append((entry.path, state.st_mtime_ns, state.st_size))
    return found


def read(names: Sequence[str]) -> Pack:
    """Load rule packs as `load` does, but check them in any case, whether or not they were loaded before."""
    paths = find_folders(names)
    return _read(paths, _read_texts(paths), _open_parses(digest_code([]).hexdigest()))


def read_sources(names: Sequence[str], empty: bool = False) -> dict[str, str]:
    """The rule files of some packs by the names they have in messages; raises CallError where there are none, unless
    packs may be `empty` of rules."""
    return _read_texts(find_folders(names), empty)


def find_entries(names: Sequence[str]) -> list[Path]:
    """The files of some packs that describe operators."""
    return list_entries(find_folders(names))


def list_user_files(names: Sequence[str]) -> dict[str, Path]:
    """The rule files of those packs that do not come with the program, each with the folder of its pack."""
    return {file: path for path in find_folders(names) if not is_built_in(path) for file in _read_rule_files([path])}


def _read_texts(paths: Sequence[Path], empty: bool = False) -> dict[str, str]:
    """The rule files of some folders by the name they have in messages; raises CallError where there are none."""
    for path in paths:
        if not any(path.glob("**/*.rules")) and not list_entries([path]) and not (path / "target.yaml").is_file():
            raise CallError(f"there are no *.rules files in {path}, and neither an ops.yaml nor a target.yaml")
    found = _read_rule_files(paths)
    if not found and not empty:
        raise CallError(f"there are no *.rules files in {', '.join(map(str, paths))}")
    return found


def _read_rule_files(paths: Sequence[Path]) -> dict[str, str]:
    found = {}
    for path in paths:
        for file in sorted(path.glob("**/*.rules")):
            inside = BUILT_IN in file.parents
            found[str(file.relative_to(BUILT_IN) if inside else file)] = read_text(file)
    return found


def _read(paths: Sequence[Path], texts: Mapping[str, str], parses: Parses) -> Pack:
    from ..check.checker import review

    files, diagnostics = _parse_files(paths, texts, parses)
    if (beneath := _insert_base(paths, files, texts)) is not None:
        return _read(beneath, {**texts, **_read_texts(beneath)}, parses)
    target = find_leading(files).target if files else None
    if target is not None and not diagnostics and target not in {path.name for path in paths}:
        follow = find_built_in(target)
        if follow is not None:  # rules of the target's own come after those of every pack that aims at it
            return _read([follow, *paths], {**texts, **_read_texts([follow])}, parses)
    catalogue = ops_files.load(list_entries(paths))
    if unknown := [one for file in files for one in find_unknown_dialects(file, catalogue.dialects)]:
        raise RuleError([*diagnostics, *unknown], dict(texts))
    parses.keep()
    files, misread = add_reversed(files, catalogue, functools.cache(functools.partial(_parse_pack, parses=parses)))
    files, misused = put_in_fragments(files, texts, parses)
    diagnostics += [*misread, *misused]
    files, undefined = separate_definitions(files, parses, complete=not diagnostics)
    files, lacking = _leave_out(files, paths)
    files, misnamed = parses.place_operands(files, catalogue)
    files = decide_choices(files, catalogue, parses)
    diagnostics += [*undefined, *lacking, *misnamed]
    diagnostics += _check_prerequisites(files, parses)
    program = [path for path in paths if is_built_in(path)]
    if len(program) == len(paths):
        checked = _find_checked(program)
    else:
        checked = program if program and _is_checked(program, parses) else []
    if checked:  # is free of mistakes: only what lies over it is looked at
        _note_checked([file for file in files if paths[file.rank] in checked], catalogue, parses)
    found, overrides, contents = review(files, catalogue, not diagnostics, parses.find_checked(catalogue))
    if len(program) == len(paths) and not found and not diagnostics:
        # Packs lean on those below them alone, so these have no mistakes either; but for rules that were left out.
        whole = any(file.without for file in files)
        for count in range(len(program) if whole else len(checked) + 1, len(program) + 1):
            file_cache.keep(_mark(program[:count]), b"")
    if diagnostics or found:
        raise RuleError([*diagnostics, *found], dict(texts))
    return Pack(tuple(files), catalogue, contents or outline_rules(files, catalogue), tuple(overrides))


def _parse_pack(name: str, parses: Parses) -> list[tree.RuleFile]:
    """The files of a pack that comes with the program; raises RuleError for one with mistakes."""
    return [parses.parse(text, file) for file, text in _read_rule_files([BUILT_IN / name]).items()]


def _mark(program: Sequence[Path]) -> str:
    """The key under which it is kept that packs which come with the program have no mistakes."""
    return f"{digest_pack(list_entries(program), _read_texts(program, empty=True))}-checked"


def _find_checked(program: Sequence[Path]) -> Sequence[Path]:
    """The most packs, from the lowest on, of which it is known that they have no mistakes."""
    lower = (program[:count] for count in range(len(program), 0, -1))
    return next((packs for packs in lower if file_cache.fetch(_mark(packs)) is not None), ())


def _is_checked(program: Sequence[Path], parses: Parses) -> bool:
    """Whether packs that come with the program are free of mistakes, found out once for all that is laid over them."""
    if file_cache.fetch(_mark(program)) is None:
        try:
            _read(program, _read_texts(program, empty=True), parses)
        except RuleError:
            return False  # all mistakes are told together
    return True


def _note_checked(files: Sequence[tree.RuleFile], catalogue: Catalogue, parses: Parses) -> None:
    items = [item for file in files for item in file.items]
    definitions = {item.name: item for item in items if isinstance(item, tree.Definition)}
    parses.find_checked(catalogue).keep(definitions, items)


@functools.lru_cache(1)
def _open_parses(key: str) -> Parses:
    """The files parsed in earlier runs and in this one; many packs have most of theirs in common."""
    return Parses(key)


def _parse_files(
    paths: Sequence[Path], texts: Mapping[str, str], parses: Parses
) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
    ranks = _rank_files(paths)
    files: list[tree.RuleFile] = []
    diagnostics: list[Diagnostic] = []
    newest = onnx.defs.onnx_opset_version()
    for name, text in texts.items():
        try:
            file = parses.parse(text, name)
            if is_built_in(paths[ranks[name]]):  # which may know opsets that an older onnx does not
                file = replace(file, opsets=(file.opsets[0], min(file.opsets[1], newest)))
            files.append(replace(file, rank=ranks[name]))
        except RuleError as error:
            diagnostics += error.diagnostics
    return files, diagnostics


def _insert_base(paths: Sequence[Path], files: Sequence[tree.RuleFile], texts: Mapping[str, str]) -> list[Path] | None:
    """The packs with one that a file says it lies over before those that do; None where all are there already.

    Raises RuleError for one that does not come with the program.
    """
    for file in files:
        if file.base is None or BUILT_IN / file.base in paths[: file.rank]:
            continue
        if file.base not in list_built_in():
            message = f"{file.name} lies over {file.base}, which is no rule set that comes with the program"
            help = suggest(file.base, list_built_in()) or "rule sets of your own are stacked by --rules, one for each"
            raise RuleError([Diagnostic(file.span, message, (), help)], dict(texts))
        base = BUILT_IN / file.base
        return [*paths[: file.rank], base, *(path for path in paths[file.rank :] if path != base)]
    return None


def _leave_out(files: Sequence[tree.RuleFile], paths: Sequence[Path]) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
    """The files but for the rules that packs leave out of those that they lie over; one that is not there is told."""
    found, lacking = list(files), []
    for top in {file.rank: file for file in files if file.base is not None and file.without}.values():
        below = [place for place, file in enumerate(found) if file.rank == paths.index(BUILT_IN / f"{top.base}")]
        lacking += _find_missing_rules(top, f"{top.base}", top.without, [found[place] for place in below])
        for place in below:
            items = tuple(item for item in found[place].items if not _is_left_out(item, top.without))
            found[place] = replace(found[place], items=items)
    return found, lacking


def _find_missing_rules(
    file: tree.RuleFile, pack: str, without: Sequence[str], below: Sequence[tree.RuleFile]
) -> list[Diagnostic]:
    """The rules that a header leaves out of a pack whose files have none of that name."""
    known = {item.name for one in below for item in one.items if not isinstance(item, tree.Definition)}
    return [
        Diagnostic(
            file.span,
            f"{file.name} leaves out {rule}, and there is no such rule in {pack}" + suggest_nearest(rule, known),
        )
        for rule in without
        if rule not in known
    ]


def _check_prerequisites(files: Sequence[tree.RuleFile], parses: Parses) -> list[Diagnostic]:
    """Mistakes in what headers say behind `after`: packs that do not stay within the dialect that is read, and rules
    that these have not got."""
    found: list[Diagnostic] = []
    for file in {file.rank: file for file in files if file.after}.values():
        name, *without = file.after
        if name not in list_built_in() or read_pair(name) != (file.source, file.source):
            message = f"{file.name} comes after {name}, which is no rule set of the program that stays in {file.source}"
            found.append(Diagnostic(file.span, message, (), suggest(name, list_built_in())))
        else:
            within = [one for one in files if one.source == one.target == file.source]  # which that step has as well
            there = [one for pack in add_bases((name,)) for one in _parse_pack(pack, parses)]
            found += _find_missing_rules(file, name, without, [*there, *within])
    return found


def _is_left_out(item: tree.Rule | tree.Table | tree.Definition, names: Sequence[str]) -> bool:
    return not isinstance(item, tree.Definition) and item.name in names


def _rank_files(paths: Sequence[Path]) -> dict[str, int]:
    """Of packs that are laid over each other the last has the highest rank; a file of several counts for the first."""
    found: dict[str, int] = {}
    for rank, path in enumerate(paths):
        for name in _read_rule_files([path]):
            found.setdefault(name, rank)
    return found


# ---- what is kept between runs


def _freeze(pack: Pack, parses: Parses) -> bytes:
    files = [(replace(file, items=()), [parses.freeze_item(item) for item in file.items]) for file in pack.files]
    dialects = {name: freeze(dialect) for name, dialect in pack.catalogue.dialects.items()}
    return freeze((files, dialects, pack.contents, [tuple(one) for one in pack.overrides]))


def _thaw(data: bytes) -> Pack:
    files, dialects, contents, overrides = thaw(data)
    catalogue = Catalogue(LazyMapping(dialects))
    lazy = tuple(replace(file, items=Lazy(items)) for file, items in files)
    return Pack(lazy, catalogue, contents, tuple(Override(*one) for one in overrides))

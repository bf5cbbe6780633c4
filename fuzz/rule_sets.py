"""Rule sets as conversions lay them over each other, each with the rules and categories to try in it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..conversion.options import DEFAULT, PORTABLE, Options
from ..engine.base.errors import CallError, RewriteError, suggest_nearest
from ..engine.base.garbage_collection import pause_collection
from ..engine.packs import folders, loader
from ..engine.packs.headers import find_pair
from ..engine.packs.loader import Pack
from . import baseline
from .categories import Category, list_categories
from .rule_digests import RuleDigest, digest_rules
from .subjects import Subject, list_subjects

Trial = Subject | Category


@dataclass(frozen=True, slots=True, eq=False)
class RuleSets:
    """Rule sets that are laid over each other, and what is tried in them rather than in other stacks.

    With `exact` they promise the codes of the reference kernels. `own` are the rules of packs that do not come with the
    program, each with the folder of its pack. `opset` is the one that the target sets, None where it sets none.
    """

    rules: tuple[str, ...]
    pack: Pack
    exact: bool
    trials: tuple[Trial, ...]
    own: Mapping[str, Path] = field(default_factory=dict)
    opset: int | None = None


def list_stacks(options: Options) -> list[RuleSets]:
    """The stack of the rule sets of a conversion, then those that further options make of them.

    There is the first alone where packs of others than the program's are among them; a rule of these goes before others
    of its name. Raises RuleError for mistakes in rule files, CallError for unknown rule sets.
    """
    added = loader.list_user_files(options.stacked)
    found: list[RuleSets] = []
    known: set[str] = set()
    variants = {variant.stacked: variant.settled.exact for variant in ((options,) if added else options.variants)}
    first, *others = variants
    with pause_collection():
        loader.load(first)  # the others have most of it in common, and begin with what is known of it
    with pause_collection(), preload([names] for names in others[1:]):
        for stacked, exact in variants.items():
            pack = loader.load(stacked)
            new = list_trials(pack, known)
            theirs = {one.name: one for one in new if isinstance(one, Subject) and one.span.file in added}
            own = {name: added[one.span.file] for name, one in theirs.items()}
            if new:
                tried = {one.name: theirs.get(one.name, one) for one in new}
                found.append(RuleSets(stacked, pack, exact, tuple(tried.values()), own, options.settled.opset))
            known.update(trial.name for trial in new)
    return found


def find_records(found: Sequence[RuleSets], options: Options) -> dict[str, Path]:
    """The names of what has a record, each with the file that the record of its pack is in.

    Those of other packs than the program's are in their folders. The program's own, and those of packs that are not the
    target itself, are of conversions for the target that is usual for these rules; rules that others are laid over are
    recorded as they are tried with the default rules, and have no record where they are tried without these.
    """
    stack, usual = found[0], options.runtime == options.replace(target=None).runtime
    if stack.own:
        target = () if usual or options.runtime == PORTABLE else folders.find_folders([options.runtime])
        return {name: folder / baseline.NAME for name, folder in stack.own.items() if usual or folder in target}
    files = {trial.name: _find_record(trial) for one in found for trial in one.trials} if usual else {}
    if options.rules == DEFAULT.rules:
        return files
    _, below = find_pair(DEFAULT.rules) or ("", "")
    named = {folder / baseline.NAME for folder in folders.find_folders(options.rules) if folder.name != below}
    return {name: file for name, file in files.items() if file in named}


def _find_record(trial: Trial) -> Path:
    """The record of what comes with the program: of a rule in its pack, of a category beside ops.yaml."""
    home = baseline.HOME
    folder = home / "rules" / Path(trial.span.file).parent if isinstance(trial, Subject) else home
    return folder / baseline.NAME


@contextmanager
def preload(parts: Iterable[Sequence[tuple[str, ...]]]) -> Iterator[None]:
    """Read packs in other processes meanwhile, one for each part, which leave them in the cache."""
    processes = []
    if sys.platform == "linux" and (os.cpu_count() or 1) > 1:
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=_read_ahead, args=(stacked,), daemon=True) for stacked in parts]
    for process in processes:
        process.start()
    try:
        yield
    except BaseException:  # an interruption does not wait for them
        for process in processes:
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()


def _read_ahead(stacked: Sequence[tuple[str, ...]]) -> None:
    for names in stacked:
        with suppress(RewriteError):  # who asks for it is told
            loader.load(names)


def list_trials(pack: Pack, known: Container[str] = ()) -> list[Trial]:
    """All that can be tried of a pack but for what is `known` by name: rules with tests, and layout categories."""
    rules = (
        subject
        for subject in list_subjects(pack, known)
        if subject.tests and ((subject.of_source and subject.interpreted) or not subject.excuse)
    )
    return [*rules, *(category for category in list_categories(pack) if category.name not in known)]


def digest_all(found: Sequence[RuleSets], names: Container[str]) -> dict[str, str]:
    """The digests of what is tried, by those of its `names`; first what uses few entries of ops.yaml, as it tells
    most."""
    made: dict[str, RuleDigest] = {}
    for stack in found:
        made |= digest_rules(stack.pack, {trial.name for trial in stack.trials if trial.name in names})
    return {name: made[name].digest for name in sorted(made, key=lambda name: (made[name].breadth, name))}


def require_known(
    every: Sequence[Trial], packs: Iterable[Pack], operators: Sequence[str], names: Sequence[str]
) -> None:
    """Raise CallError for rules and operators asked for of which `every` trial has none: with why those of the packs
    cannot be tried, or else with what may be meant."""
    called = {part for one in every for part in (one.name, one.name.split(".")[0])}
    about = {name for one in every for name in one.list_operators()} if operators else set()
    for said, asked, known in (("is called", names, called), ("is about", operators, about)):
        for name in asked:
            if name not in known:
                wanted = ((), (name,)) if asked is names else ((name,), ())
                for one in (one for pack in packs for one in list_subjects(pack) if is_wanted(one, *wanted)):
                    why = one.excuse if one.tests else "it has no `test`"
                    if why:
                        raise CallError(f"rule {one.place} cannot be tried: {why}")
                raise CallError(f"no rule with a test {said} {name}{suggest_nearest(name, known)}")


def is_wanted(subject: Trial, operators: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a rule or category is called by one of some names or is about an operator; all are where none is said."""
    if not operators and not names:
        return True
    named = any(subject.name == name or subject.name.startswith(f"{name}.") for name in names)
    return named or (bool(operators) and not subject.list_operators().isdisjoint(operators))

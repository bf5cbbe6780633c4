"""What a run of fuzzing tries: the rules that are asked for, and what of them is not as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..conversion.options import DEFAULT, Options
from ..engine.base.data_files import BUILT_IN
from ..engine.base.errors import CallError
from ..engine.base.garbage_collection import pause_collection
from ..engine.packs import folders, loader
from . import baseline
from .baseline import Entry
from .rule_sets import RuleSets, Trial, digest_all, find_records, is_wanted, list_stacks, preload, require_known


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The stacks of some rule sets, and what of them is tried.

    `chosen` are tried, those called `first` before the others. `changed` is what is not as `known` by the record,
    `gone` what that knows and no rule is called any more. `files` say where the record of each is, `digests` what it
    comes down to now. The `whole` is tried where nothing is asked for by name, and is `entire` where all that a record
    knows is of these packs.
    """

    options: Options
    stacks: list[RuleSets]
    chosen: list[Trial]
    whole: bool
    entire: bool
    files: Mapping[str, Path]
    known: Mapping[str, Entry]
    digests: Mapping[str, str]
    changed: list[str]
    first: list[str]
    gone: list[str]

    @property
    def own(self) -> bool:
        """Whether these are packs that do not come with the program."""
        return bool(self.stacks[0].own)

    @property
    def before(self) -> dict[str, tuple[str, ...]]:
        """The recorded outcomes of what is tried first."""
        return {name: self.known[name].outcomes if name in self.known else () for name in self.first}


def make_plan(
    options: Options, operators: Sequence[str] = (), names: Sequence[str] = (), odd: bool = False, record: bool = False
) -> Plan:
    """Plan to try the rules of some packs, those about some operators or called by some names alone if there are any.

    Only on `odd` models nothing is compared with the record; nor is it where the run is to `record` anew. Raises
    CallError for names of nothing, and for packs without a rule that can be tried.
    """
    whole = not (operators or names or odd)
    found = list_stacks(options)
    every, own = [trial for stack in found for trial in stack.trials], found[0].own
    require_known(every, [stack.pack for stack in found], operators, names)
    chosen = [one for one in every if is_wanted(one, operators, names) and (not own or not whole or one.name in own)]
    if whole and not own and loader.list_user_files(options.stacked):
        raise CallError("no rule of these packs has a `test`; others can be named by --rule or --op")
    files = find_records(found, options)
    if record:
        baseline.check_writable(files.values())
    known = {name: entry for file in set(files.values()) for name, entry in baseline.read_entries(file).items()}
    asked = {one.name for one in chosen}
    compared = files if whole or record else files.keys() & asked
    now = digest_all(found, compared) if known or record else {}
    entire = bool(own) or options.rules == DEFAULT.rules
    changed: list[str] = []
    gone: list[str] = []
    if not (record or odd):
        others = baseline.list_changed(now, known)
        changed = [name for name in now if name in others and name in asked]
        gone = sorted(known.keys() - now.keys()) if whole and entire else []
    first = changed
    if not (whole or record or odd):
        # What is asked for by name is tried as often as is asked, or on the recorded cases alone.
        first = [name for name in changed if name in known] + [one.name for one in chosen if one.excuse]
    return Plan(options, found, chosen, whole, entire, files, known, now, changed, first, gone)


def make_plans(
    options: Options, operators: Sequence[str] = (), names: Sequence[str] = (), odd: bool = False, record: bool = False
) -> list[Plan]:
    """A plan as `make_plan` makes it, and those of the program's other rule sets of which something changed: where only
    they changed, they alone."""
    alone = bool(operators or names or odd or record or loader.list_user_files(options.stacked))
    others = [] if alone or options.rules != DEFAULT.rules else _list_others(options)
    with pause_collection(), preload([[other.stacked for other in others]] if others else []):
        plan = make_plan(options, operators, names, odd, record)
    with pause_collection():
        changed = list(plan_others(plan)) if others else []
    return [*([plan] if plan.changed or plan.gone or not changed else []), *changed]


def plan_others(plan: Plan) -> Iterator[Plan]:
    """Plans of the program's other rule sets of which something is not as it was recorded, and of that alone.

    An entry of ops.yaml is of a dialect, and several rule sets read or write that.
    """
    for options in _list_others(plan.options):
        other = make_plan(options)
        changed = set(other.changed)
        if changed and 2 * len(changed) <= len(other.digests):
            yield replace(other, chosen=[one for one in other.chosen if one.name in changed], whole=False)


def _list_others(options: Options) -> list[Options]:
    """The program's rule sets that have a record and are in no stack of these options."""
    tried = {folder for variant in (options, *options.variants) for folder in folders.find_folders(variant.stacked)}
    every = (name for name in folders.list_built_in() if (BUILT_IN / name / baseline.NAME).is_file())
    return [Options(rules=(name,)) for name in every if BUILT_IN / name not in tried]

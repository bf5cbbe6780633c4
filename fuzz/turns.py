"""The turns of a run of fuzzing: which rules are tried on how many cases, one behind the other."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import baseline, odd_models, random_graphs
from .rule_sets import RuleSets, Trial
from .runner import SHRINKING
from .subjects import Subject
from .tally import Tally

#: cases tried before another rule has its turn
_TURN = 4
#: graphs about the operator of a rule that follow a turn of the rule
_ABOUT = 2
#: recorded cases that all that changed is tried on before it is tried on the others
_FIRST = 3
#: of what changed, so many that use few entries of ops.yaml have all recorded cases first, whatever the time
_NARROW = 12
#: the turns that so many of these have before the rest of what changed has its recorded cases
_SOON, _NARROWEST = 5, 4
#: failures of what changed after which no more are looked for, and after which they are made small in little time
_ENOUGH, _MANY = 8, 2
#: turns that what changed has before the rest at most, and the share of all seconds for them
_EARLY, _SHARE = 40, 0.7
#: cases tried of a rule that has not fired yet
_MORE = 80
#: of so many turns of rules, one more goes to graphs of any operators
_BETWEEN = 8
#: odd models that go with these
_ODD = 2


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is tried: cases for each rule, seconds in all, worker processes; the seed says which cases.

    With `first` the first failure ends it. Cases that failed are in the folder `kept`, if there is one, and come first.
    """

    examples: int
    seconds: float
    jobs: int
    seed: int = 0
    first: bool = False
    kept: Path | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One turn: a rule (or graphs, of any operators or `about` that of one rule), how many cases, and which.

    Those of an `odd` turn are odd models, of one rule or of any. With `until` it is over when the rule has fired. A
    `fixed` one is the first so many of the cases that are recorded, with what came of them then, if it is known.
    `shrinking` is how long a failure may be made smaller, in seconds.
    """

    name: str
    examples: int
    seed: str
    about: str | None = None
    until: bool = False
    fixed: tuple[str, ...] | None = None
    shrinking: float = SHRINKING
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be tried: the `chosen` rules, each until it fails.

    With `graphs` also graphs of several operators and odd models, with `only_odd` nothing but odd models of each rule.
    With `reach` each rule has a turn whatever the time, and graphs are of their operators alone. Rules called `early`
    are tried in this order on the cases of the record, whose outcomes are given with them, and have many turns before
    the others have one. With `recorded` all are tried on these cases at the end, for their outcomes.
    """

    chosen: Sequence[Trial]
    graphs: bool = False
    early: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recorded: bool = False
    reach: bool = False
    only_odd: bool = False

    def are_graphs_drawn(self, sources: Sequence[Subject]) -> bool:
        """Whether graphs can be drawn as they are wanted, of the operators of some rules."""
        if self.reach:
            joined = any(map(_can_join, self.chosen)) and any(map(random_graphs.has_layout, sources))
            return self.graphs and joined
        return self.graphs and bool(sources)


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a run in their order: the `first` whatever the time, then the `usual` ones as long as there is time,
    which the `late` ones end; these alone where there is none left."""

    first: Iterator[Task]
    usual: Iterator[Task]
    late: Iterator[Task]

    def find_next(self, is_late: bool, tallies: Mapping[str, Tally]) -> Task | None:
        """The next turn of what has not failed; it has less time for making failures small where many have."""
        turns = itertools.chain(self.first, self.late if is_late else self.usual)
        task = next((task for task in turns if not tallies[task.name].failed), None)
        many = task is not None and _count_failed(tallies, tallies) >= _MANY
        return replace(task, shrinking=SHRINKING / 10) if task is not None and many else task


def list_turns(wanted: Wanted, graphs: bool, budget: Budget, end: float, tallies: Mapping[str, Tally]) -> Turns:
    """The turns of what is wanted, with `graphs` of several operators among them, in a run that is over at a time.

    They depend on what has come of those before, which is found in the tallies as they are asked for.
    """
    chosen, early = wanted.chosen, wanted.early
    named = {subject.name: subject for subject in chosen}
    changed = [named[name] for name in early if name in named]
    soon = end - (1 - _SHARE) * budget.seconds
    recorded = _list_last_turns(tallies, chosen) if wanted.recorded else ()
    late: Iterator[Task] = itertools.chain(recorded, _iterate_idle(tallies, budget))
    order = _iterate_turns(chosen, graphs, budget, not wanted.reach)
    first = itertools.chain(
        (_make_task(subject, early, baseline.CASES) for subject in changed[:_NARROW]),
        itertools.islice(order, len(_list_heard(chosen)) if wanted.reach else 0),
    )
    if wanted.only_odd:
        usual = _iterate_odd(list(filter(odd_models.is_suitable, chosen)), budget)
    else:
        usual = itertools.chain(_iterate_early(changed, early, graphs, budget, soon), order, late)
    if not changed:
        return Turns(first, usual, late)

    def must_continue(task: Task) -> bool:  # where what changed fails, the rest has no turns
        found = _count_failed(tallies, {*early, *([random_graphs.NAME] if graphs else [])})
        return found < (1 if task.fixed is None else _ENOUGH)

    return Turns(first, itertools.takewhile(must_continue, usual), itertools.takewhile(must_continue, late))


def _iterate_early(
    chosen: Sequence[Trial], known: Mapping[str, tuple[str, ...]], graphs: bool, budget: Budget, until: float
) -> Iterator[Task]:
    """Turns of rules and graphs about them: the recorded cases, then others until it is time for the rest.

    The first have had theirs, and the very first have some of the others at once.
    """
    for turn in range(_SOON if graphs else 0):  # rules asked for by name have no more than what is asked
        for subject in _list_heard(chosen[:_NARROWEST]):
            yield Task(subject.name, min(_TURN, budget.examples), f"{budget.seed}/soon/{turn}")
    for cases in (_FIRST, baseline.CASES):  # a few of each before more of any
        for subject in chosen[_NARROW:]:
            yield _make_task(subject, known, cases)
    for turn in range(_EARLY if graphs else 0):
        for subject in _list_heard(chosen):
            if time.monotonic() > until:
                return
            seed = f"{budget.seed}/early/{turn}"
            yield Task(subject.name, min(_TURN, budget.examples), seed)
            if turn < budget.examples // _TURN and _can_join(subject):
                yield Task(random_graphs.NAME, _ABOUT, f"{seed}/{subject.name}", subject.name)


def _make_task(subject: Trial, known: Mapping[str, tuple[str, ...]], cases: int) -> Task:
    return Task(subject.name, cases, "", fixed=known[subject.name])


def _list_last_turns(tallies: Mapping[str, Tally], chosen: Sequence[Trial]) -> Iterator[Task]:
    """A last turn of each rule that has not failed, for what is to be recorded of it."""
    for subject in chosen:
        if not tallies[subject.name].failed:
            yield Task(subject.name, baseline.CASES, "", fixed=())


def _iterate_turns(chosen: Sequence[Trial], graphs: bool, budget: Budget, of_any: bool) -> Iterator[Task]:
    """All turns in the order in which they are taken: each rule once, then each again, now also between others.

    With `of_any` there are graphs of any operators among them.
    """
    order = _list_heard(chosen)
    oddly = any(map(odd_models.is_suitable, order))
    shuffle = random.Random(budget.seed)
    for turn in range(-(-budget.examples // _TURN)):
        shuffle.shuffle(order)
        for place, subject in enumerate(order):
            seed = f"{budget.seed}/{turn}"
            yield Task(subject.name, min(_TURN, budget.examples - turn * _TURN), seed)
            if graphs and turn % 2 and _can_join(subject):
                yield Task(random_graphs.NAME, _ABOUT, f"{seed}/{subject.name}", subject.name)
            if graphs and of_any and place % _BETWEEN == 0:
                yield Task(random_graphs.NAME, _TURN, f"{seed}/{place}")
            if graphs and of_any and place % _BETWEEN == 0 and oddly:
                yield Task(odd_models.NAME, _ODD, f"{seed}/{place}", odd=True)


def _iterate_odd(chosen: Sequence[Trial], budget: Budget) -> Iterator[Task]:
    """Turns of odd models, those of each rule before more of any."""
    for turn in range(-(-budget.examples // _TURN)):
        for subject in chosen:
            yield Task(subject.name, min(_TURN, budget.examples - turn * _TURN), f"{budget.seed}/odd/{turn}", odd=True)


def _list_heard(chosen: Sequence[Trial]) -> list[Trial]:
    """Those that are tried on more than the recorded cases: of the others nobody knows what they ought to yield."""
    return [subject for subject in chosen if not subject.excuse]


def list_sources(stack: RuleSets) -> list[Subject]:
    """The rules that graphs of several operators are drawn from."""
    return [trial for trial in _list_heard(stack.trials) if isinstance(trial, Subject) and trial.of_source]


def _count_failed(tallies: Mapping[str, Tally], names: Iterable[str]) -> int:
    return sum(tallies[name].failed for name in names)


def _can_join(subject: Trial) -> bool:
    return isinstance(subject, Subject) and random_graphs.can_take_images(subject)


def _iterate_idle(tallies: Mapping[str, Tally], budget: Budget) -> Iterator[Task]:
    """Further turns, whatever the time, of rules that never fired so far, which counts as a failure."""
    for tally in tallies.values():
        if tally.idle:
            yield Task(tally.rule, _MORE, f"{budget.seed}/more", until=True)

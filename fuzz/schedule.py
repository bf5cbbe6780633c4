"""Fuzzing: the rules of packs tried in turn by worker processes, until a budget is used up."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ..engine.base import file_cache
from ..engine.base.held_files import hold_files
from ..engine.rewrite import coverage
from ..verify.interpreter import Interpreter, require
from . import baseline, odd_models, random_graphs
from .oracle import Oracle
from .rule_sets import RuleSets, Trial
from .runner import SHRINKING, Tally, examine, repeat
from .subjects import Subject

#: cases tried before another rule has its turn
_TURN = 4
#: graphs about the operator of a rule that follow a turn of the rule
_ABOUT = 2
_FEW = 3
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
#: seconds that the interpreter may take for one model
_TIMEOUT = 20.0

Told = Callable[[Tally], None]


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


class Interrupted(KeyboardInterrupt):
    """The user has had enough: `tallies` are what came of it until then."""

    def __init__(self, tallies: dict[str, Tally]) -> None:
        super().__init__()
        self.tallies = tallies


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


def fuzz(
    stacks: Sequence[RuleSets],
    chosen: Sequence[Trial],
    graphs: bool,
    budget: Budget,
    told: Told,
    early: Mapping[str, tuple[str, ...]] | None = None,
    recorded: bool = False,
    reach: bool = False,
    only_odd: bool = False,
) -> dict[str, Tally]:
    """Try rules of some stacks; what came of each by name.

    With `graphs` also graphs of several operators and odd models, with `only_odd` nothing but odd models of each rule.

    With `reach` each of the rules has a turn whatever the time, and graphs are of their operators alone.

    Those called `early` are tried in this order on the cases of the record, whose outcomes are given with them, and
    have many turns before the others have one. With `recorded` all are tried on these cases at the end, for their
    outcomes. `told` hears of every turn as it ends. A rule that failed has no further turns. Raises VerificationError
    where the interpreter or the runtime is not installed, Interrupted where the user interrupts it.
    """
    require("ai_edge_litert", "onnxruntime", "hypothesis")
    until = time.monotonic() + budget.seconds
    early = early or {}
    sources = _list_sources(stacks[0])
    graphs = graphs and (
        any(map(_can_join, chosen)) and any(map(random_graphs.has_layout, sources)) if reach else bool(sources)
    )
    tallies = {
        subject.name: Tally(subject.name, subject.place, excuse=subject.excuse, fires=not only_odd)
        for subject in chosen
    }
    for name in (random_graphs.NAME, odd_models.NAME) if graphs else ():
        tallies[name] = Tally(name, name, fires=False)
    named = {subject.name: subject for subject in chosen}
    first = [named[name] for name in early if name in named]
    soon = until - (1 - _SHARE) * budget.seconds
    late: Iterator[Task] = itertools.chain(
        _list_last_turns(tallies, chosen) if recorded else (), _iterate_idle(tallies, budget)
    )
    order = _iterate_turns(chosen, graphs, budget, not reach)
    musts: Iterator[Task] = itertools.chain(
        (_make_task(subject, early, baseline.CASES) for subject in first[:_NARROW]),
        itertools.islice(order, len(_list_heard(chosen)) if reach else 0),
    )
    turns: Iterator[Task] = itertools.chain(_iterate_early(first, early, graphs, budget, soon), order, late)
    if only_odd:
        turns = _iterate_odd(list(filter(odd_models.is_suitable, chosen)), budget)
    if first:  # where what changed fails, the rest has no turns

        def must_continue(task: Task) -> bool:
            found = _count_failed(tallies, {*early, *([random_graphs.NAME] if graphs else [])})
            return found < (1 if task.fixed is None else _ENOUGH)

        turns, late = itertools.takewhile(must_continue, turns), itertools.takewhile(must_continue, late)
    crew = [_Worker(stacks, budget.kept) for _ in range(budget.jobs)]
    try:
        for worker in crew:
            worker.wait_until_ready()
        for worker in crew:
            worker.start(_find_next(itertools.chain(musts, turns), tallies))
        while busy := [worker for worker in crew if worker.task is not None]:
            for worker in _wait_for_ready(busy):
                tally = worker.finish()
                tallies[tally.rule].add(tally)
                told(tally)
                if budget.first and any(one.failure is not None for one in tallies.values()):
                    worker.start(None)
                else:
                    later = turns if time.monotonic() < until else late
                    worker.start(_find_next(itertools.chain(musts, later), tallies))
    except KeyboardInterrupt as error:
        raise Interrupted(tallies) from error
    finally:
        for worker in crew:
            worker.close()
    return tallies


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


def _list_sources(stack: RuleSets) -> list[Subject]:
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


def _find_next(turns: Iterator[Task], tallies: dict[str, Tally]) -> Task | None:
    task = next((task for task in turns if not tallies[task.name].failed), None)
    many = task is not None and _count_failed(tallies, tallies) >= _MANY
    return replace(task, shrinking=SHRINKING / 10) if task is not None and many else task


def _wait_for_ready(busy: Sequence[_Worker]) -> list[_Worker]:
    found = wait([worker.pipe for worker in busy] + [worker.process.sentinel for worker in busy])
    return [worker for worker in busy if worker.pipe in found or worker.process.sentinel in found]


class _Worker:
    """A process that takes turns; one that dies in a turn is started anew, and the turn counts as failed."""

    def __init__(self, stacks: Sequence[RuleSets], kept: Path | None) -> None:
        self._stacks, self._kept = stacks, kept
        self.task: Task | None = None
        self.process: BaseProcess
        self.pipe: Connection
        self._start()

    def _start(self) -> None:
        # A fork has the rules and the libraries already, where forking is safe.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.pipe, self._stacks, self._kept), daemon=True)
        self.process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """Wait until the process has loaded the rules."""
        if self.pipe.poll(None):
            self.pipe.recv()

    def start(self, task: Task | None) -> None:
        """Send a turn to the process, or let it wait."""
        self.task = task
        if task is not None:
            self.pipe.send(task)

    def finish(self) -> Tally:
        """The tally of the turn that the process was sent."""
        assert self.task is not None
        try:
            tally: Tally = self.pipe.recv()
        except EOFError:
            self.process.join()
            which = f"seed {self.task.seed}" if self.task.fixed is None else "one of the fixed cases"
            said = f"the process that tried it ended with status {self.process.exitcode} ({which})"
            tally = Tally(self.task.name, self.task.name, crash=said)
            self._start()
            self.wait_until_ready()
        return tally

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self.pipe.send(None)  # a fork made later holds this end open too
        self.process.join(2)
        self.pipe.close()
        if self.process.is_alive():
            self.process.kill()


def serve(pipe: Connection, other: Connection, stacks: Sequence[RuleSets], kept: Path | None) -> None:
    """Take turns from a pipe until its other end is closed, which a fork has a copy of."""
    other.close()
    with contextlib.suppress(RuntimeError):  # a user without a home
        # What Hypothesis keeps of modules belongs to what is kept of rule files, not into the folder that a user is in.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{file_cache.find_folder() / 'hypothesis'}")
    gc.freeze()  # the rules stay, and need not be looked through again and again
    try:
        with hold_files(), Interpreter(_TIMEOUT) as interpreter:
            _serve(pipe, interpreter, stacks, kept)
    finally:
        coverage.save()


def _serve(pipe: Connection, interpreter: Interpreter, stacks: Sequence[RuleSets], kept: Path | None) -> None:
    named = {trial.name: (trial, stack) for stack in stacks for trial in stack.trials}
    oracles = {stack: _make_oracle(interpreter, stack) for stack in stacks}
    first = stacks[0]
    sources = _list_sources(first)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        pipe.send(True)
        while task := pipe.recv():
            if task.odd:
                subject, stack = named.get(task.name, (None, first))
                assert subject is None or isinstance(subject, Subject)
                oracle = oracles[stack]
                oddly = functools.partial(odd_models.draw, subjects=sources, oracle=oracle, subject=subject)
                kind = odd_models.make_odd_subject(sources)
                if subject is not None:
                    kind = kind.make_stand_in(subject.name, subject.span)
                tally = examine(kind, oracle, task.examples, task.seed, oddly, shrinking=task.shrinking)
            elif task.name != random_graphs.NAME:
                trial, stack = named[task.name]
                if task.fixed is not None:  # in a oracle that knows of nothing, so that the same is drawn again
                    tally = repeat(trial, _make_oracle(interpreter, stack), task.fixed, task.examples, task.shrinking)
                else:
                    tally = examine(
                        trial,
                        oracles[stack],
                        task.examples,
                        task.seed,
                        until=task.until,
                        shrinking=task.shrinking,
                        kept=kept,
                    )
            elif task.about is None:
                any_of = functools.partial(random_graphs.draw, subjects=sources, oracle=oracles[first])
                tally = examine(
                    random_graphs.make_graph_subject(sources),
                    oracles[first],
                    task.examples,
                    task.seed,
                    any_of,
                    shrinking=task.shrinking,
                )
            else:
                middle, stack = named[task.about]  # an option's rules are in a stack of their own
                assert isinstance(middle, Subject)
                oracle = oracles[stack]
                about = functools.partial(random_graphs.draw_between, subjects=sources, oracle=oracle, subject=middle)
                graph = random_graphs.make_graph_subject(sources)
                tally = examine(graph, oracle, task.examples, task.seed, about, _FEW, shrinking=task.shrinking)
            pipe.send(tally)


def _make_oracle(interpreter: Interpreter, stack: RuleSets) -> Oracle:
    return Oracle(interpreter, stack.pack.catalogue, stack.rules, stack.exact, stack.opset)

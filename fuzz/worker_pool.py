"""Worker processes of fuzzing, each with an interpreter of its own."""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ..engine.base import file_cache
from ..engine.base.held_files import hold_files
from ..engine.rewrite import coverage
from ..verify.interpreter import Interpreter
from . import odd_models, random_graphs
from .oracle import Oracle
from .rule_sets import RuleSets, Trial
from .runner import examine, repeat
from .subjects import Subject
from .tally import Tally
from .turns import Task, list_sources

#: draws of graphs about one operator for each that is wanted, before giving up
_FEW = 3
#: seconds that the interpreter may take for one model
_TIMEOUT = 20.0


class Worker:
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


def wait_for_ready(busy: Sequence[Worker]) -> list[Worker]:
    found = wait([worker.pipe for worker in busy] + [worker.process.sentinel for worker in busy])
    return [worker for worker in busy if worker.pipe in found or worker.process.sentinel in found]


def serve(pipe: Connection, other: Connection, stacks: Sequence[RuleSets], kept: Path | None) -> None:
    """Take turns from a pipe until its other end is closed, which a fork has a copy of."""
    other.close()
    with contextlib.suppress(RuntimeError):  # a user without a home
        # What Hypothesis keeps of modules belongs to what is kept of rule files, not into the folder that a user is in.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{file_cache.find_folder() / 'hypothesis'}")
    gc.freeze()  # the rules stay, and need not be looked through again and again
    try:
        with hold_files(), Interpreter(_TIMEOUT) as interpreter:
            take_turn = _Oracles(interpreter, stacks, kept).take_turn
            with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
                pipe.send(True)
                while task := pipe.recv():
                    pipe.send(take_turn(task))
    finally:
        coverage.save()


class _Oracles:
    """The oracle of each stack, which remembers what it was asked, and what is tried in it."""

    def __init__(self, interpreter: Interpreter, stacks: Sequence[RuleSets], kept: Path | None) -> None:
        self._interpreter, self._kept, self._main = interpreter, kept, stacks[0]
        self._named: Mapping[str, tuple[Trial, RuleSets]] = {
            trial.name: (trial, stack) for stack in stacks for trial in stack.trials
        }
        self._oracles = {stack: self._make_oracle(stack) for stack in stacks}
        self._sources = list_sources(self._main)

    def take_turn(self, task: Task) -> Tally:
        """What comes of the cases of a turn."""
        if task.odd:
            return self._try_odd_models(task)
        if task.name == random_graphs.NAME:
            return self._try_graphs(task)
        trial, stack = self._named[task.name]
        if task.fixed is not None:  # in an oracle that knows of nothing, so that the same is drawn again
            return repeat(trial, self._make_oracle(stack), task.fixed, task.examples, task.shrinking)
        return examine(
            trial,
            self._oracles[stack],
            task.examples,
            task.seed,
            until=task.until,
            shrinking=task.shrinking,
            kept=self._kept,
        )

    def _try_odd_models(self, task: Task) -> Tally:
        subject, stack = self._named.get(task.name, (None, self._main))
        assert subject is None or isinstance(subject, Subject)
        oracle = self._oracles[stack]
        drawn = functools.partial(odd_models.draw, subjects=self._sources, oracle=oracle, subject=subject)
        kind = odd_models.make_odd_subject(self._sources)
        if subject is not None:
            kind = kind.make_stand_in(subject.name, subject.span)
        return examine(kind, oracle, task.examples, task.seed, drawn, shrinking=task.shrinking)

    def _try_graphs(self, task: Task) -> Tally:
        graph = random_graphs.make_graph_subject(self._sources)
        if task.about is None:
            oracle = self._oracles[self._main]
            drawn = functools.partial(random_graphs.draw, subjects=self._sources, oracle=oracle)
            return examine(graph, oracle, task.examples, task.seed, drawn, shrinking=task.shrinking)
        middle, stack = self._named[task.about]  # an option's rules are in a stack of their own
        assert isinstance(middle, Subject)
        oracle = self._oracles[stack]
        about = functools.partial(random_graphs.draw_between, subjects=self._sources, oracle=oracle, subject=middle)
        return examine(graph, oracle, task.examples, task.seed, about, _FEW, shrinking=task.shrinking)

    def _make_oracle(self, stack: RuleSets) -> Oracle:
        return Oracle(self._interpreter, stack.pack.catalogue, stack.rules, stack.exact, stack.opset)

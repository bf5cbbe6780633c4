"""Fuzzing: the rules of packs tried in turn by worker processes, until a budget is used up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..verify.interpreter import require
from . import odd_models, random_graphs
from .rule_sets import RuleSets
from .tally import Tally
from .turns import Budget, Wanted, list_sources, list_turns
from .worker_pool import Worker, wait_for_ready


class Interrupted(KeyboardInterrupt):
    """The user has had enough: `tallies` are what came of it until then."""

    def __init__(self, tallies: dict[str, Tally]) -> None:
        super().__init__()
        self.tallies = tallies


def fuzz(
    stacks: Sequence[RuleSets], wanted: Wanted, budget: Budget, report: Callable[[Tally], None]
) -> dict[str, Tally]:
    """Try what is wanted of the rules of some stacks; what came of each by name.

    `report` hears of every turn as it ends. Raises VerificationError where the interpreter or the runtime is not
    installed, Interrupted where the user interrupts it.
    """
    require("ai_edge_litert", "onnxruntime", "hypothesis")
    end = time.monotonic() + budget.seconds
    graphs = wanted.are_graphs_drawn(list_sources(stacks[0]))
    tallies = {
        subject.name: Tally(subject.name, subject.place, excuse=subject.excuse, fires=not wanted.only_odd)
        for subject in wanted.chosen
    }
    for name in (random_graphs.NAME, odd_models.NAME) if graphs else ():
        tallies[name] = Tally(name, name, fires=False)
    turns = list_turns(wanted, graphs, budget, end, tallies)
    workers = [Worker(stacks, budget.kept) for _ in range(budget.jobs)]
    try:
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.start(turns.find_next(False, tallies))
        while busy := [worker for worker in workers if worker.task is not None]:
            for worker in wait_for_ready(busy):
                tally = worker.finish()
                tallies[tally.rule].add(tally)
                report(tally)
                over = budget.first and any(one.failure is not None for one in tallies.values())
                worker.start(None if over else turns.find_next(time.monotonic() >= end, tallies))
    except KeyboardInterrupt as error:
        raise Interrupted(tallies) from error
    finally:
        for worker in workers:
            worker.close()
    return tallies

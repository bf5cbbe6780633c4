"""The models of a call, converted one after the other or several at once, and what is printed of them on the way."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import TYPE_CHECKING, NoReturn

from ..engine.base.startup import dataclass
from .console import Console
from .dispatch import Told, format_interruption
from .outcome import Call, attempt, start_interpreter
from .result import Failure, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..engine.rewrite.rules import Override
    from ..verify import Interpreter
    from .jobs import Job


def convert_models(jobs: list[Job], call: Call, overrides: Sequence[Override] = ()) -> bool:
    """Convert all models, print what came of each, and tell whether all went well.

    `overrides` are told of where their operators occur. Raises KeyboardInterrupt with how many models were converted.
    """
    if len(jobs) > 1 or call.verify:
        gc.enable()
    console = Console(len(jobs), call.quiet, overrides, call.as_json)
    started = time.perf_counter()
    results: list[Result] = []
    failures: list[Failure] = []
    try:
        with _convert_all(jobs, call, console) as outcomes, console:
            _take_outcomes(outcomes, call, console, results, failures)
    except KeyboardInterrupt as interruption:
        if len(jobs) == 1:
            raise
        if interruption.args:  # what workers have finished, and nobody was told of yet
            results = [one for one in interruption.args[0] if isinstance(one, Result)]
            failures = [one for one in interruption.args[0] if isinstance(one, Failure)]
        _report_interruption(_Totals(results, failures, len(jobs), time.perf_counter() - started, overrides), call)
    _summarize(_Totals(results, failures, len(jobs), time.perf_counter() - started, overrides), call, console)
    return not failures and all(one.passed for one in results)


def _take_outcomes(
    outcomes: Iterator[Result | Failure], call: Call, console: Console, results: list[Result], failures: list[Failure]
) -> None:
    """Print what came of each model as soon as it is known, and enter it into `results` or `failures`."""
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            failures.append(outcome)
            console.report_failure(outcome.job, outcome.message)
            if not call.keep_going:
                break
        else:
            results.append(outcome)
            console.show(outcome)
        console.advance()


@dataclass(frozen=True, slots=True)
class _Totals:
    """What came of the models of a call: of how many, in how many seconds."""

    results: Sequence[Result]
    failures: Sequence[Failure]
    count: int
    seconds: float
    overrides: Sequence[Override]

    def show_document(self, *interruption: str) -> None:
        """Print it as JSON, with what is said of an interruption."""
        from .result_documents import show_conversions

        show_conversions(self.results, self.failures, self.count, self.seconds, self.overrides, *interruption)


def _report_interruption(totals: _Totals, call: Call) -> NoReturn:
    """Raise KeyboardInterrupt with how many models were converted; as JSON print the document, and raise Told."""
    done = "converted and verified" if call.verify else "converted"
    said = f"{len(totals.results)} of {totals.count} models {done}"
    if not call.as_json:
        raise KeyboardInterrupt(said) from None
    totals.show_document(format_interruption(said))
    raise Told(said) from None


def _summarize(totals: _Totals, call: Call, console: Console) -> None:
    """Print what came of all models together: the index of their pages, the document or the last lines, the times."""
    if call.pages is not None:
        from .pages import write_index

        write_index(call.pages, totals.results, totals.failures)
    if call.as_json:
        totals.show_document()
        return
    if totals.count > 1:
        console.summarize(totals.results, len(totals.failures), totals.count, totals.seconds)
    if call.profile:
        console.print_times(totals.results)


@contextlib.contextmanager
def _convert_all(jobs: list[Job], call: Call, console: Console) -> Iterator[Iterator[Result | Failure]]:
    """Convert one model after the other, or several at once; what came of each, in the order of the models."""
    if min(call.workers, len(jobs)) > 1:
        from .workers import start_workers

        with start_workers(jobs, call) as outcomes:
            yield outcomes
        return
    with start_interpreter(call) as interpreter:
        yield _convert_in_turn(jobs, call, console, interpreter)


def _convert_in_turn(
    jobs: list[Job], call: Call, console: Console, interpreter: Interpreter | None
) -> Iterator[Result | Failure]:
    for job in jobs:
        console.start(job)
        yield attempt(job, call, interpreter)

"""Workers: processes that convert models at once, with the same results as one process has."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.util
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from .dispatch import end_by_signals
from .jobs import Job
from .outcome import Call, attempt, start_interpreter
from .result import Failure, Result

if TYPE_CHECKING:
    from ..verify import Interpreter

#: the interpreter of this process, if it is a worker and there is one to verify with
_interpreter: Interpreter | None = None


@contextlib.contextmanager
def start_workers(jobs: Sequence[Job], call: Call) -> Iterator[Iterator[Result | Failure]]:
    """Convert models in as many processes as the call asks for; the outcome of each, in the order of the models.

    When the block ends, models that are being converted are finished, and no other is begun. Where the program is
    interrupted or ended, they are given up; the interruption is raised anew with what came of those that are finished.
    """
    # A fork has all modules and rules that its parent has, and is there at once.
    kind = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(kind)
    pool = ProcessPoolExecutor(min(call.workers, len(jobs)), context, _start_worker, (call,))
    futures = [pool.submit(_convert, job, call) for job in jobs]
    try:
        yield _iterate_outcomes(jobs, futures)
    except (KeyboardInterrupt, SystemExit) as ended:
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(cancel_futures=True)
        if isinstance(ended, SystemExit):
            raise
        raise KeyboardInterrupt([future.result() for future in futures if _is_finished(future)]) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _iterate_outcomes(jobs: Sequence[Job], futures: Sequence[Future[Result | Failure]]) -> Iterator[Result | Failure]:
    for job, future in zip(jobs, futures, strict=True):
        try:
            yield future.result()
        except BrokenProcessPool:
            yield Failure(job, "the system ended a process that converted models; fewer --jobs need less memory")


def _is_finished(future: Future[Result | Failure]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _start_worker(call: Call) -> None:
    """Make this process a worker."""
    global _interpreter
    # Whoever interrupts the parent lets it end the workers in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_by_signals()
    stack = contextlib.ExitStack()
    _interpreter = stack.enter_context(start_interpreter(call))
    multiprocessing.util.Finalize(None, stack.close, exitpriority=10)


def _convert(job: Job, call: Call) -> Result | Failure:
    try:
        return attempt(job, call, _interpreter)
    except SystemExit as ended:
        # What was half done is cleaned up; the pool would take the exception for an answer and go on.
        os._exit(ended.code if isinstance(ended.code, int) else 1)

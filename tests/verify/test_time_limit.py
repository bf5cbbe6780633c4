"""Work that has a limit of time ends, is told to end, and yields or raises what it does otherwise."""

from __future__ import annotations

import threading
import time

import pytest
from nnrewrite.verify.time_limit import end_thread, run_limited


def test_work_in_time_yields_its_result_and_raises_its_error() -> None:
    told: list[int] = []
    assert run_limited(lambda: 7, 10, told.append) == 7
    with pytest.raises(ZeroDivisionError):
        run_limited(lambda: 1 // 0, 10, told.append)
    assert not told


def test_a_thread_of_python_ends_when_its_time_is_over() -> None:
    threads = []

    def count() -> None:
        threads.append(threading.current_thread())
        while True:
            sum(range(1000))

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        run_limited(count, 0.2, end_thread)
    threads[0].join(5)
    assert not threads[0].is_alive() and time.monotonic() - started < 5


@pytest.mark.slow
def test_work_that_waits_for_good_has_a_limit_as_well() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError):
        run_limited(lambda: never.wait(20), 0.1, lambda _: never.set())
    assert never.is_set()

"""Time limits: work in another thread, which is told to end when its time is over."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

#: how many seconds a run of a model may take where nothing else is said
TIME_LIMIT = 120.0
#: how many seconds work has to end that was told to: a program that ends in the middle of it may crash
_GRACE = 10.0
#: how many times as long work may take that has no processor, as of a busy machine, or for good
_WAITING = 10

Result = TypeVar("Result")


def run_limited(work: Callable[[], Result], seconds: float, stop: Callable[[int], object]) -> Result:
    """What some work yields, in another thread, so that this one takes signals.

    Raises TimeoutError after so many seconds of processors, or many times as long where it waits without any. `stop`
    tells the work to end, by the number of its thread.
    """
    over = threading.Event()
    found: list[Result] = []
    failure: list[Exception] = []

    def compute() -> None:
        try:
            found.append(work())
        except Exception as error:  # of any kind: it is raised below
            failure.append(error)
        except SystemExit:
            return  # it was told to end
        finally:
            over.set()

    started, begun, left = time.process_time(), time.monotonic(), seconds
    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        while not over.wait(left):
            # Of a busy machine others may have had most of the time.
            left = seconds - max(time.process_time() - started, (time.monotonic() - begun) / _WAITING)
            if left <= 0:
                raise TimeoutError
    finally:
        if not over.is_set():  # a signal may have come as well
            stop(thread.ident or 0)
            over.wait(_GRACE)
    if failure:
        raise failure[0]
    return found[0]


def end_thread(number: int) -> None:
    """Let a thread end where its Python code goes on; what it waits for outside of that it waits for."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(SystemExit))

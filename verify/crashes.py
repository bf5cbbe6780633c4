"""Crashes: whether something ends the process that does it, found out in a copy of this one."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable

#: seconds between two looks at the copy, at first and at most
_SHORTEST, _LONGEST = 0.0005, 0.05


def find_signal(work: Callable[[], object], seconds: float) -> str:
    """The name of the signal by which a process ends that does some work; nothing where it lives, or takes longer than
    so many seconds.

    The work is done in a copy of this process, which has none of its other threads; what it raises is no matter. Copies
    are made on Linux alone: elsewhere all work is taken to be harmless.
    """
    if sys.platform != "linux":
        return ""
    with warnings.catch_warnings(action="ignore"):  # Python warns of threads that the copy has not
        child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()  # the signal is what is asked for
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            work()
        finally:
            os._exit(0)
    wait, over = _SHORTEST, time.monotonic() + seconds
    try:
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < over:
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST)
    finally:
        os.kill(child, signal.SIGKILL)  # of one that has ended nothing is left to end
        _, status = os.waitpid(child, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return signal.Signals(ended).name if ended not in (0, signal.SIGKILL) else ""

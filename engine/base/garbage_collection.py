"""The garbage collector, kept waiting while a graph is worked on."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Suspend the garbage collector while many objects are made that nearly all stay: it would double the time.

    What is given up meanwhile goes at the first collection afterwards.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

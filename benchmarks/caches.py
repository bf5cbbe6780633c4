"""What each cache is worth: models converted, or rules checked, with all of them and with one after another taken out.

    python benchmarks/caches.py MODEL... [--turns 3] [--least 1.2]
    python benchmarks/caches.py --check PACK...

Taken cumulatively: of the caches that are left, the one that is worth least is taken out for good, and the others are
measured again without it, until each of those left is worth the `--least` ratio. The work is done in one process,
in turns with and without; printed is the ratio of the processor time without a cache to that with it, by the least of
each turn, and the ratio of an unchanged control. What is found out once while files are held counts as one cache.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nnrewrite import rewrite
from nnrewrite.engine.base import file_cache
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.engine.base.held_files import hold_files
from nnrewrite.engine.packs import loader

PACKAGE = rewrite.__module__.partition(".")[0]
CONTROL = "(nothing)"
#: what is worth this much is not asked again, since without others it is worth no less
PLAIN = 1.5

Place = tuple[dict[str, Any], str, Any]
Caches = Sequence[Callable[..., Any]]
Work = Callable[[], None]


def list_caches() -> dict[str, Callable[..., Any]]:
    """The functions of all modules that are loaded which keep what they found, by module and name."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            for attribute, one in vars(module).items():
                keeps = one is hold_files or hasattr(one, "cache_info")
                if keeps and one.__module__ == name:
                    found[f"{name.partition('.')[2]}.{attribute}"] = one
    return found


def list_places(cached: Callable[..., Any]) -> list[Place]:
    """Where a cached function is known by a name: the names of a module, the name, the function without its cache."""
    plain = contextlib.nullcontext if cached is hold_files else cached.__wrapped__  # type: ignore[attr-defined]
    return [
        (vars(module), name, plain)
        for title, module in list(sys.modules.items())
        if title.partition(".")[0] == PACKAGE
        for name, one in list(vars(module).items())
        if one is cached
    ]


@contextlib.contextmanager
def without(caches: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Take caches out for a while."""
    places = [(names, name, names[name], plain) for one in caches for names, name, plain in list_places(one)]
    for names, name, _, plain in places:
        names[name] = plain
    try:
        yield
    finally:
        for names, name, cached, _ in places:
            names[name] = cached


def convert(models: Sequence[bytes]) -> None:
    """Convert some models, those that are refused as far as that."""
    for model in models:
        with contextlib.suppress(RewriteError):
            rewrite(model)


def check(packs: Sequence[str]) -> None:
    """Read and check some packs as a machine does that never read them."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[file_cache.FOLDER] = folder
        loader._open_parses.cache_clear()
        loader.read(packs)


def measure(work: Work) -> float:
    """The seconds of processor time that some work takes."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def compare(work: Work, one: Caches, gone: Caches, turns: int) -> float:
    """Time without a cache as a ratio to that with it, all that are gone already left out on both sides."""
    spent: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(turns):
        for kept in (True, False):
            with without([*gone, *(() if kept else one)]):
                spent[kept].append(measure(work))
    return min(spent[False]) / min(spent[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("subjects", nargs="+", metavar="MODEL")
    parser.add_argument("--check", action="store_true", help="read and check rule packs anew, convert nothing")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--least", type=float, default=1.2)
    options = parser.parse_args()
    if options.check:
        work: Work = functools.partial(check, tuple(options.subjects))
    else:
        work = functools.partial(convert, [Path(name).read_bytes() for name in options.subjects])
    work()  # what is loaded once is no part of it
    left = {n: one for n, one in list_caches().items() if one is hold_files or one.cache_info().hits}  # type: ignore[attr-defined]
    gone: list[Callable[..., Any]] = []
    worth: dict[str, float] = {}
    while True:
        control = compare(work, (), gone, options.turns)
        for name, one in left.items():
            if worth.get(name, 0) < PLAIN:
                worth[name] = compare(work, (one,), gone, 1 if worth.get(name, 0) == 0 else options.turns)
        least = min(left, key=worth.__getitem__, default=None)
        if least is None or worth[least] >= options.least:
            break
        worth[least] = compare(work, (left[least],), gone, options.turns)
        if worth[least] < options.least:
            gone.append(left.pop(least))
            print(f"{worth.pop(least):6.2f}  {least}: taken out (control {control:.2f})", flush=True)
    for name in sorted(left, key=worth.__getitem__):
        print(f"{worth[name]:6.2f}  {name}: stays")


if __name__ == "__main__":
    main()

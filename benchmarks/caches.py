"""What each cache of a conversion is worth: models converted with all of them, and with one after another taken out.

    python benchmarks/caches.py MODEL... [--turns 3] [--least 1.2]

Taken cumulatively: of the caches that are left, the one that is worth least is taken out for good, and the others are
measured again without it, until each of those left is worth the `--least` ratio. Models are converted in one process,
in turns with and without; printed is the ratio of the processor time without a cache to that with it, by the least of
each turn, and the ratio of an unchanged control.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nnrewrite import rewrite
from nnrewrite.engine.base.errors import RewriteError

PACKAGE = rewrite.__module__.partition(".")[0]
CONTROL = "(nothing)"
#: what is worth this much is not asked again, since without others it is worth no less
PLAIN = 1.5

Place = tuple[dict[str, Any], str, Any]
Caches = Sequence[Callable[..., Any]]


def list_caches() -> dict[str, Callable[..., Any]]:
    """The functions of all modules that are loaded which keep what they found, by module and name."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            for attribute, one in vars(module).items():
                if hasattr(one, "cache_info") and one.__module__ == name:
                    found[f"{name.partition('.')[2]}.{attribute}"] = one
    return found


def list_places(cached: Callable[..., Any]) -> list[Place]:
    """Where a cached function is known by a name: the names of a module, the name, the function without its cache."""
    return [
        (vars(module), name, cached.__wrapped__)  # type: ignore[attr-defined]
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


def convert(models: Sequence[bytes]) -> float:
    """The seconds of processor time that it takes to convert some models."""
    gc.collect()
    started = time.process_time()
    for model in models:
        with contextlib.suppress(RewriteError):
            rewrite(model)
    return time.process_time() - started


def compare(
    models: Sequence[bytes], one: Sequence[Callable[..., Any]], gone: Sequence[Callable[..., Any]], turns: int
) -> float:
    """Time without a cache as a ratio to that with it, all that are gone already left out on both sides."""
    spent: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(turns):
        for kept in (True, False):
            with without([*gone, *(() if kept else one)]):
                spent[kept].append(convert(models))
    return min(spent[False]) / min(spent[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--least", type=float, default=1.2)
    options = parser.parse_args()
    models = [path.read_bytes() for path in options.models]
    convert(models)  # what is loaded once is no part of a conversion
    left = {name: one for name, one in list_caches().items() if one.cache_info().hits}  # type: ignore[attr-defined]
    gone: list[Callable[..., Any]] = []
    worth: dict[str, float] = {}
    while True:
        control = compare(models, (), gone, options.turns)
        for name, one in left.items():
            if worth.get(name, 0) < PLAIN:
                worth[name] = compare(models, (one,), gone, 1 if worth.get(name, 0) == 0 else options.turns)
        least = min(left, key=worth.__getitem__, default=None)
        if least is None or worth[least] >= options.least:
            break
        worth[least] = compare(models, (left[least],), gone, options.turns)
        if worth[least] < options.least:
            gone.append(left.pop(least))
            print(f"{worth.pop(least):6.2f}  {least}: taken out (control {control:.2f})", flush=True)
    for name in sorted(left, key=worth.__getitem__):
        print(f"{worth[name]:6.2f}  {name}: stays")


if __name__ == "__main__":
    main()

"""Work in a child process: what a converter of models crashes or hangs on costs that model only."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Made:
    """A model, and what its maker's runtime computes: arrays by `in:NAME` and `out:NUMBER`, where that was asked."""

    content: bytes
    sample: dict[str, Any] = field(default_factory=dict)


def read_arguments(count: int) -> argparse.Namespace:
    """The folder to write to, how many models, by default `count`, and the seed that they are drawn from."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def write_each(folder: Path, makers: dict[str, Callable[[], Made]], seconds: int = 120) -> None:
    """Write FOLDER/NAME for each name and the maker of its content, with its sample as FOLDER/NAME.npz.

    Standard error says what could not be made.
    """
    for name, make in makers.items():
        path = folder / name
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        child = os.fork()
        if not child:
            signal.alarm(seconds)
            code = 1
            try:
                made = make()
                if made.sample:
                    np.savez(path.with_suffix(".npz"), **made.sample)
                path.with_suffix(".part").write_bytes(made.content)
                path.with_suffix(".part").rename(path)
                code = 0
            except Exception as error:  # whatever it is, this is no model
                print(f"{name}: {type(error).__name__} {' '.join(str(error).split())[:300]}", file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            print(f"{name}: {signal.Signals(-code).name}", file=sys.stderr)
        elif not code:
            print(name, path.stat().st_size, flush=True)

"""Damaged models, each converted within the limits of a user's machine: what comes of them.

    python benchmarks/damaged.py MODEL|FOLDER... [--count 1000] [--seed 0] [--largest BYTES] [--out FOLDER]

Each copy is damaged by a seed of its own: bits, bytes and numbers changed, tails cut, ranges exchanged, or the tables
or messages of the file changed in a well-formed way (nnrewrite.fuzz.damage). It is converted to ONNX in a process that
has 4 GB of address space, and 20 seconds for it. Counted are those converted, those refused with an error of the
library, and each way in which a conversion must not end: `internal` errors, `raw` errors, `slow`, `memory`, `crashed`,
and models that onnx.checker refuses (`invalid`) or that ONNX Runtime does not load (`unloadable`) although the source's
own runtime takes the source. The program exits with 1 where there is one of these, and saves each with `--out`.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from nnrewrite.backends.onnx_writer import check
from nnrewrite.conversion import compiled_rules, pipeline
from nnrewrite.conversion.options import DEFAULT
from nnrewrite.engine.base.errors import InternalError, ModelError, RewriteError, VerificationError
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.onnx_reader import recognize
from nnrewrite.fuzz.damage import damage_messages, list_kinds
from nnrewrite.verify import Interpreter
from nnrewrite.verify.interpreter import InterpreterError, Kernels
from nnrewrite.verify.runtime import Runtime

#: what may come of a damaged file
GOOD = ("converted", "refused")
#: by how many times its limit a file may take on a busy machine before its process is killed
_PATIENCE = 10
SUFFIXES = (".tflite", ".onnx")
KINDS = {**list_kinds(load().find_dialect("tflite")), "messages": damage_messages}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one file: how its conversion ended, what was said, and how long it took in seconds."""

    number: int
    model: str
    damage: str
    end: str
    said: str
    seconds: float


class Late(BaseException):
    """The time for one file is over."""


def damage(paths: list[Path], seed: int, number: int) -> tuple[Path, str, bytes]:
    """The damaged copy of a number: of which model, damaged in which way."""
    chance = random.Random(f"{seed}/{number}")
    path = chance.choice(paths)
    inner = "messages" if path.suffix == ".onnx" else "tables"
    kind = chance.choice(("bytes", "ranges", inner, inner, inner))
    data = path.read_bytes()
    try:
        return path, kind, KINDS[kind](data, chance)
    except ModelError:  # what cannot be read is damaged as bytes
        return path, "bytes", KINDS["bytes"](data, chance)


def convert_copy(data: bytes, interpreter: Interpreter) -> tuple[str, str]:
    """How the conversion of a file ends, and what is said."""
    try:
        conversion = pipeline.rewrite(data)
        model = conversion.model
    except InternalError as error:
        return "internal", "".join(traceback.format_exception(error))
    except RewriteError as error:
        return "refused", f"{error}"
    except Exception:
        return "raw", traceback.format_exc()
    target = model.SerializeToString()
    try:
        check(target)
    except RewriteError as error:
        return ("invalid", f"{error}") if is_valid(data) else ("converted", "")
    try:
        Runtime(target, threads=1)
    except VerificationError as error:
        return ("unloadable", f"{error}") if is_taken(data, interpreter) else ("converted", "")
    return "converted", ""


def is_valid(data: bytes) -> bool:
    """Whether a source that is an ONNX model itself is one that onnx.checker takes; others are."""
    try:
        return not recognize(data[:8]) or check(data) is None
    except RewriteError:
        return False


def is_taken(data: bytes, interpreter: Interpreter) -> bool:
    """Whether the interpreter runs a file, on zeros, or ONNX Runtime loads it."""
    if recognize(data[:8]):
        try:
            Runtime(data, threads=1)
        except VerificationError:
            return False
        return True
    try:
        inputs = interpreter.describe(data).inputs
        feeds = [np.full(one.shape, b"" if one.dtype == "object" else 0, one.dtype) for one in inputs]
        interpreter.run(data, [feeds], Kernels.OPTIMIZED)
    except InterpreterError:
        return False
    return True


def work(pipe: Connection, paths: list[Path], seed: int, memory: float, seconds: float) -> None:
    """Convert the files of which the pipe tells the numbers, until it tells None."""
    signal.signal(signal.SIGPROF, late)
    compiled_rules.prepare(DEFAULT.stacked, None)  # is no part of what a file takes
    limit = int(memory * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with Interpreter(seconds) as interpreter:
        while (number := pipe.recv()) is not None:
            path, kind, data = damage(paths, seed, number)
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, seconds)
            try:
                end, said = convert_copy(data, interpreter)
            except Late:
                end, said = "slow", traceback.format_exc()
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            if "MemoryError" in said or "bad_alloc" in said:
                end = "memory"
            spent = time.process_time() - started
            pipe.send(Outcome(number, path.name, kind, "slow" if spent > seconds else end, said, spent))


def late(number: int, frame: Any) -> None:
    raise Late


def outcomes(paths: list[Path], options: argparse.Namespace) -> Iterator[Outcome]:
    """Convert all files in a process of its own, which is started anew where it dies."""
    worker, pipe = start_worker(paths, options)
    for number in range(options.first, options.first + options.count):
        pipe.send(number)
        if not pipe.poll(_PATIENCE * options.seconds):  # native code that does not come back hears of no limit
            worker.kill()
        try:
            yield pipe.recv()
        except EOFError:
            worker.join()
            path, kind, _ = damage(paths, options.seed, number)
            yield Outcome(number, path.name, kind, "crashed", f"exit status {worker.exitcode}", 0.0)
            worker, pipe = start_worker(paths, options)
    pipe.send(None)
    worker.join()


def start_worker(paths: list[Path], options: argparse.Namespace) -> tuple[Any, Connection]:
    context = multiprocessing.get_context("fork")
    pipe, theirs = context.Pipe()
    arguments = (theirs, paths, options.seed, options.memory, options.seconds)
    worker = context.Process(target=work, args=arguments, daemon=False)
    worker.start()
    theirs.close()
    return worker, pipe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first copy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=1 << 20, help="models larger than this are left out, in bytes")
    parser.add_argument("--memory", type=float, default=4.0, help="address space, in GB")
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time for one file")
    parser.add_argument("--out", type=Path, help="where to save the files that ended badly")
    options = parser.parse_args()
    found = [
        path
        for given in options.models
        for path in (sorted(one for one in given.rglob("*") if one.suffix in SUFFIXES) if given.is_dir() else [given])
    ]
    paths = [path for path in found if path.stat().st_size <= options.largest]
    ends: collections.Counter[str] = collections.Counter()
    longest = 0.0
    for outcome in outcomes(paths, options):
        ends[outcome.end] += 1
        longest = max(longest, outcome.seconds)
        if outcome.end not in GOOD:
            print(f"{outcome.number} {outcome.model} ({outcome.damage}): {outcome.end}: {outcome.said}", flush=True)
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                path, _, data = damage(paths, options.seed, outcome.number)
                (options.out / f"{options.seed}-{outcome.number}{path.suffix}").write_bytes(data)
    print(
        f"{options.count} damaged copies of {len(paths)} models: {', '.join(f'{n} {e}' for e, n in ends.most_common())}"
    )
    print(f"the slowest took {longest:.1f} s of processor time")
    return int(any(end not in GOOD for end in ends))


if __name__ == "__main__":
    sys.exit(main())

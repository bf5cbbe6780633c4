"""Convert ONNX models to TensorFlow Lite here and with onnx2tf, and compare time, TRANSPOSEs and latency.

    python benchmarks/tflite_peers.py FOLDER --onnx2tf PROGRAM [--only WORD] [--limit BYTES]

PROGRAM is the command of onnx2tf in an environment of its own: Python 3.12, with TensorFlow and what it asks for. The
seconds of both are those of a whole command; both may turn inputs to channels last. Latencies are medians of runs of
the interpreter on one thread. Prints a table for docs/tflite.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.frontends import readers
from nnrewrite.verify import Interpreter
from round_trip import draw

#: seconds after which a conversion is given up
_PATIENCE = 120
#: runs of which the median counts
_RUNS = 15
#: how often both are measured, one after the other; the least of the medians counts
_TURNS = 3


def convert(command: Sequence[str], made: Path) -> tuple[float, bytes | None]:
    """Run a converter; its seconds, and the model where it has written one."""
    started = time.perf_counter()
    try:
        subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return _PATIENCE, None
    seconds = time.perf_counter() - started
    found = sorted(made.glob("*float32.tflite") if made.is_dir() else [made] if made.is_file() else [])
    return seconds, found[0].read_bytes() if found else None


def count(model: bytes | None) -> tuple[int, int] | None:
    """The operators of a model, and how many of them are TRANSPOSEs; None for one that is malformed."""
    if model is None:
        return None
    from nnrewrite.conversion.compiled_rules import prepare

    catalogue = prepare(("litert",), None).pack.catalogue
    try:
        graph = readers.find_reader(model).read(model, catalogue, "model").graph
    except RewriteError:
        return None
    names = [node.op_type for node in graph]
    return len(names), names.count("TRANSPOSE")


def measure(model: bytes | None, interpreter: Interpreter) -> float | None:
    """The median latency of a model in milliseconds; None where it does not run."""
    if model is None:
        return None
    try:
        feeds: list[npt.NDArray[Any]] = draw(interpreter.describe(model), np.random.default_rng(7))
        interpreter.load(model, feeds, 1)
        return statistics.median(interpreter.time(_RUNS)) * 1000
    except RewriteError:
        return None


def word(seconds: float, model: bytes | None, latency: float | None) -> str:
    """The cells of one converter: seconds, operators, TRANSPOSEs, milliseconds."""
    counts = count(model)
    if counts is None:
        return f"{seconds:.1f} | {'not converted' if model is None else 'malformed'} | | "
    return f"{seconds:.1f} | {counts[0]} | {counts[1]} | {'does not run' if latency is None else f'{latency:.2f}'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--onnx2tf", required=True, help="the command onnx2tf")
    parser.add_argument("--only", default="", help="models whose name has this word in it")
    parser.add_argument("--limit", type=int, default=1 << 40, help="models of at most so many bytes")
    options = parser.parse_args(arguments)
    print("| model | seconds | operators | TRANSPOSEs | ms | onnx2tf: seconds | operators | TRANSPOSEs | ms |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    with Interpreter(timeout=60) as interpreter, tempfile.TemporaryDirectory() as folder:
        for path in sorted(options.folder.glob("*.onnx")):
            if options.only not in path.name or path.stat().st_size > options.limit:
                continue
            ours, theirs = Path(folder) / f"{path.stem}.tflite", Path(folder) / path.stem
            copy = Path(shutil.copyfile(path, Path(folder) / path.name))  # onnx2tf writes to the model that it reads
            rows = [
                convert([sys.executable, "-m", "nnrewrite", f"{path}", "--layout", "target", "-o", f"{ours}"], ours),
                convert([options.onnx2tf, "-i", f"{copy}", "-o", f"{theirs}", "-n"], theirs),
            ]
            times = [[measure(model, interpreter) for _, model in rows] for _ in range(_TURNS)]
            least = [min((one for one in each if one is not None), default=None) for each in zip(*times, strict=True)]
            cells = [word(seconds, model, best) for (seconds, model), best in zip(rows, least, strict=True)]
            print(f"| {path.stem} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Print how far quantized networks are off the interpreter, beside how far its own kernels are off each other.

    python benchmarks/spread.py [--peer] MODEL.tflite...

Two seeded inputs: the largest difference between the interpreter's default and reference kernels, that of our model to
the closer of the two, and with --peer that of tf2onnx's: in steps where outputs are integers. Models that yield nothing
but zeros are left out.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from environments import python
from nnrewrite import RewriteError, convert
from nnrewrite.verify import Interpreter, Kernels
from nnrewrite.verify.frames import Array
from nnrewrite.verify.inputs import draw
from nnrewrite.verify.runtime import Runtime

OPSET = 18


def off(wanted: Sequence[Array], found: Sequence[Array]) -> float:
    """The largest difference of any output."""
    pairs = zip(wanted, found, strict=True)
    return max((float(np.abs(a.astype(float) - b.astype(float)).max(initial=0)) for a, b in pairs), default=0.0)


def peer(path: Path) -> bytes | None:
    """What tf2onnx makes of a model; None where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model.onnx"
        asked = ["--opset", str(OPSET), "--tflite", path, "--output", out]
        subprocess.run([python("tf2onnx"), "-m", "tf2onnx.convert", *asked], capture_output=True, check=False)
        return out.read_bytes() if out.exists() else None


def differences(path: Path, models: Sequence[bytes | None], interpreter: Interpreter) -> Iterator[list[float | None]]:
    """For each input: between the kernels, and of each model to the closer of them."""
    for seed in (0, 1):
        samples = next(draw(interpreter.describe(path).inputs, seed))
        [default] = interpreter.run(path, samples, Kernels.DEFAULT)
        [reference] = interpreter.run(path, samples, Kernels.REFERENCE)
        if not any(a.any() for a in default):
            continue
        found: list[float | None] = [off(default, reference)]
        for model in models:
            try:
                got = None if model is None else Runtime(model).run(samples[0])
                found.append(None if got is None else min(off(default, got), off(reference, got)))
            except (RewriteError, ValueError) as error:  # what the runtime refuses, or yields in other shapes
                print(f"{path.stem}: {error}", file=sys.stderr)
                found.append(None)
        yield found


def row(path: Path, asked: bool, interpreter: Interpreter) -> str | None:
    model = convert(path)
    files = [model.SerializeToString(), *([peer(path)] if asked else [])]
    every = list(differences(path, files, interpreter))
    if not every:
        return None
    worst = [None if None in column else max(column) for column in itertools.zip_longest(*every)]
    kind = onnx.helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    return f"| {path.stem} | {kind} | {' | '.join('-' if v is None else f'{v:.4g}' for v in worst)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("models", nargs="+", type=Path)
    asked = parser.parse_args()
    print(f"| model | outputs | between the kernels | ours |{' tf2onnx |' * asked.peer}")
    print(f"|---|---|--:|--:|{'--:|' * asked.peer}")
    with Interpreter(timeout=120) as interpreter:
        for path in asked.models:
            try:
                found = row(path, asked.peer, interpreter)
            except RewriteError as error:
                found = f"| {path.stem} | {str(error).splitlines()[0]} |"
            if found:
                print(found, flush=True)


if __name__ == "__main__":
    main()

"""Print how far quantized networks are off the interpreter, beside how far its own kernels are off each other.

    python benchmarks/spread.py [--peer] MODEL.tflite...

Two seeded inputs: the largest difference between the interpreter's default and reference kernels, that of our model to
the closer of the two, and with --peer that of tf2onnx's: in steps where outputs are integers. Models that yield nothing
but zeros are left out. Where an output is a row of scores, whether the highest is that of one of the kernels. What
tf2onnx makes of a model is kept in build/peers.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from environments import PEERS, python
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


def highest(kernels: Sequence[Sequence[Array]], found: Sequence[Array]) -> bool | None:
    """Whether rows of scores have a highest in common with those of some kernels; None where there are no such rows."""
    rows = [place for place, output in enumerate(found) if output.ndim == 2 and output.shape[1] > 1]
    if not rows:
        return None
    return any(all(bool((tops(k[n]) & tops(found[n])).any(1).all()) for n in rows) for k in kernels)


def tops(scores: Array) -> Array:
    """Where a row of scores is highest, in several places where they are equal."""
    return np.asarray(scores == scores.max(1, keepdims=True))


def peer(path: Path) -> bytes | None:
    """What tf2onnx makes of a model; None where it fails."""
    out = PEERS / "tf2onnx" / f"{path.parent.name}__{path.name}.onnx"
    failed = out.with_name(f"{out.name}.failed")
    if not out.exists() and not failed.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        asked = ["--opset", str(OPSET), "--tflite", path, "--output", out]
        subprocess.run([python("tf2onnx"), "-m", "tf2onnx.convert", *asked], capture_output=True, check=False)
    return out.read_bytes() if out.exists() else None


def differences(
    path: Path, models: Sequence[bytes | None], interpreter: Interpreter
) -> Iterator[tuple[bool | None, list[float | None]]]:
    """For each input: between the kernels, and of each model to the closer of them; and whether ours scores alike."""
    for seed in (0, 1):
        samples = next(draw(interpreter.describe(path).inputs, seed))
        [default] = interpreter.run(path, samples, Kernels.DEFAULT)
        [reference] = interpreter.run(path, samples, Kernels.REFERENCE)
        if not any(a.any() for a in default):
            continue
        found: list[float | None] = [off(default, reference)]
        alike: bool | None = None
        for place, model in enumerate(models):
            try:
                got = None if model is None else Runtime(model).run(samples[0])
                found.append(None if got is None else min(off(default, got), off(reference, got)))
                if place == 0 and got is not None:
                    alike = highest((default, reference), got)
            except (RewriteError, ValueError) as error:  # what the runtime refuses, or yields in other shapes
                print(f"{path.stem}: {error}", file=sys.stderr)
                found.append(None)
        yield alike, found


def row(path: Path, asked: bool, interpreter: Interpreter) -> str | None:
    model = convert(path)
    files = [model.SerializeToString(), *([peer(path)] if asked else [])]
    tried = list(differences(path, files, interpreter))
    if not tried:
        return None
    every = [found for _, found in tried]
    scores = {alike for alike, _ in tried}
    alike = "" if None in scores else "yes" if scores == {True} else "no"
    worst = [None if None in column else max(column) for column in itertools.zip_longest(*every)]
    kind = onnx.helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    return f"| {path.stem} | {kind} | {' | '.join('-' if v is None else f'{v:.4g}' for v in worst)} | {alike} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("models", nargs="+", type=Path)
    asked = parser.parse_args()
    print(f"| model | outputs | between the kernels | ours |{' tf2onnx |' * asked.peer} highest score |")
    print(f"|---|---|--:|--:|{'--:|' * asked.peer}---|")
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

"""Models divided for targets, run step by step beside the whole, and a table of what came of them.

    python benchmarks/partition_runs.py TARGET[,TARGET...] MODEL...

The whole is the model itself where the target's parts are of its format, else what it is converted to. Steps run in the
runtime of their format, twice on drawn inputs so that state is seen; parts of ONNX are also run as functions of the
host's model. Where a runtime's own optimizations of the whole or of steps make the difference, both sides run without.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from nnrewrite import Options, RewriteError, rewrite
from nnrewrite.engine.packs.headers import read_pair
from nnrewrite.partition import load, partition
from nnrewrite.partition.files import HOST
from nnrewrite.verify.comparison import compare
from nnrewrite.verify.inputs import draw
from nnrewrite.verify.interpreter import Interpreter, InterpreterError, Kernels, Signature
from nnrewrite.verify.reference import Reference
from nnrewrite.verify.runtime import Runtime

#: seconds that one model may take for one target
_SECONDS = 300
#: what a model comes to, best first
EQUAL, WRITTEN, UNTRIED, REFUSED, DIFFERENT = (
    "equal",
    "equal without the runtime's optimizations",
    "whole does not run",
    "refused",
    "different",
)

Array = np.ndarray[Any, Any]


class _TimeoutError(Exception):
    """A model took too long."""


def take_whole(path: Path, target: str, interpreter: Interpreter) -> tuple[Reference | Interpreter, Path | bytes]:
    """What runs the whole model that a target's partition is of, and that model."""
    about = (read_pair(target) or ("onnx",))[0]
    suffix = ".onnx" if about == "onnx" else ".tflite"
    oracle: Reference | Interpreter = Reference() if about == "onnx" else interpreter
    if path.suffix == suffix:
        return oracle, path
    if about == "onnx":
        asked = Options(target=target).settled.replace(target=None)  # as what is divided, before the target's own rules
        return oracle, rewrite(path, asked).model.SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"whole{suffix}"
        rewrite(path, to=suffix).save(made)
        return oracle, made.read_bytes()


def _take(values: Mapping[str, Array], signature: Signature, manifest: Mapping[str, Any]) -> list[Array]:
    """The outputs of a whole among what steps yield: by their names, or by their places where those are not kept."""
    if all(tensor.name in values for tensor in signature.outputs):
        return [values[tensor.name] for tensor in signature.outputs]
    return [values[entry["name"]] for entry in manifest["outputs"]]


def run_plainly(
    folder: Path, manifest: Mapping[str, Any], given: Mapping[str, Array], interpreter: Interpreter
) -> Mapping[str, Array]:
    """What the steps of a partition yield without their runtime's own optimizations: ONNX Runtime as it is written,
    LiteRT without its delegate."""
    values = dict(given)
    for step in manifest["steps"]:
        file = folder / step["file"]
        feeds = [values[entry["name"]] for entry in step["inputs"]]
        if file.suffix == ".onnx":
            runtime = Runtime(file, optimized=False)
            found = runtime.run([values[name] for name in runtime.inputs])
            values.update(zip(runtime.outputs, found, strict=True))
        else:
            (found,) = interpreter.run(file, [feeds], Kernels.OPTIMIZED)
            values.update(zip((entry["name"] for entry in step["outputs"]), found, strict=True))
    return values


def differ(signature: Signature, wanted: Sequence[Array], found: Sequence[Array]) -> str:
    """Say what differs, nothing where all is equal within the tolerance of `verify`."""
    for tensor, want, got in zip(signature.outputs, wanted, found, strict=True):
        compared = compare(tensor, want, np.asarray(got), Kernels.DEFAULT)
        if not compared.verdict.passed:
            return f"{tensor.name}: {compared.reason}"
    return ""


def try_model(path: Path, target: str, interpreter: Interpreter) -> tuple[str, str, int]:
    """What a model comes to, why, and how many parts it has."""
    try:
        oracle, whole = take_whole(path, target, interpreter)
        signature = oracle.describe(whole)
        drawn = next((one for one in draw(signature.inputs, samples=2) if _runs(oracle, whole, one)), None)
    except (RewriteError, InterpreterError) as error:
        return UNTRIED, _shorten(error), 0
    if drawn is None:
        return UNTRIED, "no inputs that it takes", 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            divided = partition(path, target)
            manifest = divided.save(folder, functions=divided.files.functions)
        except RewriteError as error:
            return REFUSED, _shorten(error), 0
        names = [entry["name"] for entry in manifest["inputs"]]
        if divided.files.functions:  # ONNX models have their names
            names = [tensor.name for tensor in signature.inputs]
        feeds = [dict(zip(names, sample, strict=True)) for sample in drawn]
        parts = manifest["parts"] + sum(len(body["parts"]) for body in manifest["bodies"])
        wanted = _run(oracle, whole, drawn, Kernels.DEFAULT)
        try:
            opened = load(folder)
            found = [_take(opened.run(feed), signature, manifest) for feed in feeds]
            why = next(filter(None, (differ(signature, *pair) for pair in zip(wanted, found, strict=True))), "")
            if divided.files.functions:
                host = Runtime(folder / f"{HOST}{divided.files.suffix}")
                inside = dict(zip(host.outputs, host.run([feeds[0][name] for name in host.inputs]), strict=True))
                why = why or differ(signature, wanted[0], _take(inside, signature, manifest))
            if not why:
                return EQUAL, "", parts
            plain = _run(oracle, whole, drawn, Kernels.OPTIMIZED)[0]
            written = differ(
                signature, plain, _take(run_plainly(folder, manifest, feeds[0], interpreter), signature, manifest)
            )
        except Exception as error:  # whatever a runtime raises of a step that was written
            return DIFFERENT, _shorten(error), parts
        return (DIFFERENT, written, parts) if written else (WRITTEN, why, parts)


def _run(
    oracle: Reference | Interpreter, whole: Path | bytes, drawn: Sequence[Sequence[Array]], kernels: Kernels
) -> Any:
    if isinstance(oracle, Interpreter):
        return oracle.run(whole, drawn, kernels, keep=True)
    return oracle.run(whole, drawn, kernels)


def _runs(oracle: Reference | Interpreter, whole: Path | bytes, drawn: Sequence[Sequence[Array]]) -> bool:
    try:
        _run(oracle, whole, drawn, Kernels.DEFAULT)
    except InterpreterError:
        return False
    return True


def _shorten(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(f'{error}'.split())}"[:200]


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TimeoutError(f"{_SECONDS} s are over")


def main() -> None:
    """Print a line for each model that is not equal, and a table by target."""
    signal.signal(signal.SIGALRM, _stop)
    counts: dict[str, Counter[str]] = {}
    with Interpreter() as interpreter:
        for target in sys.argv[1].split(","):
            counted = counts.setdefault(target, Counter())
            for path in map(Path, sys.argv[2:]):
                signal.alarm(_SECONDS)
                try:
                    outcome, why, parts = try_model(path, target, interpreter)
                except _TimeoutError as error:
                    outcome, why, parts = DIFFERENT, f"{error}", 0
                finally:
                    signal.alarm(0)
                counted.update({outcome: 1, "parts": parts, "divided": bool(parts)})
                if why:
                    print(f"{target}: {path}: {outcome}: {why}", flush=True)
    heads = ("divided", "parts", EQUAL, WRITTEN, UNTRIED, REFUSED, DIFFERENT)
    print(f"| target | models | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
    for target, counted in counts.items():
        print(f"| `{target}` | {len(sys.argv) - 2} | {' | '.join(f'{counted[head]:,}' for head in heads)} |")


if __name__ == "__main__":
    main()

"""Convert ONNX models to TensorFlow Lite here and with onnx2tf, and compare results, time, TRANSPOSEs and latency.

    python benchmarks/tflite_peers.py FOLDER --onnx2tf PYTHON [--sizes FILE] [--backend NAME] [--skip-whole] [NAME]...

PYTHON is the interpreter of an environment that has onnx2tf: Python 3.12, with TensorFlow and what it asks for. FILE is
JSON, for each model the shapes of its inputs by name; a size that is free is 1 where none is given. Seconds are
processor time, of a whole command and of a conversion in a process that has converted a small model before: what is
imported and made ready once is in the former alone. Both may turn inputs to channels last. A result is equal where it
gives the numbers of ONNX Runtime, within a thousandth of the largest or ten times what the runtime's optimizations
change. Latencies are medians of runs on one thread, the least of turns that both take one after the other. Prints a
table for docs/tflite.md, and a line of means.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from environments import ROOT
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.frontends import readers
from nnrewrite.verify import Interpreter
from nnrewrite.verify.interpreter import Signature, Tensor
from onnx_models import are_equal, distance, draw, mean, open_session

Array = npt.NDArray[Any]

#: seconds after which a conversion is given up
PATIENCE = 180
#: runs of which the median counts, and how often both models take their turn
RUNS, TURNS = 15, 3
#: what each converter imports, and what writes the model `b` of the model `a`
CALLS = {
    "nnrewrite": ("import nnrewrite", "nnrewrite.rewrite(a, to='tflite', layout=('target',)).save(b)"),
    "onnx2tf": (
        "import onnx2tf, glob, shutil",
        "onnx2tf.convert(input_onnx_file_path=a, output_folder_path=b + '.d', non_verbose=True, "
        "tflite_backend={backend!r}); shutil.copyfile(glob.glob(b + '.d/*float32.tflite')[0], b)",
    ),
}
#: converts models by lines, and says what processor time each took
SERVE = """
import json, os, sys, onnx, onnx.parser
{imports}
text = '<ir_version: 8, opset_import: ["": 17]> net (float[1, 3, 8, 8] x) => (float[1, 3, 8, 8] y) {{ y = Relu(x) }}'
a, b = sys.argv[1] + '/first.onnx', sys.argv[1] + '/first.tflite'
onnx.save(onnx.parser.parse_model(text), a)
{call}
for line in sys.stdin:
    a, b = json.loads(line)
    start = sum(os.times()[:4])
    try:
        {call}
        print('\\n=' + json.dumps(sum(os.times()[:4]) - start), flush=True)
    except BaseException as error:
        print('\\n=null', flush=True)
"""


@dataclass(frozen=True, slots=True)
class Made:
    """What a converter made of a model: seconds of a whole command and of the conversion alone, and the model."""

    whole: float
    alone: float | None
    model: bytes | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A model as it is judged: operators, TRANSPOSEs, what keeps it from being equal, and milliseconds of a run."""

    operators: int
    transposes: int
    fault: str
    latency: float


class Converter:
    """One of the two, as a command and as a process that stays."""

    def __init__(self, name: str, python: str, backend: str) -> None:
        self.name, self._python, self._place = name, python, tempfile.mkdtemp()
        self._imports, self._call = CALLS[name][0], CALLS[name][1].format(backend=backend)
        self._process: subprocess.Popen[str] | None = None

    def convert(self, source: Path, target: Path, whole: bool) -> Made:
        """Convert a model in the process that stays, and by a command of its own where that is asked for."""
        alone, taken = self._ask(source, target), math.nan
        if whole:
            code = f"a, b = {str(source)!r}, {str(target)!r}\n{self._imports}\n{self._call}"
            before = os.times()
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([self._python, "-c", code], cwd=ROOT.parent, capture_output=True, timeout=PATIENCE)
            after = os.times()
            taken = after.children_user + after.children_system - before.children_user - before.children_system
        return Made(taken, alone, target.read_bytes() if target.is_file() else None)

    def _ask(self, source: Path, target: Path) -> float | None:
        if self._process is None or self._process.poll() is not None:
            pipe = subprocess.PIPE
            program = SERVE.format(imports=self._imports, call=self._call)
            command = ["timeout", f"{PATIENCE * 20}", self._python, "-c", program, self._place]
            self._process = subprocess.Popen(
                command, cwd=ROOT.parent, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([str(source), str(target)]), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("="):
                found: float | None = json.loads(line[1:])
                return found
        return None

    def close(self) -> None:
        """End the process that stays."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)


def count(model: bytes) -> tuple[int, int]:
    """The operators of a model, of inner graphs too, and how many of them are TRANSPOSEs; raises RewriteError."""
    graph = readers.find_reader(model).read(model, _catalogue(), "model").graph
    names = [node.op_type for node in graph.all_nodes()]
    return len(names), names.count("TRANSPOSE")


@functools.cache
def _catalogue() -> Any:
    from nnrewrite.conversion.compiled_rules import prepare

    return prepare(("litert",), None).pack.catalogue


def arrange(feeds: Mapping[str, Array], signature: Signature) -> Iterator[list[Array]]:
    """The inputs of a model by name, or by place where names are others, as they are or with channels last."""
    named = all(tensor.name in feeds for tensor in signature.inputs)
    given = [feeds[tensor.name] for tensor in signature.inputs] if named else list(feeds.values())
    if len(given) == len(signature.inputs):
        choices = [list(_list_orders(array, one)) for array, one in zip(given, signature.inputs, strict=True)]
        yield from itertools.islice(map(list, itertools.product(*choices)), 16)


def _list_orders(array: Array, tensor: Tensor) -> Iterator[Array]:
    last = np.moveaxis(array, 1, -1) if array.ndim > 2 else array
    for one in (array, last):
        fits = len(tensor.signature) == one.ndim and all(
            n in (-1, m) for n, m in zip(tensor.signature, one.shape, strict=True)
        )
        if fits or tensor.shape == one.shape:
            yield np.ascontiguousarray(one.astype(np.dtype(tensor.dtype)))
        if array.ndim < 3:
            return


def are_same(want: Sequence[Array], got: Sequence[Array], tolerance: float) -> bool:
    """Whether outputs are equal, those with channels last too, and integers of another width."""
    if len(want) != len(got):
        return False
    for a, b in zip(want, got, strict=True):
        forms = [b, np.moveaxis(b, -1, 1)] if b.ndim > 2 else [b]
        kind = a.dtype if a.dtype.kind == b.dtype.kind else b.dtype
        if not any(are_equal([a], [one.astype(kind)], tolerance) for one in forms):
            return False
    return True


def judge(
    made: Sequence[Made], source: Path, sizes: Mapping[str, Sequence[int]], interpreter: Interpreter
) -> list[Judged | None]:
    """Each model that was made; None where there is none or it is malformed."""
    plain, quick = open_session(source, False), open_session(source, True)
    feeds = draw(plain, sizes)
    want, again = ([np.asarray(one) for one in each.run(None, dict(feeds))] for each in (plain, quick))
    noise = max((distance(a, b) for a, b in zip(want, again, strict=True)), default=0.0)
    found: list[Judged | None] = []
    ready: list[tuple[int, bytes, list[Array]]] = []
    for place, one in enumerate(made):
        try:
            operators, transposes = count(one.model or b"")
        except (RewriteError, IndexError):
            found.append(None)
            continue
        fault, inputs = _find_fault(one.model or b"", feeds, want, max(1e-3, 10 * noise), interpreter)
        found.append(Judged(operators, transposes, fault, math.nan))
        if inputs:
            ready.append((place, one.model or b"", inputs))
    for place, latency in measure_latencies(ready, interpreter).items():
        judged = found[place]
        assert judged is not None
        found[place] = Judged(judged.operators, judged.transposes, judged.fault, latency)
    return found


def _find_fault(
    model: bytes, feeds: Mapping[str, Array], want: Sequence[Array], tolerance: float, interpreter: Interpreter
) -> tuple[str, list[Array]]:
    """Why a model is not equal, nothing where it is, and the inputs on which it runs."""
    fault, kept = "takes no such inputs", []
    try:
        for inputs in arrange(feeds, interpreter.describe(model)):
            try:
                (got,) = interpreter.run(model, [inputs])
            except RewriteError as error:
                fault = fault if kept else "does not run"
                print(f"    {error}", file=sys.stderr)
                continue
            if are_same(want, got, tolerance):
                return "", inputs
            fault, kept = "other results", inputs
    except RewriteError as error:
        print(f"    {error}", file=sys.stderr)
        fault = "does not load"
    return fault, kept


def measure_latencies(ready: Sequence[tuple[int, bytes, list[Array]]], interpreter: Interpreter) -> dict[int, float]:
    """Milliseconds of a run of each model by its place."""
    found: dict[int, float] = {}
    for _, (place, model, inputs) in itertools.product(range(TURNS), ready):
        interpreter.load(model, inputs, 1)
        found[place] = min(found.get(place, math.inf), statistics.median(interpreter.time(RUNS)) * 1000)
    return found


def format_row(name: str, made: Sequence[Made], judged: Sequence[Judged | None]) -> str:
    """A line of the table."""
    cells = []
    for one, found in zip(made, judged, strict=True):
        alone = "" if one.alone is None else f"{one.alone:.2f}"
        if found is None:
            said = ["no" if one.model is None else "malformed", "", "", ""]
        else:
            latency = "" if math.isnan(found.latency) else f"{found.latency:.2f}"
            said = [found.fault or "yes", f"{found.operators}", f"{found.transposes}", latency]
        cells += [f"{one.whole:.1f}".replace("nan", ""), alone, *said]
    return f"| {name} | {' | '.join(cells)} |"


def summarize(rows: Sequence[tuple[Sequence[Made], Sequence[Judged | None]]]) -> str:
    """What all lines come to, over the models of which both results are equal where it compares results."""
    equal = [sum(one is not None and not one.fault for one in side) for side in zip(*[j for _, j in rows], strict=True)]
    theirs = sum(bool(b and not b.fault and (not a or a.fault)) for _, (a, b) in rows)
    whole = [b.whole / a.whole for (a, b), _ in rows if b.model is not None and a.model is not None]
    alone = [b.alone / a.alone for (a, b), _ in rows if a.alone and b.alone]
    both = [(a, b) for _, (a, b) in rows if a and b and not a.fault and not b.fault]
    latency = [a.latency / b.latency for a, b in both]
    return "\n".join(
        [
            f"{len(rows)} models: equal {' and '.join(map(str, equal))}, theirs alone {theirs}",
            f"seconds of theirs beside ours: whole {_span(whole)}, without imports {_span(alone)}",
            f"of {len(both)} that are equal: more TRANSPOSEs on {sum(a.transposes > b.transposes for a, b in both)}, "
            f"more operators on {sum(a.operators > b.operators for a, b in both)}, latency {_span(latency)} of theirs, "
            f"above 1.05 on {sum(one > 1.05 for one in latency)}",
        ]
    )


def _span(ratios: Sequence[float]) -> str:
    """The geometric mean, the least and the largest."""
    return f"{mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="parts of the names of models (default: all)")
    parser.add_argument("--onnx2tf", type=Path, required=True, help="the Python that has onnx2tf")
    parser.add_argument("--sizes", type=Path, help="shapes of inputs, by model and name")
    parser.add_argument("--backend", default="flatbuffer_direct", help="how onnx2tf writes models")
    parser.add_argument("--skip-whole", action="store_true", help="measure no whole commands")
    options = parser.parse_intermixed_args(arguments)
    sizes = json.loads(options.sizes.read_text()) if options.sizes else {}
    head = ("s", "s alone", "equal", "operators", "TRANSPOSEs", "ms")
    print(f"| model | {' | '.join(head)} | onnx2tf: {' | '.join(head)} |\n|---|{'--:|' * 2 * len(head)}")
    converters = [
        Converter("nnrewrite", sys.executable, ""),
        Converter("onnx2tf", f"{options.onnx2tf.absolute()}", options.backend),
    ]
    rows = []
    with Interpreter(timeout=120) as interpreter, tempfile.TemporaryDirectory() as folder:
        for path in sorted(options.folder.glob("*.onnx")):
            if options.names and not any(name in path.stem for name in options.names):
                continue
            copy = Path(shutil.copyfile(path, Path(folder) / path.name))  # onnx2tf writes to the model that it reads
            made = [
                one.convert(copy, Path(folder) / f"{path.stem}.{one.name}.tflite", not options.skip_whole)
                for one in converters
            ]
            try:
                judged = judge(made, path, sizes.get(path.stem, {}), interpreter)
            except Exception as error:  # of any kind that ONNX Runtime raises for a model it does not run
                print(f"    {path.stem}: {' '.join(f'{error}'.split())[:150]}", file=sys.stderr)
                continue
            rows.append((made, judged))
            print(format_row(path.stem, made, judged), flush=True)
    for one in converters:
        one.close()
    print(summarize(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Optimizers of ONNX models beside each other: what they leave equal, nodes, bytes, seconds, memory and latency.

Writes the table of docs/optimize.md.

    python benchmarks/onnx_models.py FOLDER [--sizes FILE] [--seconds N] [--write] [NAME]...

FOLDER has the models. FILE is JSON, for each model the shapes of its inputs by name; a size that is free is 1 where
none is given. Each optimizer runs once on each model in a process of its own, a copy of one that has made a small
one; memory is what it takes beside that. A result is equal where both models give the same numbers in ONNX Runtime,
with its own optimizations off and on, within a thousandth of the largest or ten times what the original differs between
the two. Latency is that of ONNX Runtime by default on two threads, runs of all results in turn, beside
an unchanged copy; quartiles are of the models. The first call makes an environment for the peers in build/peers.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from environments import ROOT, python
from nnrewrite.frontends.onnx_graphs import list_nodes

PAGE = ROOT / "docs" / "optimize.md"
BEGIN, END = "<!-- benchmarks/onnx_models.py writes what follows -->\n", "<!-- end of the table -->"
#: a tool that takes longer has failed
PATIENCE = 200
COPY, OURS = "an unchanged copy", ("nnrewrite", "nnrewrite, `--target onnxruntime`")
#: what each tool imports, and what makes the file `b` of the file `a`
TOOLS = {
    OURS[0]: ("import nnrewrite.conversion.pipeline as o", "o.rewrite(a, to='onnx').save(b)"),
    OURS[1]: ("import nnrewrite.conversion.pipeline as o", "o.rewrite(a, to='onnx', target='onnxruntime').save(b)"),
    "onnxsim": ("import onnxsim as o", "onnx.save(o.simplify(onnx.load(a))[0], b)"),
    "onnxslim": ("import onnxslim as o", "onnx.save(o.slim(onnx.load(a)), b)"),
    "onnxscript": ("import onnxscript.optimizer as o", "onnx.save(o.optimize(onnx.load(a)), b)"),
    "onnxoptimizer": ("import onnxoptimizer as o", "onnx.save(o.optimize(onnx.load(a), fixed_point=True), b)"),
    "ONNX Runtime, basic": (
        "import onnxruntime as o",
        "s = o.SessionOptions(); s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_BASIC; "
        "s.optimized_model_filepath = b; o.InferenceSession(a, s, providers=['CPUExecutionProvider'])",
    ),
}
#: goes through models by lines; what imports and the first call have made ready is there in each copy of the process
RUN = """
import json, os, signal, sys, time, onnx, onnx.parser
{imports}
text = '<ir_version: 8, opset_import: ["": 17]> net (float[2] x) => (float[2] y) {{ y = Relu(x) }}'
a, b = sys.argv[1] + '/first.onnx', sys.argv[1] + '/made.onnx'
onnx.save(onnx.parser.parse_model(text), a)
{call}
def held(): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')) / 1024
for line in sys.stdin:
    a, b = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm({patience})
        open('/proc/self/clear_refs', 'w').write('5'); before = held(); start = time.perf_counter()
        try:
            {call}
        except BaseException:
            os._exit(1)
        print('=' + json.dumps({{'seconds': time.perf_counter() - start, 'memory': held() - before}}), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print('=null', flush=True)
"""

Arrays = Mapping[str, np.ndarray[Any, Any]]


@functools.cache
def start(tool: str) -> subprocess.Popen[str]:
    """The process of a tool, which makes the files that it is told to of others."""
    imports, call = TOOLS[tool]
    run = sys.executable if tool in OURS else python("optimizers")
    program = RUN.format(imports=imports, call=call, patience=PATIENCE)
    command = [run, "-c", program, tempfile.mkdtemp()]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT.parent, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def optimize(tool: str, source: Path, target: Path) -> dict[str, float] | None:
    """Seconds and megabytes that a tool takes; None where it fails."""
    process = start(tool)
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps([str(source), str(target)]), file=process.stdin, flush=True)
    for line in process.stdout:  # tools say more than that
        if line.startswith("="):
            found: dict[str, float] | None = json.loads(line[1:])
            return found if target.is_file() else None
    raise RuntimeError(f"{tool} does not run")


def open_session(path: Path, optimized: bool) -> onnxruntime.InferenceSession:
    """A session on two threads, with the runtime's own optimizations or without."""
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def draw(session: onnxruntime.InferenceSession, sizes: Mapping[str, Sequence[int]]) -> Arrays:
    """Seeded inputs of a model: normal numbers, and integers of 0 and 1, which are words of any vocabulary."""
    generator, found = np.random.default_rng(0), {}
    for value in session.get_inputs():
        shape = sizes.get(value.name) or [n if isinstance(n, int) else 1 for n in value.shape]
        name = {"float": "float32", "double": "float64"}.get(value.type[7:-1], value.type[7:-1])
        dtype = np.dtype(name.replace("float16", "f2"))
        numbers = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 2, shape)
        found[value.name] = numbers.astype(dtype)
    return found


def are_equal(want: Sequence[Any], got: Sequence[Any], tolerance: float) -> bool:
    """Whether outputs have the same types, shapes and numbers, up to a part of the largest."""
    return len(want) == len(got) and all(
        np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b) and distance(a, b) <= tolerance
        for a, b in zip(want, got, strict=True)
    )


def distance(a: Any, b: Any) -> float:
    """The largest difference, as a part of the largest number."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fiub" or not a.size:
        return 0.0 if np.array_equal(a, b) else math.inf
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    return float(np.nanmax(np.abs(np.where(a == b, 0, a - b))) / max(np.nanmax(np.abs(a)), 1e-3))


def judge(paths: Mapping[str, Path], sizes: Mapping[str, Sequence[int]], seconds: float) -> dict[str, float]:
    """The latency of each file that is equal to the first, as a part of the first's."""
    (first, original), *others = paths.items()
    plain, quick = open_session(original, False), open_session(original, True)
    inputs = draw(plain, sizes)
    want = plain.run(None, inputs)
    noise = max((distance(a, b) for a, b in zip(want, quick.run(None, inputs), strict=True)), default=0.0)
    sessions = {first: quick}
    for name, path in others:
        try:
            found = open_session(path, False).run(None, inputs)
            session = open_session(path, True)
            again = session.run(None, inputs)
        except Exception as error:  # of any kind that a runtime raises for a model it does not run
            print(f"    {name}: {' '.join(f'{error}'.split())[:150]}", file=sys.stderr)
            continue
        if are_equal(want, found, max(1e-3, 10 * noise)) and are_equal(want, again, max(1e-3, 10 * noise)):
            sessions[name] = session
        else:
            print(f"    {name}: other results", file=sys.stderr)
    taken: dict[str, list[float]] = {name: [] for name in sessions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[first]) < 3:
        for name, session in sessions.items():
            start = time.perf_counter()
            session.run(None, inputs)
            taken[name].append(time.perf_counter() - start)
    usual = statistics.median(taken[first])
    return {name: statistics.median(runs) / usual for name, runs in taken.items()}


def count_nodes(path: Path) -> int:
    """The nodes of a model, of inner graphs and functions too, without constants."""
    model = onnx.load(path, load_external_data=False)
    functions = sum(node.op_type != "Constant" for function in model.functions for node in function.node)
    return functions + sum(node.op_type != "Constant" for node in list_nodes(model.graph))


def measure(source: Path, sizes: Mapping[str, Sequence[int]], seconds: float) -> dict[str, dict[str, float]]:
    """What each tool makes of a model: figures by their names, latency only where the result is equal."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.onnx"
        shutil.copyfile(source, copy)
        found: dict[str, dict[str, float]] = {COPY: {"nodes": 1.0, "bytes": 1.0}}
        paths = {"": source, COPY: copy}
        nodes, size = max(1, count_nodes(source)), source.stat().st_size
        for place, tool in enumerate(TOOLS):
            target = Path(folder) / f"{place}.onnx"
            found[tool] = optimize(tool, source, target) or {}
            if found[tool]:
                paths[tool] = target
                found[tool] |= {"nodes": count_nodes(target) / nodes, "bytes": target.stat().st_size / size}
        for tool, latency in judge(paths, sizes, seconds).items():
            if tool:
                found[tool]["latency"] = latency
    return found


def table(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """The results of all models as lines of Markdown."""
    head = ("equal", "nodes", "bytes", "seconds, median", "slowest", "memory, largest, MB", "latency", "quartiles")
    lines = [f"| {len(results)} models | {' | '.join(head)} |", "|---|" + "--:|" * len(head)]
    for tool in (*TOOLS, COPY):
        good = [one[tool] for one in results.values() if "latency" in one[tool]]
        cells = [f"{len(good)}"]
        cells += [f"{mean([one[key] for one in good]):.3f}" for key in ("nodes", "bytes")]
        if tool == COPY:
            cells += ["", "", ""]
        else:
            seconds, memory = ([one[key] for one in good] for key in ("seconds", "memory"))
            cells += [f"{statistics.median(seconds):.2f}", f"{max(seconds):.1f}", f"{max(memory):,.0f}"]
        latency = [one["latency"] for one in good]
        low, _, high = statistics.quantiles(latency, method="inclusive") if len(latency) > 1 else (math.nan,) * 3
        cells += [f"{mean(latency):.3f}", f"{low:.3f} to {high:.3f}"]
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    """Measure what is asked for, and write the table where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="parts of the names of models (default: all)")
    parser.add_argument("--sizes", type=Path, help="the shapes of inputs, as JSON")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long the runs of a model take (default: 2)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_intermixed_args()
    sizes = json.loads(arguments.sizes.read_text()) if arguments.sizes else {}
    results = {}
    for source in sorted(arguments.folder.resolve().glob("*.onnx")):
        if arguments.names and not any(name in source.stem for name in arguments.names):
            continue
        print(source.stem, file=sys.stderr, flush=True)
        try:
            results[source.stem] = measure(source, sizes.get(source.stem, {}), arguments.seconds)
        except Exception as error:  # the original does not run: there is nothing to compare with
            print(f"    {' '.join(f'{error}'.split())[:150]}", file=sys.stderr)
    made = table(results)
    print(made)
    if arguments.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{made}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()

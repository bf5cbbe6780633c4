"""Transposes that are left, the elements they move, and latency, beside tf2onnx.

Writes the tables of docs/appendix/layout.md.

    python benchmarks/layout.py FOLDER_OF_MODELS
    python benchmarks/layout.py FOLDER_OF_MODELS --latency

The first run makes an environment for tf2onnx in build/peers (TensorFlow is large) and keeps what it converts there.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from environments import PEERS, python
from nnrewrite import RewriteError, RuleError, rewrite

OPSET = 18

#: run by the other environment: model and target files in pairs, one process for each eight models
CONVERT = """
import sys, multiprocessing
def one(pair):
    import tf2onnx
    try:
        tf2onnx.convert.from_tflite(pair[0], opset=int(sys.argv[1]), output_path=pair[1])
    except BaseException as error:
        open(pair[1] + '.failed', 'w').write(repr(error))
if __name__ == '__main__':
    pairs = [line.rstrip('\\n').split('\\t') for line in sys.stdin]
    with multiprocessing.get_context('fork').Pool(2, maxtasksperchild=8) as pool:
        pool.map(one, pairs, 1)
"""


@dataclass(frozen=True, slots=True)
class Left:
    """Transposes of run-time values in a model, and the elements they move where inputs' open extents are 1."""

    count: int
    elements: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("--latency", action="store_true", help="run float models too, two threads, side by side")
    asked = parser.parse_args()
    models = sorted(asked.models.rglob("*.tflite"))
    theirs = convert_by_peer(models, asked.models)
    rows, seconds = [], []
    for model in models:
        path = theirs[model]
        if not path.exists():
            continue
        try:
            ours = rewrite(model, opset=OPSET).model
        except RuleError:
            raise
        except RewriteError:
            continue
        peer = onnx.load(path)
        name = model.relative_to(asked.models).as_posix()
        if asked.latency:
            pair = latency(ours, peer) if real(ours) else None
            if pair is not None and min(pair) > 1e-4:
                seconds.append((name, *pair))
                print(f"{pair[0] / pair[1]:.3f} {name}", file=sys.stderr, flush=True)
            continue
        counted = count_transposes(ours), count_transposes(peer)
        if None not in counted:
            rows.append((name, *counted))
    print(times(seconds) if asked.latency else table(rows))


def real(model: onnx.ModelProto) -> bool:
    """Whether a model computes with real numbers throughout."""
    return not any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in model.graph.node)


def times(rows: list[tuple[str, float, float]]) -> str:
    """What both models take, the slowest beside tf2onnx's first, and a line on all of them."""
    rows = sorted(rows, key=lambda row: -row[1] / row[2])
    ratios = [ours / peer for _, ours, peer in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = sum(ratio > 1.05 for ratio in ratios)
    lines = [
        f"Over {len(rows)} float models that take more than 0.1 ms: geometric mean of the ratios {mean:.3f}, the",
        f"greatest {max(ratios):.3f}; above 1.05 are {slower or 'none'}.",
        "",
        "| model | ms | tf2onnx | ratio |",
        "|---|---:|---:|---:|",
    ]
    lines += [f"| {n} | {a * 1e3:.2f} | {b * 1e3:.2f} | {a / b:.3f} |" for n, a, b in rows]
    return "\n".join(lines) + "\n\n"


def convert_by_peer(models: list[Path], folder: Path) -> dict[Path, Path]:
    """What tf2onnx makes of each model, made where it is not there yet; nothing where it fails."""
    interpreter = python("tf2onnx")
    out = PEERS / "tf2onnx"
    out.mkdir(exist_ok=True)
    targets = {m: out / (m.relative_to(folder).as_posix().replace("/", "__") + ".onnx") for m in models}
    todo = [f"{m}\t{t}" for m, t in targets.items() if not t.exists() and not Path(f"{t}.failed").exists()]
    if todo:
        subprocess.run(
            [interpreter, "-c", CONVERT, str(OPSET)], input="\n".join(todo), text=True, check=True, capture_output=True
        )
    return targets


def count_transposes(model: onnx.ModelProto) -> Left | None:
    """Count the Transposes of a model, those of constants left out, and measure in a run what they move.

    None for a model that does not run.
    """
    known = onnx.ModelProto()
    known.CopyFrom(model)
    constants = {tensor.name for tensor in known.graph.initializer}
    constants |= {node.output[0] for node in known.graph.node if node.op_type == "Constant"}
    found: list[onnx.NodeProto] = []
    for node in known.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in constants:
            constants.add(node.output[0])
        if node.op_type == "Transpose" and node.input[0] not in constants:
            found.append(node)
    del known.graph.output[:]
    known.graph.output.extend(onnx.ValueInfoProto(name=name) for name in {node.input[0] for node in found})
    if not found:
        return Left(0, 0)
    made = session(known)
    if made is None:
        return None
    values = dict(zip((item.name for item in made.get_outputs()), made.run(None, feeds(made)), strict=True))
    moved = 0
    for node in found:
        shape = values[node.input[0]].shape
        perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), list(range(len(shape)))[::-1])
        long = [axis for axis in perm if shape[axis] != 1]
        moved += 0 if long == sorted(long) else math.prod(shape)
    return Left(len(found), moved)


def session(model: onnx.ModelProto, profile: Path | None = None) -> Any | None:
    """A model loaded into ONNX Runtime, with two threads; None where it is refused or does not run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, f"{profile}"
    try:
        made = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        made.run(None, feeds(made))
    except Exception as error:  # the runtime's exceptions have no common root but this
        print(f"does not run: {' '.join(str(error).split())[:200]}", file=sys.stderr)
        return None
    return made


def table(rows: list[tuple[str, Left, Left]]) -> str:
    """The table, the models that move most first, and a line on all of them."""
    rows = sorted(rows, key=lambda row: (-row[2].elements, -row[2].count, row[0]))
    more = [name for name, ours, peer in rows if ours.count > peer.count or ours.elements > peer.elements]
    total = [sum(getattr(row[side], what) for row in rows) for what in ("count", "elements") for side in (1, 2)]
    lines = [
        f"Over {len(rows)} models that both convert and that run: {total[0]:,} Transposes, tf2onnx 1.17.0 leaves",
        f"{total[1]:,}; they move {total[2]:,} elements, tf2onnx's {total[3]:,}."
        " Models with more of either than tf2onnx has: " + (f"{', '.join(more)}." if more else "none."),
        "",
        "| model | Transposes | tf2onnx | elements moved | tf2onnx |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, ours, peer in rows:
        if ours.count or peer.count:
            lines.append(f"| {name} | {ours.count} | {peer.count} | {ours.elements:,} | {peer.elements:,} |")
    return "\n".join(lines) + "\n"


def latency(ours: onnx.ModelProto, peer: onnx.ModelProto) -> tuple[float, float] | None:
    """Seconds that the operators of both models take, run in turns; None for a model that does not run.

    Of each operator the fastest of all runs counts, as ONNX Runtime's profiler tells it: operators are short, so that
    one run or the other is not disturbed by other work on the machine, as hardly any run of a whole model is. Models
    that seem slower than tf2onnx's are run again, both, in new sessions.
    """
    best: tuple[dict[str, int], dict[str, int]] = {}, {}
    for _ in range(4):
        with tempfile.TemporaryDirectory() as folder:
            loaded = [session(model, Path(folder) / side) for model, side in ((ours, "ours"), (peer, "peer"))]
            if None in loaded:
                return None
            sessions = [(made, feeds(made)) for made in loaded]
            end, rounds = time.perf_counter() + 2.0, 0
            while rounds < 20 or (time.perf_counter() < end and rounds < 1000):
                rounds += 1
                for made, fed in sessions:
                    made.run(None, fed)
            for (made, _), known in zip(sessions, best, strict=True):
                fastest(Path(made.end_profiling()), known)
        first, second = (sum(known.values()) / 1e6 for known in best)
        if first < 1.03 * second:
            break
    return first, second


def fastest(profile: Path, known: dict[str, int]) -> None:
    """Note the shortest time that each node of a profile took, in microseconds."""
    for event in json.loads(profile.read_text(encoding="utf-8")):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            known[event["name"]] = min(event["dur"], known.get(event["name"], event["dur"]))


def feeds(session: Any) -> dict[str, Any]:
    kinds = {"tensor(float)": "float32", "tensor(uint8)": "uint8", "tensor(int8)": "int8"}
    rng = np.random.default_rng(0)
    found = {}
    for item in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 1 for extent in item.shape]
        kind = kinds.get(item.type) or item.type.removeprefix("tensor(").removesuffix(")")
        found[item.name] = rng.uniform(0, 1, shape).astype(kind)
    return found


if __name__ == "__main__":
    main()

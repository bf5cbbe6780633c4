"""Transposes that are left, and the elements they move, beside tf2onnx: writes the table of docs/layout.md.

    python benchmarks/layout.py FOLDER_OF_MODELS [--write] [--latency]

The first run makes an environment for tf2onnx in build/peers (TensorFlow is large) and keeps what it converts there.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from environments import PEERS, ROOT, python
from nnrewrite import RewriteError, RuleError, rewrite

PAGE = ROOT / "docs" / "layout.md"
MARK = "<!-- benchmarks/layout.py writes what follows -->\n"
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
    parser.add_argument("--write", action="store_true", help="write the table into docs/layout.md")
    parser.add_argument("--latency", action="store_true", help="run both models too, two threads, side by side")
    asked = parser.parse_args()
    models = sorted(asked.models.rglob("*.tflite"))
    theirs = converted(models, asked.models)
    rows, ratios = [], []
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
        pair = left(ours), left(peer)
        if None in pair:
            continue
        rows.append((model.relative_to(asked.models).as_posix(), *pair))
        if asked.latency and (seconds := latency(ours, peer)) is not None:
            ratios.append((seconds[0] / seconds[1], rows[-1][0]))
            print(f"{ratios[-1][0]:.3f} {rows[-1][0]}", flush=True)
    text = table(rows)
    if ratios:
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        print(f"latency over tf2onnx's: geometric mean {mean:.3f}, worst {max(ratios)}, {len(ratios)} models")
    if asked.write:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").split(MARK)[0] + MARK + text, encoding="utf-8")
    else:
        print(text)


def converted(models: list[Path], folder: Path) -> dict[Path, Path]:
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


def left(model: onnx.ModelProto) -> Left | None:
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


def session(model: onnx.ModelProto) -> Any | None:
    """A model loaded into ONNX Runtime, with two threads; None where it is refused or does not run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
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
    """Seconds a run of both models in turns, the best of many; None for models that do not run or take no time.

    Where the two seem to differ they are measured for longer, since other work on the machine slows down either.
    """
    loaded = [session(model) for model in (ours, peer)]
    if None in loaded:
        return None
    sessions = [(made, feeds(made)) for made in loaded]
    best = [math.inf, math.inf]
    for limit in (2.0, 4.0, 8.0):
        end = time.perf_counter() + limit
        while time.perf_counter() < end:
            for side, (made, fed) in enumerate(sessions):
                started = time.perf_counter()
                made.run(None, fed)
                best[side] = min(best[side], time.perf_counter() - started)
        if min(best) <= 1e-4:
            return None
        if abs(math.log(best[0] / best[1])) < 0.03:
            break
    return best[0], best[1]


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

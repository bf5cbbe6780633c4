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
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from nnrewrite import RewriteError, rewrite

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "build" / "peers"
PAGE = ROOT / "docs" / "layout.md"
MARK = "<!-- benchmarks/layout.py writes what follows -->\n"
PACKAGES = ("tf2onnx==1.17.0", "tensorflow-cpu")
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
    """Transposes of run-time values in a model, and the elements they move; extents not known count as 1."""

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
        except RewriteError:
            continue
        peer = onnx.load(path)
        rows.append((model.relative_to(asked.models).as_posix(), left(ours), left(peer)))
        if asked.latency and (pair := latency(ours, peer)) is not None:
            ratios.append((pair[0] / pair[1], rows[-1][0]))
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
    python = PEERS / "env" / "bin" / "python"
    if not python.exists():
        venv.create(PEERS / "env", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    out = PEERS / "tf2onnx"
    out.mkdir(exist_ok=True)
    targets = {m: out / (m.relative_to(folder).as_posix().replace("/", "__") + ".onnx") for m in models}
    todo = [f"{m}\t{t}" for m, t in targets.items() if not t.exists() and not Path(f"{t}.failed").exists()]
    if todo:
        subprocess.run(
            [python, "-c", CONVERT, str(OPSET)], input="\n".join(todo), text=True, check=True, capture_output=True
        )
    return targets


def left(model: onnx.ModelProto) -> Left:
    """Count the Transposes of a model; those of constants are folded when it is loaded."""
    known = onnx.ModelProto()
    known.CopyFrom(model)
    for value in known.graph.input:
        for extent in value.type.tensor_type.shape.dim:
            if not extent.HasField("dim_value") or extent.dim_value <= 0:
                extent.dim_value = 1
    # Shapes that the file states in symbols would keep the numbers from being inferred.
    del known.graph.value_info[:]
    for value in known.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(known, data_prop=True).graph
    shapes = {
        value.name: [extent.dim_value for extent in value.type.tensor_type.shape.dim]
        for value in (*inferred.value_info, *inferred.input, *inferred.output)
    }
    constants = {tensor.name for tensor in inferred.initializer}
    constants |= {node.output[0] for node in inferred.node if node.op_type == "Constant"}
    count = elements = 0
    for node in inferred.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in constants:
            constants.add(node.output[0])
        if node.op_type != "Transpose" or node.input[0] in constants:
            continue
        count += 1
        shape = shapes.get(node.input[0], [])
        perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), list(range(len(shape)))[::-1])
        long = [axis for axis in perm if axis >= len(shape) or shape[axis] != 1]
        elements += 0 if long == sorted(long) else math.prod(max(extent, 1) for extent in shape)
    return Left(count, elements)


def table(rows: list[tuple[str, Left, Left]]) -> str:
    """The table, the models that move most first, and a line on all of them."""
    rows = sorted(rows, key=lambda row: (-row[2].elements, -row[2].count, row[0]))
    more = [name for name, ours, peer in rows if ours.count > peer.count or ours.elements > peer.elements]
    total = [sum(getattr(row[side], what) for row in rows) for what in ("count", "elements") for side in (1, 2)]
    lines = [
        f"{len(rows)} models that both convert: {total[0]:,} Transposes against {total[1]:,} of tf2onnx 1.17.0,",
        f"{total[2]:,} elements against {total[3]:,}. More of either than tf2onnx in {len(more)}"
        + (f": {', '.join(more)}." if more else "."),
        "",
        "| model | Transposes | tf2onnx | elements moved | tf2onnx |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, ours, peer in rows:
        if ours.count or peer.count:
            lines.append(f"| {name} | {ours.count} | {peer.count} | {ours.elements:,} | {peer.elements:,} |")
    return "\n".join(lines) + "\n"


def latency(ours: onnx.ModelProto, peer: onnx.ModelProto) -> tuple[float, float] | None:
    """Seconds a run of both models in turns, the best of many; None for models that do not run or take no time."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    sessions: list[Any] = []
    for model in (ours, peer):
        try:
            made = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            sessions.append((made, feeds(made)))
            made.run(None, sessions[-1][1])
        except Exception as error:  # the runtime's exceptions have no common root but this
            print(f"does not run: {error}", file=sys.stderr)
            return None
    best = [math.inf, math.inf]
    end = time.perf_counter() + 2.0
    while time.perf_counter() < end:
        for side, (session, fed) in enumerate(sessions):
            started = time.perf_counter()
            session.run(None, fed)
            best[side] = min(best[side], time.perf_counter() - started)
    return (best[0], best[1]) if min(best) > 1e-4 else None


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

"""What a conversion takes beside other converters: seconds, memory, and what comes out.

Writes docs/appendix/benchmarks.md.

    python benchmarks/peers.py [--models FOLDER] [--runs N] [NAME | FILE]...

A NAME is one of benchmarks/large.py. Each command runs as a process of its own, all in turn, N times; figures are
medians. The limit is what `cp` of the file and a Python that imports numpy and onnx take together, `ms` a run in ONNX
Runtime with two threads. The first call makes an environment for each peer in build/peers (TensorFlow is large).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from environments import PEERS, python

DEFAULT = ("mobilenet_v2", "nasnet_mobile", "inception_v3", "resnet_152")
OPSET = 18
#: a peer that takes longer is not run again
PATIENCE = 300
OURS, CP, PYTHON, TF2ONNX, TFLITE2ONNX, ONNXSCRIPT = (
    "nnrewrite", "cp", "python", "tf2onnx", "tflite2onnx", "onnxscript"
)  # fmt: skip

IMPROVE = "import sys, onnx, onnxscript.rewriter as r; onnx.save(r.rewrite(onnx.load(sys.argv[1])), sys.argv[2])"


@dataclass(slots=True)
class Runs:
    """The runs of one command: wall and processor seconds, and the largest resident set in bytes."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that makes one file of another; `after` names the tool whose output it reads."""

    name: str
    command: tuple[str, ...]
    after: str = ""


def tools(peers: bool = True) -> list[Tool]:
    """All commands, the limit first, or without the peers."""
    ours = Tool(OURS, (str(Path(sys.executable).with_name("rewrite")), "--quiet", "{in}", "-o", "{out}"))
    limit = [Tool(CP, ("cp", "{in}", "{out}")), Tool(PYTHON, (sys.executable, "-c", "import numpy, onnx"))]
    if not peers:
        return [*limit, ours]
    theirs = {name: str(python(name)) for name in (TF2ONNX, TFLITE2ONNX, ONNXSCRIPT)}
    convert = (theirs[TF2ONNX], "-m", "tf2onnx.convert", "--opset", f"{OPSET}", "--tflite", "{in}", "--output", "{out}")
    return [
        *limit,
        ours,
        Tool(TF2ONNX, convert),
        Tool(TFLITE2ONNX, (str(Path(theirs[TFLITE2ONNX]).with_name("tflite2onnx")), "{in}", "{out}")),
        Tool(ONNXSCRIPT, (theirs[ONNXSCRIPT], "-c", IMPROVE, "{in}", "{out}"), TF2ONNX),
    ]


def measure(tool: Tool, model: Path, out: Path, runs: Runs) -> None:
    """Run a command once, and add what it took."""
    source = out.with_name(f"{tool.after}.onnx") if tool.after else model
    if tool.after and not source.exists():
        runs.failed = f"{tool.after} made nothing to begin with"
        return
    named = {"{in}": str(source), "{out}": str(out)}
    out.unlink(missing_ok=True)
    command = [named.get(word, word) for word in tool.command]
    # As everywhere but in a test, compiled modules are kept.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    with (out.parent / "log").open("w+b") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**kept, "TF_CPP_MIN_LOG_LEVEL": "3"})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        last = log.read().decode(errors="replace").strip().splitlines()[-1:]
    if process.returncode:
        runs.failed = " ".join(last) or f"exit status {process.returncode}"
        return
    runs.wall.append(time.perf_counter() - started)
    runs.processor.append(usage.ru_utime + usage.ru_stime)
    runs.memory.append(usage.ru_maxrss * 1024)


def compare_tools(model: Path, commands: Sequence[Tool], repeats: int) -> list[str]:
    """The rows of the table for one model."""
    folder = PEERS / "out" / model.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = {tool.name: Runs() for tool in commands}
    for tool in commands[:3]:
        measure(tool, model, folder / f"{tool.name}.onnx", Runs())  # not counted: rules and modules get compiled
    for _ in range(repeats):
        for tool in commands:
            runs = found[tool.name]
            if not runs.failed and sum(runs.wall) < PATIENCE:
                measure(tool, model, folder / f"{tool.name}.onnx", runs)
    made = {tool.name: path for tool in commands if (path := folder / f"{tool.name}.onnx").exists() and tool.name != CP}
    looked = [sys.executable, __file__, "--look", *(f"{path}" for path in made.values())]
    seen = json.loads(subprocess.run(looked, capture_output=True, text=True, check=True).stdout)
    limit, spent = (
        sum(statistics.median(figures) for figures in several)
        for several in ([found[name].wall for name in (CP, PYTHON)], [found[name].processor for name in (CP, PYTHON)])
    )
    base = statistics.median(found[PYTHON].memory)
    ours = found[OURS]
    rows = []
    for name in (tool.name for tool in commands if tool.name not in (CP, PYTHON)):
        runs, label = found[name], f"{name} after tf2onnx" if name == ONNXSCRIPT else name
        if runs.failed:
            rows.append(
                f"| | {label} | fails: {' '.join(runs.failed.split())[:120].replace('|', '/')} | | | | | | | | |"
            )
            continue
        wall, used, memory = (statistics.median(figures) for figures in (runs.wall, runs.processor, runs.memory))
        nodes, transposes, speed = seen[f"{made[name]}"]
        cells = [
            label, f"{wall:.2f}", over(runs.wall, ours.wall), f"{wall / limit:.1f}", f"{used:.2f}",
            over(runs.processor, ours.processor), f"{used / spent:.1f}", f"{memory / 1e6:,.0f}",
            over(runs.memory, ours.memory), f"{nodes:,} / {transposes:,}",
            "" if speed is None else f"{1000 * speed:.2f}",
        ]  # fmt: skip
        rows.append(f"| | {' | '.join(cells)} |")
    size = model.stat().st_size
    above = (statistics.median(ours.memory) - base) / size
    rows.insert(
        0, f"| **{model.stem}**, {size / 1e6:,.1f} MB; the limit {limit:.2f} s, {spent:.2f} of CPU; ours holds"
        f" {above:.2f} of the file above the interpreter | | | | | | | | | | |",
    )  # fmt: skip
    return rows


def over(figures: Sequence[float], others: Sequence[float]) -> str:
    """How many times as much as the others, run by run."""
    return f"{statistics.median(a / b for a, b in zip(figures, others, strict=False)):.1f}"


def look(paths: Sequence[Path]) -> dict[str, tuple[int, int, float | None]]:
    """For each model its nodes, how many of them are Transposes, and the seconds of a run, the best of many in turn.

    In a process of its own: what the parent of a command has in memory counts for the command. Models above 1 GB are
    not run.
    """
    import onnx
    from layout import feeds, session

    nodes = {path: onnx.load(path, load_external_data=False).graph.node for path in paths}
    known = {path: session(onnx.load(path)) for path in paths if path.stat().st_size < 1e9}
    loaded = {path: (one, feeds(one)) for path, one in known.items() if one is not None}
    best = dict.fromkeys(loaded, math.inf)
    end = time.perf_counter() + 3.0
    while time.perf_counter() < end:
        for path, (one, fed) in loaded.items():
            started = time.perf_counter()
            one.run(None, fed)
            best[path] = min(best[path], time.perf_counter() - started)
    return {f"{p}": (len(n), sum(x.op_type == "Transpose" for x in n), best.get(p)) for p, n in nodes.items()}


def machine() -> str:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="files, or models of benchmarks/large.py")
    parser.add_argument("--models", type=Path, default=PEERS / "models", help="where large models are made")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--look", nargs="+", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help="without peers")
    asked = parser.parse_args()
    if asked.look:
        print(json.dumps(look(asked.look)))
        return
    commands = tools(not asked.alone)
    lines = [
        f"{machine()}. Medians of {asked.runs} runs, all commands in turn.",
        "",
        "| model | tool | s | of ours | of limit | CPU s | of ours | of limit | MB | of ours | nodes / Transposes |"
        " ms |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in asked.names or DEFAULT:
        model = Path(name)
        if not model.exists():
            model = asked.models / f"{name}.tflite"
            make = [sys.executable, Path(__file__).with_name("large.py"), asked.models, name]
            subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        lines += compare_tools(model, commands, asked.runs)
    print("\n".join(lines))


if __name__ == "__main__":
    main()

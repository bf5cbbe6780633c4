"""The latency of a folder of models in ONNX Runtime over that in TensorFlow Lite, side by side, as tables.

    python benchmarks/targets.py FOLDER [--threads 2] [--rounds 8] [--peers FOLDER] [--processor-time]

FOLDER holds models and a MANIFEST.tsv with the columns path, kind, tier and runs; models that TensorFlow Lite runs in
less than 0.1 ms are left out. A folder of peers holds what another converter made of the same models, named by their
paths with `__` for the slashes and the ending `.onnx`. Ratios are those of the least times: other processes lengthen
some runs of all sides, and leave some alone. On a busy machine `--processor-time` with one thread is what can be relied
on: it leaves out the time in which other processes have the processor. Quantized models are timed beside what `--float`
makes of them, too.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nnrewrite import RewriteError, convert
from nnrewrite.verify import Interpreter
from nnrewrite.verify.latency import Benchmark, run_benchmark

LEAST, LARGE, SHOWN = 0.1, 0.5, 3
QUANTIZED = ("int8", "uint8", "int16", "mixed")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    kind: str
    found: Benchmark

    @property
    def ratio(self) -> float:
        return self.found.targets["ours"].least / self.found.source.least

    def over(self, other: str) -> float | None:
        """The latency over that of another form of the model, if there is one."""
        found = self.found.targets.get(other)
        return None if found is None else self.found.targets["ours"].least / found.least

    @property
    def quantized(self) -> bool:
        return self.kind.split()[0] in QUANTIZED

    @property
    def large(self) -> bool:
        times = [self.found.source.least, *(one.least for name, one in self.found.targets.items() if name == "peer")]
        return max(times) >= LARGE


def measure(
    path: Path, peer: Path | None, quantized: bool, threads: int, rounds: int, interpreter: Interpreter
) -> Benchmark | None:
    """Time one model; None for one that is too small, or that one side does not run."""
    try:
        targets: dict[str, Path | bytes] = {"ours": convert(path).SerializeToString()}
        if run_benchmark(path, {}, threads, 1, interpreter=interpreter).source.least < LEAST:
            return None
        if quantized:
            targets["float"] = convert(path, float=True).SerializeToString()
        try:
            with_peer = targets | ({"peer": peer} if peer is not None and peer.is_file() else {})
            return run_benchmark(path, with_peer, threads, rounds, interpreter=interpreter)
        except RewriteError:  # what another converter made may not run
            return run_benchmark(path, targets, threads, rounds, interpreter=interpreter)
    except RewriteError:
        return None


def mean(ratios: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "none"


def tables(rows: list[Row]) -> Iterator[str]:
    """The lines of both tables: means over kinds of models, and each model."""
    kinds = {
        "all": rows,
        "quantized": [row for row in rows if row.quantized],
        f"quantized, from {LARGE} ms": [row for row in rows if row.quantized and row.large],
        "dynamic range": [row for row in rows if row.kind.startswith("dynamic")],
        "real": [row for row in rows if row.kind.startswith("float")],
    }
    yield "| models | | over TensorFlow Lite | over the peer | over `--float` |"
    yield "|---|--:|--:|--:|--:|"
    for kind, some in kinds.items():
        others = [mean([r for row in some if (r := row.over(name)) is not None]) for name in ("peer", "float")]
        yield f"| {kind} | {len(some)} | {mean([row.ratio for row in some])} | {others[0]} | {others[1]} |"
    yield ""
    yield "| model | kind | TFLite ms | ms | ratio | over the peer | over `--float` | where the time goes |"
    yield "|---|---|--:|--:|--:|--:|--:|---|"
    for row in rows:
        kernels = row.found.profiles["ours"].kernels[:SHOWN]
        total = row.found.profiles["ours"].milliseconds
        where = ", ".join(f"{one.operator} {one.milliseconds / total:.0%} ({one.nodes})" for one in kernels)
        others = ["" if (r := row.over(name)) is None else f"{r:.2f}" for name in ("peer", "float")]
        times = [row.found.source.least, row.found.targets["ours"].least, row.ratio]
        figures = [*(f"{figure:.2f}" for figure in times), *others]
        yield f"| {row.name} | {row.kind} | {' | '.join(figures)} | {where} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--processor-time", action="store_true")
    given = parser.parse_args()
    command = None
    if given.processor_time:
        time.perf_counter = time.thread_time
        clock = "import time; time.perf_counter = time.thread_time"
        command = [sys.executable, "-c", f"{clock}; from nnrewrite.verify.worker import main; main()"]
    with (given.folder / "MANIFEST.tsv").open(encoding="utf-8") as table:
        entries = [row for row in csv.DictReader(table, delimiter="\t") if row["runs"].startswith("yes")]
    rows = []
    with Interpreter(command=command) as interpreter:
        for entry in entries:
            peer = given.peers / f"{entry['path'].replace('/', '__')}.onnx" if given.peers else None
            quantized = entry["kind"].split()[0] in QUANTIZED
            found = measure(given.folder / entry["path"], peer, quantized, given.threads, given.rounds, interpreter)
            if found is not None:
                rows.append(Row(Path(entry["path"]).stem, entry["kind"], found))
    rows.sort(key=lambda row: -row.ratio)
    print("\n".join(tables(rows)))


if __name__ == "__main__":
    main()

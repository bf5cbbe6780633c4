"""How the time of the command grows with the nodes of a graph: 10,000 beside 100,000, in turn.

    python benchmarks/growth.py [--models FOLDER] [--runs N] [GRAPH]...

A GRAPH is a function of benchmarks/graphs.py, by default all of them. Figures are the least of the runs, of wall and of
processor time: the program's share of what the machine is busy with.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from environments import PEERS
from graphs import GRAPHS, SIZES
from peers import OURS, Runs, machine, measure, tools


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=tuple(GRAPHS), metavar="GRAPH")
    parser.add_argument("--models", type=Path, default=PEERS / "models", help="where the graphs are made")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    (ours,) = (tool for tool in tools(peers=False) if tool.name == OURS)
    out = PEERS / "out" / "growth" / "out.onnx"
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{machine()}. The least of {asked.runs} runs.\n")
    print("| graph | nodes | s | CPU s | microseconds of CPU a node | times the CPU of 10,000 | MB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for graph in asked.graphs:
        found = {size: Runs() for size in SIZES}
        names = {size: f"{graph}_{size}" for size in SIZES}
        make = [sys.executable, Path(__file__).with_name("large.py"), asked.models, *names.values()]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        measure(ours, asked.models / f"{names[SIZES[0]]}.tflite", out, Runs())  # not counted
        for _ in range(asked.runs):
            for size, runs in found.items():
                measure(ours, asked.models / f"{names[size]}.tflite", out, runs)
        for size, runs in found.items():
            if runs.failed:
                raise SystemExit(f"{names[size]}: {runs.failed}")
            spent = min(runs.processor)
            cells = [
                f"{min(runs.wall):.2f}", f"{spent:.2f}", f"{1e6 * spent / size:.0f}",
                f"{spent / min(found[SIZES[0]].processor):.1f}", f"{min(runs.memory) / 1e6:.0f}",
            ]  # fmt: skip
            print(f"| {graph} | {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

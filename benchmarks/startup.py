"""Prints what the start of a command costs: converting one small model, with and without what keeps the start short.

    python benchmarks/startup.py [--runs N]

Each variant runs in a process of its own, in turn; processor time of the whole process, ratios beside the first line.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from nnrewrite.backends.probe import write_operator_model
from nnrewrite.engine.dialects.ops_files import load

CONVERT = "from nnrewrite.cli import dispatch; dispatch.main()"
VARIANTS = {
    "as it is": CONVERT,
    "the same, as a control": CONVERT,
    "standard dataclasses": "import dataclasses; from nnrewrite.engine.base import startup;"
    f" startup.dataclass = dataclasses.dataclass; startup.replace = dataclasses.replace; {CONVERT}",
    "sympy imported with onnx_ir": f"import onnx_ir; {CONVERT}",
    "import numpy, onnx alone": "import numpy, onnx",
}


def measure(code: str, model: Path) -> float:
    """Run code with a command line that converts a model; seconds of processor time."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code, str(model)], check=True, stdout=subprocess.DEVNULL, cwd=model.parent)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "abs.tflite"
        model.write_bytes(write_operator_model(load(), "ABS", {"x": ("FLOAT32", (2, 3))}, [("FLOAT32", (2, 3))]))
        measure(CONVERT, model)
        seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
        for _ in range(runs):
            for name, code in VARIANTS.items():
                seconds[name].append(measure(code, model))
    first = statistics.median(seconds["as it is"])
    print("| variant | ms | quartiles | ratio |\n|---|--:|--:|--:|")
    for name, times in seconds.items():
        low, middle, high = (1000 * one for one in statistics.quantiles(times, n=4))
        print(f"| {name} | {middle:.0f} | {low:.0f} to {high:.0f} | {middle / first / 1000:.2f} |")


if __name__ == "__main__":
    main()

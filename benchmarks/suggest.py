"""Rules suggested for operators whose own are not looked at: how many are found, of how many nodes, in what time.

    python benchmarks/suggest.py [--time 60] [--seed 0] [OPERATOR ...]

Prints a row for each operator, with the template, and the count at the end.
"""

from __future__ import annotations

import argparse
import re
import time

from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.suggest import suggest
from nnrewrite.verify import Interpreter

OPERATORS = """ABS RSQRT HARD_SWISH RELU6 RELU_N1_TO_1 ADD SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD POW GREATER NOT_EQUAL
LOGICAL_AND LOGICAL_NOT SUM MEAN REDUCE_MAX REDUCE_ANY ARG_MAX CUMSUM GATHER CAST RESHAPE TRANSPOSE TILE MIRROR_PAD
SELECT L2_NORMALIZATION LOG_SOFTMAX PRELU"""


def main() -> None:
    """Search a rule for each operator and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", nargs="*", default=OPERATORS.split())
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rules = ("tflite2onnx",)
    known = loader.load(rules).catalogue.find_dialect("tflite").operators
    print("| Operator | Template | Nodes | Seconds |\n|---|---|---|---|", flush=True)
    count = 0
    with Interpreter() as interpreter:
        for name in arguments.operators:
            started = time.monotonic()
            found = suggest(rules, known[name], interpreter, arguments.time, arguments.seed)
            count += found is not None
            template = re.search(r"=> (.*?)\n  test", found.text, re.DOTALL) if found else None
            said = f"`{' '.join(template[1].split())}`" if template else "none found"
            print(
                f"| {name} | {said} | {found.nodes if found else ''} | {time.monotonic() - started:.1f} |", flush=True
            )
    print(f"\n{count} of {len(arguments.operators)} found")


if __name__ == "__main__":
    main()

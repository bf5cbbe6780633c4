"""Run every model of a folder that remembers in step with the interpreter, state fed back, and print a table.

    python benchmarks/streaming.py FOLDER

Both sides begin anew and then run on for 20 steps on the same seeded inputs. A model passes when every output agrees at
every step as `--verify` judges it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nnrewrite import RewriteError, rewrite
from nnrewrite.verify import Interpreter
from nnrewrite.verify.runtime import Runtime
from nnrewrite.verify.streaming import compare_streams, draw_samples, find_stateful

STEPS = 20


def row(path: Path, interpreter: Interpreter) -> tuple[str, int, str, str]:
    """A model's name, how many variables it keeps, whether it stays in step, and the largest difference."""
    try:
        target = rewrite(path).model.SerializeToString()
        steps = draw_samples(interpreter.describe(path), STEPS)
        compared = compare_streams(path, target, steps, interpreter)
    except RewriteError as error:
        return path.name, 0, "no", str(error).splitlines()[0]
    worst = max((one.absolute or 0.0 for one in compared), default=0.0)
    unit = " step" + "s" * (worst != 1) + " of the scale" if any(one.quantized for one in compared) else ""
    passed = all(one.verdict.passed for one in compared)
    return f"{path.parent.name}/{path.name}", len(Runtime(target).state), "yes" if passed else "no", f"{worst:g}{unit}"


def main(folder: Path) -> None:
    print("| model | variables | in step | largest difference |\n|---|--:|---|--:|")
    with Interpreter() as interpreter:
        for path in find_stateful(folder):
            print("| " + " | ".join(f"{cell}" for cell in row(path, interpreter)) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

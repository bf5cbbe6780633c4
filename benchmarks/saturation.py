"""What products of bytes come to on this processor: models converted for three targets, their verdicts and their times.

    python benchmarks/saturation.py MODEL.tflite...

Models whose products may saturate, as the conversion tells, are verified for each target and timed for two: the least
milliseconds of processor time of one thread, of many runs that take turns. The processor's kind is printed first.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from ablation import least
from nnrewrite import RewriteError, rewrite
from nnrewrite.conversion.options import PORTABLE, TARGET
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.inputs import draw
from nnrewrite.verify.saturation import can_saturate

SAFE = "onnxruntime-avx2"
TARGETS = (TARGET, PORTABLE, SAFE)


def row(path: Path, interpreter: Interpreter) -> tuple[float, list[str]] | None:
    """How many times as long the safe target takes, and the cells of a table; None where nothing may saturate, or one
    side does not run."""
    try:
        made = {target: rewrite(path, target=target) for target in TARGETS}
        if not made[TARGET].report.told:
            return None
        models = {target: one.model.SerializeToString() for target, one in made.items()}
        verdicts = [
            "agrees" if compare_models(path, model, interpreter=interpreter).passed else "differs"
            for model in models.values()
        ]
        [[feed]] = [next(draw(interpreter.describe(path).inputs))]
        times = least({target: models[target] for target in (TARGET, SAFE)}, feed)
    except RewriteError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return None
    ratio = times[SAFE] / times[TARGET]
    nodes = sum(made[TARGET].report.told.values())
    return ratio, [path.stem, f"{nodes}", f"{times[TARGET]:.3f}", f"{times[SAFE]:.3f}", f"{ratio:.2f}", *verdicts]


def main(arguments: list[str]) -> None:
    print(
        f"products of unsigned and signed bytes {'saturate' if can_saturate() else 'do not saturate'} on this processor"
    )
    print(f"| model | nodes | ms {TARGET} | ms {SAFE} | | {' | '.join(TARGETS)} |\n|---|--:|--:|--:|--:|---|---|---|")
    rows: list[tuple[float, list[str]]] = []
    with Interpreter() as interpreter:
        for path in map(Path, arguments):
            if (found := row(path, interpreter)) is not None:
                rows.append(found)
                print(f"| {' | '.join(found[1])} |", flush=True)
    different = [sum(cells[5 + place] == "differs" for _, cells in rows) for place in range(len(TARGETS))]
    mean = math.exp(sum(math.log(ratio) for ratio, _ in rows) / len(rows))
    told = ", ".join(f"{target} {count}" for target, count in zip(TARGETS, different, strict=True))
    print(f"{len(rows)} models, of which differ: {told}; {SAFE} takes {mean:.2f} times as long as {TARGET}")


if __name__ == "__main__":
    main(sys.argv[1:])

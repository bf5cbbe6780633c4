"""What each rule of a target is worth: models converted with the rule and without it, in processor time of one thread.

    python benchmarks/ablation.py MODEL.tflite... [--target onnxruntime] [--rules NAME,NAME...]

Each model is converted once for every rule of the target that fires on it, with a copy of the target's pack that lacks
the rule. Printed is the least time of many runs, which take turns.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from nnrewrite import rewrite
from nnrewrite.conversion.target import list_changes
from nnrewrite.engine.packs.folders import find_folders
from nnrewrite.verify import Interpreter, Runtime
from nnrewrite.verify.inputs import draw

TURNS, SECONDS = 8, 0.1


def lacking(target: str, rule: str, folder: Path) -> str:
    """A copy of a target's pack without one rule."""
    (source,) = find_folders([target])
    copy = folder / rule / target
    shutil.copytree(source, copy)
    for file in copy.glob("**/*.rules"):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(rf"^rule {rule}\b.*?^}}\n", "", text, flags=re.M | re.S), encoding="utf-8")
    return str(copy)


def list_fired(path: Path, target: str) -> list[str]:
    """The rules of a target that a conversion used."""
    used = {name.partition(".")[0] for name in rewrite(path, target=target).report.rules}
    return [one.rule for one in list_changes(target) if one.rule in used]


def least(models: dict[str, bytes], feed: list[object]) -> dict[str, float]:
    """The least milliseconds of processor time that each model takes."""
    runtimes = {name: Runtime(model, threads=1) for name, model in models.items()}
    found = dict.fromkeys(models, float("inf"))
    for _ in range(TURNS):
        for name, runtime in runtimes.items():
            spent = 0.0
            while spent < SECONDS / TURNS:
                started = time.thread_time()
                runtime.run(feed)
                taken = time.thread_time() - started
                spent += taken
                found[name] = min(found[name], 1e3 * taken)
    return found


def option(arguments: list[str], name: str, default: str) -> str:
    """Take an option with a value out of the arguments."""
    if name not in arguments:
        return default
    at = arguments.index(name)
    value = arguments[at + 1]
    del arguments[at : at + 2]
    return value


def main(arguments: list[str]) -> None:
    target = option(arguments, "--target", "onnxruntime")
    asked = option(arguments, "--rules", "")
    print("| rule | model | ms without | ms with | |\n|---|---|--:|--:|--:|")
    rows = []
    with tempfile.TemporaryDirectory() as folder, Interpreter() as interpreter:
        for path in map(Path, arguments):
            [[feed]] = [next(draw(interpreter.describe(path).inputs))]
            whole = rewrite(path, target=target).model.SerializeToString()
            for rule in list_fired(path, target):
                if asked and rule not in asked.split(","):
                    continue
                shutil.rmtree(Path(folder) / rule, ignore_errors=True)
                other = rewrite(path, target=lacking(target, rule, Path(folder)), activations="uint8").model
                found = least({"with": whole, "without": other.SerializeToString()}, feed)
                share = found["with"] / found["without"]
                rows.append((rule, f"{path.stem} | {found['without']:.2f} | {found['with']:.2f} | {share:.2f}"))
                print(f"| `{rows[-1][0]}` | {rows[-1][1]} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Count the operator overloads that exported programs call, and those that rules convert.

    python -m nnrewrite.benchmarks.torch_overloads FOLDER... [--to onnx|tflite] [--all]

The folders hold `.pt2` files, such as those that `torch_models --keep FOLDER` saves; torch is not needed. An overload
counts as converted if no program was refused by its name. Prints those that were, with how many programs call them and
how many were refused; with --all every overload; then the totals.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nnrewrite import RewriteError, UnsupportedError, rewrite
from nnrewrite.frontends.pt2_names import list_functional_names, split_target

#: the packs that lead to each kind of file
PACKS = {"onnx": ("aten2onnx",), "tflite": ("aten2onnx", "onnx2tflite")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--to", choices=PACKS, default="onnx")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    called: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    programs = [path for folder in asked.folders for path in sorted(folder.glob("*.pt2"))]
    converted = 0
    for path in programs:
        overloads = set(list_overloads(path))
        names = find_refused(path, PACKS[asked.to])
        converted += not names
        called.update(overloads)
        refused.update(one for one in overloads if names & set(list_functional_names(*split_target(one))))
    for overload, count in sorted(called.items()):
        if asked.all or refused[overload]:
            print(f"{overload:60s} {count:5d} {refused[overload] or '':>5}")
    whole = sum(not refused[one] for one in called)
    print(f"{len(called)} overloads in {len(programs)} programs: {whole} converted, in {converted} programs all")


def list_overloads(path: Path) -> Iterator[str]:
    """What the nodes of a program call, those of its inner graphs too, but for what yields nothing."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if "/models/" in name and name.endswith(".json"):
                yield from find_targets(json.loads(archive.read(name)))


def find_targets(content: Any) -> Iterator[str]:
    """The targets of all nodes in a part of a program."""
    if isinstance(content, dict):
        if "target" in content and content.get("outputs"):
            yield content["target"]
        yield from find_targets(list(content.values()))
    elif isinstance(content, list):
        for one in content:
            yield from find_targets(one)


def find_refused(path: Path, packs: Iterable[str]) -> set[str]:
    """The operators that a program was refused for; what else was wrong with it, in one word."""
    try:
        rewrite(path, rules=tuple(packs))
    except UnsupportedError as error:
        return {refusal.operator for refusal in error.refusals}
    except RewriteError as error:
        return {type(error).__name__}
    return set()


if __name__ == "__main__":
    main()

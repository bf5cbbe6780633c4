"""Convert every model of a folder, compare each with the interpreter, and print a table by tier and kind.

    python benchmarks/models.py FOLDER

FOLDER holds models and a MANIFEST.tsv with the columns path, kind, tier and runs.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from nnrewrite import RewriteError, UnsupportedError, rewrite
from nnrewrite.verify import compare_models

TIERS = ("core", "model", "unit", "vendor")
VERIFIED, UNCHECKED, DIFFERENT, REFUSED = "verified", "converted, not run by the interpreter", "different", "refused"


def try_model(path: Path) -> tuple[str, str]:
    """What became of one model, and why where it is not verified."""
    try:
        model = rewrite(path).model
    except UnsupportedError as error:
        return REFUSED, ", ".join(sorted({refusal.operator for refusal in error.refusals}))
    except RewriteError as error:
        return REFUSED, str(error).splitlines()[0].removeprefix(f"{path}: ")
    try:
        result = compare_models(path, model.SerializeToString())
    except RewriteError as error:
        return UNCHECKED, str(error)[:120]
    return (VERIFIED, "") if result.passed else (DIFFERENT, "; ".join(result.differences))


def main(folder: Path) -> None:
    with (folder / "MANIFEST.tsv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    with ProcessPoolExecutor(2) as pool:
        outcomes = list(pool.map(try_model, [folder / row["path"] for row in rows]))
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row, (outcome, _) in zip(rows, outcomes, strict=True):
        counts.setdefault((row["tier"], row["kind"]), Counter())[outcome] += 1
    print("| tier | kind | models | verified | different | interpreter refuses | not converted |")
    print("|---|---|--:|--:|--:|--:|--:|")
    total: Counter[str] = Counter()
    for tier, kind in sorted(counts, key=lambda key: (TIERS.index(key[0]), key[1])):
        found = counts[tier, kind]
        total += found
        print(f"| {tier} | {kind} | {line(found)} |")
    print(f"| all | | {line(total)} |")
    print("\n## Those that are not verified\n")
    for row, (outcome, reason) in zip(rows, outcomes, strict=True):
        if outcome != VERIFIED:
            print(f"* `{Path(row['path']).name}` ({row['kind']}): {outcome}: {' '.join(reason.split())[:160]}")


def line(found: Counter[str]) -> str:
    cells = (found.total(), found[VERIFIED], found[DIFFERENT], found[UNCHECKED], found[REFUSED])
    return " | ".join(str(cell) for cell in cells)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

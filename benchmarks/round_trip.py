"""Bring TensorFlow Lite models to ONNX and back, and compare what comes back with the models.

    python benchmarks/round_trip.py FOLDER [--only WORD] [--part K/N] [--limit BYTES] [--times]

The ONNX models are for any runtime (`--target portable`) and lose the metadata that says where they are from; on the
way back weights that are codes beside real activations stay codes (`--hybrid integers`). FOLDER
holds models and a MANIFEST.tsv with the columns path and runs; those that the interpreter does not run are left out.
Prints each model whose outputs differ, that is refused, or that has more operators than before, and a line of all. With
`--times` the runs of each model that comes back are timed beside those of the original and of a copy of it, in turn, on
one thread: those that take more than 1.05 of its time are printed, and the geometric means.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
from nnrewrite import RewriteError
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.engine.passes.state import METADATA
from nnrewrite.verify import Interpreter, Kernels
from nnrewrite.verify.interpreter import Signature
from onnx_models import mean
from tflite_peers import measure_latencies

#: how far apart real outputs may be, beside the largest of them
TOLERANCE = 1e-3
#: more than so much of the original's time is told
SLOWER = 1.05
#: how many calls one after the other are compared of models that keep state between them
CALLS = 3


def bring_back(path: Path) -> tuple[bytes, Counter[str], Counter[str], int]:
    """A model after the round trip, with the operators that it had and those that it has, and how many calls tell."""
    there = nnrewrite.rewrite(path, target="portable")
    model = there.model
    calls = CALLS if any(entry.key.startswith(METADATA) for entry in model.metadata_props) else 1
    del model.metadata_props[:]
    back = nnrewrite.rewrite(model.SerializeToString(), to="tflite", hybrid="integers")
    assert isinstance(back.encoded, Encoded)
    return back.encoded.encode(), Counter(there.report.source_operators), Counter(back.report.target_operators), calls


def draw(signature: Signature, random: np.random.Generator) -> list[npt.NDArray[Any]]:
    """Inputs of a model, free extents 1."""
    found = []
    for tensor in signature.inputs:
        extents = [max(n, 1) for n in tensor.shape]
        kind = np.dtype(tensor.dtype)
        if kind.kind == "f":
            found.append(random.uniform(-1, 1, extents).astype(kind))
        elif kind.kind == "b":
            found.append(random.integers(0, 2, extents).astype(bool))
        elif kind.itemsize == 1:
            ends = np.iinfo(kind)
            found.append(random.integers(ends.min, ends.max + 1, extents).astype(kind))
        else:
            found.append(random.integers(0, 2, extents).astype(kind))
    return found


def compare(before: Sequence[npt.NDArray[Any]], after: Sequence[npt.NDArray[Any]]) -> str:
    """How outputs differ, in words; nothing where they do not. Codes of 8 and 16 bits may be one step apart."""
    if len(before) != len(after):
        return f"{len(after)} outputs for {len(before)}"
    for place, (a, b) in enumerate(zip(before, after, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {place} is {b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
        if a.dtype.kind not in "biuf" or not a.size:
            continue
        known = np.isfinite(a.astype(np.float64))
        gap = np.abs(np.where(known, a.astype(np.float64) - np.where(known, b.astype(np.float64), 0), 0)).max()
        size = np.abs(np.where(known, a.astype(np.float64), 0)).max()
        allowed = TOLERANCE * max(size, 1e-3) if a.dtype.kind == "f" else 1 if a.dtype.itemsize < 4 else 0
        if gap > allowed:
            return f"output {place} differs by {gap:.3g} of {size:.3g}"
    return ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a model, and why.

    `outcome` is `equal`, `more`, `different`, `refused`, `fails` or `not run`. `milliseconds` are those of a run of the
    original, of what came back and of a copy of the original, where they were timed.
    """

    outcome: str
    why: str = ""
    milliseconds: tuple[float, float, float] | None = None


def judge(path: Path, interpreter: Interpreter, timed: bool) -> Verdict:
    """Find out what became of a model, and how long it takes where it is `timed`."""
    try:
        data, had, has, calls = bring_back(path)
    except RewriteError as error:
        return Verdict("refused", " ".join(str(error).split())[:300])
    original = path.read_bytes()
    try:
        signature, random = interpreter.describe(original), np.random.default_rng(7)
        feeds = [draw(signature, random) for _ in range(calls)]
        interpreter.run(original, feeds, Kernels.DEFAULT, keep=True)
    except RewriteError as error:
        return Verdict("not run", f"{error}"[:200])
    differs = ""
    for kernels in (Kernels.DEFAULT, Kernels.REFERENCE):  # which may be some codes apart where both models are the same
        try:
            before = interpreter.run(original, feeds, kernels, keep=True)
            after = interpreter.run(data, feeds, kernels, keep=True)
        except RewriteError as error:
            return Verdict("fails", f"{error}"[:300])
        if not (now := next(filter(None, map(compare, before, after)), "")):
            differs = ""
            break
        differs = differs or now
    if differs:
        return Verdict("different", differs)
    taken = None
    if timed:
        models = [(place, one, feeds[0]) for place, one in enumerate((original, data, original))]
        found = measure_latencies(models, interpreter)
        taken = found[0], found[1], found[2]
    if has.total() > had.total():
        why = f"{has.total()} for {had.total()}: {dict(has - had)} for {dict(had - has)}"
        return Verdict("more", why, taken)
    return Verdict("equal", "", taken)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what became of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose path has this word in it")
    parser.add_argument("--part", default="0/1", help="K/N: each Nth model from the Kth on")
    parser.add_argument("--limit", type=int, default=1 << 40, help="models of at most so many bytes")
    parser.add_argument("--times", action="store_true", help="time each model beside its original")
    options = parser.parse_args(arguments)
    ratios: list[tuple[float, float]] = []
    first, step = map(int, options.part.split("/"))
    with (options.folder / "MANIFEST.tsv").open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table, delimiter="\t") if row["runs"] == "yes"]
    paths = [options.folder / row["path"] for row in rows if options.only in row["path"]]
    counts: Counter[str] = Counter()
    with Interpreter(timeout=60) as interpreter:
        for path in paths[first::step]:
            if path.stat().st_size > options.limit:
                continue
            found = judge(path, interpreter, options.times)
            counts[found.outcome] += 1
            if found.outcome != "equal":
                print(f"{found.outcome} {path.relative_to(options.folder)}: {found.why}", flush=True)
            if found.milliseconds is not None:
                before, after, copy = found.milliseconds
                ratios.append((after / before, copy / before))
                if after > SLOWER * before:
                    print(f"slower {path.name}: {before:.3f} ms, then {after:.3f}, the copy {copy:.3f}")
    print(f"{counts.total()} models: {dict(counts)}")
    if ratios:
        back, copies = zip(*ratios, strict=True)
        slower, noise = (sum(one > SLOWER for one in side) for side in (back, copies))
        print(f"{len(ratios)} timed: {mean(back):.3f} of the original's time, above {SLOWER} {slower}")
        print(f"their copies: {mean(copies):.3f}, above {SLOWER} {noise}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Digests of what models become, so that two states of this program can be told to write the same bytes.

    python benchmarks/digest.py FOLDER... [--write FILE] [--compare FILE] [--runs N]

Every `.tflite` file below the folders is converted, and every one inside a `.zip` there. A line of the table is one
model: its name, its kind (float or quantized), the SHA-256 of the bytes written, or the refusal, and the seconds of
processor time of the conversion, the least of the runs. `--compare` takes the table of an earlier state: it lists the
models that became something else, and how the times relate. The exit is 1 where anything became something else.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nnrewrite import RewriteError, rewrite
from nnrewrite.conversion.compiled_rules import prepare
from nnrewrite.conversion.options import DEFAULT
from nnrewrite.engine.base.errors import ModelError
from nnrewrite.engine.base.quantization import read_quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import tflite_reader

FLOAT, QUANTIZED, UNREADABLE = "float", "quantized", "unreadable"


@dataclass(frozen=True, slots=True)
class Digest:
    """What became of one model: the SHA-256 of the bytes written, or the words of the refusal."""

    kind: str
    outcome: str
    seconds: float


def models(folders: Iterable[Path]) -> Iterator[tuple[str, Path | bytes]]:
    """The models below some folders, each by its name: a file, or the bytes of a member of an archive."""
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if path.suffix == ".tflite":
                yield str(path), path
            elif path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    for member in sorted(archive.namelist()):
                        if member.endswith(".tflite"):
                            yield f"{path}:{member}", archive.read(member)


def kind(source: Path | bytes, catalogue: Catalogue) -> str:
    """Whether some value of a model is quantized."""
    try:
        graph = tflite_reader.read(source, catalogue).graph
    except ModelError:
        return UNREADABLE
    values = (value for node in graph for value in (*node.inputs, *node.outputs) if value is not None)
    return QUANTIZED if any(read_quantization(value) is not None for value in values) else FLOAT


def convert_timed(source: Path | bytes) -> tuple[str, float]:
    """The SHA-256 of what a model becomes, or the refusal in one line, and the seconds that it took."""
    gc.collect()
    started = time.process_time()
    try:
        parts = list(rewrite(source).encoded.list_parts())
    except RewriteError as error:
        return " ".join(str(error).split()), time.process_time() - started
    seconds = time.process_time() - started
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest(), seconds


def digest(source: Path | bytes, catalogue: Catalogue, runs: int) -> Digest:
    """Convert a model several times; raises AssertionError where it does not become the same each time."""
    outcomes = [convert_timed(source) for _ in range(runs)]
    (outcome,) = {text for text, _ in outcomes}
    return Digest(kind(source, catalogue), outcome, min(seconds for _, seconds in outcomes))


def read(path: Path) -> dict[str, Digest]:
    """A table that was written before."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: Digest(kind, outcome, float(seconds)) for name, kind, seconds, outcome in rows}


def compare(before: Mapping[str, Digest], after: Mapping[str, Digest]) -> bool:
    """Print what differs, and the times of the models that both have; whether anything differs."""
    both = [name for name in after if name in before]
    different = [name for name in both if before[name].outcome != after[name].outcome]
    for name in different:
        print(f"{name}\n  before {before[name].outcome}\n  after  {after[name].outcome}")
    alone = len(before.keys() ^ after.keys())
    print(f"{len(both)} models in both tables, {len(different)} of them different; {alone} in one only")
    for asked in (FLOAT, QUANTIZED):
        names = [name for name in both if after[name].kind == asked]
        was, now = (sum(table[name].seconds for name in names) for table in (before, after))
        if was:
            print(f"{asked:>10}: {was:8.2f} s before, {now:8.2f} s after, ratio {now / was:.3f}")
    return bool(different)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folders, archives or models")
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the table goes; without, to the screen")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="a table of an earlier state")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="conversions of each model")
    asked = parser.parse_args()
    catalogue = prepare(DEFAULT.stacked, None).pack.catalogue
    before = read(asked.compare) if asked.compare else {}
    gc.freeze()  # what stays is not looked through before each conversion
    after = {name: digest(source, catalogue, asked.runs) for name, source in models(asked.folders)}
    lines = [f"{name}\t{one.kind}\t{one.seconds:.4f}\t{one.outcome}\n" for name, one in after.items()]
    if asked.write:
        asked.write.write_text("".join(lines), encoding="utf-8")
    elif not asked.compare:
        sys.stdout.writelines(lines)
    return int(compare(before, after)) if asked.compare else 0


if __name__ == "__main__":
    sys.exit(main())

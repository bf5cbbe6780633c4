"""Models as their makers make them: built by other programs, converted, and compared with the interpreter.

    python -m nnrewrite.benchmarks.wild build/wild --build keras,functions,quantizer,torch --count 100 --peer 30

Each generator runs in an environment of its own and writes FOLDER/GENERATOR/KIND/NAME.tflite; models that are there are
not made again. Without --build what is in FOLDER is judged. Prints a table by generator and kind, and what is not
right.
Models with operators of TensorFlow, which the interpreter has not got, are compared with what their maker computed.
With --peer tf2onnx converts some of them too, as many of each kind as it has a share of all.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from nnrewrite import RewriteError, UnsupportedError, rewrite
from nnrewrite.conversion.options import TARGET
from nnrewrite.verify import Interpreter, Kernels, Runtime, Tensor, compare, compare_models
from nnrewrite.verify.comparison import measure_distance
from nnrewrite.verify.saturation import can_saturate

from .environments import python

HERE = Path(__file__).parent
#: the script of each generator, and the environment that it runs in
GENERATORS = {
    "keras": ("wild_networks.py", "wild"),
    "recurrent": ("wild_recurrent.py", "wild"),
    "functions": ("wild_functions.py", "wild"),
    "quantizer": ("wild_quantizer.py", "wild"),
    "written": ("wild_written.py", "wild"),
    "published": ("wild_published.py", "wild-torch"),
    "torch": ("wild_torch.py", "wild-torch"),
}
SAFE = "onnxruntime-avx2"
VERIFIED, SPREAD, UNCHECKED, DIFFERENT, REFUSED = "right", "within the spread", "not run", "different", "refused"
#: a result larger than this many times its source says so
LARGER = 1.5
#: names of nodes count for more than weights in smaller ones
LARGE = 50_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one model: in words, how often its bytes, milliseconds a node, and what the peer made of it."""

    outcome: str
    reason: str = ""
    size: float = 0.0
    bytes: int = 0
    milliseconds: float = 0.0
    peer: str = ""


def judge(path: Path) -> Outcome:
    """Convert a model and compare it with the interpreter."""
    began = time.perf_counter()
    try:
        converted = rewrite(path, target=target())
    except UnsupportedError as error:
        return Outcome(REFUSED, " ".join(str(error).splitlines()[1:]))
    except RewriteError as error:
        return Outcome(REFUSED, str(error).splitlines()[0].removeprefix(f"{path}: "))
    except Exception as error:
        return Outcome(REFUSED, f"{type(error).__name__} {error}")
    content = converted.model.SerializeToString()
    milliseconds = (time.perf_counter() - began) * 1000 / max(len(converted.model.graph.node), 1)
    length = path.stat().st_size
    try:
        found = compare_with(path, content)
    except RewriteError as error:
        found = UNCHECKED, str(error)
    return Outcome(*found, len(content) / length, length, milliseconds)


@cache
def interpreter() -> Interpreter:
    """An interpreter that stays for all models of this process."""
    return Interpreter()


@cache
def target() -> str:
    """The target whose products of bytes do not saturate on this processor."""
    return SAFE if can_saturate() else TARGET


def compare_with(path: Path, content: bytes) -> tuple[str, str]:
    """Whether a conversion computes what the interpreter does, or the maker's runtime where that left a sample."""
    if b"Flex" in path.read_bytes():
        if not path.with_suffix(".npz").exists():
            return UNCHECKED, "the interpreter has no operators of TensorFlow"
        sample = np.load(path.with_suffix(".npz"))
        compared = compare_in_order if "result:0" in sample else compare_sample
        reasons = compared(sample, content)
        return DIFFERENT if reasons else VERIFIED, "; ".join(reasons)
    result = compare_models(path, content, interpreter=interpreter())
    found = (SPREAD if result.within_spread else VERIFIED) if result.passed else DIFFERENT
    return found, "; ".join(result.differences)


def compare_sample(sample: Mapping[str, Any], content: bytes) -> list[str]:
    """How the outputs of a conversion differ from those of a sample."""
    runtime = Runtime(content)
    given = {key.removeprefix("in:"): value for key, value in sample.items() if key.startswith("in:")}
    results = runtime.run([as_fed(value) for value in order(given, runtime.inputs)])
    found = dict(zip(runtime.outputs, results, strict=True))
    wanted = [as_fed(value) for key, value in sample.items() if key.startswith("out:")]
    differences = []
    for at, (want, name) in enumerate(zip(wanted, sorted(found, key=ending), strict=True)):
        tensor = Tensor(f"output {at}", want.dtype.name, want.shape, want.shape)
        one = compare(tensor, want, found[name], Kernels.DEFAULT)
        differences += [] if one.verdict.passed else [f"{one.name}: {one.reason}"]
    return differences


def compare_in_order(sample: Mapping[str, Any], content: bytes) -> list[str]:
    """How the outputs of a conversion differ from those of TensorFlow's interpreter, by more than its kernels do."""
    runtime = Runtime(content)
    results = runtime.run([as_fed(sample[f"given:{at}"]) for at in range(len(runtime.inputs))])
    differences = []
    for at, found in enumerate(results):
        want = as_fed(sample[f"result:{at}"])
        tensor = Tensor(f"output {at}", want.dtype.name, want.shape, want.shape)
        other = sample.get(f"other:{at}", want)
        one = compare(tensor, want, found, Kernels.DEFAULT, measure_distance(tensor, want, other))
        differences += [] if one.verdict.passed else [f"{one.name}: {one.reason}"]
    return differences


def order(given: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The arrays of a sample as the inputs of a model ask for them, whose names hold those of the sample."""
    if len(given) == 1:
        return list(given.values())
    return [next(value for key, value in given.items() if re.search(rf"(^|_){key}(:|$)", name)) for name in names]


def ending(name: str) -> tuple[int, str]:
    """The number that the name of an output ends in."""
    digits = re.search(r"(\d+)$", name)
    return int(digits[1]) if digits else 0, name


def as_fed(value: Any) -> Any:
    return value.astype(object) if value.dtype.kind == "S" else value


def judge_peer(path: Path) -> str:
    """What tf2onnx made of a model."""
    target = path.with_suffix(".peer.onnx")
    if not target.exists():
        return REFUSED
    try:
        return compare_with(path, target.read_bytes())[0]
    except RewriteError:
        return UNCHECKED
    except Exception:  # a graph that is no model of ONNX, or reads other operands
        return DIFFERENT


def build(folder: Path, name: str, seed: int, count: int) -> None:
    """Run a generator."""
    script, environment = GENERATORS[name]
    command = [python(environment), HERE / script, folder / name, "--seed", str(seed), "--count", str(count)]
    with (folder / f"{name}.log").open("a") as log:
        subprocess.run([str(part) for part in command], check=True, stdout=log, stderr=log)


def show(rows: list[tuple[Path, Outcome]]) -> Iterator[str]:
    """The lines of the tables."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    peers: dict[tuple[str, str], Counter[str]] = {}
    for path, one in rows:
        key = (path.parts[0], path.parts[1].replace("_", " "))
        counts.setdefault(key, Counter())[one.outcome] += 1
        peers.setdefault(key, Counter())[one.peer] += 1
    columns = (VERIFIED, SPREAD, DIFFERENT, REFUSED, UNCHECKED)
    head = [
        "generator",
        "kind",
        "models",
        *columns,
        *(["tf2onnx: right of"] if any(one.peer for _, one in rows) else []),
    ]
    yield f"| {' | '.join(head)} |"
    yield f"|---|---|{'--:|' * (len(head) - 2)}"
    counts["all", ""] = sum(counts.values(), Counter())
    peers["all", ""] = sum(peers.values(), Counter())
    for key, found in counts.items():
        cells = [*key, found.total(), *(found[column] for column in columns)]
        yield f"| {' | '.join(str(cell) for cell in [*cells, *([share(peers[key])] if len(head) > 8 else [])])} |"
    yield "\nThose that are not right:\n"
    for path, one in rows:
        if one.outcome not in (VERIFIED, SPREAD):
            yield f"* `{path}`: {one.outcome}: {' '.join(one.reason.split())[:300]}"
    large = [(one.size, path) for path, one in rows if one.size > LARGER and one.bytes > LARGE]
    many = sum(one.bytes > LARGE for _, one in rows)
    yield f"\nOf {many} sources of {LARGE // 1000} kB and more, larger than {LARGER} times the source: {len(large)}\n"
    for size, path in sorted(large, reverse=True)[:20]:
        yield f"* `{path}`: {size:.1f}"


def share(found: Counter[str]) -> str:
    """How many of those that the peer was given it got right."""
    tried = found.total() - found[""]
    return f"{found[VERIFIED]} of {tried}" if tried else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", default="", help="generators, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="how many models a generator tries to make")
    parser.add_argument("--peer", type=int, default=0, help="how many of the models tf2onnx converts too")
    parser.add_argument("--only", default="", help="a part of the paths of models")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in filter(None, asked.build.split(",")):
        build(asked.folder, name, asked.seed, asked.count)
    if asked.build:
        subprocess.run([python("tf2onnx"), HERE / "wild_samples.py", asked.folder], check=True)
    paths = [path for path in sorted(asked.folder.glob("*/*/*.tflite")) if asked.only in str(path)]
    rows: list[tuple[Path, Outcome]] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        chosen = paths[:: max(len(paths) // asked.peer, 1)] if asked.peer else []
        if chosen:
            subprocess.run([python("tf2onnx"), HERE / "wild_peer.py", *chosen], check=True, capture_output=True)
        peers = dict(zip(chosen, pool.map(judge_peer, chosen), strict=True))
        for path, one in zip(paths, pool.map(judge, paths), strict=True):
            rows.append((path.relative_to(asked.folder), replace(one, peer=peers.get(path, ""))))
            print(*rows[-1], file=sys.stderr, flush=True)
    print("\n".join(show(rows)))


if __name__ == "__main__":
    main()

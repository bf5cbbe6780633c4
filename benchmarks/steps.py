"""Try single quantized operators, and print how many elements equal those of the interpreter's kernels.

    python benchmarks/steps.py [--cases N] [--seed N] [OPERATOR...]

Cases are drawn from the tests of rules as `rewrite fuzz` draws them, with quantized operands. Each model runs in the
interpreter with its default and with its reference kernels, and converted in ONNX Runtime: as for the default target,
and with --exact.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from nnrewrite import RewriteError, convert
from nnrewrite.engine.packs import loader
from nnrewrite.engine.rewrite.pattern import NodePattern, Variable
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.element_types import read_admitted
from nnrewrite.fuzz.finding import Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.sketch import Case, encode
from nnrewrite.fuzz.subjects import Subject, list_subjects
from nnrewrite.verify import Interpreter, Kernels
from nnrewrite.verify.frames import Array
from nnrewrite.verify.runtime import Runtime

RULES = ("tflite2onnx",)
TYPES = ("qi8", "qu8", "qi16")
#: draws for each case wanted
PATIENCE = 4


@dataclass(slots=True)
class Share:
    """Elements compared, how many of them are equal, and how far the worst is off."""

    elements: int = 0
    equal: int = 0
    worst: int = 0

    def add(self, wanted: Sequence[Array], found: Sequence[Array]) -> None:
        for want, got in zip(wanted, found, strict=True):
            if want.dtype.kind not in "iu" or want.shape != got.shape:
                continue
            off = np.abs(want.astype(np.int64) - got)
            self.elements += off.size
            self.equal += int((off == 0).sum())
            self.worst = max(self.worst, int(off.max(initial=0)))

    def __str__(self) -> str:
        if not self.elements:
            return "-"
        share = "100 %" if self.equal == self.elements else f"{100 * self.equal / self.elements:.2f} %"
        return share if self.worst <= 1 else f"{share}, {self.worst} steps"


def quantize(subject: Subject, wanted: str) -> Subject | None:
    """A rule with tests whose operands are quantized; None where ops.yaml has no such operands for its operator."""
    root = subject.compile_pattern(subject.newest)[-1].value
    if not subject.of_source or not isinstance(root, NodePattern) or root.wildcard or len(root.specs) != 1:
        return None
    [spec] = root.specs.values()
    kinds = read_admitted(spec)
    places = {operand.name: place for place, operand in enumerate(root.operands) if isinstance(operand, Variable)}
    tests, fits = [], False
    for test in subject.tests:
        declarations = []
        for one in test.declarations:
            types = kinds.list_types(places.get(one.name, 0))
            named = one.type in ("i32", "i64")  # places, and biases
            other = (
                wanted if wanted in types and not named else "qi8" if "qi8" in types and one.type == "f32" else one.type
            )
            fits = fits or other == wanted
            declarations.append(replace(one, type=other))
        tests.append(replace(test, declarations=tuple(declarations)))
    return replace(subject, rule=replace(subject.rule, tests=tuple(tests))) if fits else None


def cases(subject: Subject, wanted: str, oracle: Oracle, count: int, seed: int) -> Iterator[Case]:
    for attempt in range(seed, seed + count * PATIENCE):
        try:
            case = draw(Choices.make_seeded(f"{subject.name}{wanted}{attempt}"), subject, oracle)
        except Rejected:
            continue
        first = next((v for v in case.steps[0].operands if v is not None and v.grid is not None), None)
        if first is None or len(case.steps) != 1 or f"q{first.dtype.short_name()}" != wanted or not count:
            continue
        count -= 1
        yield case


def row(subject: Subject, kind: str, oracle: Oracle, interpreter: Interpreter, count: int, seed: int) -> list[Share]:
    default, reference, exact = Share(), Share(), Share()
    for case in cases(subject, kind, oracle, count, seed):
        source = encode(case, oracle.catalogue)
        feeds = [value.content for value in case.inputs]
        try:
            got = Runtime(convert(source).SerializeToString(), threads=1).run(feeds)
            integers = Runtime(convert(source, exact=True).SerializeToString(), threads=1).run(feeds)
            [wanted] = interpreter.run(source, [feeds], Kernels.DEFAULT)
            [found] = interpreter.run(source, [feeds], Kernels.REFERENCE)
        except RewriteError:
            continue  # refused, or without a kernel of its own: nothing to compare with
        default.add(wanted, got)
        reference.add(found, got)
        exact.add(found, integers)
    return [default, reference, exact]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("operators", nargs="*")
    asked = parser.parse_args()
    pack = loader.load(RULES)
    print("| operator | type | elements | equal to the default kernels | to the reference kernels | with `--exact` |")
    print("|---|---|--:|--:|--:|--:|")
    with Interpreter(timeout=20) as interpreter:
        oracle = Oracle(interpreter, pack.catalogue, RULES)
        rows: dict[tuple[str, str], list[Share]] = {}
        for subject in list_subjects(pack):
            for wanted in TYPES:
                trial = quantize(subject, wanted) if subject.tests and subject.equations else None
                if trial is None or (asked.operators and not trial.list_operators() & set(asked.operators)):
                    continue
                name = next(iter(trial.list_operators()))
                shares = row(trial, wanted, oracle, interpreter, asked.cases, asked.seed)
                known = rows.setdefault((name, wanted), [Share(), Share(), Share()])
                for mine, more in zip(known, shares, strict=True):
                    mine.elements, mine.equal = mine.elements + more.elements, mine.equal + more.equal
                    mine.worst = max(mine.worst, more.worst)
        for (name, wanted), shares in sorted(rows.items()):
            if shares[0].elements:
                cells = " | ".join(f"{share}" for share in shares)
                print(f"| {name} | {wanted[1:]} | {shares[0].elements} | {cells} |")


if __name__ == "__main__":
    main()

"""Mutants: one thing changed at a time in the rules and in what is said of operators; how many `rewrite fuzz` finds.

    python benchmarks/mutants.py [--count 60] [--seed 0] [--time 15] [--jobs N] [--only TEXT] [--list]

Each mutant is a copy of the package with one change, drawn at random over the kinds of change below, in the packs
that have a record of what `rewrite fuzz` tried. It is killed when `rewrite fuzz` ends with another exit status than
0. A mutant whose rules are refused as mistaken is drawn again. N are tried side by side, as many as there are
processors if nothing is said. Prints a row for each and the share at the end, with the time that processors spent,
which other programs do not change.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parent.parent
#: what fuzzing compares with a record: rules of others are tried by tests that need PyTorch or Keras, or for a target
PACKS = tuple(folder for folder in sorted((ROOT / "rules").iterdir()) if (folder / "outcomes.yaml").is_file())
FILES = tuple(
    str(path.relative_to(ROOT))
    for path in (
        ROOT / "ops.yaml",
        *sorted(ROOT.glob("ops/*.yaml")),
        *(file for folder in PACKS for file in sorted(folder.glob("*.rules"))),
    )
)


@dataclass(frozen=True)
class Mutant:
    """A change of one place: the file, the line, the kind of change, and the text before and after."""

    file: str
    line: int
    kind: str
    start: int
    before: str
    after: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.after + text[self.start + len(self.before) :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"


Change = Callable[[re.Match[str]], str | None]


def number(match: re.Match[str]) -> str:
    text = match.group()
    if "." not in text and "e" not in text:
        return str(int(text) + 1)
    value = float(text)
    return repr(value * 1000 if 0 < value < 1e-3 else value * 1.5 + (value == 0))


def swap_words(*pairs: tuple[str, str]) -> Change:
    table = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return lambda match: table[match.group()]


def operands(match: re.Match[str]) -> str | None:
    name, first, second = match.groups()
    return f"{name}({second}, {first}" if first != second else None


def letters(match: re.Match[str]) -> str:
    text = match.group()
    return text[:-3] + text[-2] + text[-3] + text[-1]


def entries(match: re.Match[str]) -> str:
    a, x, gap, b, y = match.groups()
    return f"{a} => {y}{gap}{b} => {x}"


def reverse_list(match: re.Match[str]) -> str | None:
    items = match[1].split(", ")
    return f"[{', '.join(items[::-1])}]" if items != items[::-1] else None


def swap_sides(match: re.Match[str]) -> str | None:
    first, sign, second = match.groups()
    return f"{second} {sign} {first}" if first != second else None


def swap_arguments(match: re.Match[str]) -> str | None:
    callee, *arguments = match.groups()
    return f"{callee}({arguments[0]}, {arguments[2]}, {arguments[1]}" if arguments[1] != arguments[2] else None


RULES: dict[str, tuple[str, Change]] = {
    "number": (r"(?<![\w.\"])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.\"])", number),
    "truth": (r"\b(?:true|false)\b", swap_words(("true", "false"))),
    "arithmetic": (r"(?<= )(?:\+|-|\*|//)(?= )", lambda m: {"+": "-", "-": "+", "*": "+", "//": "*"}[m.group()]),
    "comparison": (r"(?<= )(?:==|!=|<=|>=|<|>)(?= )", swap_words(("==", "!="), ("<=", "<"), (">=", ">"))),
    "logic": (r"\b(?:and|or)\b", swap_words(("and", "or"))),
    "negation": (r"\bnot (?!in\b)", lambda match: ""),
    "operator": (
        r"\b(?:Less|Greater|Max|Min|Floor|Ceil|Sin|Cos|And|Or|max|min|Add|Mul|ReduceMax|ReduceMin)\b(?=\()",
        swap_words(
            ("Less", "Greater"), ("Max", "Min"), ("Floor", "Ceil"), ("Sin", "Cos"), ("And", "Or"), ("max", "min"),
            ("Add", "Mul"), ("ReduceMax", "ReduceMin"),
        ),
    ),
    "operands": (r"\b([A-Z]\w*)\((\w+), (\w+)(?=[,)])", operands),
    "guard": (r"(?m)^  (?:where|require) .*$", lambda match: ""),
    "layout": (r"@ [A-Z]{3,5}\b", letters),
    "table": (r"\b([A-Z]\w*) <?=> ([A-Z]\w*)(\s+)([A-Z]\w*) <?=> ([A-Z]\w*)", entries),
    "enumerant": (
        r"\b(?:SAME|VALID|RELU6|TANH|SYMMETRIC|REFLECT|MEAN|SQRTN)\b",
        swap_words(("SAME", "VALID"), ("RELU6", "TANH"), ("SYMMETRIC", "REFLECT"), ("MEAN", "SQRTN")),
    ),
    "word": (
        r'"(?:half_pixel|align_corners|asymmetric|round_prefer_ceil|round_prefer_floor|floor|reflect|edge|add|mul|max|min)"',
        swap_words(
            ('"half_pixel"', '"align_corners"'), ('"round_prefer_ceil"', '"round_prefer_floor"'),
            ('"asymmetric"', '"half_pixel"'), ('"floor"', '"round_prefer_ceil"'), ('"reflect"', '"edge"'),
            ('"add"', '"mul"'), ('"max"', '"min"'),
        ),
    ),
    "type": (
        r'"(?:i64|i32|f32|f64|i8|u8)"',
        swap_words(('"i64"', '"i32"'), ('"f32"', '"f64"'), ('"i8"', '"u8"')),
    ),
    "choice": (r"(?<= if )(?!not )(?=[^\n]* else )", lambda match: "not "),
    "list": (r"(?<![\w\])])\[([\w.]+(?:, [\w.]+)+)\]", reverse_list),
    "last arguments": (r"\b(\w+)\((\w+), (\w+), (\w+)(?=[,)])", swap_arguments),
    "optional": (r"(?<=[\w])\?(?=[,)])", lambda match: ""),
    "constant": (r"\bconst (?=\w)", lambda match: ""),
    "attribute": (r"(?<=\) \{)\w+: [^,{}]+, |(?<=\)) \{\w+: [^,{}]+\}$", lambda match: ""),
    "condition": (r"(?<==> )when [^:]+: ", lambda match: ""),
    "term": (r" [+*] (?:\w+|\d+\.\d+)(?=[,)\n])", lambda match: ""),
    "index": (r"(?<=\w\[)[01](?=\])", lambda match: str(1 - int(match.group()))),
    "scale": (r"\b(?:scale|zero_point)(?=\()", swap_words(("scale", "zero_point"))),
    "of another": (
        r"\b(scale|zero_point|dtype|rank|shape|size)\((\w)\)",
        lambda m: f"{m[1]}({'xyab'['bxya'.find(m[2])]})",
    ),
    "rounding": (r"\b(?:Round|Floor|Ceil)\((?=\w)", swap_words(("Round(", "Floor("), ("Ceil(", "Floor("))),
    "rule": (r"(?m)^rule [^{}]*(?:\{[^{}]*\})?[^{}]*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*^\}\n", lambda match: ""),
    "opsets": (r"(?<=\bopset )\d+(?=\.\.)|(?<=\bdefault )\d+$", lambda match: str(int(match.group()) + 1)),
    "no layout": (r" @ [A-Z]{2,5}\b", lambda match: ""),
    "priority": (r" priority -?\d+", lambda match: ""),
    "turned": (r"\b(\w+(?:\.\w+)?) (-|/|//|\+\+|%) (\w+(?:\.\w+)?)\b(?![(\[])", swap_sides),
    "one branch": (r"(?<== )([^\n=]*?) if ([^\n]*?) else ([^\n]*)$", lambda match: match[1]),
    "extent": (r"(?<=\w\.)[HWC]\b", swap_words(("H", "W"), ("C", "H"))),
    "two attributes": (r"\{(\w+): (\w+), (\w+): (\w+)(?=[,}])", lambda m: f"{{{m[1]}: {m[4]}, {m[3]}: {m[2]}"),
    "results": (r"(?m)^(\s+(?:=> )?)(\w+), (\w+)(?= = [A-Z])", lambda m: f"{m[1]}{m[3]}, {m[2]}"),
    "function": (
        r"\b(?:Exp|Log|Sub|Div|Sqrt|Reciprocal|Relu|Neg|Abs|ReduceSum|ReduceMean|Equal|Sigmoid|Tanh)\b(?=\()",
        lambda match: FUNCTIONS[match.group()],
    ),
}  # fmt: skip
FUNCTIONS = {
    "Exp": "Log", "Log": "Exp", "Sub": "Add", "Div": "Mul", "Sqrt": "Exp", "Reciprocal": "Neg", "Relu": "Abs",
    "Neg": "Abs", "Abs": "Neg", "ReduceSum": "ReduceMean", "ReduceMean": "ReduceSum", "Equal": "Less",
    "Sigmoid": "Tanh", "Tanh": "Sigmoid",
}  # fmt: skip


def slots(match: re.Match[str]) -> str:
    a, i, between, j = match.groups()
    return f"{a}[{j}, {between}[{i}, "


OPS: dict[str, tuple[str, Change]] = {
    "slot": (r"(\w+: )\[(\d+), (\w+(?:, [\w.]+)?\],\s+\w+: )\[(\d+), ", slots),
    "default": (r"(?<=: )\[(\d+), (int32|float), (\d+)\]", lambda m: f"[{m[1]}, {m[2]}, {int(m[3]) + 1}]"),
    "no default": (r"(?<=: )\[(\d+), (int32|float)\]", lambda m: f"[{m[1]}, {m[2]}, 1]"),
    "codes": (r" quantization: codes,", lambda match: ""),
    # of operators that take codes: of others nothing is said by it
    "real": (
        r"(?<=\{code: )(\d+)(?=, (?![^\n]*quantization)[^\n]*(?:\n {6}[^\n]*)*?\bq[iu]\d)",
        lambda m: f"{m[1]}, quantization: codes",
    ),
    "raw": (r" quantization: raw,", lambda match: ""),
    "products": (r" products: \{[^}]*\},", lambda match: ""),
    "category": (r"layout: attribute(?:, remap: \{[^}]*\})?", lambda match: "layout: transparent"),
    "moves": (r"layout: (?:implicit|terminate)\b", lambda match: "layout: transparent"),
    "remap": (
        r"\b(?:per_axis_pairs|axes: axes|perm: perm)\b",
        lambda m: {"per_axis_pairs": "per_axis", "axes: axes": "axes: per_axis", "perm: perm": "perm: axes"}[m.group()],
    ),
    "result axes": (r", (?:removes|keeps|inserts|replaces): (?:\w+|\{[^}]*\})", lambda match: ""),
    "enumeration": (r"(Padding|MirrorPadMode|CombinerType): \[(\w+), (\w+)", lambda m: f"{m[1]}: [{m[3]}, {m[2]}"),
    "activation": (r"\[NONE, (\w+), (\w+), (\w+)", lambda m: f"[NONE, {m[1]}, {m[3]}, {m[2]}"),
    "no trait": (r", traits: \[output_activation\]", lambda match: ""),
    "commutes": (r"\{(infix: (?:\"-\"|/)), layout", lambda m: f"{{{m[1]}, traits: [commutative], layout"),
    "code": (r"\{code: (\d+)(?=,)", lambda m: f"{{code: {int(m[1]) + 1}"),
    "scale": (r"(?<=: \[)(\d\.\d+), (-?\d+)(?=\])", lambda m: f"{2 * float(m[1])!r}, {m[2]}"),
    "zero point": (r"(?<=: \[)(\d\.\d+), (-?\d+)(?=\])", lambda m: f"{m[1]}, {int(m[2]) + 1}"),
    "yields": (r"yields: \[(\w+)", lambda m: f"yields: [{'i32' if m[1] != 'i32' else 'f32'}"),
    "trait": (r"(?<=traits: \[)\w+, ", lambda match: ""),
    "fact": (
        r", (?:rounding|along|joins|letters|swaps|frame|only|regroups|broadcasts|permutes|mixes|batch|counts|begins): "
        r"(?:\w+|\{[^{}]*\}|\[[^\[\]]*\])(?=[,}])",
        lambda match: "",
    ),
    "role": (r"role: (?:permute|reshape|extend|convert), ", lambda match: ""),
    "operand order": (r"operands: \[(\w+), (\w+)(?=[,\]])", lambda m: f"operands: [{m[2]}, {m[1]}"),
    "no choice": (r"(?<=[\[ ])(\w+)\?(?=[,\]])", lambda m: m[1]),
    "versions": (r"versions: \{(\d+): ", lambda m: f"versions: {{{int(m[1]) + 1}: "),
    "types": (r"types: \[\w+ ", lambda match: "types: ["),
    "other default": (
        r"(?<=: )\[(\d+), bool(?:, true)?\]",
        lambda m: f"[{m[1]}, bool{', true' * ('true' not in m[0])}]",
    ),
}  # fmt: skip


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """All mutants of one file."""
    rules = file.endswith(".rules")
    known = None if rules else _list_covered(text)
    skipped = _list_skipped(text) if rules else []
    for kind, (pattern, change) in (RULES if rules else OPS).items():
        for match in re.finditer(pattern, text, re.M):
            if known is not None and not any(a <= match.start() < b for a, b in known):
                continue
            if kind != "opsets" and any(a <= match.start() < b for a, b in skipped):
                continue
            after = change(match)
            if after is not None and after != match.group():
                line = text.count("\n", 0, match.start())
                yield Mutant(file, line + 1, kind, match.start(), match.group(), after)
        if rules and kind == "number":
            yield from _rename(file, text, skipped)


def _rename(file: str, text: str, skipped: list[tuple[int, int]]) -> Iterator[Mutant]:
    """Mutants in which a template or clause reads another variable of its rule."""
    for rule in re.finditer(r"^rule .*?^\}", text, re.M | re.S):
        body = re.split(r"^  test\b", rule.group(), maxsplit=1, flags=re.M)[0]
        names = sorted(set(re.findall(r"(?<=[(, ])(?:const )?([a-z_]\w*)(?=\??[,)])", body.split("=>", 1)[0])))
        for match in re.finditer(r"(?<=[(\[ ])[a-z_]\w*(?=[,)\]])", body):
            start = rule.start() + match.start()
            others = [name for name in names if name != match.group()]
            shown = match.group() in names and not any(a <= start < b for a, b in skipped)
            if others and shown:
                line = text.count("\n", 0, start)
                other = others[(start * 7919) % len(others)]
                yield Mutant(file, line + 1, "name", start, match.group(), other)


def _list_skipped(text: str) -> list[tuple[int, int]]:
    """Where comments, headers and test clauses stand, and messages."""
    found = [match.span() for match in re.finditer(r"#.*|^(?:ruleset|use) .*|\"[^\"\n]* [^\"\n]*\"", text, re.M)]
    for match in re.finditer(r"^ +test\b", text, re.M):
        end = re.search(r"^ *(?:\}|test\b|where\b|=>)", text[match.end() :], re.M)
        found.append((match.start(), match.end() + (end.start() if end else len(text))))
    return found


def _list_covered(text: str) -> list[tuple[int, int]]:
    """Where a file about operators is about one that some rule names, or about its options' table."""
    rules = "\n".join((ROOT / file).read_text() for file in FILES if file.endswith(".rules"))
    named = set(re.findall(r"\b[A-Z][A-Za-z0-9_]+\b", rules))
    used: list[tuple[int, int]] = []
    tables: set[str] = set()
    for match in re.finditer(r"^    ([A-Z]\w+): \{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", text, re.M):
        if "code: " in match.group() and match[1] in named:
            used.append(match.span())
            tables.update(re.findall(r"options: (\w+)", match.group()))
        elif "layout: " in match.group() and "role" not in match.group():
            used.append(match.span())
    for match in re.finditer(r"^    (\w+Options): \{(?:[^{}]|\{[^{}]*\})*\}", text, re.M):
        if match[1] in tables:
            used.append(match.span())
    enums = re.search(r"^  enums:.*?^  activation:", text, re.M | re.S)
    return used + ([enums.span()] if enums else [])


def draw_mutants(count: int, seed: int, only: str) -> list[Mutant]:
    """So many mutants, each kind of change with its turn."""
    kinds: dict[str, list[Mutant]] = {}
    for file in FILES:
        for mutant in mutants(file, (ROOT / file).read_text(encoding="utf-8")):
            if only in str(mutant):
                kinds.setdefault(f"{not file.endswith('.rules')} {mutant.kind}", []).append(mutant)
    shuffle = random.Random(seed)
    for found in kinds.values():
        shuffle.shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(kinds.values()):
        turn = [found.pop() for found in kinds.values() if found]
        shuffle.shuffle(turn)  # so that a few are of any kinds
        chosen += turn
    return chosen[:count]


def cpu() -> float:
    """Seconds that processes which have ended spent on processors."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@dataclass(frozen=True)
class Copy:
    """A copy of the package in a folder of its own, in which mutants are tried one after the other."""

    folder: Path
    command: tuple[str, ...]

    def run(self) -> subprocess.CompletedProcess[str]:
        """Fuzz the rules as they are in the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        return subprocess.run(
            self.command, capture_output=True, text=True, cwd=self.folder, env=environment, check=False
        )

    def run_mutant(self, mutant: Mutant) -> subprocess.CompletedProcess[str]:
        file = self.folder / "nnrewrite" / mutant.file
        text = file.read_text(encoding="utf-8")
        file.write_text(mutant.apply(text), encoding="utf-8")
        try:
            return self.run()
        finally:
            file.write_text(text, encoding="utf-8")


def make_copy(folder: Path, limit: str) -> Copy:
    ignored = shutil.ignore_patterns(".*", "build", "tests", "docs", "__pycache__")
    shutil.copytree(ROOT, folder / "nnrewrite", ignore=ignored)
    command = (sys.executable, "-m", "nnrewrite", "fuzz", "--first", "--jobs", "1", "--out", str(folder / "failures"))
    return Copy(folder, (*command, "--time", limit) if limit else command)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    chosen = draw_mutants(arguments.count * 2, arguments.seed, arguments.only)
    if arguments.list:
        print(*chosen, sep="\n")
        return
    survivors: list[Mutant] = []
    killed, mistakes = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copies = [make_copy(Path(folder) / str(number), arguments.time) for number in range(arguments.jobs)]
        if copies[0].run().returncode:
            sys.exit("what is not changed fails already: `rewrite fuzz` tells of it")
        began, spent = time.monotonic(), cpu()
        for mutant, run in run_mutants(chosen, arguments.count, copies):
            if run.returncode not in (0, 1):
                mistakes += 1
                continue
            killed += run.returncode
            if run.returncode == 0:
                survivors.append(mutant)
            print_verdict(mutant, run, time.monotonic() - began)
        seconds, processors = time.monotonic() - began, cpu() - spent
    tried = killed + len(survivors)
    print(
        f"{killed} of {tried} mutants killed ({killed / max(tried, 1):.0%}) in {seconds:.0f} s"
        f" ({processors:.0f} s of processors);"
        f" {mistakes} more were refused when the rules were read"
    )
    print("survivors:", *map(str, survivors), sep="\n  ")


def run_mutants(
    chosen: Sequence[Mutant], count: int, copies: Sequence[Copy]
) -> Iterator[tuple[Mutant, subprocess.CompletedProcess[str]]]:
    """Try so many mutants, as many at once as there are copies; each with its run, and one more for each refused."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> subprocess.CompletedProcess[str]:
        copy = free.get()
        try:
            return copy.run_mutant(mutant)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        waiting = iter(chosen)
        running = {threads.submit(attempt, mutant): mutant for mutant in itertools.islice(waiting, count)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                mutant, run = running.pop(future), future.result()
                if run.returncode not in (0, 1):
                    running.update({threads.submit(attempt, other): other for other in itertools.islice(waiting, 1)})
                yield mutant, run


def print_verdict(mutant: Mutant, run: subprocess.CompletedProcess[str], seconds: float) -> None:
    """Print whether a mutant was killed, and what its run said of it."""
    word = "killed  " if run.returncode else "SURVIVED"
    lines = [line for line in run.stderr.splitlines() if "error" in line]
    lines = lines if run.returncode else run.stdout.splitlines()[-1:]
    print(f"{word} after {seconds:5.0f} s  {mutant}\n{' ' * 18}{' '.join(lines)[:140]}", flush=True)


if __name__ == "__main__":
    main()

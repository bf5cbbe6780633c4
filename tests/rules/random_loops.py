"""Random ONNX models of loops, branches and lists, nested in one another, in ONNX's own notation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
#: a value: its name and its kind
Value = tuple[str, str]

KINDS = {"number": "float", "vector": "float[2]", "count": "int64"}
DEEPEST = 2
CONSTANTS = """int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, bool go = {1},
  float limit = {0.5}, int64[1] first = {0}, int64[2] to_rows = {1, 2}, float[0,2] nothing = {}"""


@dataclass
class Block:
    """The lines of one graph in the making, and the values that they may read."""

    draw: Draw
    numbers: Iterator[int]
    values: list[Value]
    lines: list[str] = field(default_factory=list)

    def choose(self, items: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def name(self) -> str:
        return f"v{next(self.numbers)}"

    def enter(self, *more: Value) -> Block:
        return Block(self.draw, self.numbers, [*self.values, *more])

    def add(self, kind: str, expression: str) -> Value:
        self.values.append((self.name(), kind))
        self.lines.append(f"{self.values[-1][0]} = {expression}")
        return self.values[-1]

    def pick(self, *kinds: str) -> Value:
        """A value of some kinds, the last ones most often."""
        found = [value for value in self.values if value[1] in kinds]
        return found[-self.draw(st.integers(1, min(4, len(found))))]

    def grow(self, depth: int, most: int = 3) -> Block:
        for _ in range(self.draw(st.integers(1, most))):
            steps = [self.compute, self.compute]
            inner = [self.branch, self.loop, self.lengthen] if depth < DEEPEST else []
            step = self.choose([*steps, *inner])
            step() if step in steps else step(depth + 1)
        return self

    def compute(self) -> None:
        name, kind = self.pick(*KINDS)
        if self.draw(st.booleans()):
            operator = self.choose(["Neg", "Abs"] if kind == "count" else ["Tanh", "Relu", "Neg"])
            self.add(kind, f"{operator}({name})")
        elif kind == "count" and self.draw(st.booleans()):
            self.add("number", f"Cast <to = 1> ({name})")
        else:
            self.add(kind, f"{self.choose(['Add', 'Sub'])}({name}, {self.pick(kind)[0]})")

    def ask(self) -> str:
        """A condition on a value of this graph."""
        total, condition = self.name(), self.name()
        self.lines.append(f"{total} = ReduceSum <keepdims = 0> ({self.pick('number', 'vector')[0]})")
        self.lines.append(f"{condition} = {self.choose(['Less', 'Greater'])}({total}, limit)")
        return condition

    def close(self, kinds: Sequence[str], before: Sequence[str] = (), behind: Sequence[str] = ()) -> str:
        """The results and lines of the graph as they stand behind its inputs."""
        results = [(self.add(kind, f"Identity({self.pick(kind)[0]})")[0], KINDS[kind]) for kind in kinds]
        said = [*before, *(f"{kind} {name}" for name, kind in results), *behind]
        return f"({', '.join(said)}) {{ {'  '.join(self.lines)} }}"

    def branch(self, depth: int) -> None:
        condition, kinds = self.ask(), [self.choose(KINDS) for _ in range(self.draw(st.integers(1, 2)))]
        sides = [f"{self.name()} () => {self.enter().grow(depth).close(kinds)}" for _ in range(2)]
        names = [self.name() for _ in kinds]
        self.lines.append(f"{', '.join(names)} = If({condition}) <then_branch = {sides[0]}, else_branch = {sides[1]}>")
        self.values += zip(names, kinds, strict=True)

    def loop(self, depth: int) -> None:
        """A loop that carries values, and collects others or puts one behind a list."""
        begins = [self.pick(*KINDS) for _ in range(self.draw(st.integers(0, 2)))]
        listed = self.draw(st.booleans())
        rows = [] if listed else [self.choose(KINDS) for _ in range(self.draw(st.integers(not begins, 2)))]
        turn, told, goes, empty, old, new, grown, stacked = (self.name() for _ in range(8))
        carried = [(self.name(), kind) for _, kind in begins]
        kinds = [*(kind for _, kind in carried), *rows]
        body = self.enter((turn, "count"), *carried).grow(depth, 4)
        ending = body.ask() if self.draw(st.booleans()) else self.choose([told, "go"])
        body.lines.append(f"{goes} = Identity({ending})")
        if listed:
            self.lines.append(f"{empty} = SequenceEmpty <dtype = 1> ()")
            body.lines.append(f"{new} = SequenceInsert({old}, {body.pick('vector')[0]})")
        inputs = [f"int64 {turn}", f"bool {told}", *(f"{KINDS[kind]} {name}" for name, kind in carried)]
        inputs += [f"seq(float[2]) {old}"] * listed
        text = body.close(kinds, [f"bool {goes}"], [f"seq(float[2]) {new}"] * listed)
        heads = [self.name() for _ in kinds]
        often = self.choose(["one", "two", "three"] if listed else ["zero", "one", "two", "three"])
        operands = [often, "go", *(name for name, _ in begins), *([empty] * listed)]
        head = f"{', '.join([*heads, *([grown] * listed)])} = Loop({', '.join(operands)})"
        self.lines.append(f"{head} <body = {self.name()} ({', '.join(inputs)}) => {text}>")
        self.values += zip(heads, kinds[: len(carried)], strict=False)
        for name, kind in zip(heads[len(carried) :], rows, strict=True):
            self.add(kind, f"ReduceSum <keepdims = 0> ({name}, first)")
        if listed:
            self.lines.append(f"{stacked} = ConcatFromSequence <axis = 0, new_axis = 1> ({grown})")
            self.add("vector", f"ReduceSum <keepdims = 0> ({stacked}, first)")

    def lengthen(self, depth: int) -> None:
        """A loop that puts one row more behind what it carries; the file says the extents of the first turn."""
        turn, told, goes, old, new, row, result = (self.name() for _ in range(7))
        body = self.enter((turn, "count")).grow(depth)
        body.lines += [
            f"{row} = Reshape({body.pick('vector')[0]}, to_rows)",
            f"{new} = Concat <axis = 0> ({old}, {row})",
            f"{goes} = Identity({told})",
        ]
        said = f"(int64 {turn}, bool {told}, float[0,2] {old}) => (bool {goes}, float[{new}_rows,2] {new})"
        self.lines.append(
            f"{result} = Loop({self.choose(['zero', 'one', 'three'])}, go, nothing)"
            f" <body = {self.name()} {said} {{ {'  '.join(body.lines)} }}>"
        )
        self.add("vector", f"ReduceSum <keepdims = 0> ({result}, first)")


@st.composite
def programs(draw: Draw) -> str:
    """The text of a model with a vector and a number as inputs, and a result of each kind."""
    main = Block(draw, count(), [("n", "count"), ("a", "number"), ("x", "vector")])
    main.loop(0)
    main.grow(0, 4)
    text = main.close([*KINDS])
    return f'<ir_version: 8, opset_import: ["": 17]>\ng (float[2] x, float a, int64 n) => {text}'.replace(
        ") {", f")\n  <{CONSTANTS}> {{", 1
    )

"""Random models of branches and loops, nested in one another, with the arrays to feed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from hypothesis import strategies as st
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: element type and shape of each kind of value; rows are as many as a loop has added
KINDS: dict[str, tuple[str, list[int | None]]] = {
    "flag": ("BOOL", []),
    "count": ("INT32", []),
    "vector": ("FLOAT", [2]),
    "rows": ("FLOAT", [None, 2]),
}
CARRIED = ("rows", "vector", "count", "rows")
DEEPEST = 3


@dataclass
class Program:
    """A file in the making: all its graphs, and which of them a call with given kinds may use again."""

    draw: Draw
    graphs: list[ir.Graph | None] = field(default_factory=list)
    bodies: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[int, int]]] = field(default_factory=dict)
    loops: dict[tuple[str, ...], list[tuple[int, int, int]]] = field(default_factory=dict)

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(1, 100)) > 100 - percent)

    def body(self, takes: Sequence[str], gives: Sequence[str], depth: int) -> int:
        """The index of a graph of these kinds, a new one or one that is there."""
        known = self.bodies.setdefault((tuple(takes), tuple(gives)), [])
        again = [index for index, height in known if height <= depth]
        if again and self.chance(35):
            return int(self.draw(st.sampled_from(again)))
        index = self.place()
        self.graphs[index] = Block(self, takes, depth).grown().closed(gives, f"graph{index}")
        known.append((index, depth))
        return index

    def loop(self, carries: Sequence[str], depth: int) -> tuple[int, int]:
        """The indices of a condition on a count, carried first, and of a body that raises it."""
        again = [(cond, body) for cond, body, height in self.loops.get(tuple(carries), []) if height <= depth]
        if again and self.chance(35):
            found: tuple[int, int] = self.draw(st.sampled_from(again))
            return found
        cond, body = self.place(), self.place()
        asking = Block(self, carries, 0)
        end = asking.constant(np.array(self.draw(st.integers(0, 4)), np.int32))
        below = asking.node("LESS", [asking.inputs[0], end], "flag")
        self.graphs[cond] = asking.graph([below], f"graph{cond}")
        block = Block(self, carries, depth).grown()
        step = block.constant(np.array(self.draw(st.integers(1, 2)), np.int32))
        raised = block.node("ADD", [block.inputs[0], step], "count")
        self.graphs[body] = block.closed(carries, f"graph{body}", raised)
        self.loops.setdefault(tuple(carries), []).append((cond, body, depth))
        return cond, body

    def place(self) -> int:
        self.graphs.append(None)
        return len(self.graphs) - 1


class Block:
    """Grows one graph over its inputs, operator by operator."""

    def __init__(self, program: Program, takes: Sequence[str], depth: int) -> None:
        self.program, self.draw, self.depth = program, program.draw, depth
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Value] = []
        self.values: dict[str, list[ir.Value]] = {kind: [] for kind in KINDS}
        self.made = 0
        self.inputs = [self.fresh(kind) for kind in takes]

    def fresh(self, kind: str) -> ir.Value:
        dtype, shape = KINDS[kind]
        self.made += 1
        value = ir.Value(name=f"v{self.made}", type=ir.TensorType(ir.DataType[dtype]), shape=ir.Shape(shape))
        self.values[kind].append(value)
        return value

    def constant(self, array: np.ndarray) -> ir.Value:
        self.made += 1
        tensor = ir.Tensor(array, name=f"c{self.made}")
        value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
        self.constants.append(value)
        return value

    def some(self, kind: str) -> ir.Value:
        """A constant of a kind."""
        number = self.draw(st.integers(-4, 4))
        if kind == "flag":
            return self.constant(np.array(number > 0))
        if kind == "count":
            return self.constant(np.array(number % 4, np.int32))
        pair = np.array([number / 4, 1 - number / 8], np.float32)
        return self.constant(pair if kind == "vector" else pair[None])

    def value(self, kind: str, constants: int = 10) -> ir.Value:
        """A value of a kind, maybe a constant."""
        there = self.values[kind]
        if not there or self.program.chance(constants):
            return self.some(kind)
        found: ir.Value = self.draw(st.sampled_from([*there, there[-1]]))
        return found

    def called(self, name: str, operands: list[ir.Value], kinds: Sequence[str], **options: int) -> None:
        attributes = [ir.AttrInt64(key, number) for key, number in options.items()]
        outputs = [self.fresh(kind) for kind in kinds]
        self.nodes.append(ir.Node("tflite", name, operands, attributes, outputs=outputs))

    def node(self, name: str, operands: list[ir.Value], kind: str, **options: int) -> ir.Value:
        self.called(name, operands, [kind], **options)
        return self.values[kind][-1]

    def grown(self) -> Block:
        kinds = [self.unary, self.binary, self.append, self.append, self.total, self.compare]
        deep = [self.branch, self.loop] if self.depth else []
        for _ in range(self.draw(st.integers(0, 4))):
            self.draw(st.sampled_from([*kinds, *deep, *deep]))()
        return self

    # ---- one method for each kind of operator

    def unary(self) -> None:
        kind = self.draw(st.sampled_from(["vector", "rows"]))
        self.node(self.draw(st.sampled_from(["TANH", "NEG", "RELU"])), [self.value(kind)], kind)

    def binary(self) -> None:
        """Rows are of one extent only where they are the same ones."""
        kind = self.draw(st.sampled_from(["vector", "rows"]))
        pair = [self.value(kind), self.value("vector")]
        name = self.draw(st.sampled_from(["ADD", "MAXIMUM", "SUB"]))
        self.node(name, pair if self.program.chance(50) else pair[::-1], kind)

    def append(self) -> None:
        """One row more; of constants alone the interpreter makes a constant, and in a called graph it then crashes."""
        if self.values["rows"]:
            self.node("CONCATENATION", [self.value("rows", 0), self.some("rows")], "rows", axis=0)

    def total(self) -> None:
        axes = self.constant(np.array([0], np.int32))
        self.node("TANH", [self.node("SUM", [self.value("rows"), axes], "vector", keep_dims=0)], "vector")

    def compare(self) -> None:
        pair = [self.value("count"), self.some("count")]
        self.node(self.draw(st.sampled_from(["LESS", "EQUAL"])), pair, "flag")

    def branch(self) -> None:
        takes = self.draw(st.lists(st.sampled_from([*KINDS]), max_size=4))
        gives = self.draw(st.lists(st.sampled_from([*KINDS]), min_size=1, max_size=3))
        sides = [self.program.body(takes, gives, self.depth - 1) for _ in range(2)]
        operands = [self.value("flag"), *(self.value(kind) for kind in takes)]
        self.called("IF", operands, gives, then_subgraph_index=sides[0], else_subgraph_index=sides[1])

    def loop(self) -> None:
        carries = ["count", *self.draw(st.lists(st.sampled_from(CARRIED), min_size=1, max_size=3))]
        cond, body = self.program.loop(carries, self.depth - 1)
        operands = [self.value(kind) for kind in carries]
        self.called("WHILE", operands, carries, cond_subgraph_index=cond, body_subgraph_index=body)

    # ---- its end

    def closed(self, gives: Sequence[str], name: str, *first: ir.Value) -> ir.Graph:
        """The graph, that gives the first values and then any of these kinds: computed ones, constants, inputs.

        Left out is what the interpreter gets wrong: of a value that a graph gives twice it may read memory that it
        has not written; and it carries the results of a loop's body over one by one, so that an input passed on at
        another place than its own is overwritten before it is read (found by running both).
        """
        given = list(first)
        for place, kind in enumerate(gives[len(first) :], len(first)):
            there = self.values[kind]
            moved = {id(value) for i, value in enumerate(self.inputs) if first and i != place}
            free = [value for value in there if id(value) not in moved | {id(value) for value in given}]
            chosen = not free or self.program.chance(20)
            given.append(self.some(kind) if chosen else self.draw(st.sampled_from([*free, free[-1], free[-1]])))
        return self.graph(given, name)

    def graph(self, outputs: Sequence[ir.Value], name: str) -> ir.Graph:
        return ir.Graph(self.inputs, outputs, nodes=self.nodes, initializers=self.constants, name=name)


def program(draw: Draw, catalogue: Catalogue) -> tuple[bytes, list[list[np.ndarray]]]:
    """A file whose first graph branches or loops, and samples that take both sides of its first condition."""
    made = Program(draw)
    made.place()
    block = Block(made, ["flag", "count", "vector", "rows"], DEEPEST)
    draw(st.sampled_from([block.branch, block.loop]))()
    block.grown()
    used = {id(value) for node in block.nodes for value in node.inputs}
    outputs = [value for node in block.nodes for value in node.outputs if id(value) not in used]
    made.graphs[0] = main = block.graph(outputs, "main")
    model = ir.Model(main, ir_version=10)
    model.meta["subgraphs"] = made.graphs
    samples = []
    for seed, flag in enumerate((True, False)):
        random = np.random.default_rng(seed)
        vector, rows = (random.normal(size=shape).astype(np.float32) for shape in ((2,), (1, 2)))
        samples.append([np.array(flag), np.array(seed, np.int32), vector, rows])
    return write(model, catalogue), samples

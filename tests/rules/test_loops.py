"""Loops as frameworks write down recurrent layers: found again as layers, and left alone where they are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, compare_models

from ..engine.expressions.test_tables import node, value
from .test_random_control import nested

WIDTH, UNITS, STEPS = 3, 4, 6


class Block:
    """Grows one graph of a TFLite file, node by node."""

    def __init__(self, *inputs: ir.Value) -> None:
        self.inputs, self.nodes, self.constants = list(inputs), [], []
        self.random = np.random.default_rng(len(inputs))

    def constant(self, what: Any, dtype: str = "int32") -> ir.Value:
        made = value(f"c{len(self.constants)}", np.array(what, dtype), [])
        self.constants.append(made)
        return made

    def floats(self, *shape: int) -> ir.Value:
        return self.constant(self.random.normal(size=shape) / 2, "float32")

    def op(
        self, name: str, operands: Sequence[ir.Value], shape: Sequence[int | None], dtype: str = "", **options: Any
    ) -> Any:
        return self.several(name, operands, shape, 1, dtype, **options)[0]

    def several(
        self,
        name: str,
        operands: Sequence[ir.Value],
        shape: Sequence[int | None],
        count: int,
        dtype: str = "",
        **options: Any,
    ) -> list[ir.Value]:
        outputs = [value(f"v{len(self.nodes)}_{place}", dtype or "FLOAT", list(shape)) for place in range(count)]
        self.nodes.append(node(name, list(operands), outputs, **options))
        return outputs

    def flex(self, name: str, operands: Sequence[ir.Value], shape: Sequence[int | None]) -> ir.Value:
        result = value(f"v{len(self.nodes)}", "FLOAT", list(shape))  # type: ignore[arg-type]
        self.nodes.append(ir.Node("tflite.custom", f"Flex{name}", operands, outputs=[result]))
        return result

    def dense(self, x: ir.Value, units: int, bias: bool = True) -> ir.Value:
        batch, width = map(int, x.shape or ())
        operands = [x, self.floats(units, width), *([self.floats(units)] if bias else [])]
        return self.op("FULLY_CONNECTED", operands, [batch, units])

    def parts(self, x: ir.Value, count: int) -> list[ir.Value]:
        batch, width = map(int, x.shape or ())
        return self.several("SPLIT", [self.constant(-1), x], [batch, width // count], count, num_splits=count)

    def sliced(self, x: ir.Value, count: int) -> list[ir.Value]:
        batch, width = map(int, x.shape or ())
        size = width // count
        return [
            self.op("SLICE", [x, self.constant([0, k * size]), self.constant([-1, size])], [batch, size])
            for k in range(count)
        ]

    def __getattr__(self, name: str) -> Callable[..., ir.Value]:
        def make(*operands: ir.Value) -> ir.Value:
            shape = [int(n) for n in max((list(o.shape or ()) for o in operands), key=len)]
            return self.op(name.upper(), operands, shape)  # type: ignore[no-any-return]

        return make

    def graph(self, outputs: Sequence[ir.Value], name: str) -> ir.Graph:
        return ir.Graph(self.inputs, outputs, nodes=self.nodes, initializers=self.constants, name=name)


def lstm(b: Block, x: ir.Value, h: ir.Value, c: ir.Value) -> list[ir.Value]:
    z = b.add(b.add(b.dense(x, 4 * UNITS, bias=False), b.dense(h, 4 * UNITS, bias=False)), b.floats(4 * UNITS))
    i, f, g, o = b.parts(z, 4)
    cell = b.add(b.mul(b.logistic(f), c), b.mul(b.logistic(i), b.tanh(g)))
    return [b.mul(b.logistic(o), b.tanh(cell)), cell]


def gru(b: Block, x: ir.Value, h: ir.Value) -> list[ir.Value]:
    xz, xr, xh = b.parts(b.dense(x, 3 * UNITS), 3)
    hz, hr, hh = b.sliced(b.dense(h, 3 * UNITS), 3)
    z = b.logistic(b.add(xz, hz))
    new = b.tanh(b.add(xh, b.mul(b.logistic(b.add(xr, hr)), hh)))
    return [b.add(b.mul(z, h), b.mul(b.sub(b.constant(1, "float32"), z), new))]


def gru_reset_before(b: Block, x: ir.Value, h: ir.Value) -> list[ir.Value]:
    xz, xr, xh = b.parts(b.dense(x, 3 * UNITS), 3)
    hz, hr = b.sliced(b.dense(h, 2 * UNITS, bias=False), 2)
    z = b.logistic(b.add(xz, hz))
    new = b.tanh(b.add(xh, b.dense(b.mul(b.logistic(b.add(xr, hr)), h), UNITS, bias=False)))
    return [b.add(b.mul(z, h), b.mul(b.sub(b.constant(1, "float32"), z), new))]


def simple(b: Block, x: ir.Value, h: ir.Value) -> list[ir.Value]:
    return [b.tanh(b.add(b.dense(x, UNITS), b.dense(h, UNITS, bias=False)))]


def cells(b: Block, x: ir.Value, t: ir.Value, h: ir.Value, c: ir.Value, s: ir.Value) -> list[ir.Value]:
    first, cell = lstm(b, x, h, c)
    (second,) = gru(b, first, s)
    return [*simple(b, second, t), first, cell, second]


Step = Callable[..., list[ir.Value]]
#: how many states a step has, where not one
STATES: dict[Step, int] = {lstm: 2, cells: 4}
LAYERS: dict[str, tuple[Step, str]] = {
    "lstm": (lstm, "LSTM"),
    "gru": (gru, "GRU"),
    "gru_reset_before": (gru_reset_before, "GRU"),
    "simple": (simple, "RNN"),
}


def written(b: Block, rows: ir.Value, at: ir.Value, after: ir.Value, row: ir.Value) -> ir.Value:
    """The list with one row written anew, as a converter lowers it."""
    shape = [one if isinstance(one, int) else None for one in rows.shape or ()]
    item = [1, *(one or 0 for one in shape[1:])]
    new = b.op("RESHAPE", [row, b.constant(item)], item)
    if shape[0] == 1:
        return new
    rest = len(shape) - 1
    ends, starts = (
        b.op(
            "CONCATENATION",
            [b.op("RESHAPE", [one, b.constant([1])], [1], "INT32"), b.constant([what] * rest)],
            [3],
            "INT32",
        )
        for one, what in ((at, -1), (after, 0))
    )
    head = b.op("SLICE", [rows, b.constant([0] * (rest + 1)), ends], [None] * (rest + 1))
    tail = b.op("SLICE", [rows, starts, b.constant([-1] * (rest + 1))], [None] * (rest + 1))
    return b.op("CONCATENATION", [head, new, tail], shape, axis=0)  # type: ignore[no-any-return]


@dataclass
class Layer:
    """A loop over the rows of a sequence that yields every row of its state, or the last one.

    It turns `turns` times, or as often as there are rows; it reads `late` rows behind the one that it counts. Steps
    that a mask passes over keep every state, and what the one before has yielded. The rows are gathered in a list of
    TensorFlow's where `listed`, for a batch that is not known then.
    """

    step: Step
    batch: int
    every: bool
    turns: int | None = STEPS
    late: int = 0
    masked: bool = False
    listed: bool = False

    def carried(self) -> list[ir.Value]:
        states = STATES.get(self.step, 1)
        steps = None if self.turns is None else STEPS
        kinds: list[tuple[str, list[int | None]]] = [("INT32", []), ("INT32", [])]
        kinds += [("FLOAT", [None, None, UNITS] if self.listed else [steps if self.every else 1, self.batch, UNITS])]
        kinds += [("FLOAT", [self.batch, UNITS])] * (states + self.masked)
        kinds += [("BOOL", [steps, self.batch, 1])] * self.masked
        kinds += [("FLOAT", [steps, self.batch, WIDTH]), ("INT32", [])]
        return [value(f"p{k}", dtype, shape) for k, (dtype, shape) in enumerate(kinds)]  # type: ignore[arg-type]

    def cond(self) -> ir.Graph:
        b = Block(*self.carried())
        limit = b.inputs[-1] if self.turns is None else b.constant(self.turns)
        less = [b.op("LESS", [counter, limit], [], "BOOL") for counter in b.inputs[:2]]
        return b.graph([b.op("LOGICAL_AND", less, [], "BOOL")], "cond")

    def body(self) -> ir.Graph:
        b = Block(*self.carried())
        counter, time, rows, *held, x, limit = b.inputs
        mask = held.pop() if self.masked else None
        raised = [b.op("ADD", [one, b.constant(1)], [], "INT32") for one in (counter, time)]
        row = time
        if self.late:
            before = b.op("SUB", [time, b.constant(self.late)], [], "INT32")
            row = b.op("MAXIMUM", [before, b.constant(0)], [], "INT32")
        new = self.step(b, b.op("GATHER", [x, row], [self.batch, WIDTH], axis=0), *held[self.masked :])
        if mask is not None:
            now = b.op("GATHER", [mask, row], [self.batch, 1], "BOOL", axis=0)
            shape = [self.batch, UNITS]
            new = [b.op("SELECT_V2", [now, *both], shape) for both in zip([new[0], *new], held, strict=True)]
        if self.listed:
            rows = b.flex(
                "TensorListSetItem", [rows, time if self.every else b.constant(0), new[0]], [None, None, UNITS]
            )
        else:
            rows = written(b, rows, time, raised[1], new[0])
        return b.graph([*raised, rows, *new, *([mask] if mask else []), x, limit], "body")

    def file(self, catalogue: Catalogue) -> bytes:
        carried = self.carried()
        b = Block(value("x", "FLOAT", list(carried[-2].shape or ())))
        (x,) = b.inputs
        count = b.op("GATHER", [b.op("SHAPE", [x], [3], "INT32", out_type="INT32"), b.constant(0)], [], "INT32", axis=0)
        shape = b.constant([1 if not self.every else STEPS, self.batch, UNITS])
        if self.turns is None and self.every:
            row = b.op("RESHAPE", [count, b.constant([1])], [1], "INT32")
            shape = b.op("CONCATENATION", [row, b.constant([self.batch, UNITS])], [3], "INT32", axis=0)
        rows = b.op("FILL", [shape, b.constant(0, "float32")], list(carried[2].shape or ()))
        if self.listed:
            items = count if self.every else b.constant(1)
            rows = b.flex("TensorListReserve", [b.constant([-1, UNITS]), items], [None, None, UNITS])
        states = [b.floats(self.batch, UNITS) for _ in range(STATES.get(self.step, 1) + self.masked)]
        if self.masked:
            first = b.op("SLICE", [x, b.constant([0, 0, 0]), b.constant([-1, -1, 1])], list(carried[-3].shape or ()))
            states += [b.op("GREATER", [first, b.constant(0, "float32")], list(carried[-3].shape or ()), "BOOL")]
        begin = [b.constant(0), b.constant(0), rows, *states, x, count]
        outputs = [value(f"r{k}", one.dtype.name, list(one.shape or ())) for k, one in enumerate(carried) if one.dtype]
        b.nodes.append(node("WHILE", begin, outputs, cond_subgraph_index=1, body_subgraph_index=2))
        if self.listed:
            outputs[2] = b.flex("TensorListStack", [outputs[2], b.constant([-1, UNITS])], [None, None, UNITS])
        # What cells hold at the end is known where the number of turns is.
        made = ir.Model(b.graph(outputs[2 : 4 if self.turns is None else -2 - self.masked], "main"), ir_version=10)
        made.meta["subgraphs"] = [made.graph, self.cond(), self.body()]
        return write(made, catalogue)


def converted(
    source: bytes, interpreter: Interpreter, inputs: Sequence[Sequence[np.ndarray]] | None = None
) -> list[str]:
    """The operators of what a model becomes, which means the same."""
    model = nnrewrite.convert(source)
    assert compare_models(source, model.SerializeToString(), inputs=inputs, interpreter=interpreter).passed
    onnx.checker.check_model(model)
    return [path[-1] for path in nested(model.graph)]


@pytest.mark.slow
@pytest.mark.parametrize("every", [True, False], ids=["rows", "last"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_a_loop_over_a_cell_is_a_recurrent_layer(
    name: str, batch: int, every: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    step, operator = LAYERS[name]
    found = converted(Layer(step, batch, every).file(catalogue), interpreter)
    assert operator in found
    assert "Loop" not in found and "Gemm" not in found


@pytest.mark.slow
@pytest.mark.parametrize("every", [True, False], ids=["rows", "last"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_sequence_of_any_length_is_one_layer(
    name: str, every: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    step, operator = LAYERS[name]
    source = Layer(step, 2, every, turns=None).file(catalogue)
    random = np.random.default_rng(0)
    for rows in (1, 5):
        found = converted(source, interpreter, [[random.normal(size=(rows, 2, WIDTH)).astype(np.float32)]])
    assert operator in found and "Loop" not in found


@pytest.mark.slow
@pytest.mark.parametrize("turns", [STEPS, None], ids=["known", "any"])
@pytest.mark.parametrize("every", [True, False], ids=["rows", "last"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_loop_that_passes_over_steps_is_a_layer_that_knows_how_many_count(
    name: str, every: bool, turns: int | None, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    step, operator = LAYERS[name]
    found = converted(Layer(step, 3, every, turns, masked=True).file(catalogue), interpreter)
    assert operator in found and "Loop" not in found


def test_cells_one_behind_the_other_in_a_loop_are_layers(catalogue: Catalogue, interpreter: Interpreter) -> None:
    found = converted(Layer(cells, 2, True).file(catalogue), interpreter)
    assert {"LSTM", "GRU", "RNN"} <= set(found) and "Loop" not in found


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize("turns", [STEPS, None], ids=["known", "any"])
@pytest.mark.parametrize("every", [True, False], ids=["rows", "last"])
def test_rows_in_a_list_are_those_of_an_array(
    every: bool, turns: int | None, masked: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x = np.random.default_rng(0).normal(size=(STEPS, 3, WIDTH)).astype(np.float32)
    found = []
    for listed in (False, True):  # the interpreter has no lists, and says what the array holds
        model = nnrewrite.convert(Layer(lstm, 3, every, turns, masked=masked, listed=listed).file(catalogue))
        found.append(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])
        assert "LSTM" in (operators := [path[-1] for path in nested(model.graph)]) and "Loop" not in operators
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_rows_that_a_loop_leaves_unwritten_stay_as_they_were(catalogue: Catalogue, interpreter: Interpreter) -> None:
    found = converted(Layer(gru, 1, True, turns=STEPS - 2).file(catalogue), interpreter)
    assert "GRU" in found and "Loop" not in found


def test_a_loop_that_reads_other_rows_than_it_counts_stays_a_loop(
    catalogue: Catalogue, interpreter: Interpreter
) -> None:
    found = converted(Layer(gru, 1, True, late=1).file(catalogue), interpreter)
    assert "Loop" in found and "Concat" not in found


@pytest.mark.slow
@pytest.mark.parametrize("every", [True, False], ids=["rows", "last"])
@pytest.mark.parametrize("name", ["lstm", "gru", "gru_reset_before"])
def test_steps_one_behind_the_other_are_one_layer(
    name: str, every: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    step, operator = LAYERS[name]
    block = Block(value("x", "FLOAT", [STEPS, 2, WIDTH]))
    states = [block.floats(2, UNITS) for _ in range(2 if step is lstm else 1)]
    weights = len(block.constants)
    outputs = []
    for turn in range(STEPS):
        at = block.op("GATHER", [block.inputs[0], block.constant(turn)], [2, WIDTH], axis=0)
        begun = len(block.constants)
        block.random = np.random.default_rng(1)  # every step has the same weights
        states = step(block, at, *states)
        outputs.append(block.op("EXPAND_DIMS", [states[0], block.constant(0)], [1, 2, UNITS]))
        assert len(block.constants) > begun > weights
    rows = block.op("CONCATENATION", outputs, [STEPS, 2, UNITS], axis=0)
    source = write(ir.Model(block.graph([rows] if every else states, "main"), ir_version=10), catalogue)
    found = converted(source, interpreter)
    # The first step begins with constants, so that parts of it are computed beforehand.
    assert found.count(operator) == 1 and len(found) < 30


def gates_of(b: Block, s: ir.Value, count: int) -> list[ir.Value]:
    return [
        b.op("SLICE", [s, b.constant([0, 0, k * UNITS]), b.constant([1, 2, UNITS])], [1, 2, UNITS])
        for k in range(count)
    ]


def lstm_exported(b: Block, z: list[ir.Value], r: ir.Value, rb: ir.Value) -> Iterator[ir.Value]:
    bias = b.constant(np.tile(rb.const_value.numpy(), (2, 1)), "float32")  # type: ignore[union-attr]
    c = h = None
    for at in z:
        back = bias if h is None else b.op("FULLY_CONNECTED", [h, r, rb], [2, 4 * UNITS], keep_num_dims=0)
        i, f, g, o = gates_of(b, b.add(at, back), 4)
        new = b.mul(b.logistic(i), b.tanh(g))
        c = new if c is None else b.add(b.mul(b.logistic(f), c), new)
        h = b.mul(b.logistic(o), b.tanh(c))
        yield h


def gru_exported(b: Block, z: list[ir.Value], r: ir.Value, rb: ir.Value) -> Iterator[ir.Value]:
    h: ir.Value | None = None
    bias = np.tile(rb.const_value.numpy(), (2, 1))[None]  # type: ignore[union-attr]
    for at in z:
        flat = b.op("RESHAPE", [at, b.constant([2, 3 * UNITS])], [2, 3 * UNITS])
        xr, xz, xn = b.parts(flat, 3)
        if h is None:
            hr, hz, hn = (b.constant(part, "float32") for part in np.split(bias, 3, 2))
        else:
            hr, hz, hn = gates_of(b, b.op("FULLY_CONNECTED", [h, r, rb], [1, 2, 3 * UNITS], keep_num_dims=1), 3)
        gate = b.logistic(b.add(hz, xz))
        new = b.tanh(b.add(b.mul(b.logistic(b.add(hr, xr)), hn), xn))
        before = b.sub(b.constant(0, "float32") if h is None else h, new)
        h = b.add(b.mul(before, gate), new)
        yield h


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_steps_of_inputs_multiplied_at_once_are_one_layer(
    name: str, backwards: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    step, count = (lstm_exported, 4) if name == "lstm" else (gru_exported, 3)
    b = Block(value("x", "FLOAT", [STEPS, 2, WIDTH]))
    wide = [STEPS, 2, count * UNITS]
    weights = [b.floats(count * UNITS, WIDTH), b.floats(count * UNITS)]
    z = b.op("FULLY_CONNECTED", [b.inputs[0], *weights], wide, keep_num_dims=1)
    if backwards:
        z = b.op("REVERSE_V2", [z, b.constant([0])], wide)
    rows = [
        b.op("SLICE", [z, b.constant([k, 0, 0]), b.constant([1, 2, count * UNITS])], [1, 2, count * UNITS])
        for k in range(STEPS)
    ]
    steps = list(step(b, rows, b.floats(count * UNITS, UNITS), b.floats(count * UNITS)))
    joined = b.op("CONCATENATION", steps, [STEPS, 2, UNITS], axis=0)
    found = converted(write(ir.Model(b.graph([joined], "main"), ir_version=10), catalogue), interpreter)
    assert found.count(name.upper()) == 1 and len(found) < 30


@pytest.mark.parametrize(("opset", "states"), [(9, 1), (11, 0)])
def test_a_loop_keeps_a_state_where_its_opset_asks_for_one(opset: int, states: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": {opset}]> net (float[5, 4] x, int64 n) => (float[N, 4] y)
        <bool go = {{1}}> {{
          last, y = Loop(n, go, x) <body = b (int64 i, bool c, float[5, 4] s) => (bool d, float[5, 4] t, float[4] r) {{
            d = Identity(c) t = Identity(s) r = Gather<axis = 0>(x, i)
          }}>
        }}"""
    ).SerializeToString()
    made = nnrewrite.rewrite(model).model
    (loop,) = (node for node in made.graph.node if node.op_type == "Loop")
    assert len(loop.input) == 2 + states
    assert compare_models(model, made.SerializeToString()).passed

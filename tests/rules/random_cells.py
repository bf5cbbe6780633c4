"""Random models of one recurrent operator, with all that its kernel takes, and samples to run them on step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue

STEPS = 4
ACTIVATIONS = ["TANH", "TANH", "TANH", "RELU", "RELU6", "RELU_N1_TO_1", "SIGN_BIT"]
FLOAT = "FLOAT32"
#: the one has no kernel for integer weights, that of the other crashes where outputs are merged
REAL_ONLY = ("BASIC_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN")


@dataclass
class Cell:
    """A model in the making: operands by name in their order, those that are state, options, results."""

    operator: str
    random: np.random.Generator
    hybrid: bool = False
    operands: dict[str, Any] = field(default_factory=dict)
    state: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    intermediates: tuple[ir.Value, ...] = ()
    steps: int = STEPS

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def floats(self, *shape: int) -> np.ndarray:
        return self.random.normal(size=shape).astype(np.float32)

    def weights(self, *shape: int) -> Any:
        """Weights, stored as integers in a hybrid model."""
        real = self.floats(*shape)
        return coded(real, np.int8) if self.hybrid else real

    def remembers(self, name: str, *shape: int) -> None:
        self.operands[name] = (FLOAT, list(shape))
        self.state.append(name)

    def model(self, catalogue: Catalogue) -> tuple[bytes, list[list[np.ndarray]]]:
        """The file, and what to feed to it at each step."""
        made = probe.make_operator_model(catalogue, self.operator, self.operands, self.results, **self.options)
        graph = made.graph
        for value in graph.inputs:
            if value.name in self.state:
                value.meta["variable"] = True
        fed = [value for value in graph.inputs if value.name not in self.state]
        graph.inputs[:] = fed
        graph[0].meta["intermediates"] = self.intermediates
        return write(made, catalogue), [[self.sample(value) for value in fed] for _ in range(self.steps)]

    def sample(self, value: ir.Value) -> np.ndarray:
        assert value.shape is not None
        shape = [int(extent) for extent in value.shape]
        if value.dtype == ir.DataType.FLOAT:
            return self.floats(*shape)
        unsigned = value.dtype == ir.DataType.UINT8
        codes = self.random.integers(0, 256, shape) if unsigned else self.random.integers(-128, 128, shape)
        return codes.astype(np.uint8 if unsigned else np.int8)


def coded(real: np.ndarray, dtype: type, scale: float | None = None) -> tuple[np.ndarray, Quantization]:
    """Real numbers as symmetric codes."""
    most = np.iinfo(dtype).max
    scale = float(np.abs(real).max() / most) + 1e-12 if scale is None else scale
    codes = np.clip(np.round(real / np.float32(scale)), -most, most).astype(dtype)
    return codes, grid(scale)


def grid(scale: float, zero_point: int = 0) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


def gates(cell: Cell, stem: str, inputs: int, units: int, outputs: int, projects: bool) -> bool:
    """The operands of one long short-term memory up to its projection; whether its input gate is coupled."""
    # With coupled gates the interpreter's kernel of two sequences reads memory that it has not written.
    coupled, peeps = cell.chance(0.4) and not stem, cell.chance(0.4)
    there = [None if coupled and gate == "i" else gate for gate in "ifco"]
    add = cell.operands
    for gate in there:
        add[f"{stem}w{gate}"] = cell.weights(units, inputs) if gate else None
    for gate in there:
        add[f"{stem}r{gate}"] = cell.weights(units, outputs) if gate else None
    for gate in (there[0], there[1], there[3]):
        add[f"{stem}p{gate}"] = cell.weights(units) if gate and peeps else None
    for gate in there:
        add[f"{stem}b{gate}"] = cell.floats(units) if gate else None
    add[f"{stem}projection"] = cell.weights(outputs, units) if projects else None
    add[f"{stem}projection_bias"] = cell.floats(outputs) if projects and cell.chance() else None
    return coupled


def limits(cell: Cell, projects: bool) -> None:
    if cell.chance(0.4):
        cell.options["cell_clip"] = float(cell.random.choice([0.5, 1, 10]))
    if projects and cell.chance(0.4):
        cell.options["proj_clip"] = 0.3


def real_cell(operator: str, seed: int) -> Cell:
    """A model with real activations; a third of them have integer weights."""
    random = np.random.default_rng(seed)
    cell = Cell(operator, random, hybrid=bool(random.random() < 0.3) and operator not in REAL_ONLY)
    time, batch, inputs, units = (cell.number(1, most) for most in (5, 3, 4, 5))
    sequence = "SEQUENCE" in operator
    smooth = ACTIVATIONS[:-1] if cell.hybrid else ACTIVATIONS  # a sign is no matter of rounding
    cell.options["fused_activation_function"] = str(random.choice(smooth))
    if sequence:
        cell.options["time_major"] = cell.chance()
    lead = [batch] if not sequence else [time, batch] if cell.options["time_major"] else [batch, time]
    cell.operands["x"] = (FLOAT, [*lead, inputs])
    sides = ("fw", "bw") if "BIDIRECTIONAL" in operator else ("",)
    cross = sides[1:] and cell.chance(0.4)
    outputs = units
    if operator == "BASIC_LSTM":
        cell.options["fused_activation_function"] = "TANH"
        cell.remembers("h", batch, units)
        cell.operands |= {"w": cell.floats(4 * units, inputs + units), "b": cell.floats(4 * units)}
        cell.remembers("c", batch, units)
        cell.results = [(FLOAT, [batch, n]) for n in (units, units, inputs + units, 4 * units)]
        return cell
    if operator == "SVDF":
        rank, memory = cell.number(1, 3), cell.number(1, 5)
        cell.options["rank"] = rank
        cell.operands |= {"w": cell.weights(units * rank, inputs), "t": cell.weights(units * rank, memory)}
        cell.operands["b"] = cell.floats(units) if cell.chance() else None
        cell.remembers("h", batch, units * rank * memory)
    elif "LSTM" in operator:
        projects, normalizes = cell.chance(0.4), not sides[1:] and cell.chance(0.3)
        outputs = cell.number(1, 5) if projects else units
        coupled = [gates(cell, side, inputs, units, outputs, projects) for side in sides]
        for side in sides:
            cell.remembers(f"{side}h", batch, outputs)
            cell.remembers(f"{side}c", batch, units)
        limits(cell, projects)
        if normalizes:
            for gate in "ifco":
                cell.operands[f"n{gate}"] = None if coupled[0] and gate == "i" else cell.floats(units)
        if sides[1:]:
            cell.operands["beside"] = (FLOAT, [*lead, inputs]) if cross else None
            for side, couples in zip(sides, coupled, strict=True):
                for gate in "ifco":
                    there = cross and not (couples and gate == "i")
                    cell.operands[f"{side}x{gate}"] = cell.weights(units, inputs) if there else None
    else:
        for side in sides:
            cell.operands |= {f"{side}w": cell.weights(units, inputs), f"{side}r": cell.weights(units, units)}
            cell.operands[f"{side}b"] = cell.floats(units)
            cell.remembers(f"{side}h", batch, units)
        if sides[1:]:
            cell.operands["beside"] = (FLOAT, [*lead, inputs]) if cross else None
            for side in sides:
                cell.operands[f"{side}x"] = cell.weights(units, inputs) if cross else None
    cell.results = [(FLOAT, [*lead, outputs])] * len(sides)
    # With the batch first, the kernel of the LSTM leaves a part of merged outputs as memory was
    # (docs/appendix/findings.md).
    if sides[1:] and cell.chance() and ("LSTM" not in operator or cell.options["time_major"]):
        cell.options["merge_outputs"] = True
        cell.results = [(FLOAT, [*lead, 2 * outputs])]
    return cell


def integer_cell(operator: str, seed: int) -> Cell:
    """A long short-term memory with 8-bit activations and a 16-bit cell."""
    cell = Cell(operator, np.random.default_rng(seed))
    time, batch, inputs, units = (cell.number(1, most) for most in (4, 3, 8, 9))
    sequence = "SEQUENCE" in operator
    if sequence:
        cell.options["time_major"] = cell.chance()
    lead = [batch] if not sequence else [time, batch] if cell.options["time_major"] else [batch, time]
    scale = 3 / 127
    cell.options["fused_activation_function"] = "TANH"
    cell.operands["x"] = ("INT8", [*lead, inputs], grid(scale, cell.number(-20, 20)))
    coupled, peeps, normalizes = cell.chance(0.4), cell.chance(0.4), cell.chance(0.4)
    there = [gate for gate in "ifco" if not (coupled and gate == "i")]
    weights = {gate: coded(cell.floats(units, inputs) * 0.7, np.int8) for gate in "ifco"}
    norms = {gate: coded(cell.floats(units) * 0.3 + 1, np.int16) for gate in "ifco"}

    def each(stem: str, make: Mapping[str, Any], of: Sequence[str] = "ifco") -> None:
        cell.operands |= {f"{stem}{gate}": make[gate] if gate in there else None for gate in of}

    each("w", weights)
    projects = cell.chance()
    outputs = cell.number(1, 6) if projects else units
    # What a projection yields may leave the range of its codes, and comes back as it was cut off.
    inner, outer = grid(1 / 128), grid(1 / 128)
    peeps = (
        peeps and outputs == units
    )  # the kernel takes as many peepholes as there are outputs (docs/appendix/findings.md)
    if projects:
        inner, outer = (
            grid(0.01, cell.number(-9, 9)),
            grid(float(cell.random.uniform(0.004, 0.02)), cell.number(-20, 20)),
        )
    each("r", {gate: coded(cell.floats(units, outputs) * 0.7, np.int8) for gate in "ifco"})
    each("p", {gate: coded(cell.floats(units), np.int16) if peeps else None for gate in "ifco"}, "ifo")
    scales = {
        g: float(norms[g][1].scale[0]) / 1024 if normalizes else scale * float(weights[g][1].scale[0]) for g in "ifco"
    }
    each("b", {gate: coded(cell.floats(units), np.int32, scales[gate]) for gate in "ifco"})
    projection = coded(cell.floats(outputs, units), np.int8) if projects else None
    cell.operands |= {"projection": projection, "projection_bias": None}
    if projection is not None and cell.chance():
        step = float(projection[1].scale[0] * inner.scale[0])
        cell.operands["projection_bias"] = coded(cell.floats(outputs) * 0.3, np.int32, step)
    cell.operands["h"] = ("INT8", [batch, outputs], outer)
    cell.operands["c"] = ("INT16", [batch, units], grid(2.0 ** -cell.number(11, 13)))
    cell.state = ["h", "c"]
    if normalizes:
        each("n", norms)
    limits(cell, projects)
    cell.results = [("INT8", [*lead, outputs], outer)]
    made = []
    for place in range(5):
        kind, of = (ir.DataType.INT8, inner) if place == 4 else (ir.DataType.INT16, grid(2.0**-10))
        value = ir.Value(name=f"inner_{place}", type=ir.TensorType(kind), shape=ir.Shape([]))
        value.meta["quantization"] = of
        made.append(value)
    cell.intermediates = tuple(made)
    return cell


def memory_cell(seed: int) -> Cell:
    """Filters with 8-bit activations and a 16-bit memory; with every other seed, scales that make many halves."""
    cell = Cell("SVDF", np.random.default_rng(seed))
    rank, memory, units, batch, inputs = (cell.number(1, most) for most in (3, 6, 5, 3, 8))
    scales = np.array([0.1, 0.3, 0.7] if seed % 2 else [0.023, 0.0047, 0.00013], np.float32)
    scale, weight, past = (float(one) for one in cell.random.permutation(scales))
    held = float(np.float32(scale * weight * 2 if seed % 2 else 10 / 32767))
    result = float(np.float32(held * past * (8192 if seed % 2 else 9000)))
    cell.operands = {
        "x": ("INT8", [batch, inputs], grid(scale, cell.number(-20, 20))),
        "w": (cell.random.integers(-60, 61, (units * rank, inputs)).astype(np.int8), grid(weight)),
        "t": (cell.random.integers(-300, 301, (units * rank, memory)).astype(np.int16), grid(past)),
        "b": coded(cell.floats(units), np.int32, held * past) if cell.chance() else None,
        "h": ("INT16", [batch, units * rank * memory], grid(held)),
    }
    cell.state = ["h"]
    cell.options = {"rank": rank, "fused_activation_function": "RELU"}
    cell.results = [("INT8", [batch, units], grid(result, cell.number(-60, 60)))]
    return cell


def unsigned_cell(seed: int) -> Cell:
    """The old long short-term memory of unsigned activations, whose gates stand in one matrix."""
    cell = Cell("BASIC_LSTM", np.random.default_rng(seed))
    batch, inputs, units = (cell.number(1, most) for most in (3, 7, 5))
    activations, state, scale = grid(1 / 128, 128), grid(2.0**-11), float(cell.random.uniform(0.003, 0.02))
    weights = cell.random.integers(0, 256, (4 * units, inputs + units)).astype(np.uint8)
    bias = cell.random.integers(-5000, 5000, 4 * units).astype(np.int32)
    cell.operands["x"] = ("UINT8", [batch, inputs], activations)
    cell.operands["h"] = ("UINT8", [batch, units], activations)
    cell.operands |= {"w": (weights, grid(scale, cell.number(100, 150))), "b": (bias, grid(scale / 128))}
    cell.operands["c"] = ("INT16", [batch, units], state)
    cell.state = ["h", "c"]
    cell.options = {"kernel_type": "BASIC", "fused_activation_function": "TANH"}
    both, gates = ("UINT8", [batch, inputs + units], activations), ("INT16", [batch, 4 * units], grid(2.0**-12))
    cell.results = [cell.operands["h"], cell.operands["c"], both, gates]
    return cell

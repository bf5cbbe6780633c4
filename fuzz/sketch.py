"""Models of a few operators as plain data, each value with the elements it has in the case at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from ..backends import probe, tflite_writer
from ..engine.base.constants import STATEFUL
from ..engine.base.quantization import KEY, Quantization, read_quantization
from ..engine.dialects.operators import Catalogue, Dialect, OperatorSpec
from ..engine.expressions.functions import DTYPES
from ..verify.frames import Array


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One value of a sketch: its element type, what it holds, and where it comes from.

    `content` holds the stored elements (integers where `grid` says what they stand for). A `constant` is written into
    the model, a `variable` is state that starts as zeros, everything else that no step yields is fed. `open` says that
    the file does not tell the extents but those of the axes `told`.
    """

    name: str
    dtype: ir.DataType
    content: Array
    constant: bool = False
    grid: Quantization | None = None
    open: bool = False
    variable: bool = False
    told: tuple[int, ...] = ()

    @property
    def fed(self) -> bool:
        return not self.constant and not self.variable


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A graph that belongs to a step: its parameters with what they are at first, its steps, and what it yields."""

    parameters: tuple[Value, ...]
    steps: tuple[Step, ...]
    yields: tuple[Value, ...]

    @property
    def reads(self) -> tuple[Value, ...]:
        """The values of graphs around it that it reads."""
        return tuple(value for value in iterate_leaves(self.steps) if value not in self.parameters)

    def describe(self) -> str:
        """Word the graph in one line."""
        named = [f"{', '.join(value.name for value in step.results)} = {step.describe()}" for step in self.steps]
        taken = ", ".join(f"{value.name} like {_describe_value(value)}" for value in self.parameters)
        return f"graph({taken}) {{{'; '.join(named)}; yield {', '.join(value.name for value in self.yields)}}}"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operator applied to values; `results` are empty until the interpreter has said what they are.

    `meaning` are the operators that the interpreter ran in its place, which yield its results: it has no kernel for it.
    """

    operator: OperatorSpec
    operands: tuple[Value | None, ...]
    options: Mapping[str, Any]
    results: tuple[Value, ...] = ()
    version: int = 1
    meaning: tuple[Step, ...] = ()

    @property
    def graphs(self) -> list[Body]:
        """The graphs among its options."""
        return [value for value in self.options.values() if isinstance(value, Body)]

    @property
    def reads(self) -> tuple[Value, ...]:
        """The values that it reads, those that its graphs read among them."""
        inner = (value for body in self.graphs for value in body.reads)
        return tuple(value for value in (*self.operands, *inner) if value is not None)

    @property
    def fed(self) -> list[Value]:
        """The values that it reads and that are inputs of a model of it alone."""
        return [value for value in dict.fromkeys(self.reads) if value.fed]

    @property
    def followed(self) -> list[tuple[ir.DataType, Quantization]]:
        """What results are that ops.yaml says to be like operands, where these are quantized."""
        names = [operand.name for operand in self.operator.operands]
        found = [self.operands[names.index(name)] for name in self.operator.facts.fuzz.follows]
        return [(value.dtype, value.grid) for value in found if value is not None and value.grid is not None]

    def set_results(self, results: Sequence[Value]) -> Step:
        """The same step with other results, in its meaning as well."""
        changed = dict(zip(self.results, results, strict=True))
        stem = next((value.name for value in results), "")
        for inner in self.meaning:
            for value in (*inner.operands, *inner.results):
                if value is not None and value not in self.operands and value not in changed:
                    changed[value] = replace(value, name=f"{stem}.{len(changed)}")

        def replace_changed(values: Sequence[Value | None]) -> tuple[Value | None, ...]:
            return tuple(value if value is None else changed.get(value, value) for value in values)

        meaning = tuple(
            replace(
                inner.set_results([changed[value] for value in inner.results]),
                operands=replace_changed(inner.operands),
            )
            for inner in self.meaning
        )
        return replace(self, results=tuple(results), meaning=meaning)

    def list_kernel_steps(self) -> Iterator[Step]:
        """The steps that the interpreter runs for this one: itself, or what it means."""
        if not self.meaning:
            yield self
        for inner in self.meaning:
            yield from inner.list_kernel_steps()

    def describe(self) -> str:
        """Word the step in one line: `y = NAME(f32[2, 3], i32[1] = [0]) {option: value}`."""
        operands = ", ".join("none" if value is None else _describe_value(value) for value in self.operands)
        said = {name: one.describe() if isinstance(one, Body) else one for name, one in self.options.items()}
        options = ", ".join(f"{name}: {value}" for name, value in said.items())
        return f"{self.operator.name}({operands})" + (f" {{{options}}}" if options else "")


@dataclass(frozen=True, slots=True, eq=False)
class UnknownResult:
    """A result of which only the type and the shape are known, or not even that."""

    name: str
    dtype: ir.DataType | None = None
    grid: Quantization | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A model to try: its steps in order, the opset to aim at (None for the default one), and the rule it is for.

    `widened` says that something was drawn that the rule's own test does not name, so that rules may refuse it. Of one
    whose results nobody knows, `unknown` are they. An `odd` one may be refused in any words; one that the interpreter
    does not take (`taken` is off) has nothing to be compared with, and of a `loose` one types and shapes alone are.
    """

    rule: str
    steps: tuple[Step, ...]
    opset: int | None = None
    widened: bool = False
    yields: tuple[Value, ...] | None = None
    unknown: tuple[UnknownResult, ...] = ()
    odd: bool = False
    taken: bool = True
    loose: bool = False

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that are fed, in the order of their first use."""
        return tuple(value for value in iterate_leaves(self.steps) if value.fed)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results that no step uses, or those that are asked for."""
        if self.yields is not None:
            return self.yields
        used = {value for step in self.steps for value in step.reads}
        return tuple(value for step in self.steps for value in step.results if value not in used)

    @property
    def as_run(self) -> Case:
        """The same in operators of which the interpreter has kernels."""
        steps = tuple(inner for step in self.steps for inner in step.list_kernel_steps())
        return replace(self, steps=steps, yields=self.outputs)

    @property
    def size(self) -> int:
        """How much there is to look at: elements, and options that are said."""
        return sum(value.content.size + 1 for value in iterate_leaves(self.steps)) + 5 * sum(
            len(step.options) + 10 for step in self.steps
        )

    def describe(self) -> str:
        """Word the case in a line for each step."""
        return "\n".join(step.describe() for step in self.steps)


def iterate_leaves(steps: Sequence[Step]) -> Iterator[Value]:
    """The values that no step yields, in the order of their first use."""
    seen = {value for step in steps for value in step.results}
    for step in steps:
        for value in step.reads:
            if value not in seen:
                seen.add(value)
                yield value


def encode(case: Case, catalogue: Catalogue) -> bytes:
    """Write a case as a TensorFlow Lite file; raises ModelError where the format cannot say it."""
    dialect = catalogue.find_dialect("tflite")
    return tflite_writer.write(ir.Model(make_graph(case.steps, case.outputs, dialect), ir_version=10), catalogue)


def draft(step: Step, results: Sequence[tuple[ir.DataType, Quantization | None]], catalogue: Catalogue) -> bytes:
    """Write a step on its own whose results have types but no shapes yet."""
    dialect = catalogue.find_dialect("tflite")
    values = [UnknownResult(f"y{place}", dtype, grid) for place, (dtype, grid) in enumerate(results)]
    return tflite_writer.write(ir.Model(make_graph([step], values, dialect), ir_version=10), catalogue)


def make_graph(steps: Sequence[Step], outputs: Sequence[Value | UnknownResult], dialect: Dialect) -> ir.Graph:
    """The graph that steps stand for; results of a step without any are those given as outputs."""
    made: dict[Value | UnknownResult, ir.Value] = {}
    nodes = _make_nodes(steps, outputs, dialect, made, "")
    first = list(iterate_leaves(steps))
    return ir.Graph(
        [made[value] for value in first if value.fed],
        [made[value] for value in outputs],
        nodes=nodes,
        initializers=[made[value] for value in first if value.constant],
        opset_imports={dialect.domain: 1},
        name="main",
    )


def _make_nodes(
    steps: Sequence[Step],
    outputs: Sequence[Value | UnknownResult],
    dialect: Dialect,
    made: dict[Value | UnknownResult, ir.Value],
    around: str,
) -> list[ir.Node]:
    """The nodes that steps stand for, and those of their graphs; `made` holds the values that are there already."""
    nodes = []
    for place, step in enumerate(steps):
        name = f"{around}{step.operator.name}_{place}"
        operands = [None if value is None else made.setdefault(value, _make_value(value)) for value in step.operands]
        attributes = []
        for option, value in step.options.items():
            if isinstance(value, Body):
                attributes.append(ir.AttrGraph(option, _make_inner(value, dialect, made, f"{name}/{option}/")))
            elif (attribute := probe.make_attribute(step.operator.options[option], value, dialect)) is not None:
                attributes.append(attribute)
        results = [made.setdefault(value, _make_value(value)) for value in step.results or outputs]
        node = ir.Node(step.operator.domain, step.operator.name, operands, attributes, outputs=results, name=name)
        node.version = step.version
        if operands and operands[0] is not None and read_quantization(operands[0]) is not None:
            node.meta["intermediates"] = tuple(_make_scratch(step.operator, name))
        nodes.append(node)
    return nodes


def _make_scratch(operator: OperatorSpec, name: str) -> Iterator[ir.Value]:
    """The values that integer kernels keep beside an operator."""
    for place, (kind, scale) in enumerate(operator.facts.fuzz.scratch or ()):
        value = ir.Value(name=f"{name}/scratch_{place}", type=ir.TensorType(DTYPES[kind]), shape=ir.Shape([]))
        value.meta[KEY] = Quantization(np.array([scale], np.float32), np.zeros(1, np.int64))
        yield value


def _make_inner(body: Body, dialect: Dialect, made: dict[Value | UnknownResult, ir.Value], name: str) -> ir.Graph:
    taken = [made.setdefault(value, _make_value(value)) for value in body.parameters]
    for value in body.reads:
        made.setdefault(value, _make_value(value))
    nodes = _make_nodes(body.steps, (), dialect, made, name)
    return ir.Graph(taken, [made[value] for value in body.yields], nodes=nodes, name=name.rstrip("/"))


def _make_value(value: Value | UnknownResult) -> ir.Value:
    made = ir.Value(name=value.name, type=None if value.dtype is None else ir.TensorType(value.dtype))
    if value.grid is not None:
        made.meta[KEY] = value.grid
    if isinstance(value, UnknownResult):
        made.shape = None if value.shape is None else ir.Shape(value.shape)
        return made
    extents = value.content.shape
    made.shape = ir.Shape([n if not value.open or axis in value.told else None for axis, n in enumerate(extents)])
    if value.open:
        made.meta["static_shape"] = extents
    if value.variable:
        made.meta[STATEFUL] = True
    if value.constant:
        made.const_value = _make_tensor(value)
    return made


def _make_tensor(value: Value) -> ir.TensorProtocol:
    if value.dtype == ir.DataType.STRING:
        return ir.StringTensor(value.content.ravel().tolist(), shape=ir.Shape(value.content.shape), name=value.name)
    return ir.tensor(np.asarray(value.content, order="C"), dtype=value.dtype, name=value.name)


def _describe_value(value: Value) -> str:
    unsure = ["?" if value.told and axis not in value.told else "" for axis in range(value.content.ndim)]
    extents = ", ".join(f"{extent}{mark}" for extent, mark in zip(value.content.shape, unsure, strict=True))
    text = f"{value.dtype.name.lower()}[{extents}]" + ("?" if value.open and not value.told else "")
    if value.grid is not None:
        text += " quantized"
    if value.constant:
        text += f" = {value.content.tolist()}" if value.content.size <= 6 else " constant"
    return text


__all__ = ["Body", "Case", "Step", "UnknownResult", "Value", "draft", "encode", "iterate_leaves", "make_graph"]

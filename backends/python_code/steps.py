"""Nodes as steps of a program: what of each is written in the code, what a layer holds, and what may differ."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from ...engine.base.constants import TRAINED
from ...engine.base.provenance import SCOPE, SOURCE
from ...engine.base.startup import dataclass, field
from ...engine.dialects.operators import Dialect, OperatorSpec, get_option
from ...engine.expressions.functions.registry import SHORT
from .precisions import PRECISION
from .templates import Filling, list_arguments, list_names, make_literal, parse_template

#: the key under which a value says that it is a number of Python and no tensor
PLAIN = "plain"
#: the key under which a value says that it is an extent of the operand of its step
EXTENT = "extent"
_HIGHEST = float(np.finfo(np.float32).max)

#: the place of a literal in a step: the name of an argument, or of an operand with the number among those of the name
Slot: TypeAlias = "tuple[str, int]"


@dataclass(slots=True, eq=False)
class Step:
    """One step of a program: an operator, a constant that several read, or a call of a block.

    Steps with equal `key` are written alike but for their `literals`. `reads` are the operands that are not literals,
    `None` where one is left out, `writes` the results. `inner` are the steps of a block's call, as they are here.
    `sizes` are operands that are extents of the other ones, which whoever has these can tell.
    `tied` are the operands that it holds and other steps as well. `scope` is the path of the module that the source
    says it is in, or nothing, `classes` are those of it and of those around it. `precision` is the element type of its
    real numbers, where that is not what layers have by themselves.
    """

    key: tuple[Any, ...]
    reads: list[ir.Value | None]
    writes: list[ir.Value]
    literals: dict[Slot, Any] = field(default_factory=dict)
    node: ir.Node | None = None
    spec: OperatorSpec | None = None
    layer: bool = False
    held: dict[str, ir.Value] = field(default_factory=dict)
    tied: frozenset[str] = frozenset()
    own: dict[Slot, ir.Value] = field(default_factory=dict)
    operands: dict[str, list[ir.Value | None]] = field(default_factory=dict)
    constant: ir.Value | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    block: Block | None = None
    inner: list[Step] = field(default_factory=list)
    graphs: dict[str, ir.Graph] = field(default_factory=dict)
    sizes: list[ir.Value] = field(default_factory=list)
    scope: tuple[str, ...] = ()
    classes: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    roll: Roll | None = None
    precision: str | None = None

    @property
    def inputs(self) -> Iterator[ir.Value]:
        """The values that it reads and that are no constants of its own."""
        return (value for value in self.reads if value is not None)

    def read_tensor(self, slot: Slot) -> ir.Value:
        """The constant that it is, or the operand that nothing but it holds."""
        return self.own[slot] if self.constant is None else self.constant


@dataclass(slots=True, eq=False)
class Roll:
    """Rounds that are alike, as a loop: how many, the steps of one and the number of it, and what it yields.

    Of each value that goes from round to round, `carried` has where it begins, what a round is given, and what it
    hands on, `finals` have what is left of it. `row` is what a round yields besides, `rows` are those of all rounds.
    `join` puts these together.
    """

    count: int
    steps: list[Step]
    counter: ir.Value
    carried: list[tuple[ir.Value, ir.Value, ir.Value]]
    finals: list[ir.Value]
    row: ir.Value
    rows: ir.Value
    join: Step


@dataclass(slots=True, eq=False)
class Block:
    """A run of steps that occurs several times: the steps of each instance, and what its results are.

    `results` are places, step and result. `parameters` are the literals that differ, each with the slots that it fills;
    those in `widths` are given without their names, `defaults` are what most instances give. `literals` are what the
    slots that differ are filled with: expressions of the parameters.
    """

    instances: list[list[Step]]
    results: list[tuple[int, int]]
    name: str = ""
    parameters: dict[str, list[tuple[int, Slot]]] = field(default_factory=dict)
    widths: frozenset[str] = frozenset()
    defaults: dict[str, Any] = field(default_factory=dict)
    literals: dict[tuple[int, Slot], ast.expr] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        """The steps as they are in the first instance."""
        return self.instances[0]

    def is_fixed(self, step: int, slot: Slot) -> bool:
        """Whether a literal is the same in all instances."""
        return all(one[step].literals[slot] == self.steps[step].literals[slot] for one in self.instances)


def hold(value: ir.Value) -> Step:
    """A step that is a constant."""
    return Step(("constant", id(value)), [], [value], constant=value)


def is_constant(value: ir.Value | None) -> bool:
    """Whether a value is known and no input."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def is_truth(value: ir.Value) -> bool:
    """Whether a value is a constant truth value."""
    tensor = value.const_value if is_constant(value) else None
    return tensor is not None and tensor.dtype == ir.DataType.BOOL and len(tensor.shape) == 0


def read_truth(value: ir.Value) -> bool:
    """The truth value of a constant."""
    assert value.const_value is not None
    return bool(value.const_value.numpy())


def describe_kind(value: ir.Value) -> tuple[str, int]:
    """The element type and the rank of a constant."""
    assert value.const_value is not None
    return value.const_value.dtype.name, len(value.const_value.shape)


def describe_step(node: ir.Node, dialect: Dialect) -> Step:
    """A node as a step of its own."""
    spec = dialect.find_operator(node.op_type) if node.domain == dialect.domain else None
    operands = _name_operands(node, spec)
    step = Step((), [], list(node.outputs), node=node, spec=spec, operands=operands)
    step.scope, step.classes = _find_scope(node)
    step.precision = node.meta.get(PRECISION)
    step.types = dialect.facts.python.types if dialect.facts.python is not None else {}
    if spec is None or not _is_written(spec, operands):
        return _make_placeholder(step, node)
    python = spec.facts.python
    for result in node.outputs:
        result.meta[PLAIN], result.meta[EXTENT] = python.plain, python.extent is not None
    step.layer = _is_layer(spec, operands)
    kinds = _sort_operands(step, node, spec)
    if python.statement is not None:
        step.graphs = {a.name: a.as_graph() for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH}
        step.reads += [value for graph in step.graphs.values() for value in _list_captured(graph)]
        step.key = ("statement", id(node))
        return step
    step.key = (spec.name, step.layer, kinds, len(node.outputs), _list_options(step, spec), step.precision)
    return step


def _make_placeholder(step: Step, node: ir.Node) -> Step:
    """A step for a node that code has no words for: a function that is left to be written."""
    step.spec = None
    step.operands = _name_operands(node, None)
    kinds = tuple(None if value is None else "run" for value in node.inputs)
    said = tuple(sorted((name, repr(attribute.value)) for name, attribute in node.attributes.items()))
    step.key = ("placeholder", node.domain, node.op_type, said, kinds, len(node.outputs))
    step.reads = list(node.inputs)
    _separate_constants(step)
    return step


def _sort_operands(step: Step, node: ir.Node, spec: OperatorSpec) -> tuple[Any, ...]:
    """Enter the operands of a step by what they are: held by a layer, constants, numbers, values of a run; their
    kinds."""
    kinds: list[Any] = []
    for name, values in step.operands.items():
        for place, value in enumerate(values):
            if step.layer and name in spec.facts.python.held:
                if value is not None:
                    step.held[name] = value
                kinds.append(value is not None)
            elif value is not None and is_constant(value):
                number = _read_number(value, name, node, spec)
                if number is None:
                    step.own[name, place] = value
                else:
                    step.literals[name, place] = number
                kinds.append((name, "own" if number is None else type(number).__name__))
            else:
                step.reads.append(value)
                kinds.append(None if value is None else name)
    return tuple(kinds)


def _is_layer(spec: OperatorSpec, operands: Mapping[str, list[ir.Value | None]]) -> bool:
    """Whether a layer holds what it is to hold."""
    python = spec.facts.python
    held = [operands[name][0] for name in python.held]
    return bool(held) and python.module is not None and all(one is None or is_constant(one) for one in held)


def _is_written(spec: OperatorSpec, operands: Mapping[str, list[ir.Value | None]]) -> bool:
    """Whether there is a statement, a layer, or an expression of all operands that are given."""
    python = spec.facts.python
    if python.statement is not None or _is_layer(spec, operands):
        return True
    given = {name for name, values in operands.items() if any(value is not None for value in values)}
    return python.expression is not None and given <= list_names(python.expression)


def _find_scope(node: ir.Node) -> tuple[tuple[str, ...], Mapping[tuple[str, ...], str]]:
    """The path of the module that a node came from, and the classes along it: what the source says, or its name there
    without the last part."""
    path = node.metadata_props.get(SCOPE)
    if path is None:
        path, _, _ = node.metadata_props.get(SOURCE, "").rpartition("/")
    scope: tuple[str, ...] = ()
    classes = {}
    for part in path.split("/"):
        words, _, kind = part.partition(":")
        scope += tuple(word for word in words.split(".") if word)
        if kind:
            classes[scope] = kind
    return scope, classes


def _list_captured(graph: ir.Graph) -> list[ir.Value]:
    """The values of graphs around it that a graph reads, constants left out."""
    own = {*graph.inputs, *(value for node in graph.all_nodes() for value in node.outputs)}
    own |= {value for inner in graph.subgraphs() for value in inner.inputs}
    read = [value for node in graph.all_nodes() for value in node.inputs if value is not None]
    return [value for value in dict.fromkeys([*read, *graph.outputs]) if value not in own and not is_constant(value)]


def _separate_constants(step: Step) -> None:
    for place, value in enumerate(list(step.reads)):
        if value is not None and is_constant(value):
            step.own["", place] = value
    step.reads = [value for value in step.reads if not is_constant(value)]


def _list_options(step: Step, spec: OperatorSpec) -> tuple[Any, ...]:
    """What options say that is the same for all steps with a key; the numbers of a layer are literals of it instead."""
    node, said = step.node, []
    assert node is not None
    free = list_arguments(spec.facts.python.module) if step.layer and spec.facts.python.module else {}
    for name, option in spec.options.items():
        given = name in node.attributes
        value = get_option(node, option) if given else free.get(name, ...)
        if name in free and _is_free(value):
            step.literals[name, 0] = _convert_value(value)
        elif given:
            said.append((name, repr(value)))
    return tuple(said)


def _is_free(value: Any) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return bool(numbers) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers)


def _convert_value(value: Any) -> Any:
    """A list of one number as that number, a longer one as a tuple; real numbers as a float32 has them."""
    if isinstance(value, list):
        return _convert_value(value[0]) if len(value) == 1 else tuple(_convert_value(one) for one in value)
    return shorten(value) if isinstance(value, float) else value


def shorten(number: float) -> float:
    """The number with the fewest digits that is the same as a float32; at the end of the range the exact one."""
    short = float(str(np.float32(number)))
    return short if abs(short) <= _HIGHEST or math.isinf(short) else float(np.float32(number))


def read_option(step: Step, name: str) -> Any:
    """What an option of a step is written as; `None` where it is not said."""
    assert step.node is not None and step.spec is not None
    option = step.spec.options[name]
    if name not in step.node.attributes:
        return None
    return _convert_value(get_option(step.node, option))


def read_options(step: Step) -> dict[str, Filling]:
    """The options of a step as expressions; element types by their names."""
    assert step.spec is not None
    found: dict[str, Filling] = {PRECISION: None if step.precision is None else parse_template(step.precision)}
    for name in step.spec.options:
        value = read_option(step, name)
        if value is not None and name in step.spec.facts.python.types:
            found[name] = parse_template(step.types[SHORT[ir.DataType(value)]])
        else:
            found[name] = None if value is None else make_literal(value)
    return found


def _read_number(value: ir.Value, name: str, node: ir.Node, spec: OperatorSpec) -> Any:
    """The number that a constant is written as; None where it is to be a tensor."""
    tensor = value.const_value
    if name not in spec.facts.python.numbers or tensor is None or tensor.size != 1 or TRAINED in value.meta:
        return None
    others = [one.shape for one in node.inputs if one is not None and one is not value and not is_constant(one)]
    rank = len(tensor.shape)
    elementwise = spec.facts.layout == "transparent"
    if elementwise and not others and value is node.inputs[0]:
        return None  # numbers alone would yield a number of Python
    broadcast = elementwise and any(one is not None and len(one) >= rank for one in others)
    if rank and not broadcast:
        return None
    if tensor.dtype not in SHORT or tensor.dtype == ir.DataType.STRING:
        return None
    number = tensor.numpy().reshape(()).item()
    return _convert_value(number) if tensor.dtype == ir.DataType.FLOAT else number


def _name_operands(node: ir.Node, spec: OperatorSpec | None) -> dict[str, list[ir.Value | None]]:
    """The operands by their names; one name may stand for several."""
    if spec is None:
        return {f"operand{place}": [value] for place, value in enumerate(node.inputs)}
    found: dict[str, list[ir.Value | None]] = {}
    rest: Sequence[ir.Value | None] = node.inputs
    for place, operand in enumerate(spec.operands):
        later = len(spec.operands) - place - 1
        count = max(0, len(rest) - later) if operand.variadic else 1
        found[operand.name] = list(rest[:count]) or ([] if operand.variadic else [None])
        rest = rest[count:]
    return found


def share_prefix(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The parts with which all paths begin."""
    found: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        found.append(parts[0])
    return tuple(found)


def count_reads(steps: Sequence[Step], outputs: Sequence[ir.Value]) -> Mapping[ir.Value, int]:
    """How often each value is read by steps or yielded."""
    found: dict[ir.Value, int] = {}
    for value in (*(value for step in steps for value in (*step.inputs, *step.sizes)), *outputs):
        found[value] = found.get(value, 0) + 1
    return found

"""Pass `resize`: inputs get another shape or batch than the file says, and the graph follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.errors import CallError, RewriteError
from ..base.names import Scope
from ..base.provenance import name_source
from ..base.startup import dataclass, field, replace
from ..dialects.facts import OperatorFacts
from ..dialects.inference import read_extents
from ..dialects.operators import Dialect, OperatorSpec, get_option
from ..rewrite.apply import Outcome
from ..rewrite.rules import Settle
from ..rewrite.subgraphs import list_called
from .base import Module, Visit
from .fold import Fold
from .known import make_shape_node
from .samples import BatchAxis, BatchError, KnownValues, RunTimeExtents, SampleCounts, Samples
from .strided_views import replace_strided_views
from .variables import ASSIGN

#: what to ask for where the batch is to be known at run time only, and the name of such an extent
DYNAMIC = "dynamic"
_NAME = "batch"
#: the largest extent that files hold
_LARGEST = (1 << 63) - 1

Shape = tuple[int, ...]


def has_batch_facts(facts: OperatorFacts) -> bool:
    """Whether anything is said of what another batch means to an operator."""
    return bool(facts.extents or facts.regroups or facts.mixes) or facts.batch is not None


def can_resize(dialect: Dialect) -> bool:
    """Whether graphs of a dialect can be given another batch or shape: it says what that means to its operators."""
    return dialect.schemas or any(has_batch_facts(spec.facts) for spec in dialect.operators.values())


@dataclass(frozen=True, slots=True)
class RequestedShapes:
    """Shapes by the names of inputs, and a batch: a number, `dynamic`, or None for that of the file."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    batch: int | str | None = None

    @classmethod
    def parse(cls, shapes: Sequence[str], batch: int | str | None = None) -> RequestedShapes:
        """Read `NAME=1,224,224,3` and a batch; raises CallError where a text is neither."""
        found: dict[str, Shape] = {}
        for text in shapes:
            name, _, numbers = text.rpartition("=")
            try:
                shape = tuple(int(number) for number in numbers.split(",")) if numbers else ()
            except ValueError:
                shape = (-1,)
            if not name or min(shape, default=0) < 0:
                raise CallError(f"{text!r} is not an input with its shape, such as NAME=1,224,224,3")
            if max(shape, default=0) > _LARGEST:
                raise CallError(f"{text!r} has an extent above {_LARGEST}, the largest that there is")
            if found.setdefault(name, shape) != shape:
                raise CallError(f"two shapes are asked for the input {name}")
        if isinstance(batch, str) and batch != DYNAMIC:
            if not batch.isdecimal():
                raise CallError(f"{batch!r} is not a batch: give a number, or {DYNAMIC}")
            batch = int(batch) if len(batch) <= len(f"{_LARGEST}") else _LARGEST + 1
        if isinstance(batch, int) and batch < 1:
            raise CallError(f"a batch of {batch} has no elements: give 1 or more")
        if isinstance(batch, int) and batch > _LARGEST:
            raise CallError(f"the batch is above {_LARGEST}, the largest extent that there is")
        return cls(found, batch)

    def __bool__(self) -> bool:
        return bool(self.shapes) or self.batch is not None


class Resize:
    """Give the inputs of the main graph the extents asked for, and the constants that speak of them."""

    name, visits = "resize", Visit.MAIN

    def __init__(self, asked: RequestedShapes, opset: int | None = None) -> None:
        self._asked, self._opset = asked, opset
        self.resizing: Resizing | None = None

    def run(self, module: Module) -> None:
        """Change the inputs; raises CallError where one is not there, RewriteError where a node forbids the extents."""
        if not self._asked:
            return
        module = replace(module, forms=self._opset)
        self.resizing = Resizing(module, self._asked, _infer_known(module) if module.source.schemas else KnownValues())
        if module.source is module.target and module.rules.settle is not None:
            _infer_extents(module.graph, module.rules.settle)  # nodes that no rule changes need them too


@dataclass(frozen=True, slots=True)
class CheckExtents:
    """Refuse a converted graph of which a result still has the batch that was to be changed."""

    resize: Resize
    name, visits = "check-extents", Visit.MAIN

    def run(self, module: Module) -> None:
        """Raise RewriteError with the first node that forbids the extents asked for."""
        if self.resize.resizing is not None:
            self.resize.resizing.check(module.graph, module.target)


class Resizing:
    """A graph of the source whose inputs are given other extents; `check` tells, of its rewritten form, who objects.

    The batch is the first extent. Where it changes, constants that say extents of a result (`extents` in ops.yaml) say
    the new batch if they said the old one of a value that has it. All other extents are forgotten, to be inferred anew.
    """

    def __init__(self, module: Module, asked: RequestedShapes, known: KnownValues) -> None:
        self._dialect, self._subgraphs, self._names = module.source, module.functions, module.names
        self._asked = asked
        self._graph = graph = module.graph
        self._carrying: dict[ir.Value, int] = {}
        #: the batch that results had and keep if nothing carries the new one to them, by their names
        self._was: dict[str, int] = {}
        named = {value.name or "": value for value in graph.inputs}
        for name in asked.shapes:
            if name not in named:
                raise CallError(f"the model has no input {name}, only {', '.join(named)}")
        shapes = {value: _read_static_shape(value) for value in _iterate_values(graph)} | {**known.shapes}
        firsts = [first for value in graph.inputs for first in (shapes[value] or read_extents(value) or ())[:1]]
        if asked.batch is not None and not firsts:
            raise CallError("no input of the model has a batch")
        # One without a name is the batch where no other is.
        batch = next((first for first in firsts if first is not None), None)
        for value in graph.inputs:
            self._enlarge(value, shapes[value], batch)
        if self._dialect.schemas:
            self._follow_samples(module, known)
        else:
            self._run(graph, shapes)
        for one in (graph, *self._subgraphs):
            for value in _iterate_values(one):
                if not value.is_graph_input() and value.const_value is None and value.shape is not None:
                    first = self._find_new_batch() if value in self._carrying else None
                    value.shape = ir.Shape([first if axis == 0 else None for axis in range(len(value.shape))])

    def _enlarge(self, value: ir.Value, shape: Shape | None, batch: int | str | None) -> None:
        """Give an input the extents asked for; those whose first extent is `batch` have a batch."""
        asked, name = self._asked, value.name or ""
        wanted: list[int | str | None] = list(read_extents(value) or ())
        if name in asked.shapes:
            if shape is not None and len(asked.shapes[name]) != len(shape):
                raise CallError(
                    f"the input {name} has {len(shape)} dimensions, {len(asked.shapes[name])} are asked for"
                )
            wanted = list(asked.shapes[name])
        elif asked.batch is not None and wanted and (shape or wanted)[0] == batch:
            wanted[0] = _NAME if asked.batch == DYNAMIC else int(asked.batch)
        if shape and wanted[0] != shape[0]:
            self._carrying[value] = shape[0]
        value.shape = ir.Shape(wanted)

    def _follow_samples(self, module: Module, known: KnownValues) -> None:
        """Find out where the samples stand in each value, by inference, and let constants say their new number."""
        inputs, new = [value for value in self._graph.inputs if value in self._carrying], self._find_new_batch()
        resized = [(known.shapes[value] or (), read_extents(value) or ()) for value in self._graph.inputs]
        if not inputs or any(before[1:] != after[1:] for before, after in resized if before):
            return  # or extents of samples change as well, which constants may say too
        old = self._carrying[inputs[0]]
        known = replace_strided_views(module, known, old)
        number = new if isinstance(new, int) else None
        extents = {value: read_extents(value) for value in inputs}
        try:
            samples = Samples(module, SampleCounts(old, number), known, inputs)
        except BatchError as error:
            self._object_to(error.node, error.why)
        for value, asked in extents.items():
            value.shape = ir.Shape(asked or ())
        for (node, place), numbers in samples.changes.items():
            operand = node.inputs[place]
            assert operand is not None
            self._replace(node, place, operand, numbers)
        for (node, place), wanted in samples.computed.items():
            node.replace_input_with(place, _compute_operand(node, place, wanted, module))
        for value, found in samples.places.items():
            if found == BatchAxis(0) and not value.is_graph_input():
                self._carrying[value] = old

    def _run(self, graph: ir.Graph, shapes: Mapping[ir.Value, Shape | None]) -> None:
        """Follow the batch through a graph, and through those that its nodes call, once each."""
        for node in graph:
            for body in list_called([node], self._dialect, self._subgraphs, deep=False):
                for value, operand in zip(reversed(body.inputs), reversed(node.inputs), strict=False):
                    if operand in self._carrying and value not in self._carrying:
                        assert operand is not None
                        self._carrying[value] = self._carrying[operand]
                self._run(body, {value: _read_static_shape(value) for value in _iterate_values(body)})
            self._follow(node, shapes)

    def _follow(self, node: ir.Node, shapes: Mapping[ir.Value, Shape | None]) -> None:
        """Let what a node makes of values with the new batch have it too, and its constants say it."""
        carriers = [value for value in node.inputs if value in self._carrying]
        if not carriers:
            return
        carrier = carriers[0]
        assert carrier is not None
        old = self._carrying[carrier]
        for result in node.outputs:
            shape = shapes.get(result)
            if shape and shape[0] == old:
                self._carrying[result] = old
                self._was[result.name or ""] = old
        spec = self._dialect.operators.get(node.op_type)
        if spec is not None and spec.facts.batch not in (None, self._find_new_batch()):
            self._object_to(node, f"it takes {spec.facts.batch} sample at a time")
        if spec is not None and spec.role == ASSIGN:
            self._object_to(node, f"it keeps what a call leaves for the next, which is of {old} sample")
        if spec is not None and spec.facts.mixes is not None:
            self._check_mixing(node, spec, spec.facts.mixes, shapes[carrier])
        if spec is not None and spec.facts.extents:
            self._restate(node, spec, old, shapes[carrier], shapes[node.outputs[0]])

    def _check_mixing(self, node: ir.Node, spec: OperatorSpec, mixes: str, before: Shape | None) -> None:
        """Object to a node that puts samples together."""
        place = [operand.name for operand in spec.operands].index(mixes)
        listed = node.inputs[place]
        axes = None if listed is None else read_initializer(listed)
        if before is not None and axes is not None and 0 in np.ravel(axes) % len(before):
            self._object_to(node, "it puts the samples together")

    def _restate(self, node: ir.Node, spec: OperatorSpec, old: int, before: Shape | None, after: Shape | None) -> None:
        first, regroups = self._find_new_batch(), spec.facts.regroups
        if before is None or after is None:
            return
        for name, free in spec.facts.extents.items():
            new = first if isinstance(first, int) else free
            place = spec.find_operand(name)
            if place is None:
                said = list(get_option(node, spec.options[name]) or ())
            else:
                operand = node.inputs[place] if place < len(node.inputs) else None
                numbers = None if operand is None else read_initializer(operand)
                said = [] if numbers is None else numbers.ravel().tolist()
            if not said:
                continue
            if free == 1 and len(said) == len(before) and said[0] > old == 1:
                self._object_to(node, f"it makes a value of the shape {said} of one sample")
            if regroups and (said[0] != old or math.prod(before[1:]) != math.prod(after[1:])):
                if -1 not in said:
                    self._object_to(node, f"it makes a value of the shape {list(said)} whatever its operand is")
                continue
            if said[0] != old or node.outputs[0] not in self._carrying:
                continue
            changed = [new, *(after[1:] if regroups else said[1:])]
            if place is None:
                node.attributes.add(ir.AttrInt64s(name, changed))
            elif operand is not None and numbers is not None:
                self._replace(node, place, operand, np.array(changed, numbers.dtype).reshape(numbers.shape))

    def _replace(self, node: ir.Node, place: int, operand: ir.Value, numbers: np.ndarray) -> None:
        name = self._names.make_name(f"{operand.name}_of_{node.name}")
        made = ir.Value(name=name, type=operand.type, shape=ir.Shape(numbers.shape))
        made.const_value = ir.tensor(numbers, name=name)
        assert node.graph is not None
        node.graph.initializers.add(made)
        node.replace_input_with(place, made)

    def _find_new_batch(self) -> int | str | None:
        """The new first extent of the inputs whose first extent changes: a number or a name."""
        first = next(iter(self._carrying), None)  # also where another input has taken its place since
        shape = None if first is None else read_extents(first)
        return shape[0] if shape else None

    def check(self, graph: ir.Graph, dialect: Dialect) -> None:
        """Raise RewriteError where a result still has the batch of the file, or another number of elements than it is
        made of; names the first node that forbids another.

        `graph` is the rewritten graph of a dialect, whose values have the names that they had.
        """
        new = self._find_new_batch()
        for node in graph:
            spec = dialect.operators.get(node.op_type)
            if spec is not None and spec.facts.regroups and (read := node.inputs[0]) is not None:
                made = node.outputs[0]
                before, after = _count_elements(read), _count_elements(made)
                if before is not None and after is not None and before != after:
                    extents = [*(read_extents(made) or ())]
                    self._object_to(node, f"it makes a value of the shape {extents} whatever its operand is")
            for result in node.outputs:
                old = self._was.get(result.name or "")
                shape = read_extents(result)
                if old is not None and shape and isinstance(shape[0], int) and shape[0] != new:
                    self._object_to(
                        node, f"its result {result.name} has the batch {shape[0]} whatever its operands have"
                    )

    def _object_to(self, node: ir.Node, why: str) -> NoReturn:
        raise RewriteError(f"{name_source(node)} forbids the extents asked for: {why}")


def _infer_known(module: Module) -> KnownValues:
    """What inference knows of the values of a graph with the extents that the file says; they are given the types."""
    graph = module.graph.clone()
    nodes = list(zip(module.graph, graph, strict=True))
    values = list(zip(_iterate_values(module.graph), _iterate_values(graph), strict=True))
    Fold().run(replace(module, graph=graph, names=Scope(graph), outcome=Outcome()))
    for value, copy in values:
        value.type = value.type or copy.type
    operands = [(node, place, one) for node, copy in nodes for place, one in enumerate(copy.inputs)]
    constants = {
        (node, place): one.const_value
        for node, place, one in operands
        if one is not None and one.const_value is not None and not one.is_graph_input()
    }
    return KnownValues({value: _read_static_shape(copy) for value, copy in values}, constants)


def _compute_operand(node: ir.Node, place: int, wanted: RunTimeExtents, module: Module) -> ir.Value:
    """Extents with the number of samples that a run tells, or a constant operand of a node repeated to them."""
    join, named = module.source.find_role("join"), f"{node.name}/extents"
    end = wanted.axis + 1
    rank = len(read_extents(wanted.value) or ())
    shape = make_shape_node(wanted.value, wanted.axis, end if end < rank else None, module)
    around = wanted.extents[: wanted.axis], wanted.extents[end:]
    front, back = (
        [module.names.register(module.names.make_constant(np.array(part, np.int64), named))] if part else []
        for part in around
    )
    parts = [*front, shape.outputs[0], *back]
    joined = ir.Node(join.domain, join.name, parts, [ir.AttrInt64(f"{join.facts.joins}", 0)], num_outputs=1)
    made = [shape, joined]
    if wanted.repeats:
        broadcast = module.source.find_role("broadcast")
        operands = [node.inputs[place], joined.outputs[0]]
        made.append(ir.Node(broadcast.domain, broadcast.name, operands, num_outputs=1))
    for one in made[1:]:
        module.names.name_node(one, f"{node.name}/{one.op_type}")
    module.graph.insert_before(node, made)
    return made[-1].outputs[0]


def _infer_extents(graph: ir.Graph, settle: Settle) -> None:
    """Let results have the extents that their operands tell, and keep their types, which may say more of codes."""
    for node in graph:
        types = [result.type for result in node.outputs]
        constants = settle(node)
        for place, (result, kind) in enumerate(zip(node.outputs, types, strict=True)):
            result.type = kind
            if constants is not None:
                result.shape = ir.Shape(list(constants[place].shape))


def _count_elements(value: ir.Value) -> int | None:
    """The number of elements; None where a run tells it."""
    return math.prod(value.shape.numpy()) if value.shape is not None and value.shape.is_static() else None


def _iterate_values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs


def _read_static_shape(value: ir.Value) -> Shape | None:
    """The extents that the file says, 1 or so for those that it calls unknown; None where nothing is known."""
    known = value.meta.get("static_shape")
    if known is not None:
        return tuple(known)
    shape = read_extents(value)
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        return None
    return tuple(extent for extent in shape if isinstance(extent, int))

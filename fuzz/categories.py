"""Categories: what ops.yaml says of operators and the order of axes, each tried on operators drawn from their schemas.

An operator that ops.yaml lets through must commute with every arrangement of its axes: what it yields is the same.
"""

from __future__ import annotations

import itertools
import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx.defs
import onnx_ir as ir

from ..engine.base.errors import RewriteError
from ..engine.base.names import Scope
from ..engine.dialects.operators import Dialect, OperatorSpec, schema
from ..engine.expressions.functions import DTYPES
from ..engine.packs.loader import Pack
from ..engine.passes.layout.axis_groups import ATTRIBUTE, TRANSPARENT
from ..engine.passes.layout.permute_weights import Tensors, list_linked_places
from ..engine.passes.layout.placement import Layout
from ..engine.passes.layout.regroup import Opaque
from ..engine.passes.layout.views import DEQUANTIZE, PERMUTE, QUANTIZE
from ..verify.frames import Array
from .choices import Choices
from .elements import elements, indices
from .finding import End, Finding, Rejected
from .runtimes import write_model
from .self_check import SelfCheck
from .sketch import Case, Step, Value, graph

#: what the names of these trials begin with
FAMILY, SHUFFLE = "layout", "shuffle"
_RANKS, _EXTENTS = (2, 4), (1, 2, 3, 4, 5)
#: in so many of a hundred draws
_ABSENT, _OTHER, _NEGATIVE, _SCALARS = 30, 20, 30, 20
#: ranges of numbers for each axis
_RANGES = ((0, 0), (1, 2), (0, 2), (2, 5), (-1, -1))
#: at most so many arrangements are chosen from
_ARRANGED = 120


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """An operator of the target dialect whose layout category is on trial."""

    operator: str
    dialect: Dialect
    opsets: tuple[int, int]
    family: str = FAMILY

    @property
    def name(self) -> str:
        return f"{self.family}.{self.operator}"

    @property
    def place(self) -> str:
        """The trial's name and where what it is about stands."""
        return f"{self.name} (ops.yaml, {self.operator})"

    @property
    def excuse(self) -> str:
        """Why it cannot be tried: it always can."""
        return ""

    def operators(self) -> frozenset[str]:
        """The names of the operators that it is about."""
        return frozenset({self.operator})


def categories(pack: Pack) -> list[Category]:
    """All operators of a pack's target that may be moved, and those that ops.yaml says something of the elements along
    one axis of."""
    target = pack.catalogue.dialect(pack.files[0].target)
    operators = target.operators.items() if target.schemas else ()
    movable = [name for name, spec in operators if spec.facts.layout in (TRANSPARENT, ATTRIBUTE)]
    along = [name for name, spec in operators if (spec.facts.letters or spec.facts.along or spec.facts.joins)]
    return [
        *(Category(name, target, pack.opsets) for name in movable),
        *(Category(name, target, pack.opsets, SHUFFLE) for name in along),
    ]


def draw(choices: Choices, category: Category, twins: SelfCheck) -> Case:
    """Draw the operator with operands and options; raises Rejected where the runtime does not take them."""
    low, high = category.opsets
    opset = high - choices.number(0, high - low)
    spec, found = category.dialect.operator(category.operator, opset), schema(category.operator, opset)
    if spec is None or found is None:
        raise Rejected(f"opset {opset} does not have it")
    step = _Bench(choices, spec, found).step()
    count = sum(1 + result.variadic for result in spec.results if not result.optional)
    step = twins.settle(step, [count], [], lambda dtype: (), opset)
    if any(not value.content.size for value in step.results):
        raise Rejected("a result has no elements")
    return Case(category.name, (step,), opset)


def judge_shuffle(case: Case, category: Category) -> Finding:
    """Put elements along one axis of an operand in another order, and those that ops.yaml says go with them."""
    assert case.opset is not None
    (step,) = case.steps
    made = graph(case.steps, case.outputs, category.dialect)
    places = [
        (True, position, axis)
        for position, value in enumerate(step.operands)
        for axis in range(0 if value is None else value.content.ndim)
        if value is not None and value.content.shape[axis] > 1
    ]
    words = step.operator.facts.remap
    named = {step.options.get(name) for name, word in words.items() if word == "axis"} - {None}
    places = [place for place in places if not named or {place[2], place[2] - _rank(step, place[1])} & named]
    if not places:
        return Finding(End.REFUSED, "there is one element only")
    where = places[zlib.crc32(case.describe().encode()) % len(places)]
    try:
        found = list_linked_places(_Plain(made, category.dialect, case.opset), made.node(0), where)
    except Opaque:
        return Finding(End.REFUSED, "its elements are told apart")
    operands, results = list(step.operands), list(step.results)
    count = _rank(step, where[1], where[2])
    for (given, position, axis), start in found:
        values: list[Any] = operands if given else results
        content = values[position].content
        order = [*range(start), *range(start + 1, start + count), start, *range(start + count, content.shape[axis])]
        values[position] = replace(values[position], content=np.take(content, order, axis))
    other = replace(case, steps=(replace(step, operands=tuple(operands), results=tuple(results)),))
    model = write_model(
        graph(other.steps, other.outputs, category.dialect),
        [v.name for v in other.outputs],
        category.dialect,
        case.opset,
    )
    return SelfCheck.compare_case(
        other,
        model,
        {category.name: 1},
        f"elements moved along axis {where[2]} of operand {where[1]}: ",
        optimized=False,
    )


def _rank(step: Step, position: int, axis: int | None = None) -> int:
    """The rank of an operand, or its extent along an axis."""
    value = step.operands[position]
    shape = () if value is None else value.content.shape
    return len(shape) if axis is None else shape[axis]


def judge(case: Case, category: Category) -> Finding:
    """Put the axes of the operator in another order, as ops.yaml says how, and compare."""
    assert case.opset is not None
    made = graph(case.steps, case.outputs, category.dialect)
    node = made.node(0)
    expected = tuple(value.content for value in case.outputs)
    try:
        plain = category.dialect.operators[category.operator].role in (PERMUTE, QUANTIZE, DEQUANTIZE)
        tensors = (_Plain if plain else Tensors)(made, category.dialect, case.opset)
        blocks = tensors.blocks(node)
        if blocks is None or blocks.count < 2:
            return Finding(End.REFUSED, "nothing may be moved through it", {}, expected)
        orders = itertools.islice(itertools.permutations(range(blocks.count)), 1, _ARRANGED)
        admitted = [order for order in orders if blocks.admits(order)]
        if not admitted:
            return Finding(End.REFUSED, "it has one order only", {}, expected)
        chosen = admitted[zlib.crc32(case.describe().encode()) % len(admitted)]
        Layout(tensors, {node: chosen}, Scope(made)).apply()
        made.sort()
        said = f"axes arranged as {list(chosen)}: "
        model = write_model(made, [value.name for value in case.outputs], category.dialect, case.opset)
    except RewriteError as error:
        return Finding(End.FAILED, f"{error}", {category.name: 1}, expected)
    except Exception:
        return Finding(End.FAILED, "internal error: " + traceback.format_exc(), {category.name: 1}, expected)
    found = SelfCheck.compare_case(case, model, {category.name: 1}, said, optimized=False)
    return replace(found, operators=len(made))


class _Plain(Tensors):
    """Tensors without views: what permutes or scales is the operator that it also is, and has to be remapped as one."""

    def permutation(self, node: ir.Node) -> None:
        return None

    def scales(self, node: ir.Node) -> None:
        return None


@dataclass(slots=True)
class _Bench:
    """An operator in the making: shapes, numbers that count axes, and whatever else its schema asks for."""

    choices: Choices
    spec: OperatorSpec
    schema: onnx.defs.OpSchema
    shape: list[int] = field(default_factory=list)
    axes: list[int] | None = None
    scalars: bool = False
    types: dict[str, ir.DataType] = field(default_factory=dict)
    #: the shapes of operands whose axes have letters
    lettered: dict[str, list[int]] = field(default_factory=dict)

    def step(self) -> Step:
        choices, facts = self.choices, self.spec.facts
        self.shape = [choices.pick(_EXTENTS) for _ in range(choices.number(*_RANKS))]
        self.scalars = choices.chance(_SCALARS)
        words = {**facts.remap, **facts.remap_result}
        numbers: dict[str, list[int]] = {}
        for name in sorted(words, key=lambda name: words[name] != "axes"):
            if name in self.spec.options or any(operand.name == name for operand in self.spec.operands):
                numbers |= self._count(name, words[name])
        if facts.broadcasts:
            numbers |= {name: list(self.shape) for name in words}
            self.shape = self._lower()
        options = {name: self._option(name, numbers) for name in self.spec.options}
        extents = {letter: choices.number(1, 5) for letter in sorted({*"".join(facts.letters.values())})}
        for name, word in facts.letters.items():
            turned = options.get(facts.swaps.get(name, ""))
            self.lettered[name] = [extents[letter] for letter in (word[::-1] if turned else word)]
        operands = [value for position in self._positions() for value in self._operand(position, numbers)]
        while operands and operands[-1] is None:
            operands.pop()
        return Step(self.spec, tuple(operands), {name: value for name, value in options.items() if value is not None})

    # ---- numbers that count axes

    def _count(self, name: str, word: str) -> dict[str, list[int]]:
        choices, facts = self.choices, self.spec.facts
        if not self._is_required(name) and word != "perm" and choices.chance(_ABSENT):
            return {}
        rank = len(self.shape)
        if word == "axis":
            self.axes = [self._sign(choices.number(0, rank - 1), rank)]
            return {name: self.axes}
        if word == "axes":
            if facts.inserts == name:
                rank += 1
                return {name: [self._sign(choices.number(0, rank - 1), rank)]}
            self.axes = [self._sign(axis, rank) for axis in self._shuffle(range(rank))[: choices.number(1, rank)]]
            return {name: self.axes}
        if word == "perm":
            return {name: self._shuffle(range(rank))}
        if facts.regroups:
            return {name: self._regroup()}
        count = rank if self.axes is None else len(self.axes)
        low, high = (0, 2) if word == "per_axis_pairs" else choices.pick(_RANGES)
        return {name: [choices.number(low, high) for _ in range(count * (2 if word == "per_axis_pairs" else 1))]}

    def _sign(self, axis: int, rank: int) -> int:
        return axis - rank if self.choices.chance(_NEGATIVE) else axis

    def _shuffle(self, items: Sequence[int]) -> list[int]:
        left, found = list(items), []
        while left:
            found.append(left.pop(self.choices.number(0, len(left) - 1)))
        return found

    def _regroup(self) -> list[int]:
        """A shape with the same elements: neighbours merged, extents split, ones put in."""
        found: list[int] = []
        for extent in self.shape:
            kind = self.choices.number(0, 3)
            if kind == 0 and found:
                found[-1] *= extent
            elif kind == 1 and extent == 4:
                found += [2, 2]
            else:
                found += [extent] if kind != 2 else [extent, 1]
        return found

    def _lower(self) -> list[int]:
        """A shape that broadcasts to the one there is."""
        start = self.choices.number(0, len(self.shape))
        return [1 if self.choices.chance(40) else extent for extent in self.shape[start:]]

    # ---- operands and options

    def _positions(self) -> list[int]:
        last = len(self.spec.operands) - 1
        more = self.choices.number(0, 2) if last >= 0 and self.spec.operands[last].variadic else 0
        return [*range(last + 1), *[last] * more]

    def _is_required(self, name: str) -> bool:
        if name in self.spec.options:
            return self.spec.options[name].required
        return any(operand.name == name and not operand.optional for operand in self.spec.operands)

    def _operand(self, position: int, numbers: dict[str, list[int]]) -> list[Value | None]:
        choices, operand, facts = self.choices, self.spec.operands[position], self.spec.facts
        counting = operand.name in {**facts.remap, **facts.remap_result}
        if operand.name in numbers:
            dtype = self._type(position, ir.DataType.INT64)
            content = np.array(numbers[operand.name], dtype.numpy())
            scalar = facts.remap.get(operand.name) == "axis" if operand.name in facts.remap else False
            content = content.reshape(()) if scalar and self.choices.chance(50) else content
            return [Value(operand.name, dtype, content, constant=True)]
        if counting or (operand.optional and self.choices.chance(_ABSENT)):
            return [None]
        if operand.name in facts.fuzz.tried:
            tried = choices.pick(facts.fuzz.tried[operand.name])
            if tried is None:
                return [None]
            dtype = self._type(position, ir.DataType.INT64)
            return [Value(operand.name, dtype, np.array(tried, dtype.numpy()), constant=True)]
        dtype = self._type(position)
        framed = not position or operand.name in facts.frame or operand.variadic
        if operand.name in self.lettered:
            shape = self.lettered[operand.name]
        elif framed:
            shape = list(self.shape)
        elif facts.layout == TRANSPARENT:
            shape = [] if self.scalars else self._lower() if self.choices.chance(70) else list(self.shape)
        else:
            along = [[self.shape[axis]] for axis in (self.axes or [])[:1]]
            shape = self.choices.pick([[], [1], *along, [2], list(self.shape)])
        constant = not framed and (position >= len(self.schema.inputs) or self.choices.chance(60))
        place = f"{operand.name}_{self.choices.number(0, 1 << 20) if operand.variadic else position}"
        return [Value(place, dtype, self._content(position, dtype, shape), constant)]

    def _content(self, position: int, dtype: ir.DataType, shape: list[int]) -> Array:
        if position and dtype.is_integer() and not self._admits(position, ir.DataType.FLOAT):
            return indices(self.choices, dtype, shape, self.shape)
        return elements(self.choices, dtype, shape)

    def _admits(self, position: int, dtype: ir.DataType) -> bool:
        if position >= len(self.schema.inputs):  # an attribute at this opset
            option = self.spec.stored[self.spec.operands[position].name]
            return dtype == (ir.DataType.FLOAT if "float" in option.type else ir.DataType.INT64)
        return f"tensor({dtype.name.lower()})" in self.schema.inputs[position].types

    def _type(self, position: int, wanted: ir.DataType = ir.DataType.FLOAT) -> ir.DataType:
        """One type for all operands that the schema gives the same, mostly floats."""
        known = position < len(self.schema.inputs)
        variable = self.schema.inputs[position].type_str if known else self.spec.operands[position].name
        if variable not in self.types:
            names = ("f32", "i64", "bool", "u8", "i32", "u32", "i8")
            fit = [DTYPES[name] for name in names if self._admits(position, DTYPES[name])]
            if not fit:
                raise Rejected(f"there is no type for {self.spec.operands[position].name}")
            best = wanted if wanted in fit else fit[0]
            self.types[variable] = self.choices.pick(fit) if self.choices.chance(_OTHER) else best
        return self.types[variable]

    def _option(self, name: str, numbers: dict[str, list[int]]) -> Any:
        option, facts = self.spec.options[name], self.spec.facts
        if name in numbers:
            return numbers[name] if option.type.startswith("[") else numbers[name][0]
        if name in {**facts.remap, **facts.remap_result} or name in facts.only:
            return None
        if name in facts.fuzz.tried:
            return self.choices.pick(facts.fuzz.tried[name])
        if option.type == "int64" and (option.required or self.choices.chance(_OTHER)):
            return self.choices.number(0, 1)
        if option.required:
            values = {"float": 0.5, "[int64]": [1] * max(len(self.shape) - 2, 1), "string": ""}
            return values.get(option.type)
        if name == facts.keeps:
            return self.choices.number(0, 1)
        return None

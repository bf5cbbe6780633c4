"""Steps of one operator drawn from its schema: shapes, numbers that count axes, and whatever else it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.dialects.conversions import find_type_name
from ..engine.dialects.onnx_schemas import Parameter, Signature
from ..engine.dialects.operators import Dialect, OperatorSpec
from ..engine.expressions.functions import DTYPES
from ..engine.passes.layout.axis_groups import TRANSPARENT
from ..verify.frames import Array
from .choices import Choices
from .elements import draw_elements, draw_indices
from .finding import Rejected
from .sketch import Step, Value

_RANKS, _EXTENTS = (2, 4), (1, 2, 3, 4, 5)
#: in so many of a hundred draws
_ABSENT, _OTHER, _NEGATIVE, _SCALARS = 30, 20, 30, 20
_INTEGERS = ("int32", "int64")
#: ranges of numbers for each axis
_RANGES = ((0, 0), (1, 2), (0, 2), (2, 5), (-1, -1))


def draw_step(choices: Choices, dialect: Dialect, spec: OperatorSpec, signature: Signature) -> Step:
    """Draw an operator with operands and options; raises Rejected where there is no type for one."""
    return _StepDrawer(choices, dialect, spec, signature).draw_step()


@dataclass(slots=True)
class _StepDrawer:
    """An operator in the making."""

    choices: Choices
    dialect: Dialect
    spec: OperatorSpec
    signature: Signature
    shape: list[int] = field(default_factory=list)
    axes: list[int] | None = None
    scalars: bool = False
    types: dict[str, ir.DataType] = field(default_factory=dict)
    #: the shapes of operands whose axes have letters
    lettered: dict[str, list[int]] = field(default_factory=dict)

    def draw_step(self) -> Step:
        choices, facts = self.choices, self.spec.facts
        self.shape = [choices.pick(_EXTENTS) for _ in range(choices.draw_int(*_RANKS))]
        self.scalars = choices.draw_chance(_SCALARS)
        words = {**facts.remap, **facts.remap_result}
        numbers: dict[str, list[int]] = {}
        for name in sorted(words, key=lambda name: words[name] != "axes"):
            if name in self.spec.options or any(operand.name == name for operand in self.spec.operands):
                numbers |= self._count(name, words[name])
        if facts.broadcasts:
            numbers |= {name: list(self.shape) for name in words}
            self.shape = self._lower()
        options = {name: self._draw_option(name, numbers) for name in self.spec.options}
        extents = {letter: choices.draw_int(1, 5) for letter in sorted({*"".join(facts.letters.values())})}
        for name, word in facts.letters.items():
            turned = options.get(facts.swaps.get(name, ""))
            self.lettered[name] = [extents[letter] for letter in (word[::-1] if turned else word)]
        operands = [value for position in self._list_positions() for value in self._draw_operand(position, numbers)]
        while operands and operands[-1] is None:
            operands.pop()
        return Step(self.spec, tuple(operands), {name: value for name, value in options.items() if value is not None})

    # ---- numbers that count axes

    def _count(self, name: str, word: str) -> dict[str, list[int]]:
        choices, facts = self.choices, self.spec.facts
        if not self._is_required(name) and word != "perm" and choices.draw_chance(_ABSENT):
            return {}
        rank = len(self.shape)
        if word == "axis":
            self.axes = [self._draw_sign(choices.draw_int(0, rank - 1), rank)]
            return {name: self.axes}
        if word == "axes":
            if facts.inserts == name:
                rank += 1
                return {name: [self._draw_sign(choices.draw_int(0, rank - 1), rank)]}
            self.axes = [
                self._draw_sign(axis, rank) for axis in self._shuffle(range(rank))[: choices.draw_int(1, rank)]
            ]
            return {name: self.axes}
        if word == "perm":
            return {name: self._shuffle(range(rank))}
        if facts.regroups:
            return {name: self._regroup()}
        count = rank if self.axes is None else len(self.axes)
        paired = word in ("per_axis_pairs", "per_axis_rows")
        low, high = (0, 2) if paired else choices.pick(_RANGES)
        return {name: [choices.draw_int(low, high) for _ in range(count * (2 if paired else 1))]}

    def _draw_sign(self, axis: int, rank: int) -> int:
        return axis - rank if self.choices.draw_chance(_NEGATIVE) else axis

    def _shuffle(self, items: Sequence[int]) -> list[int]:
        left, found = list(items), []
        while left:
            found.append(left.pop(self.choices.draw_int(0, len(left) - 1)))
        return found

    def _regroup(self) -> list[int]:
        """A shape with the same elements: neighbours merged, extents split, ones put in."""
        found: list[int] = []
        for extent in self.shape:
            kind = self.choices.draw_int(0, 3)
            if kind == 0 and found:
                found[-1] *= extent
            elif kind == 1 and extent == 4:
                found += [2, 2]
            else:
                found += [extent] if kind != 2 else [extent, 1]
        return found

    def _lower(self) -> list[int]:
        """A shape that broadcasts to the one there is."""
        start = self.choices.draw_int(0, len(self.shape))
        return [1 if self.choices.draw_chance(40) else extent for extent in self.shape[start:]]

    # ---- operands and options

    def _list_positions(self) -> list[int]:
        last = len(self.spec.operands) - 1
        more = self.choices.draw_int(0, 2) if last >= 0 and self.spec.operands[last].variadic else 0
        return [*range(last + 1), *[last] * more]

    def _is_required(self, name: str) -> bool:
        if name in self.spec.options:
            return self.spec.options[name].required
        return any(operand.name == name and not operand.optional for operand in self.spec.operands)

    def _draw_operand(self, position: int, numbers: dict[str, list[int]]) -> list[Value | None]:
        choices, operand, facts = self.choices, self.spec.operands[position], self.spec.facts
        counting = operand.name in {**facts.remap, **facts.remap_result}
        if operand.name in numbers:
            dtype = self._choose_type(position, ir.DataType.INT64)
            content = np.array(numbers[operand.name], dtype.numpy())
            scalar = facts.remap.get(operand.name) == "axis" if operand.name in facts.remap else False
            content = content.reshape(()) if scalar and self.choices.draw_chance(50) else content
            rows = "per_axis_rows" in (facts.remap.get(operand.name), facts.remap_result.get(operand.name))
            content = content.reshape(-1, 2) if rows else content
            return [Value(operand.name, dtype, content, constant=True)]
        if counting or (operand.optional and self.choices.draw_chance(_ABSENT)):
            return [None]
        if operand.name in facts.fuzz.tried:
            tried = choices.pick(facts.fuzz.tried[operand.name])
            if tried is None:
                return [None]
            dtype = self._choose_type(position, ir.DataType.INT64)
            return [Value(operand.name, dtype, np.array(tried, dtype.numpy()), constant=True)]
        dtype = self._choose_type(position)
        framed = not position or operand.name in facts.frame or operand.variadic
        if operand.name in self.lettered:
            shape = self.lettered[operand.name]
        elif framed:
            shape = list(self.shape)
        elif facts.layout == TRANSPARENT:
            shape = [] if self.scalars else self._lower() if self.choices.draw_chance(70) else list(self.shape)
            shape = list(self.shape) if facts.fuzz.same_shape else shape
        else:
            along = [[self.shape[axis]] for axis in (self.axes or [])[:1]]
            shape = self.choices.pick([[], [1], *along, [2], list(self.shape), list(self.shape)])
        constant = not framed and (self._find_parameter(position) is None or self.choices.draw_chance(60))
        place = f"{operand.name}_{self.choices.draw_int(0, 1 << 20) if operand.variadic else position}"
        return [Value(place, dtype, self._draw_content(position, dtype, shape), constant)]

    def _draw_content(self, position: int, dtype: ir.DataType, shape: list[int]) -> Array:
        if position and dtype.is_integer() and not self._is_admitted(position, ir.DataType.FLOAT):
            counted = [self.shape[axis] for axis in (self.axes or [])[:1]]
            return draw_indices(self.choices, dtype, shape, counted or self.shape)
        return draw_elements(self.choices, dtype, shape)

    def _find_parameter(self, position: int) -> Parameter | None:
        """What the schema says of an operand; nothing of one that is an attribute at this opset."""
        return self.signature.find_operand(position)

    def _is_admitted(self, position: int, dtype: ir.DataType) -> bool:
        parameter = self._find_parameter(position)
        if parameter is None:
            option = self.spec.stored[self.spec.operands[position].name]
            return dtype == (ir.DataType.FLOAT if "float" in option.type else ir.DataType.INT64)
        return not parameter.types or dtype in parameter.types

    def _choose_type(self, position: int, wanted: ir.DataType = ir.DataType.FLOAT) -> ir.DataType:
        """One type for all operands that the schema gives the same, mostly floats."""
        parameter = self._find_parameter(position)
        variable = self.spec.operands[position].name if parameter is None else parameter.variable
        if variable not in self.types:
            names = ("f32", "i64", "bool", "u8", "i32", "u32", "i8")
            fit = [DTYPES[name] for name in names if self._is_admitted(position, DTYPES[name])]
            if not fit:
                raise Rejected(f"there is no type for {self.spec.operands[position].name}")
            best = wanted if wanted in fit else fit[0]
            self.types[variable] = self.choices.pick(fit) if self.choices.draw_chance(_OTHER) else best
        return self.types[variable]

    def _draw_option(self, name: str, numbers: dict[str, list[int]]) -> Any:
        option, facts = self.spec.options[name], self.spec.facts
        if name in numbers:
            return numbers[name] if option.type.startswith("[") else numbers[name][0]
        if name in {**facts.remap, **facts.remap_result}:
            return None
        if name in facts.fuzz.tried:
            return self.choices.pick(facts.fuzz.tried[name])
        if name == facts.names_type and option.type in self.dialect.enums:
            return find_type_name(self.dialect, ir.DataType.INT32)
        if name in facts.fuzz.counts:
            return self.choices.draw_int(1, 2)
        if option.type in _INTEGERS and (option.required or self.choices.draw_chance(_OTHER)):
            return 1 if name in facts.only else self.choices.draw_int(0, 1)
        if option.required:
            values = {"float": 0.5, "[int64]": [1] * max(len(self.shape) - 2, 1), "string": ""}
            return values.get(option.type)
        if name == facts.keeps:
            return self.choices.draw_int(0, 1)
        if option.type == "bool" and self.choices.draw_chance(_OTHER):
            return not option.default
        return None

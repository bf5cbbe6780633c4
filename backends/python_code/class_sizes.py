"""Free extents that a class reads from what it is given, rather than being given them as well."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ...engine.base.startup import dataclass
from .steps import EXTENT, Step
from .templates import fill, make_literal, parse_template

#: where an extent stands: which of some values, and which axis of it
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Size:
    """An extent that a class reads from one of its inputs: its value, and the step that is written for it."""

    value: ir.Value
    source: ir.Value
    axis: int
    step: Step

    def write(self, source: ast.expr) -> ast.expr:
        """The expression of the extent of what stands for the input."""
        assert self.step.spec is not None
        python = self.step.spec.facts.python
        assert python.expression is not None and python.extent is not None
        names = {self.step.spec.operands[0].name: source, python.extent: make_literal(self.axis)}
        return fill(parse_template(python.expression), names)


def take_sizes(steps: list[Step], outputs: Sequence[ir.Value]) -> tuple[list[Step], dict[ir.Value, Step]]:
    """Let steps have as sizes what they read that is an extent of their operands; those that are nothing else leave
    the steps.

    Extents of one name are one. What is left, and the steps of the sizes by their values.
    """
    named: dict[str, Step] = {}
    same: dict[ir.Value, ir.Value] = {}
    for step in steps:
        name = _find_step_extent(step)
        if name is not None:
            same[step.writes[0]] = named.setdefault(name, step).writes[0]
    if not same:
        return steps, {}
    names = {step.writes[0]: name for name, step in named.items()}
    for step in steps:
        if step.graphs:
            continue  # what is inside reads it by the value that it is
        step.reads = [value if value is None else same.get(value, value) for value in step.reads]
        for operand, values in step.operands.items():
            step.operands[operand] = [value if value is None else same.get(value, value) for value in values]
        local = [value for value in step.inputs if value in names and _has_extent(names[value], step)]
        step.sizes = local
        step.reads = [value for value in step.reads if value not in local]
        step.key = (*step.key, len(local)) if local else step.key
    read = {value for step in steps for value in step.inputs} | set(outputs)
    left = [step for step in steps if step.writes[0] not in same or step.writes[0] in read]
    return left, {step.writes[0]: step for step in named.values()}


def put_back(steps: Sequence[Step], sizes: Mapping[ir.Value, Step], outputs: Sequence[ir.Value]) -> list[Step]:
    """The steps with those of the sizes that they read themselves, each behind what it is an extent of; without those
    that were there for sizes alone."""
    if not sizes:
        return list(steps)
    made = {value for step in steps for value in step.writes}
    wanted = dict.fromkeys(sizes[value] for step in steps for value in step.sizes if value not in made)
    found: list[Step] = [step for step in wanted if not any(value in made for value in step.inputs)]
    for step in steps:
        found.append(step)
        found += [one for one in wanted if any(value in step.writes for value in one.inputs)]
    read = {*outputs}
    kept: list[Step] = []
    for step in reversed(found):
        if step.graphs or not read.isdisjoint(step.writes):
            read |= {*step.inputs, *step.sizes}
            kept.append(step)
    return kept[::-1]


def list_inputs(steps: Sequence[Step]) -> list[ir.Value]:
    """The values that steps read and do not compute, in the order in which they are read first; without extents that
    the others tell."""
    read = _list_read(steps)
    return [value for value in read if _find_size(value, read) is None]


def find_sizes(steps: Sequence[Step], inputs: Sequence[ir.Value]) -> list[Place] | None:
    """Where the sizes that steps read stand among the inputs; None where one stands nowhere."""
    found = [_find_place(value, inputs) for value in _list_sizes(steps)]
    return None if None in found else [place for place in found if place is not None]


def read_sizes(steps: Sequence[Step], inputs: Sequence[ir.Value], known: Mapping[ir.Value, Step]) -> list[Size]:
    """The sizes that the steps of a class read from its inputs."""
    values = _list_sizes(steps)
    places = find_sizes(steps, inputs) or []
    found = dict(zip(values, places, strict=False))
    return [Size(value, inputs[at], axis, known[value]) for value, (at, axis) in found.items() if value in known]


def _list_read(steps: Sequence[Step]) -> list[ir.Value]:
    own = {value for step in steps for value in step.writes}
    return list(dict.fromkeys(value for step in steps for value in step.inputs if value not in own))


def _list_sizes(steps: Sequence[Step]) -> list[ir.Value]:
    """The extents that steps read of each other's operands, and those among the operands that the others tell."""
    read = _list_read(steps)
    local = (value for step in steps for value in step.sizes)
    return list(dict.fromkeys([*local, *(value for value in read if _find_size(value, read) is not None)]))


def _find_size(value: ir.Value, read: Sequence[ir.Value]) -> Place | None:
    """Where an extent stands that is read from an operand; None for any other value."""
    return _find_place(value, [one for one in read if one is not value]) if value.meta.get(EXTENT) is True else None


def _find_place(value: ir.Value, inputs: Sequence[ir.Value]) -> Place | None:
    name = _find_extent_name(value)
    for at, one in enumerate(inputs):
        for axis, extent in enumerate(one.shape or ()):
            if name is not None and _get_extent_name(extent) == name:
                return at, axis
    return None


def _find_step_extent(step: Step) -> str | None:
    """The name of the free extent that a step yields; None where it yields anything else."""
    if step.spec is None or step.node is None or step.spec.facts.python.extent is None:
        return None
    return _find_extent_name(step.writes[0])


def _find_extent_name(value: ir.Value) -> str | None:
    node = value.producer()
    source = None if node is None or not node.inputs else node.inputs[0]
    axes = (
        [] if node is None else [one.as_int() for one in node.attributes.values() if one.type == ir.AttributeType.INT]
    )
    if (
        source is None
        or source.shape is None
        or len(axes) != 1
        or not -len(source.shape) <= axes[0] < len(source.shape)
    ):
        return None
    return _get_extent_name(source.shape[axes[0]])


def _get_extent_name(extent: int | ir.SymbolicDim) -> str | None:
    return None if isinstance(extent, int) or not extent.value else str(extent.value)


def _has_extent(name: str, step: Step) -> bool:
    """Whether an extent of an operand of a step is one of a name, or computed from it."""
    texts = [_get_extent_name(extent) for value in step.inputs for extent in value.shape or ()]
    return any(text == name or (text[0] == "=" and name in re.split(r"[^\w./:]+", text)) for text in texts if text)

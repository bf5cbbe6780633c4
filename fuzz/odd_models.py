"""Odd models: a case of a rule with one thing changed that files seldom have, but may.

An extent of 0, a scalar, an operand left out or without elements, an option at an end of its range or that no
enumeration has, an index far out of range, a constant that is no number. The interpreter may take such a model or not;
where it does, the converted model yields the same or is refused in words, and nothing else may happen in either case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.base.errors import Span
from ..engine.dialects.operators import Option
from ..verify.frames import Array
from .cases import draw as draw_case
from .choices import Choices
from .finding import Rejected
from .oracle import Oracle
from .sketch import Body, Case, Step, Value
from .subjects import Subject

#: what odd models are called where a rule would be named
NAME = "odd models"
#: the ends of 32 bits, which options and indices have, and numbers near them
_INTEGERS = (0, -1, 2**31 - 1, -(2**31), 100)
_FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e30)
#: options at least as large make of numbers what the last digits decide
_HUGE = 1e9
#: an enumerant that no enumeration has
_UNKNOWN = "UNKNOWN(99)"
_FAR = (0, -1, 100, -100, 2**31 - 1, -(2**31))

NOWHERE = Span("models drawn from the tests of rules, with one thing odd", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Variant:
    """A step with one thing odd about it.

    With `loose` its kernel computes nothing that can be relied on: it reads what it should not, or nothing at all.
    """

    step: Step
    loose: bool = False


def make_odd_subject(subjects: Sequence[Subject]) -> Subject:
    """The subject that stands for odd models."""
    return subjects[0].make_stand_in(NAME, NOWHERE)


def is_suitable(trial: object) -> bool:
    """Whether odd models are made of a rule: of those whose left side the interpreter runs."""
    return isinstance(trial, Subject) and trial.of_source and trial.interpreted and not trial.excuse


def draw(choices: Choices, subjects: Sequence[Subject], oracle: Oracle, subject: Subject | None = None) -> Case:
    """Draw a case of a rule, of `subject` where one is given, and change one thing about it.

    Raises Rejected where the interpreter does not take the case as it was, or there is nothing to change.
    """
    case = draw_case(choices, subject or choices.pick(subjects), oracle)
    if len(case.steps) != 1 or case.steps[0].meaning or case.steps[0].graphs:
        raise Rejected("it has not one operator that the interpreter has a kernel for")
    kinds = [
        made
        for change in (_vary_shapes, _vary_operands, _vary_options, _vary_constants)
        if (made := list(change(case.steps[0])))
    ]
    if not kinds:
        raise Rejected("there is nothing to change about it")
    return change_step(case, choices.pick(choices.pick(kinds)), oracle)


def change_step(case: Case, variant: Variant, oracle: Oracle) -> Case:
    """A case with a changed step in the place of its own, and what the interpreter makes of it."""
    results, taken = case.steps[0].results, True
    try:
        step = oracle.rerun(variant.step, [(value.dtype, value.grid) for value in results])
    except Rejected:
        step, taken = replace(variant.step, results=results), False
    # Elements that are made of none were read where there is nothing.
    nothing = any(value is not None and not value.content.size for value in step.operands)
    taken = taken and not (nothing and any(value.content.size for value in step.results))
    return replace(
        case, rule=NAME, steps=(step,), widened=True, yields=None, odd=True, taken=taken, loose=variant.loose
    )


def list_empty_variants(step: Step) -> Iterator[Variant]:
    """Every step with operands that turn out to have no elements."""
    for variant in _vary_shapes(step):
        if any(value is not None and value.open and not value.content.size for value in variant.step.operands):
            yield variant


def list_variants(step: Step) -> Iterator[Variant]:
    """Every step that differs from one in one odd thing."""
    for change in (_vary_shapes, _vary_operands, _vary_options, _vary_constants):
        yield from change(step)


def _vary_shapes(step: Step) -> Iterator[Variant]:
    """With an extent of 0, told or not, along one axis of one operand or of all alike; and with scalars."""
    fed = [value for value in dict.fromkeys(step.operands) if value is not None and value.content.dtype != object]
    codes = any(value.grid is not None for value in step.results)  # of sums over nothing, kernels make what they like
    for extent in dict.fromkeys(n for value in fed for n in value.content.shape if n > 1):
        axes = {value: [axis for axis, n in enumerate(value.content.shape) if n == extent] for value in fed}
        yield from _empty(step, {value: _empty_axes(value, axes[value]) for value in fed}, codes)
    for value in fed:
        for axis in range(value.content.ndim):
            yield from _empty(step, {value: _empty_axes(value, [axis])}, codes)
        if value.content.size and value.content.ndim:
            scalar = replace(value, content=np.asarray(value.content.reshape(-1)[0]), grid=_read_first_scale(value))
            yield _replace_operands(step, {value: scalar}, loose=len(fed) > 1)  # kernels may read on behind it


def _empty(step: Step, changes: dict[Value, Value], loose: bool) -> Iterator[Variant]:
    """The step with operands without elements, as the file tells them and as a run finds them."""
    yield _replace_operands(step, changes, loose)
    yield from _forget_zeros(step, changes, loose)


def _forget_zeros(step: Step, changes: dict[Value, Value], loose: bool) -> Iterator[Variant]:
    """The step with operands that turn out to have no elements: the file does not tell the extents that are 0."""

    def forget(value: Value) -> Value:
        told = tuple(axis for axis, n in enumerate(value.content.shape) if n)
        return value if value.constant or value.content.size else replace(value, open=True, told=told)

    untold = {old: forget(new) for old, new in changes.items()}
    if any(new.open and not new.content.size for new in untold.values()):
        yield _replace_operands(step, untold, loose)


def _vary_operands(step: Step) -> Iterator[Variant]:
    """With an operand left out, said to be so or not said at all."""
    for place, value in enumerate(step.operands):
        if value is not None:
            yield Variant(
                replace(step, operands=(*step.operands[:place], None, *step.operands[place + 1 :]), results=())
            )
    if len(step.operands) > 1:
        yield Variant(replace(step, operands=step.operands[:-1], results=()))


def _vary_options(step: Step) -> Iterator[Variant]:
    """With an option at an end of its range, left out, or one that its enumeration does not have."""
    for name, value in step.options.items():
        if isinstance(value, Body):
            continue
        for other in _list_values(step.operator.options[name], value):
            if other != value:
                numbers = np.asarray(other)
                strange = numbers.dtype.kind == "f" and not (abs(numbers) < _HUGE).all()
                yield Variant(replace(step, options={**step.options, name: other}, results=()), strange)


def _list_values(option: Option, value: Any) -> Sequence[Any]:
    kind = option.type.strip("[]")
    numbers: Sequence[Any] = _INTEGERS
    match kind:
        case "bool":
            numbers = (True, False)
        case "float" | "double":
            numbers = _FLOATS
        case "string" | "bytes" | "subgraph":
            return ()
        case _ if not kind.startswith(("int", "uint")):
            numbers = (_UNKNOWN,)
    if not option.type.startswith("["):
        return numbers
    return [[], *([number] for number in numbers[:3]), *([number, *list(value)[1:]] for number in numbers if value)]


def _vary_constants(step: Step) -> Iterator[Variant]:
    """With a constant that is empty, far out of range, or no number."""
    for value in dict.fromkeys(step.operands):
        if value is None or not value.constant or value.content.dtype == object:
            continue
        nothing = replace(value, content=np.zeros(0, value.content.dtype), grid=_read_first_scale(value))
        yield _replace_operands(step, {value: nothing}, loose=True)
        numbers: Sequence[Any] = _FLOATS if value.content.dtype.kind == "f" else _FAR
        for number in numbers if value.content.size and value.grid is None else ():
            if value.content.dtype.kind == "f" or _can_hold(value.content, number):
                content = value.content.copy()
                with np.errstate(over="ignore"):  # what a short type cannot hold is infinite
                    content.reshape(-1)[0] = number
                yield _replace_operands(step, {value: replace(value, content=content)}, loose=True)


def _can_hold(array: Array, number: int) -> bool:
    if array.dtype.kind not in "iu":
        return False
    limits = np.iinfo(array.dtype)
    return bool(limits.min <= number <= limits.max)


def _replace_operands(step: Step, changes: dict[Value, Value], loose: bool = False) -> Variant:
    """The step with some operands in the place of others."""
    operands = tuple(value if value is None else changes.get(value, value) for value in step.operands)
    return Variant(replace(step, operands=operands, results=()), loose)


def _empty_axes(value: Value, axes: Sequence[int]) -> Value:
    """A value with no elements along some axes; itself where there are none of these."""
    if not axes:
        return value
    content = np.zeros([0 if axis in axes else n for axis, n in enumerate(value.content.shape)], value.content.dtype)
    return replace(
        value, content=content, grid=value.grid if not _is_per_axis(value, axes) else _read_first_scale(value)
    )


def _is_per_axis(value: Value, axes: Sequence[int]) -> bool:
    """Whether a value has a scale for each index along one of some axes."""
    return value.grid is not None and value.grid.scale.size > 1 and value.grid.axis in axes


def _read_first_scale(value: Value) -> Any:
    """The first scale of a value for all of it."""
    grid = value.grid
    if grid is None or grid.scale.size == 1:
        return grid
    return replace(
        grid, scale=grid.scale.reshape(-1)[:1], zero_point=grid.zero_point.reshape(-1)[:1], axis=0, block_size=0
    )


__all__ = ["NAME", "change_step", "draw", "list_empty_variants", "list_variants", "make_odd_subject"]

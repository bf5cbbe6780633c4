"""Perturbations: one thing that a test says is drawn otherwise, so that guards are tried where they must refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.syntax import tree
from .choices import Choices
from .landmarks import Landmarks
from .subjects import Subject

#: in so many of a hundred draws, for rules over the target and over the source
_TARGET, _SOURCE = 45, 8
#: in so many of those it is one of the things that the guards speak of
_GUARDED = 80
#: in so many of those a constant that is varied keeps its numbers and has another shape, if the draw is not recorded
_RESHAPED = 40
#: in so many of a hundred draws an operand has another rank about which the rule asks
_LONGER = 10
#: the fixed cases in which that is so, each of these things in turn
_TARGET_TURNS, _SOURCE_TURNS = range(8, 16), range(9, 10)


def choose_varied(choices: Choices, subject: Subject, test: tree.Test) -> str | None:
    """The operand or option to draw otherwise than the test says, in a few of the draws; None in the others."""
    lenient = subject.of_source or subject.interpreted  # the interpreter takes much that is no model
    turns = _SOURCE_TURNS if lenient else _TARGET_TURNS
    wanted = None if choices.turn is None else choices.turn in turns
    if not choices.draw_chance(_SOURCE if lenient else _TARGET, wanted):
        return None
    declared = [one.name for one in test.declarations]
    # The interpreter computes something of operands whose shapes do not go together, too.
    said = [*([] if lenient else declared), *(one.name for one in test.generators)]
    guarded = [name for name in said if name in subject.guarded]
    names = guarded if lenient or (guarded and choices.draw_chance(_GUARDED)) else said
    return choices.pick(names, None if choices.turn is None else choices.turn - turns.start) if names else None


def draw_named(choices: Choices, subject: Subject, test: tree.Test, varied: str | None) -> dict[str, Any]:
    """The options and constants that a test names, one of them `varied`."""
    found = {}
    for generator in test.generators:
        value = choices.pick(subject.list_domain(generator))
        marks = subject.landmarks if choices.free else None
        if generator.name == varied:
            free = choices.free and subject.reads.schemas and generator.name in subject.constants
            shaped = lay_out(choices, value, test) if free and choices.draw_chance(_RESHAPED) else None
            value = change(choices, value, marks) if shaped is None else shaped
        found[generator.name] = value
    return found


def lay_out(choices: Choices, value: Any, test: tree.Test) -> Any:
    """The numbers of a constant, or more like the first, in another shape: with axes in front, or along one of an
    operand; None where there are no numbers."""
    numbers = np.array(value) if isinstance(value, float | list) else np.array("")
    if numbers.dtype.kind not in "if" or not numbers.size:
        return None
    shapes = [[1] * more + list(numbers.shape) for more in (1, 2, 4)]
    for one in test.declarations:
        extents = [dimension.low for dimension in one.shape]
        along = [[extents[axis], *[1] * (len(extents) - axis - 1)] for axis in range(len(extents))]
        shapes += [shape for shape in (*along, extents) if all(isinstance(extent, int) for extent in shape)]
    shape = choices.pick(shapes)
    count = int(np.prod(shape))
    if count != numbers.size:
        steps = np.arange(count) if numbers.dtype.kind == "i" else np.arange(count) / 4
        numbers = numbers.flat[0] + steps
    return numbers.reshape(shape).tolist()


def choose_longer(choices: Choices, subject: Subject, test: tree.Test, named: dict[str, Any]) -> dict[str, int]:
    """In a few draws, an operand of a rank about which the rule asks, with so many axes of one in front of its own.

    What is `named` for each of its axes gets ones in front too.
    """
    ranks = subject.landmarks.ranks if choices.free else {}
    asked = [(one, rank) for one in test.declarations for rank in ranks.get(one.name, ()) if rank > len(one.shape)]
    if not asked or not choices.draw_chance(_LONGER):
        return {}
    one, rank = choices.pick(asked)
    more = rank - len(one.shape)
    for name, value in named.items():
        if isinstance(value, list) and len(value) == len(one.shape) and all(type(item) is int for item in value):
            named[name] = [1] * more + value
    return {like.name: more for like in test.declarations if like is one or like.shape == one.shape}


def change(choices: Choices, value: Any, marks: Landmarks | None = None) -> Any:
    """Another value of the same kind: a number next to it or one of the `marks`, or a list with another item, one more
    or one less."""
    match value:
        case bool():
            return not value
        case int():
            return choices.pick([value + 1, value - 1, 0, 2 * value, *(marks.list_integers() if marks else ())])
        case float():
            return choices.pick([2 * value, value + 1.0, *(marks.numbers if marks else ())])
        case list() if value:
            place = choices.draw_int(-2, len(value) - 1)
            if place < 0:
                return value[:-1] if place == -1 and len(value) > 1 else [*value, value[-1]]
            return [*value[:place], change(choices, value[place], marks), *value[place + 1 :]]
    return value


def change_shape(choices: Choices, shape: Sequence[int]) -> list[int]:
    """A shape with another extent, or with an axis more or less."""
    place = choices.draw_int(-2, len(shape) - 1)
    if place < 0 or not shape:
        return list(shape[1:]) if place == -1 else [1, *shape]
    extent = choices.pick([shape[place] + 1, 1, max(shape[place] - 1, 1)])
    return [*shape[:place], extent, *shape[place + 1 :]]

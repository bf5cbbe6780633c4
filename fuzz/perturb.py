"""Perturbations: one thing that a test says is drawn otherwise, so that guards are tried where they must refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.syntax import tree
from .choices import Choices
from .subjects import Subject

#: in so many of a hundred draws, for rules over the target and over the source
_TARGET, _SOURCE = 45, 8
#: in so many of those it is one of the things that the guards speak of
_GUARDED = 80
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


def change(choices: Choices, value: Any) -> Any:
    """Another value of the same kind: a number next to it, or a list with another item, one more or one less."""
    match value:
        case bool():
            return not value
        case int():
            return choices.pick([value + 1, value - 1, 0, 2 * value])
        case float():
            return choices.pick([2 * value, value + 1.0])
        case list() if value:
            place = choices.draw_int(-2, len(value) - 1)
            if place < 0:
                return value[:-1] if place == -1 and len(value) > 1 else [*value, value[-1]]
            return [*value[:place], change(choices, value[place]), *value[place + 1 :]]
    return value


def change_shape(choices: Choices, shape: Sequence[int]) -> list[int]:
    """A shape with another extent, or with an axis more or less."""
    place = choices.draw_int(-2, len(shape) - 1)
    if place < 0 or not shape:
        return list(shape[1:]) if place == -1 else [1, *shape]
    extent = choices.pick([shape[place] + 1, 1, max(shape[place] - 1, 1)])
    return [*shape[:place], extent, *shape[place + 1 :]]

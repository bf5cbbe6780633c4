"""Unknown extents: those that a file does not tell, that have a name or a range, and operands left out."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace

from ..engine.syntax import tree
from .choices import Choices
from .sketch import Value

#: extents that a drawn name may stand for
_EXTENTS = (1, 5)
#: of operands behind the first so many in a hundred have unknown extents where that one has
_OTHERS = 30
#: so often an operand is left out that may be; where there are more than so many, none is in so many of a hundred draws
_ABSENT, _SEVERAL, _COMPLETE = 15, 8, 80


def forget_extents(choices: Choices, value: Value, first: bool) -> Value:
    """The same where a file does not tell its extents: none of them, the last alone, all but the first, or all but one.

    Constants have theirs, and so have most operands that are not the `first`.
    """
    if value.constant or not (first or choices.draw_chance(_OTHERS)):
        return value
    axes = tuple(range(value.content.ndim))
    unknown = choices.pick(axes) if axes else 0
    told = choices.pick([(), axes[-1:], axes[1:], tuple(axis for axis in axes if axis != unknown)])
    return value if axes and told == axes else replace(value, open=True, told=told)


def choose_absence(choices: Choices, test: tree.Test) -> int:
    """In how many of a hundred draws an operand is left out that may be: of many, kernels want all or certain ones."""
    return 0 if len(test.declarations) > _SEVERAL and choices.draw_chance(_COMPLETE) else _ABSENT


def draw_extent(choices: Choices, dimension: tree.Dimension, known: MutableMapping[str, int]) -> int:
    """Draw the extent that a test declares, or what is `known` of its name; a number stands for its likes."""
    if dimension.name is not None:
        if dimension.name not in known:
            known[dimension.name] = choices.draw_int(*_EXTENTS)
        return known[dimension.name]
    assert dimension.low is not None
    high = dimension.low if dimension.high is None else dimension.high
    if f"{dimension.low}" in known and high == dimension.low:
        return known[f"{dimension.low}"]
    return choices.draw_int(dimension.low, high)

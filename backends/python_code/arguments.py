"""Arguments of classes: the numbers that differ between the instances of a block, by names that say what they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .steps import Block, Slot

#: words before a noun, as in `in_channels`, by which an argument is a width: of what comes in, is between, goes out
_IN, _BETWEEN, _OUT = "in_", "hidden_", "out_"
#: the share of instances that agree where an argument has a default
_USUAL = 0.5

#: where a literal stands in a block: the step and the slot
_Place = tuple[int, Slot]


def name_parameters(block: Block) -> None:
    """Find the literals that differ between instances; those that always agree are one argument.

    Widths come first, as `in_channels`, `hidden_channels`, `out_channels`; what is at both ends is `channels`. Of the
    others those stand last that are the same in most instances, which is their default.
    """
    groups: dict[tuple[Any, ...], list[_Place]] = {}
    for place, step in enumerate(block.steps):
        for slot in step.literals:
            if not block.fixed(place, slot):
                vector = tuple((type(one[place].literals[slot]), one[place].literals[slot]) for one in block.instances)
                groups.setdefault(vector, []).append((place, slot))
    ends = _find_ends(list(groups.values()))
    named: dict[str, list[_Place]] = {}
    widths: dict[str, int] = {}
    for slots in groups.values():
        base, order = _find_base(slots, ends)
        name, count = base, 2
        while name in named:
            name, count = f"{base}{count}", count + 1
        named[name] = slots
        if order is not None:
            widths[name] = order
            continue
        usual = _find_usual(block, slots[0])
        if usual is not None:
            block.defaults[name] = usual[0]
    block.widths = frozenset(widths)
    order_of = {name: (name in block.defaults, name not in widths, widths.get(name, 0)) for name in named}
    block.parameters = {name: named[name] for name in sorted(named, key=lambda name: order_of[name])}


def _find_ends(groups: Sequence[Sequence[_Place]]) -> tuple[_Place | None, _Place | None]:
    """The place of the first width that comes in and of the last that goes out."""
    places = [place for slots in groups for place in slots]
    first = [place for place in places if _word(place) in (_IN, "")]
    last = [place for place in places if _word(place) in (_OUT, "")]
    return min(first, default=None, key=lambda place: place[0]), max(last, default=None, key=lambda place: place[0])


def _find_base(slots: Sequence[_Place], ends: tuple[_Place | None, _Place | None]) -> tuple[str, int | None]:
    """What an argument is called, and where it stands among the widths if it is one."""
    name = slots[0][1][0].rstrip("0123456789") or "size"
    word = _word(slots[0])
    if word is None:
        return name, None
    noun = name.removeprefix(word)
    begins, ends_here = ends[0] in slots, ends[1] in slots
    if begins:
        return (noun, 0) if ends_here else (f"{_IN}{noun}", 0)
    return (f"{_OUT}{noun}", 2) if ends_here else (f"{_BETWEEN}{noun}", 1)


def _word(place: _Place) -> str | None:
    """The word before the noun of a width; none where it is the noun alone, None where it is no width."""
    name, number = place[1]
    if number == 0 and name.startswith((_IN, _BETWEEN, _OUT)):
        return next(word for word in (_IN, _BETWEEN, _OUT) if name.startswith(word))
    return "" if name.rstrip("0123456789") in ("channels", "features") else None


def _find_usual(block: Block, place: _Place) -> tuple[Any] | None:
    step, slot = place
    values = [(type(one[step].literals[slot]), one[step].literals[slot]) for one in block.instances]
    [((_, value), count)] = Counter(values).most_common(1)
    return (value,) if count > _USUAL * len(values) else None

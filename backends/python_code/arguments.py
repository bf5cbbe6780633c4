"""Arguments of classes: the numbers that differ between the instances of a block, by names that say what they are."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .identifiers import find_own_name
from .steps import Block, Slot

#: words before a noun, as in `in_channels`, by which an argument is a width: of what comes in, is between, goes out
_IN, _BETWEEN, _OUT = "in_", "hidden_", "out_"
#: the most arguments that are given without their names
_POSITIONAL = 3
#: the share of instances that agree where an argument has a default
_USUAL = 0.5

#: where a literal stands in a block: the step and the slot
_Place = tuple[int, Slot]
#: the types and values of a literal, in the order of the instances
_Vector = tuple[tuple[type, Any], ...]


def name_parameters(block: Block) -> None:
    """Find the literals that differ between instances; those that always agree are one argument.

    Widths come first, as `in_channels`, `hidden_channels`, `out_channels`; what is at both ends is `channels`. Of the
    others those stand last that are the same in most instances, which is their default. What is a multiple or a part of
    another argument in all instances, as `4 * channels`, is computed from it and no argument.
    """
    groups: dict[_Vector, list[_Place]] = {}
    for place, step in enumerate(block.steps):
        for slot in step.literals:
            if not block.is_fixed(place, slot):
                groups.setdefault(_list_literals(block, (place, slot)), []).append((place, slot))
    ends = _find_ends(block)
    _leave_open(block, groups)
    follows = _find_followers(block, groups, ends)
    named: dict[str, list[_Place]] = {}
    widths: dict[str, int] = {}
    for vector, slots in groups.items():
        if vector in follows:
            continue
        base, order = _find_base(block, slots, ends)
        if base in named:
            base = _name_apart(block, slots, base)
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
    if len(widths) > _POSITIONAL:
        widths = {name: order for name, order in widths.items() if order != 1}
    block.widths = frozenset(widths)
    order_of = {name: (name in block.defaults, name not in widths, widths.get(name, 0)) for name in named}
    block.parameters = {name: named[name] for name in sorted(named, key=lambda name: order_of[name])}
    names = {tuple(_list_literals(block, slots[0])): name for name, slots in named.items()}
    for name, slots in named.items():
        block.literals |= dict.fromkeys(slots, ast.Name(name))
    for vector, (base_vector, operator, number) in follows.items():
        block.literals |= dict.fromkeys(groups[vector], _combine(names[base_vector], operator, number))


def _leave_open(block: Block, groups: dict[_Vector, list[_Place]]) -> None:
    """Let an extent that follows from all others be -1 where it is the only one of its step that differs."""
    for at, step in enumerate(block.steps):
        name = None if step.spec is None else step.spec.facts.python.rest
        slots = [slot for slot in step.literals if slot[0] == name]
        differs = [slot for slot in slots if not block.is_fixed(at, slot)]
        if len(differs) != 1 or len(slots) != len(step.operands.get(name or "", ())):
            continue
        vector = _list_literals(block, (at, differs[0]))
        if all(one[at].literals[slot] > 0 for one in block.instances for slot in slots) and len(groups[vector]) == 1:
            del groups[vector]
            block.literals[at, differs[0]] = ast.UnaryOp(ast.USub(), ast.Constant(1))


def _list_literals(block: Block, place: _Place) -> _Vector:
    step, slot = place
    return tuple((type(one[step].literals[slot]), one[step].literals[slot]) for one in block.instances)


def _combine(name: str, operator: ast.operator, number: int) -> ast.expr:
    """A product as `2 * name`, a part as `name // 2`, the contrary as `-name`."""
    if number == -1:
        return ast.UnaryOp(ast.USub(), ast.Name(name))
    if isinstance(operator, ast.Mult):
        return ast.BinOp(ast.Constant(number), operator, ast.Name(name))
    return ast.BinOp(ast.Name(name), operator, ast.Constant(number))


def _find_followers(
    block: Block, groups: Mapping[_Vector, Sequence[_Place]], ends: tuple[_Place | None, _Place | None]
) -> dict[_Vector, tuple[_Vector, ast.operator, int]]:
    """The numbers that follow from others: of each vector the one that it follows from, and by what.

    Widths and extents follow from widths, by a factor; other numbers of layers only as half of an odd one, as the
    padding of a window does.
    """
    whole = {vector: slots for vector, slots in groups.items() if all(kind is int and n >= 0 for kind, n in vector)}

    def rank_vector(vector: _Vector) -> tuple[bool, bool, int]:
        slots, total = whole[vector], sum(n for _, n in vector)
        is_width = _find_width(slots) is not None
        return not is_width, ends[0] not in slots, total if is_width else -total

    found: dict[_Vector, tuple[_Vector, ast.operator, int]] = {}
    free: list[_Vector] = []
    for vector in sorted(whole, key=rank_vector):
        slots = whole[vector]
        scaled = _find_width(slots) is not None or not any(block.steps[place].layer for place, _ in slots)
        for base in free:
            is_width = _find_width(whole[base]) is not None
            relation = _find_relation(vector, base) if scaled and is_width else None
            if not scaled and not is_width and _is_half(vector, base):
                relation = ast.FloorDiv(), 2
            if relation is not None:
                found[vector] = base, *relation
                break
        else:
            free.append(vector)
    for vector in groups:
        contrary = tuple((kind, -n) for kind, n in vector if kind is int and n < 0)
        if len(contrary) == len(vector) and contrary in free:
            found[vector] = contrary, ast.Mult(), -1
    return found


def _is_half(vector: _Vector, base: _Vector) -> bool:
    return all(m % 2 == 1 and n == m // 2 for (_, n), (_, m) in zip(vector, base, strict=True))


def _find_relation(vector: _Vector, base: _Vector) -> tuple[ast.operator, int] | None:
    """By which factor, or as which part, numbers follow from others."""
    pairs = [(n, m) for (_, n), (_, m) in zip(vector, base, strict=True)]
    if not all(n and m for n, m in pairs):
        return None
    n, m = pairs[0]
    if n > m and all(a * m == b * n and a % b == 0 for a, b in pairs):
        return ast.Mult(), n // m
    if m > n and all(a * m == b * n and b % a == 0 for a, b in pairs):
        return ast.FloorDiv(), m // n
    return None


def _find_ends(block: Block) -> tuple[_Place | None, _Place | None]:
    """The place of the first width that comes in and of the last that goes out."""
    places = [(place, slot) for place, step in enumerate(block.steps) for slot in step.literals]
    first = [place for place in places if _find_word(place) in (_IN, "")]
    last = [place for place in places if _find_word(place) in (_OUT, "")]
    return min(first, default=None, key=lambda place: place[0]), max(last, default=None, key=lambda place: place[0])


def _find_width(slots: Sequence[_Place]) -> _Place | None:
    """The first of some places that is a width."""
    return next((place for place in slots if _find_word(place) is not None), None)


def _find_base(
    block: Block, slots: Sequence[_Place], ends: tuple[_Place | None, _Place | None]
) -> tuple[str, int | None]:
    """What an argument is called, and where it stands among the widths if it is one."""
    width = _find_width(slots)
    # of the numbers of a layer that are equal, pads follow from others
    place, (name, _) = width or min(slots, key=lambda one: (not block.steps[one[0]].layer, one[1][0] == "padding"))
    name = name.rstrip("0123456789") or "size"
    word = None if width is None else _find_word(width)
    if word is None:
        spec = block.steps[place].spec
        several = spec is not None and any(one.variadic and one.name == name for one in spec.operands)
        return name.removesuffix("s") if several else name, None
    noun = name.removeprefix(word)
    begins, ceases = ends[0] in slots, ends[1] in slots
    if begins:
        return (noun, 0) if ceases else (f"{_IN}{noun}", 0)
    return (f"{_OUT}{noun}", 2) if ceases else (f"{_BETWEEN}{noun}", 1)


def _name_apart(block: Block, slots: Sequence[_Place], base: str) -> str:
    """What an argument is called where another has its name: by the first layer that has a name of its own and yields
    the width, or has the number."""
    layers = [place for place in slots if block.steps[place[0]].layer]
    order = sorted(layers, key=lambda place: _find_word(place) != _OUT)
    own = next((name for place, _ in order if (name := find_own_name(block.steps[place]))), "")
    return f"{own}_{base.removeprefix(_IN).removeprefix(_BETWEEN).removeprefix(_OUT)}" if own else base


def _find_word(place: _Place) -> str | None:
    """The word before the noun of a width; none where it is the noun alone, None where it is no width."""
    name, number = place[1]
    if number == 0 and name.startswith((_IN, _BETWEEN, _OUT)):
        return next(word for word in (_IN, _BETWEEN, _OUT) if name.startswith(word))
    return "" if name.rstrip("0123456789") in ("channels", "features") else None


def _find_usual(block: Block, place: _Place) -> tuple[Any] | None:
    values = _list_literals(block, place)
    [((_, value), count)] = Counter(values).most_common(1)
    return (value,) if count > _USUAL * len(values) else None

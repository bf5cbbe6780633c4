"""Landmarks: numbers, element types and ranks that a rule itself names, around which cases are drawn.

What a rule does otherwise on the two sides of a number is seen only by cases on both sides of it. The cases that are
recorded are not drawn so, and stay what they are while the numbers change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..engine.expressions.functions import DTYPES, NARROW_FLOATS
from ..engine.syntax import tree
from ..engine.syntax.tree_traversal import walk
from ..verify.frames import Array

#: numbers that are larger, or nearer to 0 without being 0, are tolerances and limits of types
_LARGEST, _SMALLEST = 1e4, 1e-2
#: how far from a number elements are drawn, as often as it itself
_ASIDE = (0.0, 0.125, -0.125, 1.0, -1.0)
#: the share of the elements that are drawn around numbers
_SHARE = 0.4
#: the function that asks for the rank of an operand
_RANK = "rank"
_MIRRORED = frozenset({"<", "<=", ">", ">=", "==", "!="})
_DRAWN = DTYPES.keys() - {"string", "c64", "c128", "i4", "u4", "i2", "u2", "bf16", *NARROW_FLOATS}


T = TypeVar("T", str, float)


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Numbers and element types that a rule or a definition of its names, and ranks that it compares operands with.

    Those that the rule itself names are there several times, so that they are drawn as often as all others together.
    """

    numbers: tuple[float, ...]
    types: tuple[str, ...]
    ranks: Mapping[str, tuple[int, ...]]

    def list_integers(self) -> list[int]:
        """The numbers that are whole."""
        return [int(number) for number in self.numbers if number.is_integer()]


def find_landmarks(rule: tree.Rule, definitions: Mapping[str, tree.Definition]) -> Landmarks:
    """Collect them from the left side, the clauses and the templates, and from all definitions that these use."""
    parts = rule.equations, rule.clauses, rule.templates
    own, every = _list_literals(_iterate_used(parts, {})), _list_literals(_iterate_used(parts, definitions))
    numbers = _weigh(_list_numbers(own), _list_numbers(every))
    types = _weigh(_list_types(own), _list_types(every))
    ranks: dict[str, set[int]] = {}
    for node in walk(rule.clauses):
        match node:
            case tree.Binary(
                operator=operator,
                left=tree.Call(callee=callee, arguments=(tree.Argument(value=tree.Name(name=name)),)),
                right=tree.Literal(value=int(rank)),
            ) if callee == _RANK and operator in _MIRRORED:
                ranks.setdefault(name, set()).update((rank - 1, rank, rank + 1))
    found = {name: tuple(sorted(n for n in those if n > 0)) for name, those in ranks.items()}
    return Landmarks(numbers, types, found)


def draw_around(array: Array, numbers: Iterable[float], generator: np.random.Generator) -> Array:
    """An array with a share of its elements at some numbers, a bit below or above."""
    near = np.array([number + aside for number in numbers for aside in _ASIDE])
    if array.dtype.kind == "u":
        near = np.abs(near)
    taken = generator.choice(near, array.shape)
    return np.where(generator.random(array.shape) < _SHARE, taken, array).astype(array.dtype)


def _list_numbers(literals: Iterable[Any]) -> list[float]:
    numbers = [float(one) for one in literals if isinstance(one, int | float) and not isinstance(one, bool)]
    return [number for number in numbers if number == 0 or _SMALLEST <= abs(number) <= _LARGEST]


def _list_types(literals: Iterable[Any]) -> list[str]:
    return [one for one in literals if isinstance(one, str) and one in _DRAWN]


def _list_literals(nodes: Iterable[object]) -> list[Any]:
    return [node.value for node in nodes if isinstance(node, tree.Literal)]


def _weigh(own: Iterable[T], every: Iterable[T]) -> tuple[T, ...]:
    """All of some items in order, those that are a rule's own about as often as the others together."""
    first: list[T] = sorted(set(own))
    others: list[T] = sorted(set(every) - set(own))
    return tuple(first * max(1, len(others) // max(1, len(first))) + others)


def _iterate_used(start: Any, definitions: Mapping[str, tree.Definition]) -> Iterator[object]:
    """The nodes of syntax trees, and those of all definitions that they use."""
    waiting, seen = [start], set[str]()
    while waiting:
        for node in walk(waiting.pop()):
            yield node
            name = node.callee if isinstance(node, tree.Call) else node.name if isinstance(node, tree.Name) else ""
            if name in definitions and name not in seen:
                seen.add(name)
                waiting.append(definitions[name])


__all__ = ["Landmarks", "draw_around", "find_landmarks"]

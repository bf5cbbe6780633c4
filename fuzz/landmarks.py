"""Landmarks: numbers, element types and ranks that a rule itself names, around which cases are drawn.

What a rule does otherwise on the two sides of a number is seen only by cases on both sides of it. The cases that are
recorded are not drawn so, and stay what they are while the numbers change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.expressions.functions import DTYPES
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
_UNDRAWN = frozenset({"string", "c64", "c128", "i4", "u4", "i2", "u2", "bf16"})


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Numbers and element types that a rule or a definition of its names, and ranks that it compares operands with."""

    numbers: tuple[float, ...]
    types: tuple[str, ...]
    ranks: Mapping[str, tuple[int, ...]]

    def list_integers(self) -> list[int]:
        """The numbers that are whole."""
        return [int(number) for number in self.numbers if number.is_integer()]


def find_landmarks(rule: tree.Rule, definitions: Mapping[str, tree.Definition]) -> Landmarks:
    """Collect them from the left side, the clauses and the templates, and from all definitions that these use."""
    nodes = list(_iterate_used((rule.equations, rule.clauses, rule.templates), definitions))
    literals = [node.value for node in nodes if isinstance(node, tree.Literal)]
    numbers = {
        float(number)
        for number in literals
        if isinstance(number, int | float) and not isinstance(number, bool) and _is_drawn(number)
    }
    types = {word for word in literals if isinstance(word, str) and word in DTYPES and word not in _UNDRAWN}
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
    return Landmarks(tuple(sorted(numbers)), tuple(sorted(types)), found)


def draw_around(array: Array, numbers: Iterable[float], generator: np.random.Generator) -> Array:
    """An array with a share of its elements at some numbers, a bit below or above."""
    near = np.array([number + aside for number in numbers for aside in _ASIDE])
    if array.dtype.kind == "u":
        near = np.abs(near)
    taken = generator.choice(near, array.shape)
    return np.where(generator.random(array.shape) < _SHARE, taken, array).astype(array.dtype)


def _is_drawn(number: float) -> bool:
    return math.isfinite(number) and (number == 0 or _SMALLEST <= abs(number) <= _LARGEST)


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

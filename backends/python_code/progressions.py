"""Layers in a row that differ in numbers, by which each is larger than the one before: one expression for all."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence

from ...engine.base.startup import dataclass

#: the least layers that are one expression
_LEAST = 4
#: the number that goes from layer to layer
_NUMBER = "n"


@dataclass(frozen=True, slots=True)
class _Row:
    """The first layers of some: how many differ alike, the number of the first and by what it grows, and by how much
    the numbers at some places are more than it."""

    length: int
    first: int
    step: int
    places: Mapping[int, int]


def write_progressions(layers: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """The layers, with `*(Layer(n) for n in range(64, 256, 32))` for each row of such."""
    place = 0
    while place < len(layers):
        row = _measure_row(layers[place:])
        if row is None or row.length < _LEAST:
            yield layers[place]
            place += 1
            continue
        ends = [row.first, row.first + row.step * row.length, *([row.step] if row.step != 1 else [])]
        each = ast.Call(ast.Name("range"), [ast.Constant(n) for n in ends], [])
        yield ast.Starred(
            ast.GeneratorExp(_put(layers[place], row.places), [ast.comprehension(ast.Name(_NUMBER), each, [], 0)])
        )
        place += row.length


def _measure_row(layers: Sequence[ast.expr]) -> _Row | None:
    if len(layers) < _LEAST or not all(isinstance(one, ast.Call) for one in layers[:2]):
        return None
    first, second = (_list_numbers(one) for one in layers[:2])
    changed = [at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other]
    steps = {second[at] - first[at] for at in changed}
    if len(first) != len(second) or len(steps) != 1 or min(steps) < 0:
        return None
    [step] = steps
    places = {at: first[at] - first[changed[0]] for at in changed}
    form, length = ast.dump(_put(layers[0], places)), 1
    for one in layers[1:]:
        numbers = _list_numbers(one)
        grown = len(numbers) == len(first) and all(numbers[at] == first[at] + step * length for at in places)
        if not grown or ast.dump(_put(one, places)) != form:
            break
        length += 1
    return _Row(length, first[changed[0]], step, places)


def _list_numbers(node: ast.expr) -> list[int]:
    seen = _Numbers({})
    seen.visit(copy.deepcopy(node))
    return seen.found


def _put(node: ast.expr, places: Mapping[int, int]) -> ast.expr:
    """The expression with a name, and what is added to it, in the place of some of its numbers."""
    made: ast.expr = _Numbers(places).visit(copy.deepcopy(node))
    return made


class _Numbers(ast.NodeTransformer):
    """Lists the whole numbers of an expression, and puts a name in the place of some."""

    def __init__(self, places: Mapping[int, int]) -> None:
        self.found: list[int] = []
        self._places = places

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        self.found.append(node.value)
        more = self._places.get(len(self.found) - 1)
        if more is None:
            return node
        sign = ast.Add() if more > 0 else ast.Sub()
        return ast.BinOp(ast.Name(_NUMBER), sign, ast.Constant(abs(more))) if more else ast.Name(_NUMBER)

"""Layers in a row that differ in one number, by which each is larger than the one before: one expression for all."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

#: the least layers that are one expression
_LEAST = 4
#: the number that goes from layer to layer
_NUMBER = "n"


def write_progressions(layers: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """The layers, with `*(Layer(n) for n in range(64, 256, 32))` for each row of such."""
    place = 0
    while place < len(layers):
        length, at, step = _measure_row(layers[place:])
        if length < _LEAST:
            yield layers[place]
            place += 1
            continue
        first = _list_numbers(layers[place])[at]
        ends = [first, first + step * length, *([step] if step != 1 else [])]
        each = ast.comprehension(
            ast.Name(_NUMBER), ast.Call(ast.Name("range"), [ast.Constant(n) for n in ends], []), [], 0
        )
        yield ast.Starred(ast.GeneratorExp(_put(layers[place], at), [each]))
        place += length


def _measure_row(layers: Sequence[ast.expr]) -> tuple[int, int, int]:
    """How many of the first layers differ in one number alone by equal steps, which number it is, and by how much."""
    if len(layers) < _LEAST or not all(isinstance(one, ast.Call) for one in layers[:2]):
        return 0, 0, 0
    first, second = (_list_numbers(one) for one in layers[:2])
    changed = [at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other]
    if len(changed) != 1 or len(first) != len(second) or second[changed[0]] < first[changed[0]]:
        return 0, 0, 0
    [at] = changed
    step, form, length = second[at] - first[at], ast.dump(_put(layers[0], at)), 1
    for one in layers[1:]:
        numbers = _list_numbers(one)
        if len(numbers) != len(first) or numbers[at] != first[at] + step * length or ast.dump(_put(one, at)) != form:
            break
        length += 1
    return length, at, step


def _list_numbers(node: ast.expr) -> list[int]:
    seen = _Numbers()
    seen.visit(copy.deepcopy(node))
    return seen.found


def _put(node: ast.expr, at: int) -> ast.expr:
    """The expression with a name in the place of one of its numbers."""
    made: ast.expr = _Numbers(at).visit(copy.deepcopy(node))
    return made


class _Numbers(ast.NodeTransformer):
    """Lists the whole numbers of an expression, and puts a name in the place of one."""

    def __init__(self, at: int = -1) -> None:
        self.found: list[int] = []
        self._at = at

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        self.found.append(node.value)
        return ast.Name(_NUMBER) if len(self.found) == self._at + 1 else node

"""Extents that onnx.shape_inference leaves open where one of an operand is free, found by asking it of sizes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from . import symbols
from .inference import (
    NUMBER_TYPES,
    UNCOUNTED,
    Extents,
    InferenceError,
    Inferred,
    Operand,
    Question,
    describe_node,
    infer_described,
    read_extents,
)
from .symbols import Symbol

#: free extents of a node beyond which it is not asked, and those that one extent of a result may depend on
_MOST, _FACTORS = 4, 2
#: a size that windows fit into, and what that of the next free extent is above it
_BASE, _APART = 1009, 37
#: sizes that tell products and sums from quotients, which are even on short ways, and from the lesser of two
_SMALL, _LARGE = (1, 2, 3, 4, 5), (1 << 20, (1 << 20) + 1)

Sizes = dict[str, int]


def fit_extents(node: ir.Node, opset: int, inferred: Sequence[Inferred]) -> list[Inferred]:
    """What was inferred of results, with extents that are sums and products of free ones whatever sizes these have.

    A Pad adds, a Tile multiplies, and a TopK leaves alone all axes but one: that the inference knows of numbers, but of
    no names. So it is asked of numbers, and what fits all of them is taken. Sizes that it refuses are none of a run.
    """
    given = [() if value is None else read_extents(value) or () for value in node.inputs]
    free = any(isinstance(extent, str) for shape in given for extent in shape)
    if not free or any(attribute.type in UNCOUNTED for attribute in node.attributes.values()):
        return list(inferred)
    fitted = _find_shapes(describe_node(node, opset, NUMBER_TYPES))
    return (
        [_fill_open_extents(one, shape) for one, shape in zip(inferred, fitted, strict=True)]
        if fitted
        else list(inferred)
    )


def _fill_open_extents(one: Inferred, fitted: Extents | None) -> Inferred:
    if one.shape is None or fitted is None or len(one.shape) != len(fitted):
        return one
    filled = [fit if extent is None else extent for extent, fit in zip(one.shape, fitted, strict=True)]
    return Inferred(one.dtype, tuple(filled))


@functools.lru_cache(maxsize=4096)
def _find_shapes(question: Question) -> tuple[Extents | None, ...]:
    """The shapes of results as far as they can be told; nothing where the sizes asked of do not fit each other."""
    names = sorted({e for one in question.operands if one is not None for e in one[1] or () if isinstance(e, str)})
    if len(names) > _MOST:
        return ()

    def ask(**others: int) -> list[Extents | None]:
        sizes = base | others
        replaced = tuple([None if one is None else _replace_names(one, sizes) for one in question.operands])
        return [one.shape for one in infer_described(question._replace(operands=replaced))]

    base = {name: _BASE + _APART * place for place, name in enumerate(names)}
    try:
        first = ask()
        steps = {names_: ask(**{name: base[name] + 1 for name in names_}) for names_ in _list_stepped_names(names)}
        asked = [(base | sizes, ask(**sizes)) for sizes in _list_far_sizes(names)]
    except InferenceError:
        return ()
    for sizes in _list_near_sizes(names):
        try:
            asked.append((base | sizes, ask(**sizes)))
        except InferenceError:
            continue  # none of a run
    return tuple([_fit_shape(place, base, first, steps, asked) for place in range(question.results)])


def _replace_names(operand: Operand, sizes: Sizes) -> Operand:
    kind, shape, elements, dtype = operand
    return kind, shape and tuple([sizes.get(e) if isinstance(e, str) else e for e in shape]), elements, dtype


def _list_stepped_names(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(1, _FACTORS + 1):
        yield from itertools.combinations(names, count)


def _list_far_sizes(names: Sequence[str]) -> Iterator[Sizes]:
    for name, size in itertools.product(names, _LARGE):
        yield {name: size}


def _list_near_sizes(names: Sequence[str]) -> Iterator[Sizes]:
    for name in names:
        for size in (0, *_SMALL) if symbols.may_be_zero(name) else _SMALL:
            yield {name: size}
    for size in _SMALL if len(names) > 1 else ():
        yield dict.fromkeys(names, size)


def _fit_shape(
    place: int,
    base: Sizes,
    first: Sequence[Extents | None],
    steps: Mapping[tuple[str, ...], Sequence[Extents | None]],
    asked: Sequence[tuple[Sizes, Sequence[Extents | None]]],
) -> Extents | None:
    """The shape of one result, None for extents that are no sums of products of free ones."""
    shapes = [first[place], *(found[place] for found in steps.values()), *(found[place] for _, found in asked)]
    rank = None if shapes[0] is None else len(shapes[0])
    if rank is None or any(shape is None or len(shape) != rank for shape in shapes):
        return None
    fitted: list[Symbol | None] = []
    for axis in range(rank):
        numbers = [shape[axis] for shape in shapes if shape is not None]
        told = [number for number in numbers if isinstance(number, int)]
        if len(told) < len(numbers):
            fitted.append(None)
            continue
        start, moved, seen = told[0], dict(zip(steps, told[1:], strict=False)), told[1 + len(steps) :]
        factors = _find_factors(start, moved)
        fits = all(
            _evaluate(factors, start, {name: sizes[name] - base[name] for name in base}) == number
            for (sizes, _), number in zip(asked, seen, strict=True)
        )
        fitted.append(_write_symbol(factors, start, base) if fits else None)
    return tuple(fitted)


def _find_factors(start: int, moved: Mapping[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    """By how much the number grows with each free extent, and with two of them beyond what it does with either."""
    factors: dict[tuple[str, ...], int] = {}
    for names, number in moved.items():
        factors[names] = number - start - sum(factors[one,] for one in names if len(names) > 1)
    return {names: factor for names, factor in factors.items() if factor}


def _evaluate(factors: Mapping[tuple[str, ...], int], start: int, grown: Sizes) -> int:
    total = start
    for names, factor in factors.items():
        for name in names:
            factor *= grown[name]
        total += factor
    return total


def _write_symbol(factors: Mapping[tuple[str, ...], int], start: int, base: Sizes) -> Symbol | None:
    total: Symbol | None = start
    for names, factor in factors.items():
        term: Symbol | None = factor
        for name in names:
            grown = symbols.subtract(name, base[name])
            term = None if term is None or grown is None else symbols.multiply(term, grown)
        total = None if total is None or term is None else symbols.add(total, term)
    return total

"""Other sizes on free axes: what agrees with one size need not with another, as where an odd number is halved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from .frames import Array
from .interpreter import Tensor
from .symbolic_sizes import compute_size

#: what becomes of each extent, the first that a model takes: one more, of sizes alone, of samples alone, or twice as
#: much for what asks for multiples
_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda extent: extent + 1,
    lambda extent: extent + 1 if extent > 1 else extent,
    lambda extent: extent + 1 if extent == 1 else extent,
    lambda extent: extent * 2 if extent > 1 else extent,
)


def list_other_sizes(
    tensors: Sequence[Tensor], shapes: Iterable[tuple[Sequence[object], Sequence[object]]], sample: Sequence[Array]
) -> Iterator[list[Tensor]]:
    """Inputs with other extents than a sample has on their free axes; equal ones are so again, sums of others are sums.

    `shapes` has for each input what two models say of its extents: free is what neither says as a number from 0 on.
    """
    said = list(shapes)
    free = [_find_free(array.shape, *one) for array, one in zip(sample, said, strict=True)]
    for change in _CHANGES:
        resized = [
            tuple(change(extent) if place in axes else extent for place, extent in enumerate(array.shape))
            for array, axes in zip(sample, free, strict=True)
        ]
        named = zip(resized, (one for one, _ in said), strict=True)
        sizes = {name: extent for shape, names in named for name, extent in zip(names, shape, strict=False)}
        resized = [
            tuple(compute_size(name, sizes) or extent for name, extent in zip(names, shape, strict=True))
            if len(names) == len(shape)
            else shape
            for shape, (names, _) in zip(resized, said, strict=True)
        ]
        if any(shape != array.shape for shape, array in zip(resized, sample, strict=True)):
            yield [
                replace(tensor, shape=shape, signature=shape) for tensor, shape in zip(tensors, resized, strict=True)
            ]


def _find_free(shape: Sequence[int], *said: Sequence[object]) -> set[int]:
    """The axes that all descriptions leave free; none where their ranks differ."""
    if any(len(one) != len(shape) for one in said):
        return set()
    return {place for place in range(len(shape)) if not any(_is_known(one[place]) for one in said)}


def _is_known(extent: object) -> bool:
    return isinstance(extent, int) and extent >= 0

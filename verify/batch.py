"""Batches: what several calls of a model with one sample each yield, as one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .frames import Array
from .interpreter import Interpreter, Kernels, Signature, Source
from .reference import Reference
from .signature import Signed


@dataclass(frozen=True, slots=True)
class Batch:
    """How many samples there are at once, and which inputs have them along their first axis."""

    size: int
    inputs: tuple[bool, ...]


def find_batch(one: Signature, several: Signature) -> Batch | None:
    """The batch of a model whose inputs have as many samples as asked for where the original's have one each.

    None where they do not differ by that alone.
    """
    shapes = [(old.shape, new.shape) for old, new in zip(one.inputs, several.inputs, strict=True)]
    sizes = {new[0] for old, new in shapes if old != new and new}
    if len(sizes) != 1 or not all(old == new or old == (1, *new[1:]) for old, new in shapes):
        return None
    return Batch(sizes.pop(), tuple(old != new for old, new in shapes))


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Models that are called with one sample of a batch after the other; it raises what its worker raises."""

    worker: Interpreter | Signed | Reference
    batch: Batch

    def describe(self, model: Source) -> Signature:
        """Read the inputs and outputs as they are for one sample."""
        return self.worker.describe(model)

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Run a model on batches and return the outputs of each, those of its samples one behind the other."""
        size = self.batch.size
        calls = [
            [array[at : at + 1] if divided else array for array, divided in zip(sample, self.batch.inputs, strict=True)]
            for sample in samples
            for at in range(size)
        ]
        found = self.worker.run(model, calls, kernels)
        batches = [found[at : at + size] for at in range(0, len(found), size)]
        return [
            [np.concatenate([np.atleast_1d(part) for part in parts]) for parts in zip(*batch, strict=True)]
            for batch in batches
        ]

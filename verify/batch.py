"""Batches: what several calls of a model with one sample each yield, as one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .frames import Array
from .interpreter import InterpreterError, Kernels, Signature, Source, Worker


@dataclass(frozen=True, slots=True)
class Batch:
    """How many calls have the samples of one, and how many an input has in each; None for inputs without any."""

    calls: int
    extents: tuple[int | None, ...]


def find_batch(one: Signature, several: Signature) -> Batch | None:
    """The batch of a model whose inputs have several times as many samples as the original's.

    None where they do not differ by that alone.
    """
    shapes = [(old.shape, new.shape) for old, new in zip(one.inputs, several.inputs, strict=True)]
    larger = [(old, new) for old, new in shapes if old != new]
    if not larger or any(old[1:] != new[1:] or not old or not old[0] for old, new in larger):
        return None
    quotients = {divmod(new[0], old[0]) for old, new in larger}
    calls, rest = quotients.pop()
    if quotients or rest or calls < 2:
        return None
    return Batch(calls, tuple(old[0] if old != new else None for old, new in shapes))


@dataclass(frozen=True, slots=True)
class BatchedWorker:
    """Models that are called several times for a batch, with as many samples as they are made for.

    It raises what its worker raises, and InterpreterError for a result that cannot be put together.
    """

    worker: Worker
    batch: Batch

    def describe(self, model: Source) -> Signature:
        """Read the inputs and outputs as they are for one call."""
        return self.worker.describe(model)

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Run a model on batches and return the outputs of each, those of its calls one behind the other.

        Raises InterpreterError where a result has no axis for them.
        """
        calls = [
            [
                array if extent is None else array[number * extent : (number + 1) * extent]
                for array, extent in zip(sample, self.batch.extents, strict=True)
            ]
            for sample in samples
            for number in range(self.batch.calls)
        ]
        found = self.worker.run(model, calls, kernels)
        if not all(result.ndim for results in found for result in results):
            raise InterpreterError("a result has no batch, of which several would be put together")
        batches = [found[at : at + self.batch.calls] for at in range(0, len(found), self.batch.calls)]
        return [[np.concatenate(parts) for parts in zip(*batch, strict=True)] for batch in batches]

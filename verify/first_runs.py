"""The first runs of an original: inputs that it takes, and others of other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np

from ..engine.base.errors import VerificationError
from .frames import Array
from .inputs import draw
from .interpreter import InterpreterError, Kernels, ModelTimeoutError, Source, Tensor, Worker

# A whole model's output is known no better than the interpreter's own kernels agree on it. The reference kernels are
# asked last and only when the others disagree: they are slow, lack operators, and some are wrong (SUM of integers).
ORDER = (Kernels.DEFAULT, Kernels.OPTIMIZED, Kernels.REFERENCE)

#: so many draws are tried where all elements of a result are one number
_PLAIN = 6

#: what an original computes of each sample, by the kernels that it was run by
Runs = dict[Kernels, list[list[Array]]]


class Informativeness(IntEnum):
    """How much results tell of what they were computed from."""

    EMPTY = 0
    UNIFORM = 1
    NOT_FINITE = 2
    FULL = 3


def find_first(
    worker: Worker, source: Source, draws: Iterable[Sequence[Sequence[Array]]], order: Sequence[Kernels] = ORDER
) -> tuple[list[list[Array]], Runs, list[str]]:
    """Find inputs that the interpreter takes and a set of kernels that runs the model on them.

    The first inputs whose results are fully informative are taken. Where a few draws have none, the most informative
    ones are, in this order: results with NaN or infinity (as of a mask above 1), results whose elements are all one
    number (as of a sequence of no length), empty results (as of sounds shorter than a window).

    Raises VerificationError where the interpreter takes no inputs.
    """
    failure: InterpreterError | None = None
    least: dict[Informativeness, tuple[list[list[Array]], Runs, list[str]]] = {}
    left = _PLAIN
    for samples in filter(None, draws):
        feeds = [list(sample) for sample in samples]
        remarks: list[str] = []
        for kernels in order:
            try:
                found = feeds, {kernels: worker.run(source, feeds, kernels)}, remarks
            except ModelTimeoutError:
                raise
            except InterpreterError as error:
                remarks.append(f"{kernels} kernels: {error}")
                failure = failure or error
                continue
            rated = _judge_results(one for several in found[1][kernels] for one in several)
            if rated is Informativeness.FULL:
                return found
            least.setdefault(rated, found)
            left -= rated is not Informativeness.EMPTY
            break
        if not left:
            break
    if least:
        return least[max(least)]
    raise failure or VerificationError("there are no inputs to run the models on")


def _judge_results(results: Iterable[Array]) -> Informativeness:
    """How much results tell: one real number is something, and so are elements that differ."""
    present = [one for one in results if one.size]
    if not present:
        return Informativeness.EMPTY
    if not any(one.dtype.kind == "f" if one.size == 1 else (one != one.flat[0]).any() for one in present):
        return Informativeness.UNIFORM
    whole = all(np.isfinite(one).all() for one in present if one.dtype.kind in "fc")
    return Informativeness.FULL if whole else Informativeness.NOT_FINITE


def add_other_sizes(
    worker: Worker,
    source: Source,
    resized: Iterable[Sequence[Tensor]],
    feeds: list[list[Array]],
    expected: Runs,
    seed: int,
) -> None:
    """Add a sample of other sizes, of the first with which the model runs; none where it runs with none."""
    ((kernels, found),) = expected.items()
    for tensors in resized:
        try:
            more, runs, _ = find_first(worker, source, draw(tensors, seed), (kernels,))
        except InterpreterError:
            continue  # these sizes are not those of the model
        feeds += more
        found += runs[kernels]
        return

"""The first runs of an original: inputs that it takes, and others of other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def find_first(
    worker: Worker, source: Source, draws: Iterable[Sequence[Sequence[Array]]]
) -> tuple[list[list[Array]], Runs, list[str]]:
    """Find inputs that the interpreter takes and a set of kernels that runs the model on them. Those that leave all
    results empty, as sounds shorter than a window do, are taken where there are no others; before these, those of which
    all elements of each result are one number, as of a sequence of no length, if a few others are the same.

    Raises VerificationError where it takes none.
    """
    failure: InterpreterError | None = None
    empty: tuple[list[list[Array]], Runs, list[str]] | None = None
    plain: tuple[list[list[Array]], Runs, list[str]] | None = None
    left = _PLAIN
    for samples in filter(None, draws):
        feeds = [list(sample) for sample in samples]
        remarks: list[str] = []
        for kernels in ORDER:
            try:
                found = feeds, {kernels: worker.run(source, feeds, kernels)}, remarks
            except ModelTimeoutError:
                raise
            except InterpreterError as error:
                remarks.append(f"{kernels} kernels: {error}")
                failure = failure or error
                continue
            results = [one for several in found[1][kernels] for one in several if one.size]
            if any(map(_is_informative, results)):
                return found
            empty, plain = empty or found, plain or (found if results else None)
            left -= bool(results)
            break
        if not left:
            break
    if found_least := plain or empty:
        return found_least
    raise failure or VerificationError("there are no inputs to run the models on")


def _is_informative(result: Array) -> bool:
    """Whether a result tells something of what it was computed from: one real number, or elements that differ."""
    return result.dtype.kind == "f" if result.size == 1 else bool((result != result.flat[0]).any())


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
        for [sample] in draw(tensors, seed):
            try:
                found += worker.run(source, [sample], kernels)
            except InterpreterError:
                continue  # these sizes are not those of the model
            feeds.append(list(sample))
            return

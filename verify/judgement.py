"""Judgement: outputs of a model held against those of its original, by one set of kernels after the other, and against
how far these are apart or sensitive to rounding."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

from ..engine.base.errors import VerificationError
from .adapter import Adapter
from .comparison import Comparison, choose_worst, compare, measure_distance
from .first_runs import ORDER, Runs
from .formats import EXPORTED, INTERPRETED, ORIGINALS, REFERENCE, find_format
from .frames import Array
from .interpreted import Interpreted, widen_integers
from .interpreter import InterpreterError, Kernels, Signature, Source, Worker
from .perturbation import perturb_inputs, perturb_model
from .perturbed_programs import perturb_program

#: how often an original is perturbed to find how sensitive its results are
_PERTURBATIONS = 3
#: what perturbs originals, by their dialect
_PERTURBING = {REFERENCE: perturb_model, EXPORTED: perturb_program}
#: what stands beside a comparison that rests on it
SENSITIVE = "the original's results are off by as much where its numbers are rounded a little otherwise"


def judge_outputs(
    worker: Worker,
    source: Source,
    signature: Signature,
    feeds: list[list[Array]],
    runs: Runs,
    actual: list[list[Array]],
    remarks: list[str],
    real: bool = False,
) -> tuple[Comparison, ...]:
    """Ask one set of kernels after the other until each output agrees with one of them. What was made is `real` where
    it has numbers in the place of the original's codes.

    Raises VerificationError where an output that differs is another one whenever the original is run.
    """
    (first,) = runs
    best = _compare_outputs(signature, runs[first], actual, first)
    if not all(one.verdict.passed for one in best):
        _refuse_random(worker, source, signature, feeds[0], first)
    for kernels in ORDER[ORDER.index(first) + 1 :]:
        if all(one.verdict.passed for one in best):
            return best
        try:
            runs[kernels] = worker.run(source, feeds, kernels)
        except InterpreterError as error:
            remarks.append(f"{kernels} kernels: {error}")
            continue
        others = _compare_outputs(signature, runs[kernels], actual, kernels)
        best = tuple(b if b.verdict.passed else o if o.verdict.passed else b for b, o in zip(best, others, strict=True))
    if len(runs) > 1:
        one, other = itertools.islice(runs, 2)
        spreads = _measure_spreads(signature, runs[one], runs[other])
        best = _keep_passed(best, _compare_outputs(signature, runs[one], actual, one, spreads))
    known = find_format(source, ORIGINALS)
    alone = known == INTERPRETED and len(runs) == 1  # with another set of kernels the spread of both has told
    if all(one.verdict.passed for one in best) or (known == INTERPRETED and not alone):
        return best
    spreads = _measure_sensitivity(worker, source, signature, feeds, runs[first], first, real)
    allowed = _compare_outputs(signature, runs[first], actual, first, spreads)
    if any(a.verdict.passed and not b.verdict.passed for b, a in zip(best, allowed, strict=True)):
        remarks.append(SENSITIVE)
    return _keep_passed(best, allowed)


def _refuse_random(worker: Worker, source: Source, signature: Signature, feed: list[Array], kernels: Kernels) -> None:
    """Raise VerificationError for a model that makes other results of the same inputs in its second run."""
    once, again = worker.run(source, [feed, feed], kernels)
    found = _compare_outputs(signature, [once], [again], kernels)
    if wrong := [f"{one.name} ({one.error})" for one in found if not one.verdict.passed]:
        raise VerificationError(
            f"the original computes other numbers whenever it is run, as random ones are: {', '.join(wrong)}"
        )


def judge_by_kernels(
    best: tuple[Comparison, ...],
    runtime: Interpreted,
    signature: Signature,
    feeds: list[list[Array]],
    runs: Runs,
    actual: list[list[Array]],
) -> tuple[Comparison, ...]:
    """Allow outputs that differ what the interpreter's other sets of kernels are off on the model that was made."""
    spreads = [0.0] * len(signature.outputs)
    for kernels in ORDER:
        facade = Adapter(replace(runtime, kernels=kernels), signature)
        try:
            others = [widen_integers(facade.run(feed), one) for feed, one in zip(feeds, actual, strict=True)]
        except VerificationError:
            continue  # a set that lacks an operator tells nothing
        spreads = [max(pair) for pair in zip(spreads, _measure_spreads(signature, actual, others), strict=True)]
    first, expected = next(iter(runs.items()))
    return _keep_passed(best, _compare_outputs(signature, expected, actual, first, spreads))


def _keep_passed(best: tuple[Comparison, ...], others: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """Those comparisons that passed, and others in the place of the rest."""
    return tuple(one if one.verdict.passed else other for one, other in zip(best, others, strict=True))


def _measure_spreads(signature: Signature, ones: list[list[Array]], others: list[list[Array]]) -> list[float]:
    """How far two runs on the same samples are apart, at each output."""
    return [
        max(measure_distance(tensor, one[place], other[place]) for one, other in zip(ones, others, strict=True))
        for place, tensor in enumerate(signature.outputs)
    ]


def _measure_sensitivity(
    worker: Worker,
    source: Source,
    signature: Signature,
    feeds: list[list[Array]],
    found: list[list[Array]],
    kernels: Kernels,
    real: bool,
) -> list[float]:
    """How far each output of a model moves where its numbers are perturbed by as much as rounding would.

    Inputs are perturbed, in ONNX and PyTorch weights as well, and numbers where they are quantized: by a small part of
    a step, or by a whole one where the other model is `real`. A number
    between two codes becomes the other one for that, which later layers see as a step.
    """
    spreads = [0.0] * len(signature.outputs)
    accepted = source if isinstance(source, bytes) else os.fspath(source)
    perturb = _PERTURBING.get(find_format(source, ORIGINALS))
    for seed in range(_PERTURBATIONS * (1 + real)):
        perturbed = None if perturb is None else perturb(accepted, seed, real)
        try:
            others = worker.run(source if perturbed is None else perturbed, perturb_inputs(feeds, seed), kernels)
        except InterpreterError:
            continue  # there is nothing to be learned from a model that does not take it
        spreads = [max(pair) for pair in zip(spreads, _measure_spreads(signature, found, others), strict=True)]
    return spreads


def _compare_outputs(
    signature: Signature,
    expected: list[list[Array]],
    actual: list[list[Array]],
    kernels: Kernels,
    spreads: list[float] | None = None,
) -> tuple[Comparison, ...]:
    return tuple(
        choose_worst(
            [
                compare(tensor, want[place], got[place], kernels, spreads[place] if spreads else 0.0)
                for want, got in zip(expected, actual, strict=True)
            ]
        )
        for place, tensor in enumerate(signature.outputs)
    )

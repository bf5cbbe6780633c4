"""Verification: a source model and its rewritten form on the same seeded inputs, output by output."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..engine.base.errors import VerificationError
from ..frontends.source import Source as Given
from ..frontends.source import accept
from .adapter import Adapter, resize_inputs
from .batch import BatchedWorker, find_batch
from .comparison import Comparison, Verdict, choose_worst, compare, measure_distance
from .first_runs import ORDER, Runs, add_other_sizes, find_first
from .formats import EXPORTED, INTERPRETED, ORIGINALS, REFERENCE, find_format
from .frames import Array
from .free_sizes import list_other_sizes
from .inputs import draw
from .interpreted import Interpreted, widen_integers
from .interpreter import Interpreter, InterpreterError, Kernels, Signature, Source, Worker
from .low_bit_weights import ROUNDED
from .perturbation import perturb_inputs, perturb_model
from .pipe import TIME_LIMIT
from .pytorch import PyTorch
from .reals import write_real_form
from .reference import Reference
from .runtime import Runtime
from .saturation import explain_saturation
from .signature import Signed

#: how often an original is perturbed to find how sensitive its results are
_PERTURBATIONS = 3
#: what stands beside a comparison that rests on it
SENSITIVE = "the original's results are off by as much where its numbers are rounded a little otherwise"


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of running both models: one comparison for each output, and what else is not as it was.

    `unquantized` says that the original is quantized and was computed with real numbers, as the rewritten model is.
    `saturation` says, where something differs, which products of the model saturate on this processor.

    `problems` are differences that concern no single output (a number or order of inputs); `remarks` say which
    kernels of the interpreter could not be asked. Seconds are those of one sample, loading included.
    """

    comparisons: tuple[Comparison, ...]
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    seed: int = 0
    samples: int = 1
    source_seconds: float = 0.0
    target_seconds: float = 0.0
    unquantized: bool = False
    saturation: str = ""

    @property
    def passed(self) -> bool:
        """Whether no output differs and the interface is the same."""
        return not self.problems and all(one.verdict.passed for one in self.comparisons)

    @property
    def within_spread(self) -> tuple[Comparison, ...]:
        """The outputs that are right as far as anybody can tell: the interpreter's own kernels differ as much."""
        return tuple(one for one in self.comparisons if one.verdict is Verdict.SPREAD)

    @property
    def is_sensitive(self) -> bool:
        """Whether the spread is what comes of rounding the original's numbers, and not that of kernels."""
        return SENSITIVE in self.remarks

    @property
    def differences(self) -> tuple[str, ...]:
        """One line for each difference found."""
        return (*self.problems, *(f"{one.name}: {one.reason}" for one in self.comparisons if not one.verdict.passed))


def compare_models(
    source: Given,
    target: Given,
    seed: int = 0,
    samples: int = 1,
    inputs: Sequence[Sequence[Array]] | None = None,
    interpreter: Interpreter | None = None,
    timeout: float = TIME_LIMIT,
    signature: str | None = None,
    precise: bool = False,
) -> Verification:
    """Run a model of TFLite, ONNX or PyTorch and the model made of it on the same inputs and compare every output.

    Both are paths, bytes or open files. What was ONNX before is run by ONNX Runtime, with its own optimizations and
    without, and a program of PyTorch by torch, with oneDNN and without; free sizes are the first with which it runs,
    and others for one sample more. Where the result's inputs have other extents the source's are resized, or it is
    called for each sample of a batch; where its interface is real the source's codes are fed and compared as such.
    Where nothing is quantized any more, the source is computed with real numbers as well, from its constants and inputs
    as they are quantized. Inputs are seeded ones, or `inputs`: for each sample the arrays in the model's order; a
    program of PyTorch that takes no seeded ones is run on those that it was exported with. An output passes when it
    agrees with one of the interpreter's sets of kernels, or is off by no more than twice what the first two differ by.
    `interpreter` is a worker to use and leave running; `timeout` is in seconds for each run of ONNX Runtime, and of a
    worker of our own. With a signature the source is called by it, else its first graph is run. With `precise` products
    of bytes are kept from saturating where they do on this processor, which tells mistakes of a model from what the
    processor makes of it.
    Raises VerificationError where one side does not run: that is no verdict.
    """
    source, target = accept(source), accept(target)
    with contextlib.ExitStack() as stack:
        read, made = find_format(source, ORIGINALS), find_format(target)
        own = interpreter
        if own is None and INTERPRETED in (read, made):
            own = stack.enter_context(Interpreter(timeout))
        runtime: Runtime | Interpreted
        if made == INTERPRETED:
            assert own is not None
            runtime = Interpreted(target, own)
        else:
            runtime = Runtime(target, precise=precise, seconds=timeout)
        worker: Worker
        if read == REFERENCE:
            worker = Reference([runtime.read_shape(name) for name in runtime.inputs], timeout)
        elif read == EXPORTED:
            worker = PyTorch()
        else:
            assert own is not None
            worker = own if signature is None else Signed(own, signature, runtime.inputs, runtime.outputs)
        described = worker.describe(source)
        if problems := _compare_interfaces(described, runtime, isinstance(worker, Interpreter)):
            return Verification((), problems, seed=seed)
        candidate = TargetModel(runtime, target, seed, samples, inputs, precise)
        found = _compare_batches(worker, source, described, candidate)
        if found.passed or precise or isinstance(runtime, Interpreted):
            return found
        exact = replace(candidate, runtime=Runtime(target, single=True, seconds=timeout))
        other = _compare_batches(worker, source, described, exact)
        return replace(other, remarks=(*other.remarks, ROUNDED)) if other.passed else found


def _compare_batches(worker: Worker, source: Source, described: Signature, candidate: TargetModel) -> Verification:
    """Run both models and compare their outputs; an original that takes no such batch is called for each sample."""
    resized = resize_inputs(described, candidate.runtime)
    batch = find_batch(described, resized)
    if batch is None:
        return _compare_runs(worker, source, resized, candidate)
    # Not each graph has a form for several samples, and what it makes of them is not what calls for each make.
    batched = BatchedWorker(worker, batch)
    try:
        found = _compare_runs(worker, source, resized, candidate)
    except VerificationError:
        return _compare_runs(batched, source, resized, candidate)
    if not found.passed and (other := _compare_runs(batched, source, resized, candidate)).passed:
        return other
    return found


@dataclass(frozen=True, slots=True)
class TargetModel:
    """A model to be compared, as it runs and as a file, and on which inputs."""

    runtime: Runtime | Interpreted
    target: str | bytes
    seed: int
    samples: int
    inputs: Sequence[Sequence[Array]] | None
    precise: bool


def _compare_runs(worker: Worker, source: Source, described: Signature, candidate: TargetModel) -> Verification:
    """Run both models on what inputs the original takes, and compare their outputs; raises as `compare_models` does."""
    runtime, seed = candidate.runtime, candidate.seed
    facade = Adapter(runtime, described)
    draws: Iterable[Sequence[Sequence[Array]]]
    if candidate.inputs is not None:
        draws = [candidate.inputs]
    else:
        # A program may assert more of its inputs than their types tell.
        examples = worker.read_examples(source) if isinstance(worker, PyTorch) else []
        draws = itertools.chain(draw(described.inputs, seed, candidate.samples), [examples] if examples else [])
    unquantized = False
    if runtime.unquantized:
        draws = [[facade.convert_inputs(sample) for sample in feeds] for feeds in draws]
        quantized = source
        source = write_real_form(source) if find_format(source, ORIGINALS) == INTERPRETED else source
        unquantized = source is not quantized
        described = resize_inputs(worker.describe(source), runtime)
        facade = Adapter(runtime, described)
    started = time.perf_counter()
    feeds, expected, remarks = find_first(worker, source, draws)
    if candidate.inputs is None and not runtime.unquantized:
        made_shapes = [runtime.read_shape(name) for name in runtime.inputs]
        shapes = zip(_list_shapes(worker, source), made_shapes, strict=True)
        others = list_other_sizes(described.inputs, shapes, feeds[0])
        add_other_sizes(worker, source, others, feeds, expected, seed)
    source_seconds = (time.perf_counter() - started) / len(feeds)
    started = time.perf_counter()
    actual = [_run_target(facade, feed) for feed in feeds]
    if isinstance(runtime, Interpreted):
        actual = [widen_integers(one, two) for one, two in zip(actual, next(iter(expected.values())), strict=True)]
    target_seconds = (time.perf_counter() - started) / len(feeds)
    comparisons = _judge(worker, source, described, feeds, expected, actual, remarks)
    if isinstance(runtime, Interpreted) and not all(one.verdict.passed for one in comparisons):
        spreads = _measure_kernels(runtime, described, feeds, actual)
        first, found = next(iter(expected.items()))
        comparisons = _keep_passed(comparisons, _compare_outputs(described, found, actual, first, spreads))
    seconds = round(source_seconds, 4), round(target_seconds, 4)
    passed = candidate.precise or all(one.verdict.passed for one in comparisons)
    saturation = "" if passed or isinstance(runtime, Interpreted) else explain_saturation(candidate.target)
    return Verification(comparisons, (), tuple(remarks), seed, len(feeds), *seconds, unquantized, saturation)


def _compare_interfaces(signature: Signature, runtime: Runtime | Interpreted, unsigned: bool) -> tuple[str, ...]:
    """Inputs and outputs correspond by place; a permutation of the same names is a difference.

    Of an `unsigned` original these are the names of its tensors, where the model's are those of a signature.
    """
    problems: list[str] = []
    sides = ("inputs", signature.inputs, runtime.inputs), ("outputs", signature.outputs, runtime.outputs)
    if isinstance(runtime, Interpreted):
        return tuple(f"{len(one)} {what} became {len(two)}" for what, one, two in sides if len(one) != len(two))
    for what, tensors, given in sides:
        wanted = tuple(tensor.name for tensor in tensors)
        names = tuple(runtime.source_names.get(name, name) for name in given) if unsigned else given
        if len(wanted) != len(names):
            problems.append(f"{len(wanted)} {what} became {len(names)}")
        elif wanted != names and sorted(wanted) == sorted(names):
            problems.append(f"{what} in another order: {', '.join(wanted)} became {', '.join(names)}")
    return tuple(problems)


def _list_shapes(worker: Worker, source: Source) -> list[tuple[object, ...]]:
    """What a model says of the shapes of its inputs."""
    if isinstance(worker, Reference):
        return worker.list_shapes(source)
    return [tensor.signature or tensor.shape for tensor in worker.describe(source).inputs]


def _run_target(facade: Adapter, sample: Sequence[Array]) -> list[Array]:
    """Run the model that was made; raises VerificationError with the shapes of the sample where it fails."""
    try:
        return facade.run(sample)
    except VerificationError as error:
        shapes = ", ".join(str(list(array.shape)) for array in sample)
        raise VerificationError(f"{error} (inputs of {shapes})") from error


def _judge(
    worker: Worker,
    source: Source,
    signature: Signature,
    feeds: list[list[Array]],
    runs: Runs,
    actual: list[list[Array]],
    remarks: list[str],
) -> tuple[Comparison, ...]:
    """Ask one set of kernels after the other until each output agrees with one of them."""
    (first,) = runs
    best = _compare_outputs(signature, runs[first], actual, first)
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
    if all(one.verdict.passed for one in best) or (known != REFERENCE and not alone):
        return best
    spreads = _measure_sensitivity(worker, source, signature, feeds, runs[first], first)
    allowed = _compare_outputs(signature, runs[first], actual, first, spreads)
    if any(a.verdict.passed and not b.verdict.passed for b, a in zip(best, allowed, strict=True)):
        remarks.append(SENSITIVE)
    return _keep_passed(best, allowed)


def _keep_passed(best: tuple[Comparison, ...], others: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """Those comparisons that passed, and others in the place of the rest."""
    return tuple(one if one.verdict.passed else other for one, other in zip(best, others, strict=True))


def _measure_spreads(signature: Signature, ones: list[list[Array]], others: list[list[Array]]) -> list[float]:
    """How far two runs on the same samples are apart, at each output."""
    return [
        max(measure_distance(tensor, one[place], other[place]) for one, other in zip(ones, others, strict=True))
        for place, tensor in enumerate(signature.outputs)
    ]


def _measure_kernels(
    runtime: Interpreted, signature: Signature, feeds: list[list[Array]], actual: list[list[Array]]
) -> list[float]:
    """How far the interpreter's other sets of kernels are off on a model that was made, at each output."""
    spreads = [0.0] * len(signature.outputs)
    for kernels in ORDER:
        facade = Adapter(replace(runtime, kernels=kernels), signature)
        try:
            others = [widen_integers(facade.run(feed), one) for feed, one in zip(feeds, actual, strict=True)]
        except VerificationError:
            continue  # a set that lacks an operator tells nothing
        spreads = [max(pair) for pair in zip(spreads, _measure_spreads(signature, actual, others), strict=True)]
    return spreads


def _measure_sensitivity(
    worker: Worker,
    source: Source,
    signature: Signature,
    feeds: list[list[Array]],
    found: list[list[Array]],
    kernels: Kernels,
) -> list[float]:
    """How far results of a model are off, at each output, where its numbers are rounded a little otherwise: the inputs,
    and in ONNX the weights.

    A number between two codes becomes the other one for that, which later layers see as a step.
    """
    spreads = [0.0] * len(signature.outputs)
    accepted = source if isinstance(source, bytes) else os.fspath(source)
    for seed in range(_PERTURBATIONS):
        perturbed = perturb_model(accepted, seed) if find_format(source, ORIGINALS) == REFERENCE else None
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

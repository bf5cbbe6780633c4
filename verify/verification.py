"""Verification: a source model and its rewritten form on the same seeded inputs, output by output."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..engine.base.errors import CallError, VerificationError, format_count
from ..frontends.source import Source as Given
from ..frontends.source import accept
from .adapter import Adapter, resize_inputs
from .batch import BatchedWorker, find_batch
from .comparison import Comparison, Verdict
from .first_runs import add_other_sizes, find_first
from .formats import EXPORTED, INTERPRETED, ORIGINALS, REFERENCE, find_format
from .frames import Array
from .free_sizes import list_other_sizes
from .inputs import draw
from .interpreted import Interpreted, widen_integers
from .interpreter import Interpreter, Kernels, Signature, Source, Worker
from .judgement import SENSITIVE, judge_by_kernels, judge_outputs
from .low_bit_weights import ROUNDED
from .pytorch import PyTorch
from .reals import write_real_form
from .reference import Reference
from .runtime import Runtime
from .saturation import UNSATURATED, can_saturate, explain_saturation
from .signature import Signed
from .time_limit import TIME_LIMIT


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
    *,
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
    `interpreter` is a worker to use and leave running; `timeout` is in seconds, for each run in ONNX Runtime, torch
    and a worker of our own, and for loading a model into them. With a signature the source is called by it, else its
    first graph is run. With `precise` products of bytes are kept from saturating where they do on this processor, which
    tells mistakes of a model from what the processor makes of it.
    Raises VerificationError where one side does not run: that is no verdict; CallError for `inputs` of another form.
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
        worker = _choose_worker(read, own, runtime, signature, timeout, precise)
        described = worker.describe(source)
        if inputs is not None:
            _check_inputs(inputs, described)
        if problems := _compare_interfaces(described, runtime, isinstance(worker, Interpreter)):
            return Verification((), problems, seed=seed)
        candidate = TargetModel(runtime, target, seed, samples, inputs, precise)
        found = _compare_batches(worker, source, described, candidate)
        if not (found.passed or precise):
            found = _compare_otherwise(worker, source, described, candidate, timeout) or found
        told = worker.list_remarks() if isinstance(worker, Reference) else ()
        return replace(found, remarks=(*found.remarks, *told))


def _check_inputs(inputs: Sequence[Sequence[Array]], signature: Signature) -> None:
    """Raise CallError for inputs that are not, for each sample, as many arrays as the model has inputs."""
    count = len(signature.inputs)
    samples = inputs if isinstance(inputs, Sequence) else [None]
    if not all(isinstance(sample, list | tuple) and len(sample) == count for sample in samples):
        names = ", ".join(tensor.name for tensor in signature.inputs)
        form = f"a list of {format_count(count, 'array')}, in the model's order: {names}"
        raise CallError(f"inputs takes a list of samples, each of them {form}")


def _choose_worker(
    format: str,
    interpreter: Interpreter | None,
    runtime: Runtime | Interpreted,
    signature: str | None,
    timeout: float,
    precise: bool,
) -> Worker:
    """What runs an original of a format, beside the `runtime` of the model made of it."""
    if format == REFERENCE:
        return Reference([runtime.read_shape(name) for name in runtime.inputs], timeout, precise)
    if format == EXPORTED:
        return PyTorch(timeout)
    assert interpreter is not None
    return interpreter if signature is None else Signed(interpreter, signature, runtime.inputs, runtime.outputs)


def _compare_otherwise(
    worker: Worker, source: Source, described: Signature, candidate: TargetModel, timeout: float
) -> Verification | None:
    """Compare models that differ once more without what their runtimes alone make of them; None where they still do.

    That is products of bytes that saturate in the original, and in the result factors rounded for weights of few bits.
    """
    if isinstance(worker, Reference) and can_saturate():
        other = _compare_batches(replace(worker, precise=True), source, described, candidate)
        if other.passed:
            return replace(other, remarks=(*other.remarks, UNSATURATED))
    if isinstance(candidate.runtime, Interpreted):
        return None
    exact = replace(candidate, runtime=Runtime(candidate.target, single=True, seconds=timeout))
    other = _compare_batches(worker, source, described, exact)
    return replace(other, remarks=(*other.remarks, ROUNDED)) if other.passed else None


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
    draws = _list_draws(worker, source, described, candidate)
    unquantized = False
    plain = runtime.unquantized and find_format(source, ORIGINALS) == INTERPRETED
    if plain:
        draws = [[facade.convert_inputs(sample) for sample in feeds] for feeds in draws]
        quantized = source
        source = write_real_form(source)
        unquantized = source is not quantized
        described = resize_inputs(worker.describe(source), runtime)
        facade = Adapter(runtime, described)
    started = time.perf_counter()
    feeds, expected, remarks = find_first(worker, source, draws)
    if candidate.inputs is None and not plain:
        made_shapes = [runtime.read_shape(name) for name in runtime.inputs]
        shapes = zip(_list_shapes(worker, source), made_shapes, strict=True)
        others = list_other_sizes(described.inputs, shapes, feeds[0])
        add_other_sizes(worker, source, others, feeds, expected, seed)
    source_seconds = (time.perf_counter() - started) / len(feeds)
    if isinstance(runtime, Interpreted) and isinstance(worker, Interpreter) and Kernels.DEFAULT not in expected:
        runtime = replace(runtime, kernels=next(iter(expected)))  # what refuses the original may refuse the result
        facade = Adapter(runtime, described)
    started = time.perf_counter()
    actual = [_run_target(facade, feed) for feed in feeds]
    if isinstance(runtime, Interpreted):
        actual = [widen_integers(one, two) for one, two in zip(actual, next(iter(expected.values())), strict=True)]
    target_seconds = (time.perf_counter() - started) / len(feeds)
    comparisons = judge_outputs(worker, source, described, feeds, expected, actual, remarks, runtime.unquantized)
    if isinstance(runtime, Interpreted) and not all(one.verdict.passed for one in comparisons):
        comparisons = judge_by_kernels(comparisons, runtime, described, feeds, expected, actual)
    seconds = round(source_seconds, 4), round(target_seconds, 4)
    passed = candidate.precise or all(one.verdict.passed for one in comparisons)
    saturation = "" if passed or isinstance(runtime, Interpreted) else explain_saturation(candidate.target)
    return Verification(comparisons, (), tuple(remarks), seed, len(feeds), *seconds, unquantized, saturation)


def _list_draws(
    worker: Worker, source: Source, described: Signature, candidate: TargetModel
) -> Iterable[Sequence[Sequence[Array]]]:
    """The samples to try one after the other until the original takes some: those asked for, or seeded ones."""
    if candidate.inputs is not None:
        return [candidate.inputs]
    # A program may assert more of its inputs than their types tell.
    examples = worker.read_examples(source) if isinstance(worker, PyTorch) else []
    return itertools.chain(draw(described.inputs, candidate.seed, candidate.samples), [examples] if examples else [])


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

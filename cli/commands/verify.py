"""`rewrite verify`: two models on the same inputs, output by output or tensor by tensor."""

from __future__ import annotations

import functools
import stat
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import flags
from .explain import format_origin

if TYPE_CHECKING:
    from ...verify import Interpreter, Verification
    from ...verify.frames import Array
    from ...verify.interpreter import Worker
    from ...verify.layers import Step

_MODEL = flags.File(exists=True)


@click.command("rewrite verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", metavar="A", type=_MODEL)
@click.argument("target", metavar="B", type=_MODEL)
@click.option(
    "--inputs", "path", type=_MODEL, metavar="FILE.npz", help="Inputs by name; one more axis in front holds samples."
)
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many random inputs to compare on.",
)
@flags.seed
@click.option(
    "--per-layer", is_flag=True, help="Compare each tensor that both models have, and name the nodes that are wrong."
)
@flags.as_json
@click.pass_context
def command(
    ctx: click.Context,
    source: Path,
    target: Path,
    path: Path | None,
    samples: int,
    seed: int,
    per_layer: bool,
    as_json: bool,
) -> None:
    """Run a model A, and the .tflite or .onnx model B made of it, on the same inputs and compare their outputs.

    For each output it shows the largest error, the same relative to the output's largest magnitude, and the mean
    relative error; in quantization steps (st) for quantized outputs. Top-10 is the share of the ten highest scores that
    both models agree on.

    Exit status: 0 the outputs agree; 1 they differ, or one of the models does not run.
    """
    from ...engine.base.errors import CallError, VerificationError
    from ...frontends.mapping import load
    from ...verify import Interpreter, compare_models
    from ...verify.formats import find_worker
    from ..json_documents import make_plain, show
    from ..result_documents import list_differences, make_verification_entry

    if path is not None:
        flags.refuse_idle(("samples", "seed"), "is about random inputs, and --inputs names others")
    if per_layer and {source.suffix, target.suffix} != {".tflite", ".onnx"}:
        raise CallError("--per-layer takes a TensorFlow Lite and an ONNX model, of which one was made of the other")
    for model in (source, target):
        load(model)  # an empty file is told by its name
    try:
        with Interpreter() as interpreter:
            feeds = None if path is None else read_inputs(path, find_worker(source, interpreter), source)
            run = functools.partial(
                compare_models, source, target, seed=seed, samples=samples, inputs=feeds, interpreter=interpreter
            )
            verification = run()
            steps = _compare_layers(source, target, interpreter, seed, feeds) if per_layer else []
            # Whether it is that alone by which outputs differ is not said in JSON, and not looked for.
            saturated = per_layer and not as_json and verification.saturation != ""
            if saturated:
                saturated = run(precise=True).passed
    except VerificationError as error:
        raise VerificationError(f"{source} and {target}: {error}") from error
    if as_json:
        layers = [{"operator": s.operator, "saturates": s.saturates, **make_plain(s.comparison)} for s in steps]
        entry = make_verification_entry(verification) | ({"layers": layers} if per_layer else {})
        told = list_differences(verification, f"{target}")
        show("verify", verification.passed, [{"source": source, "target": target, **entry}], told)
    else:
        _print_verification(verification, steps if per_layer else None, saturated)
    ctx.exit(0 if verification.passed else 1)


def read_inputs(path: Path, worker: Worker, model: Path) -> list[list[Array]]:
    """Read samples of a model's inputs from a file of arrays, each named as its input is.

    An array with one more axis than the input holds a sample at each index of the first; all others count for every
    sample. Raises VerificationError for an input that is missing, or whose rank or type is another.
    """
    from ...engine.base.errors import VerificationError

    tensors = worker.describe(model).inputs
    names = [tensor.name for tensor in tensors]
    arrays = _read_arrays(path, names)
    wrong = [t.name for t in tensors if arrays[t.name].ndim - len(t.shape) not in (0, 1)]
    if wrong:
        raise VerificationError(f"{path}: {wrong[0]} has {arrays[wrong[0]].ndim} axes, the model's has another number")
    stacked = {t.name: arrays[t.name].ndim > len(t.shape) for t in tensors}
    counts = {len(arrays[name]) for name, several in stacked.items() if several}
    if len(counts) > 1:
        raise VerificationError(f"{path}: inputs have different numbers of samples: {', '.join(map(str, counts))}")
    if counts == {0}:
        raise VerificationError(f"{path} has no sample: the first axis of {next(filter(stacked.get, names))} is empty")
    for tensor in tensors:
        try:
            arrays[tensor.name] = _convert_array(arrays[tensor.name], tensor.dtype)
        except (TypeError, ValueError) as error:
            held, wanted = arrays[tensor.name].dtype, "strings" if tensor.dtype == "object" else tensor.dtype
            raise VerificationError(f"{path}: {tensor.name} holds {held}, the model's {wanted}") from error
    return [
        [arrays[name][place] if stacked[name] else arrays[name] for name in names]
        for place in range(counts.pop() if counts else 1)
    ]


def _read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The arrays of some names in a file; raises VerificationError where it cannot be read, or one is not there."""
    import numpy as np

    from ...engine.base.atomic_write import read_mode
    from ...engine.base.errors import VerificationError, join_lines

    if not stat.S_ISREG(read_mode(path)) or not zipfile.is_zipfile(path):  # to open a pipe may take for ever
        raise VerificationError(f"{path} is no file of arrays by name, such as numpy.savez writes")
    try:
        with np.load(path) as file:
            known = file.files
            arrays = {name: file[name] for name in names if name in known}
    except Exception as error:  # of any kind, as the file may be damaged anywhere
        said = join_lines(error) or type(error).__name__
        raise VerificationError(f"{path} cannot be read: {said}") from error
    if missing := [name for name in names if name not in arrays]:
        raise VerificationError(f"{path} has no array {missing[0]}, only {', '.join(known) or 'none at all'}")
    if others := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise VerificationError(f"{path}: {others[0]} is no array")
    return arrays


def _convert_array(array: Array, dtype: str) -> Array:
    """An array as an input of a type takes it; raises TypeError or ValueError where it is of another kind."""
    import numpy as np

    if dtype != "object":
        return np.asarray(array, dtype)
    return (array if array.dtype.kind == "S" else np.strings.encode(array)).astype(object)


def _compare_layers(
    source: Path, target: Path, interpreter: Interpreter, seed: int, feeds: Sequence[Sequence[Array]] | None
) -> list[Step]:
    from ...verify.layer_pairs import compare_pair

    return compare_pair(source, target, interpreter, seed, None if feeds is None else feeds[0])


def _print_verification(verification: Verification, steps: Sequence[Step] | None, saturated: bool) -> None:
    from ...verify.verification_table import format_table, summarize

    if steps is not None:
        for line in _format_layers(steps, verification.passed, saturated):
            click.echo(line)
    for line in format_table(verification, sys.stdout.isatty()):
        click.echo(line)
    colour = "yellow" if verification.within_spread else "green"
    click.secho(summarize(verification), fg=colour if verification.passed else "red")


def _format_layers(steps: Sequence[Step], passed: bool, saturated: bool) -> Iterator[str]:
    """Word the tensors compared, a line each, then the first that differs with the nodes that compute it.

    Where none does, what outputs differ by may be all that products of bytes lose where they are `saturated`.
    """
    from ...verify.layers import find_divergence

    yield from _format_tensors(steps)
    wrong = sum(not step.comparison.verdict.passed for step in steps)
    first = find_divergence(steps)
    said = "none differs" if first is None else f"{wrong} differ{'s' * (wrong == 1)}"
    yield f"{len(steps)} tensors compared, each computed from the TensorFlow Lite model's: {said}"
    if spared := [step for step in steps if step.saturates]:
        where = f"first {spared[0].comparison.name} (of {spared[0].operator})"
        yield (
            f"products of bytes saturate on this processor, and were kept from it for {len(spared)} of these tensors, "
            f"{where}"
        )
    if first is not None:
        found = first.comparison
        yield f"the first to differ is {found.name} (of {first.operator}): {found.reason}; it is computed by"
        yield from _iterate_nodes(first)
    elif saturated:
        yield "outputs do, but not where products of bytes are kept from saturating, as they do on this processor"
    elif not passed:
        yield from _explain_outputs(steps)


def _format_tensors(steps: Sequence[Step]) -> Iterator[str]:
    """How far apart both sides are at each tensor, red where they differ."""
    width = max((len(step.operator) for step in steps), default=0)
    for step in steps:
        one = step.comparison
        error = "" if one.relative is None else f"{one.relative:.1g}"
        steps_off = f" ({one.absolute:.3g} st)" if one.quantized and one.absolute is not None else ""
        yield click.style(
            f"{step.operator:<{width}}  {one.verdict.value:<9}  {error:>7}{steps_off}  {one.name}",
            fg=None if one.verdict.passed else "red",
        )


def _explain_outputs(steps: Sequence[Step]) -> Iterator[str]:
    """Why outputs may differ where no tensor does, and at which it would have to be looked for."""
    from ...verify.layers import find_suspect

    yield "outputs do: differences add up, or ONNX Runtime changes the model when it optimizes it"
    if (suspect := find_suspect(steps)) is not None:
        found = suspect.comparison
        own = f", {found.spread:.3g} between the interpreter's own kernels" if found.spread else ""
        yield (
            f"or something is wrong by less than is allowed: {found.name} (of {suspect.operator}) "
            f"needs most of that, {found.error}{own}; it is computed by"
        )
        yield from _iterate_nodes(suspect)


def _iterate_nodes(step: Step) -> Iterator[str]:
    from ...engine.base.provenance import RULE, SOURCE

    width = max((len(node.op_type) for node in step.nodes), default=0)
    for node in step.nodes:
        said = {entry.key: entry.value for entry in node.metadata_props}
        origin = format_origin(said.get(RULE), said.get(SOURCE))
        yield f"  {node.op_type:<{width}}  {node.name or ', '.join(node.output)}  {origin}"

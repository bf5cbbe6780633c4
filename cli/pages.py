"""Pages of the command `convert --report`: what came of one model, written as HTML."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from ..engine.base.atomic_write import replacing
from ..engine.base.errors import RewriteError
from ..engine.base.startup import replace
from ..inspection import read_graph, sides
from ..page import Outcome, collect, render

if TYPE_CHECKING:
    from ..conversion import Conversion
    from ..options import Options
    from ..verify import Interpreter
    from .jobs import Job


def write_result(
    path: Path,
    options: Options,
    job: Job,
    outcome: Outcome,
    conversion: Conversion,
    source: Path | bytes,
    interpreter: Interpreter | None,
) -> None:
    """Write the page of a model that was converted, from what is known of its outcome, with both graphs.

    Layers are compared where there is an interpreter. Raises DestinationError for what the system refuses.
    """
    after = ir.from_proto(conversion.sketch).graph
    layers, note = _compare(job, source, interpreter)
    found = replace(
        outcome,
        before=_read(options, job),
        after=after,
        sides=sides(after, options.rules),
        peak=_measure_peak(),
        layers=layers,
        layers_note=note,
    )
    _write(path, found)


def write_refusal(path: Path, options: Options, job: Job, error: RewriteError) -> None:
    """Write the page of a model that was refused, with its graph where that can be read."""
    _write(path, Outcome(job.name, _read(options, job), error=error, layers_note="Nothing was converted."))


def _write(path: Path, outcome: Outcome) -> None:
    with replacing(path) as file:
        file.write(render(collect(outcome)).encode("utf-8", "replace"))


def _read(options: Options, job: Job) -> ir.Graph | None:
    try:
        return read_graph(job.source, options, job.member, job.signature or options.signature)
    except RewriteError:
        return None  # the conversion's own error says why, and the page shows that


def _compare(job: Job, source: Path | bytes, interpreter: Interpreter | None) -> tuple[list[dict[str, Any]], str]:
    """The rows of the plot of errors, or why there are none."""
    if interpreter is None:
        return [], "Not measured: --verify compares each layer."
    from ..verify.layers import compare_layers

    try:
        steps = compare_layers(source, job.target, interpreter)
    except RewriteError as error:
        return [], f"Layers could not be compared: {error}"
    return [
        {
            "operator": step.operator,
            "name": step.comparison.name,
            "verdict": f"{step.comparison.verdict.value}",
            "relative": step.comparison.relative,
            "error": step.comparison.error,
        }
        for step in steps
    ], "No tensor could be compared."


def _measure_peak() -> int:
    """The most memory that the process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Pages of the command `convert --report`: what came of one model, written as HTML."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from ..engine.base.atomic_write import replacing
from ..engine.base.errors import RewriteError
from ..page import Outcome, collect, render
from ..pipeline import read_graph, sides

if TYPE_CHECKING:
    from ..pipeline import Conversion
    from ..verify import Interpreter
    from .jobs import Job
    from .outcome import Call, Result


def write_result(
    path: Path, call: Call, result: Result, conversion: Conversion, source: Path | bytes, interpreter: Interpreter | None
) -> None:
    """Write the page of a model that was converted; raises DestinationError for what the system refuses."""
    after = ir.from_proto(conversion.sketch).graph
    layers, note = _compare(result, source, interpreter)
    outcome = Outcome(
        result.job.name,
        _read(call, result.job),
        after,
        sides(after, call.options.rules),
        result.report,
        explained=result.explained,
        profile=result.profile,
        bytes_in=result.bytes_in,
        bytes_out=result.bytes_out,
        seconds=result.seconds,
        peak=_measure_peak(),
        verdict=_word_verdict(result),
        layers=layers,
        layers_note=note,
    )
    _write(path, outcome)


def write_refusal(path: Path, call: Call, job: Job, error: RewriteError) -> None:
    """Write the page of a model that was refused, with its graph where that can be read."""
    _write(path, Outcome(job.name, _read(call, job), error=error, layers_note="Nothing was converted."))


def _write(path: Path, outcome: Outcome) -> None:
    with replacing(path) as file:
        file.write(render(collect(outcome)).encode("utf-8", "replace"))


def _read(call: Call, job: Job) -> ir.Graph | None:
    try:
        return read_graph(job.source, call.options, job.member, job.signature or call.options.signature)
    except RewriteError:
        return None  # the conversion's own error says why, and the page shows that


def _compare(
    result: Result, source: Path | bytes, interpreter: Interpreter | None
) -> tuple[list[dict[str, Any]], str]:
    """The rows of the plot of errors, or why there are none."""
    if interpreter is None:
        return [], "Not measured: --verify compares each layer."
    if result.unverified:
        return [], f"Not measured: {result.unverified}"
    from ..verify.layers import compare_layers

    try:
        steps = compare_layers(source, result.job.target, interpreter)
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


def _word_verdict(result: Result) -> str:
    if result.unverified:
        return f"converted, but not verified: {result.unverified}"
    if result.verification is None:
        return "converted"
    return "converted, outputs agree" if result.passed else "; ".join(result.verification.differences)


def _measure_peak() -> int:
    """The most memory that the process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Pages of the command `convert --report`: what came of each model, written as HTML, and a list of all."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conversion.inspection import find_sides, read_graph
from ..engine.base.atomic_write import open_replacement, read_mode
from ..engine.base.errors import RewriteError
from ..page import Listed, Outcome, Timing, collect, render, render_index

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..conversion.converted_model import Conversion
    from ..conversion.options import Options
    from ..verify import Interpreter
    from .jobs import Job
    from .result import Failure, Result


def write_result(
    path: Path,
    options: Options,
    result: Result,
    conversion: Conversion,
    source: Path | bytes,
    interpreter: Interpreter | None,
    timing: Timing | None = None,
) -> None:
    """Write the page of a model that was converted, with both graphs.

    Layers are compared where there is an interpreter. Raises DestinationError for what the system refuses.
    """
    layers, note = _compare(result.job, source, interpreter)
    passed = None if result.verification is None else result.passed
    found = Outcome(
        result.job.name,
        before=_read(options, result.job),
        after=conversion.graph,
        sides=find_sides(conversion.graph, conversion.options.rules),
        report=result.report,
        explained=result.explained,
        profile=result.profile,
        bytes_in=result.bytes_in,
        bytes_out=result.bytes_out,
        seconds=result.seconds,
        peak=_measure_peak(),
        verdict=format_verdict(result),
        passed=passed,
        layers=layers,
        layers_note=note,
        timing=timing or Timing(),
    )
    _write(path, render(collect(found)))


def write_timed(path: Path, source: Path, options: Options, timing: Timing) -> None:
    """Convert a model, and write its page with latencies that were measured."""
    from ..conversion.inspection import explain_graph
    from ..conversion.pipeline import rewrite
    from ..engine.rewrite.profile import Profile, note_costs
    from .jobs import Job
    from .result import Result

    profile, started = Profile(), time.perf_counter()
    with note_costs(profile):
        conversion = rewrite(source, options)
    seconds, explained = time.perf_counter() - started, tuple(explain_graph(conversion.graph, conversion.options))
    sizes = source.stat().st_size, conversion.encoded.size
    result = Result(Job(source, None, source), conversion.report, *sizes, seconds, explained=explained, profile=profile)
    write_result(path, options, result, conversion, source, None, timing)


def write_refusal(path: Path, options: Options, job: Job, error: RewriteError) -> None:
    """Write the page of a model that was refused, with its graph where that can be read."""
    outcome = Outcome(
        job.name,
        _read(options, job),
        error=error,
        layers_note="Nothing was converted.",
        timing=Timing(note="Nothing was converted."),
    )
    _write(path, render(collect(outcome)))


def write_index(folder: Path, results: Sequence[Result], failures: Sequence[Failure]) -> None:
    """Write `index.html` into a folder of pages: one row for each model, which leads to its page."""
    listed = [
        Listed(
            one.job.name,
            _find_relative(folder, one.job),
            format_verdict(one),
            one.passed,
            one.report,
            one.bytes_out,
            one.seconds,
        )
        for one in results
    ]
    listed += [
        Listed(one.job.name, _find_relative(folder, one.job), _take_headline(one.message), False) for one in failures
    ]
    _write(folder / "index.html", render_index(listed))


def _take_headline(message: str) -> str:
    """The first line of a message, with the next where that is what it is about."""
    first, _, rest = message.partition("\n")
    return f"{first} {rest.partition(chr(10))[0].strip()}" if first.endswith(":") else first


def format_verdict(result: Result) -> str:
    """What verification says of a result, in a few words."""
    if result.unverified:
        return f"converted, but not verified: {result.unverified}"
    if result.verification is None:
        return "converted"
    if not result.passed:
        return "; ".join(result.verification.differences)
    return "outputs agree" + (
        " within the spread of the interpreter's kernels" if result.verification.within_spread else ""
    )


def _find_relative(folder: Path, job: Job) -> str:
    return "" if job.page is None or not read_mode(job.page) else Path(os.path.relpath(job.page, folder)).as_posix()


def _write(path: Path, text: str) -> None:
    with open_replacement(path) as file:
        file.write(text.encode("utf-8", "replace"))


def _read(options: Options, job: Job) -> ir.Graph | None:
    try:
        return read_graph(job.source, options, job.member, job.signature or options.signature)
    except RewriteError:
        return None  # the conversion's own error says why, and the page shows that


def _compare(job: Job, source: Path | bytes, interpreter: Interpreter | None) -> tuple[list[Mapping[str, Any]], str]:
    """The rows of the plot of errors, or why there are none."""
    if interpreter is None:
        return [], "Not measured: --verify compares each layer."
    from ..verify.formats import find_format
    from ..verify.layer_pairs import compare_pair

    try:
        if find_format(source) == find_format(job.target):
            return [], "Layers are compared between TensorFlow Lite and ONNX."
        steps = compare_pair(source, job.target, interpreter)
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

"""The console: what a conversion says, pretty on a terminal and plain in a pipe."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from ..conversion.summary import count_operators, measure
from ..conversion.target import find_small_target
from ..engine.base.errors import format_count
from .dispatch import print_error
from .result_documents import override_note, select_occurring

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..conversion.report import Report
    from ..engine.rewrite.rules import Override
    from .jobs import Job
    from .result import Result

SHOWN = 6
"""How many operators of a histogram are named, the most frequent first."""

#: letters of a line where there is no terminal, before a line about a Transpose, and of the name of a fact
_WIDTH, _INDENT, _NAME = 80, 4, 16
#: the part of a source's size from which on it is said what makes the result larger
_LARGER = 0.5
#: seconds of silence after which somebody at a terminal is told what takes its time
_PATIENCE = 1.0


@contextlib.contextmanager
def show_wait(message: str, quiet: bool = False) -> Iterator[None]:
    """Show a message at a terminal where what is done inside takes longer than a second, until it is done."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        click.echo(message, nl=False, err=True)

    timer = threading.Timer(_PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            click.echo("\r\x1b[2K", nl=False, err=True)


class Console:
    """Results to standard output: a block for a single model, a line each for several; errors to standard error.

    With several models and a terminal, a progress bar stands below the lines.
    """

    def __init__(
        self, jobs: int, quiet: bool = False, overrides: Sequence[Override] = (), as_json: bool = False
    ) -> None:
        self._jobs, self._quiet, self._as_json = jobs, quiet or as_json, as_json
        self._overrides = list(overrides)
        self._progress: Progress | None = None
        if jobs > 1 and not self._quiet and sys.stderr.isatty():
            from rich.console import Console as Terminal
            from rich.progress import Progress

            # Standard output may be a pipe: it must not be redirected to where the bar is.
            self._progress = Progress(console=Terminal(stderr=True), redirect_stdout=False, transient=True)
            self._task = self._progress.add_task("", total=jobs)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def start(self, job: Job) -> None:
        """Say which model is being converted."""
        if self._progress is not None:
            self._progress.update(self._task, description=job.source.name)

    def advance(self) -> None:
        """Count one model as done."""
        if self._progress is not None:
            self._progress.advance(self._task)

    def show(self, result: Result) -> None:
        """Tell what came of one model; what --verify found is an error, the figures to it are not."""
        verification = result.verification
        if not self._quiet:
            self._note_overrides(result.report)
            self._print_lines(format_block(result) if self._jobs == 1 else [format_line(result), *_explain(result)])
        elif not self._as_json:
            named = [click.style(f"{result.job.target}", bold=True)] if self._jobs > 1 and result.explained else []
            self._print_lines([*named, *_explain(result)])
        if verification is not None and not self._quiet and (self._jobs == 1 or not verification.passed):
            from ..verify.verification_table import format_table

            self._print_lines(format_table(verification, sys.stdout.isatty()))
        if result.unverified:
            self.report_failure(result.job, f"{result.job.name}: converted, but not verified: {result.unverified}")
        if verification is not None and not verification.passed:
            first, *more = verification.differences
            others = f" (and {len(more)} more)" if more else ""
            self.report_failure(result.job, f"{result.job.name}: differs from the original: {first}{others}")

    def _note_overrides(self, report: Report) -> None:
        """Tell, once each, of the rules that took the place of others for operators that a model has."""
        for override in select_occurring(self._overrides, [report]):
            self._overrides.remove(override)
            click.echo(f"rewrite: note: {override_note(override)}", err=True)

    def report_failure(self, job: Job, message: str) -> None:
        """Tell that a model failed, named unless the message does so."""
        if f"{job.source}" not in message:
            message = f"{job.name}: {message}"
        if self._progress is None:
            print_error(message)
            return
        from rich.text import Text

        self._progress.console.print(Text("rewrite: error: ", "bold red").append(message, "default"), soft_wrap=True)

    def summarize(self, results: Sequence[Result], failures: int, jobs: int, seconds: float) -> None:
        """Tell what came of all models."""
        if self._quiet:
            return
        parts = [f"{len(results)} of {format_count(jobs, 'model')} converted in {seconds:.1f} s"]
        if failures:
            parts.append(f"{failures} failed")
        if len(results) + failures < jobs:
            parts.append(f"{jobs - len(results) - failures} not tried (--keep-going goes on after a failure)")
        verified = [one.verification for one in results if one.verification is not None]
        asked = len(verified) + sum(bool(one.unverified) for one in results)
        if asked:
            parts.append(f"{sum(one.passed for one in verified)} of {asked} verified")
            if spread := sum(one.passed and bool(one.within_spread) for one in verified):
                parts.append(f"{spread} of them within the spread of the interpreter's kernels")
        for said, models in Counter(said for one in results for said in one.report.told).items():
            click.echo(f"note: {said}: {format_count(models, 'model')}")
        good = not failures and all(one.passed for one in results)
        click.secho(", ".join(parts), fg="green" if good else "red")

    def print_times(self, results: Sequence[Result]) -> None:
        """Tell where the time of all conversions went."""
        from ..engine.rewrite.profile import Profile
        from .profile_table import format_table

        whole = Profile()
        for result in results:
            if result.profile is not None:
                whole.add(result.profile)
        self._print_lines(format_table(whole, sum(result.seconds for result in results), sys.stdout.isatty()))

    def _print_lines(self, lines: Sequence[str]) -> None:
        for text in lines:
            if self._progress is not None and sys.stdout.isatty():
                from rich.text import Text

                self._progress.console.print(Text.from_ansi(text), soft_wrap=True)
            else:
                click.echo(text)


def format_block(result: Result) -> list[str]:
    """Word the result of a single model, one fact a line."""
    report = result.report
    into, out = sum(report.source_operators.values()), sum(report.target_operators.values())
    width = len(f"{max(into, out)}")
    facts = [
        ("operators in", f"{into:>{width}}  {_format_histogram(report.source_operators)}"),
        ("operators out", f"{out:>{width}}  {_format_histogram(report.target_operators)}"),
        ("Transposes left", _format_permutations(report)),
        ("layout", _format_layout(report)),
        *([("opset", opset)] if (opset := _format_opset(report)) else []),
        *([("not exact", _format_histogram(report.inexact))] if report.inexact else []),
        ("bytes", f"{result.bytes_in:,} in, {result.bytes_out:,} out"),
        *([("", growth)] if (growth := _explain_growth(result)) else []),
        ("seconds", f"{result.seconds:.2f}"),
        *(("note", remark) for remark in report.remarks),
    ]
    if result.verification is not None or result.unverified:
        facts.append(("verified", _format_verdict(result)))
    heading = click.style(result.job.name, bold=True) + " -> " + click.style(f"{result.job.target}", bold=True)
    width = _measure_width()
    lines = [[*_format_fact(name, text, width)] for name, text in facts]
    above, below = lines[:3], lines[3:]
    return [heading, *chain(*above), *_explain(result), *chain(*below)]


def _format_opset(report: Report) -> str:
    """The opset and why it is not the usual one; nothing where the format has none."""
    if report.opset is None:
        return ""
    return f"{report.opset}: {report.opset_reason}" if report.opset_reason else f"{report.opset}"


def _measure_width() -> int:
    """How many letters a line has."""
    return shutil.get_terminal_size((_WIDTH, 0)).columns if sys.stdout.isatty() else _WIDTH


def _format_fact(name: str, text: str, width: int) -> Iterator[str]:
    """A fact in a line, or in several where it is wider."""
    room = width - len("  ") - _NAME
    parts = [text] if len(click.unstyle(text)) <= room else textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    for part, said in zip(parts, (name, *[""] * len(parts)), strict=False):
        yield "  " + click.style(f"{said:<{_NAME}}", dim=True) + part


def format_line(result: Result) -> str:
    """Word the result of one model among several."""
    report = result.report
    parts = [
        count_operators(report),
        format_count(report.permutations, "Transpose"),
        f"{measure(result.bytes_in)} -> {measure(result.bytes_out)}",
        f"{result.seconds:.2f} s",
    ]
    if report.inexact:
        parts.append(f"{format_count(sum(report.inexact.values()), 'operator')} not exact")
    if result.verification is not None or result.unverified:
        parts.append(_format_verdict(result))
    return f"{click.style(f'{result.job.target}', bold=True)}: {', '.join(parts)}"


def _format_verdict(result: Result) -> str:
    verification = result.verification
    if verification is None:
        return click.style("NOT VERIFIED", fg="red", bold=True)
    from ..verify.verification_table import summarize

    if not verification.passed:
        return click.style(summarize(verification), fg="red", bold=True)
    return click.style(summarize(verification), fg="yellow" if verification.within_spread else "green")


def _format_histogram(operators: Mapping[str, int]) -> str:
    ranked = sorted(operators.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{name} {count}" for name, count in ranked[:SHOWN]]
    rest = len(ranked) - SHOWN
    return ", ".join(named) + (f" and {format_count(rest, 'more kind')}" if rest > 0 else "")


def _format_permutations(report: Report) -> str:
    if not report.permutations:
        return "0"
    moved = "an unknown number of elements" if report.moved is None else format_count(report.moved, "element")
    quick = sum(report.for_speed.values())
    added = f" ({quick} of them put in by speed rules of target {report.runtime})" if quick else ""
    return f"{report.permutations}, moving {moved}{added}"


def _explain(result: Result) -> list[str]:
    """Of each Transpose, where they were asked about, in lines no wider than the terminal."""
    return [" " * _INDENT + text for one in result.explained for text in one.format_lines(_measure_width() - _INDENT)]


def _format_layout(report: Report) -> str:
    changed = ", ".join(f"{name} {axes}" for name, axes in report.layouts.items())
    return f"{report.layout}; in another order than in the source: {changed}" if changed else report.layout


def _explain_growth(result: Result) -> str:
    """Why a file is much larger than its source: the types of constants that take more room, and the graph itself."""
    more = result.bytes_out - result.bytes_in
    if more <= _LARGER * result.bytes_in:
        return ""
    constants = result.report.constants
    changes = {name: out - before for name, (before, out) in constants.items()}
    wider = [name for name in changes if changes[name] > more / 10]
    fewer = [name for name in changes if changes[name] < 0 and -changes[name] > more / 20]
    parts = []
    if sum(changes[name] for name in (*wider, *fewer)) <= more / 10:
        wider = fewer = []  # what takes less room elsewhere outweighs it
    if wider:
        now = ", ".join(f"{measure(constants[name][1])} of {name}" for name in wider)
        then = ", ".join(f"{measure(constants[name][0])} of {name}" for name in (*wider, *fewer) if constants[name][0])
        parts.append(f"constants take {now}" + (f" for {then}" if then else ""))
    if other := find_small_target(result.report.runtime) if fewer else "":
        parts.append(f"--target {other} leaves those as they are stored")
    elif "float16" in fewer:
        parts.append("--keep-float16 leaves those as they are")
    rest = result.bytes_out - sum(out for _, out in constants.values())
    if rest > more / 3:
        nodes = sum(result.report.target_operators.values())
        parts.append(f"{nodes} nodes with their names, shapes and rules take {measure(rest)}")
    return "larger: " + "; ".join(parts) if parts else ""

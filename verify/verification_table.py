"""Reports on a verification: a table on a terminal, aligned columns in a pipe."""

from __future__ import annotations

import math

from .comparison import Comparison, Verdict
from .interpreter import Kernels
from .verification import Verification

COLUMNS = ("output", "shape", "range", "max abs", "max rel", "mean rel", "top-10", "verdict")
FIGURES = ("max abs", "max rel", "mean rel", "top-10")
COLOURS = {Verdict.EQUAL: "green", Verdict.CLOSE: "green", Verdict.SPREAD: "yellow", Verdict.DIFFERENT: "red"}

#: what is said of a model that is compared with its original without quantization
_COMPUTED = ", both computed with real numbers"


def format_table(verification: Verification, pretty: bool = False) -> list[str]:
    """Word a verification line by line: a row for each output, then what is to be said about it, then what was run.

    Errors are the largest absolute one (in steps of the quantized output where marked `st`) and that relative to the
    output's largest magnitude; of labels, how many elements differ (`el`) and their share. `pretty` draws the table
    with colours, in the terminal's width.
    """
    rows = [_format_row(one) for one in verification.comparisons]
    lines = (_draw(verification, rows) if pretty else _align(rows)) if rows else []
    lines += [f"different: {difference}" for difference in verification.differences]
    lines += [
        f"note: {one.name}: {note}"
        for one in verification.comparisons
        if (note := _format_note(one, verification.is_sensitive))
    ]
    lines += [f"note: {remark}" for remark in verification.remarks]
    if verification.unquantized:
        lines.append("note: nothing is quantized: compared with the original computed with real numbers")
    if rows:
        lines.append(
            f"seed {verification.seed}, {verification.samples} sample{'s' * (verification.samples > 1)}: "
            f"original {verification.source_seconds:.3f} s, result {verification.target_seconds:.3f} s"
        )
    return lines


def summarize(verification: Verification) -> str:
    """Word what a verification comes to: whether outputs agree, how well, and whether that rests on the spread."""
    if not verification.passed:
        why = f"; this is such a processor: {verification.saturation}" if verification.saturation else ""
        return f"DIFFERENT{_COMPUTED * verification.unquantized}{why}"
    apart = [one for one in verification.comparisons if one.absolute]
    if not apart:
        return f"outputs are equal{_COMPUTED * verification.unquantized}"
    agreed, spread = "outputs agree", verification.within_spread
    if spread:
        count = len(verification.comparisons)
        several = f" ({len(spread)} of {count} outputs)" if len(spread) < count else ""
        kernels, rounding = "the spread of the interpreter's kernels", "what rounding changes in the original"
        agreed += f" within {rounding if verification.is_sensitive else kernels}{several}"
    agreed += _COMPUTED * verification.unquantized
    error = max((one.relative or 0.0 for one in apart if one.differing is None), default=None)
    found = [] if error is None else [f"largest error {error:.1g} of an output's magnitude"]
    return ", ".join([agreed, *found, *(f"{one.name}: {one.error}" for one in apart if one.differing is not None)])


def _format_note(one: Comparison, sensitive: bool) -> str:
    if one.verdict is Verdict.SPREAD:
        own = f"{one.spread:,.0f}" if one.differing is not None else f"{one.spread:.3g}"
        between = "where the original is rounded" if sensitive else "between the interpreter's own kernels"
        return f"{one.error}, at most twice as much as {between} ({own})"
    if one.verdict.passed and one.kernels is not Kernels.DEFAULT:
        return f"agrees with the interpreter's {one.kernels} kernels, not with its default ones"
    return ""


def _format_row(one: Comparison) -> tuple[str, ...]:
    shape = "x".join(str(size) for size in one.shape) or "scalar"
    return (
        one.name,
        shape if one.dtype == "float32" else f"{one.dtype} {shape}",
        "" if one.low is None or one.high is None else f"{one.low:.3g} .. {one.high:.3g}",
        *_format_errors(one),
        "" if one.top is None else f"{one.top:.0%}",
        one.verdict.value,
    )


def _format_errors(one: Comparison) -> tuple[str, str, str]:
    if one.differing is not None:
        share = one.differing / math.prod(one.shape)
        return f"{one.differing:,} el", f"{share:.1g}", ""
    unit = " st" if one.quantized else ""
    return (
        "" if one.absolute is None else f"{one.absolute:.2g}{unit}",
        "" if one.relative is None else f"{one.relative:.1g}",
        "" if one.mean_relative is None else f"{one.mean_relative:.1g}",
    )


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    cells = [COLUMNS, *rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _draw(verification: Verification, rows: list[tuple[str, ...]]) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawing = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        # A name may fold; a figure is never cut.
        drawing.add_column(
            name, overflow="fold", no_wrap=name != "output", justify="right" if name in FIGURES else "left"
        )
    for one, row in zip(verification.comparisons, rows, strict=True):
        drawing.add_row(*(Text(cell) for cell in row[:-1]), Text(row[-1], COLOURS[one.verdict]))
    console = Console(force_terminal=True)
    with console.capture() as capture:
        console.print(drawing)
    return [text.rstrip() for text in capture.get().strip("\n").split("\n")]

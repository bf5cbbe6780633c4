"""Summaries of a conversion: one line for a prompt, and how figures are worded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.base.errors import format_count

if TYPE_CHECKING:
    from .report import Report


def summarize(report: Report, size: int) -> str:
    """Sum up what a conversion did in one line; `size` is that of the model, in bytes."""
    return ", ".join(
        (
            count_operators(report),
            format_count(report.permutations, "Transpose"),
            *([] if report.opset is None else [f"opset {report.opset}"]),
            measure(size),
        )
    )


def count_operators(report: Report) -> str:
    """How many operators a conversion was given and has made."""
    into, out = sum(report.source_operators.values()), sum(report.target_operators.values())
    return f"{into} -> {format_count(out, 'operator')}"


def measure(count: int) -> str:
    """A number of bytes in the unit that leaves few digits."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"

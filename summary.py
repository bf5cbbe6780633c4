"""Summaries of a conversion: one line for a prompt, a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .engine.base.errors import times

if TYPE_CHECKING:
    from .report import Report


def line(report: Report, size: int) -> str:
    """Sum up what a conversion did in one line; `size` is that of the model, in bytes."""
    return ", ".join(
        (
            operators(report),
            times(report.permutations, "Transpose"),
            *([] if report.opset is None else [f"opset {report.opset}"]),
            measure(size),
        )
    )


def html(report: Report, size: int) -> str:
    """Draw what a conversion did as a table; all that stems from the model is escaped."""
    from html import escape

    moved = "" if not report.moved else f", moving {times(report.moved, 'element')}"
    rows = {
        "operators in": _counted(report.source_operators),
        "operators out": _counted(report.target_operators),
        "Transposes left": f"{report.permutations}{moved}",
        "layout": ", ".join((report.layout, *(f"{name} {axes}" for name, axes in report.layouts.items()))),
        "opset": "" if report.opset is None else f"{report.opset}",
        "size": measure(size),
        "not exact": _counted(report.inexact) if report.inexact else "",
        "remarks": "; ".join(report.remarks),
    }
    cells = (
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
        if text
    )
    return f"<table><caption>Conversion</caption>{''.join(cells)}</table>"


def operators(report: Report) -> str:
    """How many operators a conversion was given and has made."""
    into, out = sum(report.source_operators.values()), sum(report.target_operators.values())
    return f"{into} -> {times(out, 'operator')}"


def measure(count: int) -> str:
    """A number of bytes in the unit that leaves few digits."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"


def _counted(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f"{sum(counts.values())}: " + ", ".join(f"{name} {count}" for name, count in ranked)

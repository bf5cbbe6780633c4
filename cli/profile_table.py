"""Profile tables: the time of each part and rule of a conversion, on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.rewrite.profile import Cost, Profile

PARTS = ("part", "ms", "share")
RULES = ("rule", "stage", "attempts", "matches", "ms", "share")
_FIGURES = frozenset(("attempts", "matches", "ms", "share"))


def format_table(profile: Profile, seconds: float, pretty: bool = False) -> list[str]:
    """Word a profile of conversions that took some seconds, line by line, what took longest first.

    The parts and `all else` add up to the whole. The rules of a stage add up to the stage but for the time in which
    nodes are found to try them on.
    """
    parts = sorted(profile.parts.items(), key=lambda item: -item[1].seconds)
    rest = Cost(1, 1, seconds - sum(cost.seconds for _, cost in parts))
    rows = [(part, *_format_figures(cost, seconds)) for part, cost in [*parts, ("all else", rest)]]
    rules = sorted(profile.rules.items(), key=lambda item: -item[1].seconds)
    several = [
        (name, stage, f"{cost.attempts}", f"{cost.matches}", *_format_figures(cost, seconds))
        for (stage, name), cost in rules
    ]
    draw = _draw if pretty else _align
    return [*draw(PARTS, rows), "", *draw(RULES, several)]


def _format_figures(cost: Cost, seconds: float) -> tuple[str, str]:
    return f"{1000 * cost.seconds:.1f}", f"{cost.seconds / seconds:.0%}" if seconds else ""


def _align(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [columns, *rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    lines = []
    for row in cells:
        several = zip(row, columns, widths, strict=True)
        lines.append("  ".join(cell.rjust(w) if name in _FIGURES else cell.ljust(w) for cell, name, w in several))
    return [line.rstrip() for line in lines]


def _draw(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawing = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        drawing.add_column(name, no_wrap=True, justify="right" if name in _FIGURES else "left")
    for row in rows:
        drawing.add_row(*(Text(cell) for cell in row))
    console = Console(force_terminal=True)
    with console.capture() as capture:
        console.print(drawing)
    return [text.rstrip() for text in capture.get().strip("\n").split("\n")]

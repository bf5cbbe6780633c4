"""A list of pages: one HTML file with a row for each model, which leads to its page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import quote

from ..conversion import summary
from ..engine.base.startup import dataclass
from .graph_nodes import shorten
from .render import hash_text, read_assets

if TYPE_CHECKING:
    from ..conversion.report import Report


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of a list: its name, its page beside the list (empty for none), and what came of it.

    `passed` says whether all went well; bytes are those of the result.
    """

    name: str
    page: str
    verdict: str
    passed: bool
    report: Report | None = None
    bytes: int = 0
    seconds: float = 0.0


def render_index(listed: Sequence[Listed]) -> str:
    """Render the list of models, those that did not pass first; it has no scripts, and what a model says is escaped."""
    style = read_assets("page.css")
    rows = sorted(listed, key=lambda one: one.passed)
    bad = sum(not one.passed for one in listed)
    return Template(read_assets("index.html")).substitute(
        policy=f"default-src 'none'; style-src {hash_text(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        count=f"{len(listed):,} model{'' if len(listed) == 1 else 's'}",
        verdict=f"{bad:,} did not pass" if bad else "all went well",
        state="differs" if bad else "agrees",
        rows="\n".join(map(_draw_row, rows)),
    )


def _draw_row(one: Listed) -> str:
    name = escape(shorten(one.name))
    shown = f'<a href="{escape(quote(one.page))}">{name}</a>' if one.page else name
    report = one.report
    figures: tuple[str, ...] = ("", "", "", "")
    if report is not None:
        operators = f"{sum(report.source_operators.values()):,} → {sum(report.target_operators.values()):,}"
        figures = (operators, f"{report.permutations:,}", summary.measure(one.bytes), f"{one.seconds:.2f}")
    cells = "".join(f'<td class="n">{escape(text)}</td>' for text in figures)
    verdict = f'<td class="{"good" if one.passed else "bad"}">{escape(shorten(one.verdict))}</td>'
    return f"<tr><td>{shown}</td>{verdict}{cells}</tr>"

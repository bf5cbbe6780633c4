"""A conversion as notebooks show it: figures, operators, Transposes and rules, in HTML without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import onnx_ir as ir

from ..engine.base.errors import format_count
from .summary import measure

if TYPE_CHECKING:
    from ..engine.passes.layout.explain import Remaining
    from .report import Report

#: rows of a table, and letters of a text
_ROWS, _LETTERS = 12, 80
_LINE = "border:1px solid rgba(128,128,128,.35)"
_CARD = f"{_LINE};border-radius:6px;padding:.3em .8em"


def draw_conversion(report: Report, graph: ir.Graph, explained: Sequence[Remaining], size: int) -> str:
    """Draw what a conversion did: the graph that it made, the permutations left there, and its size in bytes.

    All that stems from the model is escaped, and long lists are cut.
    """
    moved = format_count(report.moved, "element") + " moved" if report.moved else ""
    into, out = sum(report.source_operators.values()), sum(report.target_operators.values())
    figures = [
        ("operators", f"{into:,} → {out:,}", f"{(out - into) / into:+.0%}" if into else ""),
        ("Transposes left", f"{report.permutations:,}", moved),
        ("size", measure(size), ""),
        *([] if report.opset is None else [("opset", f"{report.opset}", report.opset_reason)]),
    ]
    bars = (_draw_bars("before", report.source_operators), _draw_bars("after", report.target_operators))
    parts = [
        _draw_row(map(_draw_card, figures)),
        _draw_row(bars),
        _draw_table("inputs and outputs", ("", "name", "type", "shape"), _list_interface(graph)),
        _draw_table("Transposes left, and why", ("name", "order", "elements", "why"), _list_permutations(explained)),
        _draw_table("rules that fired", ("rule", "times"), _list_counts(report.rules)),
        _draw_table("not exact", ("operator", "nodes"), _list_counts(report.inexact)),
        *(f"<p>{_shorten(remark, 400)}</p>" for remark in _list_remarks(report)),
    ]
    return f'<div style="max-width:70em">{"".join(parts)}</div>'


def _list_remarks(report: Report) -> list[str]:
    layouts = [f"layout of {name}: {axes}" for name, axes in report.layouts.items()]
    return [*layouts[:_ROWS], *report.remarks[:_ROWS]]


def _list_interface(graph: ir.Graph) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for kind, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            shape = "?" if value.shape is None else " x ".join(f"{extent}" for extent in value.shape) or "scalar"
            dtype = "?" if value.dtype is None else value.dtype.name.lower()
            rows.append((kind, value.name or "", dtype, shape))
    return rows


def _list_permutations(explained: Sequence[Remaining]) -> list[tuple[str, ...]]:
    return [
        (one.name, " ".join(map(str, one.perm)), f"{one.elements:,}", one.purpose or f"{one.before} -> {one.after}")
        for one in explained
    ]


def _list_counts(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    return [(name, f"{count:,}") for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _draw_row(parts: Iterable[str]) -> str:
    return f'<div style="display:flex;flex-wrap:wrap;gap:.8em 1.6em;margin:.5em 0">{"".join(parts)}</div>'


def _draw_card(figure: tuple[str, str, str]) -> str:
    name, value, note = (_shorten(text) for text in figure)
    return f'<div style="{_CARD}"><small>{name}</small><br/><b>{value}</b><br/><small>{note}</small></div>'


def _draw_bars(title: str, counts: Mapping[str, int]) -> str:
    """Operators with bars as long as how often each occurs."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    most = ranked[0][1] if ranked else 1
    lines = []
    for name, count in ranked[:_ROWS]:
        bar = f"background:rgba(60,130,230,.35);width:{max(1, round(100 * count / most))}%"
        lines.append(f'<div style="{bar};white-space:nowrap;padding:0 .3em">{_shorten(name)} {count:,}</div>')
    more = f"<small>and {len(ranked) - _ROWS:,} more</small>" if len(ranked) > _ROWS else ""
    return f'<div style="flex:1 1 16em"><small>{title}</small>{"".join(lines)}{more}</div>'


def _draw_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that opens when its title is pressed; nothing where it would be empty."""
    if not rows:
        return ""
    left = 'style="text-align:left"'
    top = "".join(f"<th {left}>{head}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td {left}>{_shorten(text)}</td>' for text in row)}</tr>" for row in rows[:_ROWS])
    more = f"<small>and {len(rows) - _ROWS:,} more</small>" if len(rows) > _ROWS else ""
    return f"<details><summary>{title} ({len(rows):,})</summary><table><tr>{top}</tr>{body}</table>{more}</details>"


def _shorten(text: str, most: int = _LETTERS) -> str:
    return escape(text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}")

"""Directed graphs drawn in layers, for where Graphviz is not at hand (Sugiyama, Tagawa and Toda 1981)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

_ROW, _HEIGHT, _GAP, _LETTER, _SWEEPS = 54, 24, 18, 6.4, 8
_CUT = "#e03131"


def draw(boxes: Sequence[tuple[str, str, bool]], arrows: Sequence[tuple[int, int, str]]) -> str:
    """Draw boxes (label, fill, whether they belong to the cut) and arrows between them (tail, head, label) as SVG.

    Arrows must lead from earlier boxes to later ones.
    """
    layer = [0] * len(boxes)
    for tail, head, _ in sorted(arrows, key=lambda arrow: arrow[1]):
        layer[head] = max(layer[head], layer[tail] + 1)
    _lower(layer, arrows)
    # A long arrow bends at a place of its own in each layer that it crosses.
    routes: list[list[int]] = []
    width = [len(label) * _LETTER + 14 for label, _, _ in boxes]
    for tail, head, _ in arrows:
        route = [tail]
        for level in range(layer[tail] + 1, layer[head]):
            route.append(len(layer))
            layer.append(level)
            width.append(10)
        routes.append([*route, head])
    x = _across(layer, width, routes)
    right = max((x[i] + width[i] / 2 for i in range(len(x))), default=0) + 20
    bottom = (max(layer, default=0) + 1) * _ROW + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {bottom}" width="{right:.0f}"'
        f' height="{bottom}" font-family="sans-serif" font-size="11">',
        '<marker id="tip" markerWidth="7" markerHeight="6" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z" fill="#555"/></marker>',
    ]
    for route, (tail, head, text) in zip(routes, arrows, strict=True):
        cut = boxes[tail][2] or boxes[head][2]
        parts += _arrow([(x[i], _top(layer[i])) for i in route], text, cut)
    for i, (label, fill, cut) in enumerate(boxes):
        left, top = x[i] - width[i] / 2, _top(layer[i])
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{width[i]:.1f}" height="{_HEIGHT}" rx="5" fill="{fill}"'
            f' stroke="{_CUT if cut else "#777"}"/>'
            f'<text x="{x[i]:.1f}" y="{top + 16}" text-anchor="middle" fill="{"white" if cut else "black"}">'
            f"{escape(label)}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lower(layer: list[int], arrows: Sequence[tuple[int, int, str]]) -> None:
    """Boxes that nothing leads to stand right above what they lead to."""
    fed = {head for _, head, _ in arrows}
    for box in range(len(layer)):
        if box not in fed:
            layer[box] = min((layer[head] for tail, head, _ in arrows if tail == box), default=1) - 1


def _across(layer: Sequence[int], width: Sequence[float], routes: Sequence[Sequence[int]]) -> list[float]:
    """Where each box stands from left to right: near the middle of what it is joined to."""
    rows: dict[int, list[int]] = {}
    for box, level in enumerate(layer):
        rows.setdefault(level, []).append(box)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for route in routes:
        for tail, head in itertools.pairwise(route):
            below.setdefault(tail, []).append(head)
            above.setdefault(head, []).append(tail)
    x = [0.0] * len(layer)
    for row in rows.values():
        _spread(row, x, width)
    for sweep in range(_SWEEPS):
        towards = above if sweep % 2 == 0 else below
        for level in sorted(rows, reverse=towards is below):
            for box in rows[level]:
                if box in towards:
                    x[box] = sum(x[other] for other in towards[box]) / len(towards[box])
            rows[level].sort(key=x.__getitem__)
            _spread(rows[level], x, width)
    left = min((x[i] - width[i] / 2 for i in range(len(x))), default=0) - 20
    return [at - left for at in x]


def _spread(row: Sequence[int], x: list[float], width: Sequence[float]) -> None:
    """Move boxes of a row apart, so that none lies on another, about their common middle."""
    middle = sum(x[box] for box in row) / len(row)
    for one, other in itertools.pairwise(row):
        x[other] = max(x[other], x[one] + (width[one] + width[other]) / 2 + _GAP)
    shift = middle - sum(x[box] for box in row) / len(row)
    for box in row:
        x[box] += shift


def _top(level: int) -> int:
    return 10 + level * _ROW


def _arrow(points: Sequence[tuple[float, int]], text: str, cut: bool) -> list[str]:
    start = f"M{points[0][0]:.1f},{points[0][1] + _HEIGHT}"
    curves = []
    y = points[0][1] + _HEIGHT
    for before, (at, top) in itertools.pairwise(points):
        half = (y + top) / 2
        curves.append(f"C{before[0]:.1f},{half} {at:.1f},{half} {at:.1f},{top}")
        y = top
    look = f'stroke="{_CUT}" stroke-width="2" stroke-dasharray="5 3"' if cut else 'stroke="#555"'
    x = (points[0][0] + points[1][0]) / 2 + 4
    label = f'<text x="{x:.1f}" y="{points[0][1] + _HEIGHT + 17}" font-size="8" fill="#555">{escape(text)}</text>'
    return [f'<path d="{start} {" ".join(curves)}" fill="none" {look} marker-end="url(#tip)"/>', label if text else ""]

"""Directed graphs drawn in layers, for where Graphviz is not at hand (Sugiyama, Tagawa and Toda 1981)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from html import escape

from ...base.startup import dataclass

_ROW, _HEIGHT, _GAP, _LETTER, _SMALL, _SWEEPS = 58, 32, 18, 6.4, 4.6, 8
_MARGIN, _LANE, _LEGEND = 20, 5, 60
#: the colour of what is cut, and of the arrows at it
CUT = "#e03131"
#: wider than high, as screens are
_ASPECT = 1.5


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a drawing: what it says, below that in small letters, and more of it where a pointer rests on it."""

    label: str
    note: str
    about: str
    fill: str
    cut: bool = False

    @property
    def width(self) -> float:
        """How wide it has to be."""
        return max(len(self.label) * _LETTER, len(self.note) * _SMALL) + 14


def draw(boxes: Sequence[Box], arrows: Sequence[tuple[int, int]], legend: Sequence[Box]) -> str:
    """Draw boxes and arrows between them (tail, head) as SVG, in columns to be read from the left to the right.

    Arrows must lead from earlier boxes to later ones.
    """
    layer = [0] * len(boxes)
    for tail, head in sorted(arrows, key=lambda arrow: arrow[1]):
        layer[head] = max(layer[head], layer[tail] + 1)
    _lower(layer, arrows)
    # A long arrow bends at a place of its own in each layer that it crosses.
    routes: list[list[int]] = []
    width = [box.width for box in boxes]
    for tail, head in arrows:
        route = [tail]
        for level in range(layer[tail] + 1, layer[head]):
            route.append(len(layer))
            layer.append(level)
            width.append(10)
        routes.append([*route, head])
    x = _place_boxes(layer, width, routes)
    page = _Page(layer, x, width)
    parts = [page.write_head(legend)]
    for route, (tail, head) in zip(routes, arrows, strict=True):
        parts.append(page.draw_arrow(route, boxes[tail].cut or boxes[head].cut))
    parts += [_draw_box(box, *page.find_anchor(number)) for number, box in enumerate(boxes)]
    place = _MARGIN
    for box in legend:
        parts.append(_draw_box(box, place + box.width / 2, 10))
        place += int(box.width) + _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Page:
    """Layers folded into columns, so that the whole is about as wide as it is high."""

    def __init__(self, layer: Sequence[int], x: Sequence[float], width: Sequence[float]) -> None:
        self._layer, self._x = layer, x
        layers = max(layer, default=0) + 1
        breadth = max((x[i] + width[i] / 2 for i in range(len(x))), default=0)
        self._rows = math.ceil(layers / max(1, round(math.sqrt(_ASPECT * layers * _ROW / (breadth + 4 * _MARGIN)))))
        columns = math.ceil(layers / self._rows)
        sides = [[math.inf, 0.0] for _ in range(columns)]
        for box, level in enumerate(layer):
            side = sides[level // self._rows]
            side[:] = min(side[0], x[box] - width[box] / 2), max(side[1], x[box] + width[box] / 2)
        #: how many arrows have been led from one column into the next, and how many there will be at most
        self._lanes = [0] * columns
        crossing = [sum(level == (column + 1) * self._rows for level in layer) for column in range(columns)]
        self._shift: list[float] = []
        self._right: list[float] = []
        at = float(_MARGIN)
        for (low, high), lanes in zip(sides, crossing, strict=True):
            self._shift.append(at - low)
            self._right.append(at + high - low)
            at += high - low + 2 * _MARGIN + 2 * lanes * _LANE
        self.width = at
        self.height = _LEGEND + 2 * _MARGIN + self._rows * _ROW + 2 * _MARGIN + 2 * max(crossing, default=0) * _LANE

    def find_anchor(self, box: int) -> tuple[float, float]:
        """The middle of a box's upper edge."""
        column, row = divmod(self._layer[box], self._rows)
        return self._x[box] + self._shift[column], _LEGEND + 2 * _MARGIN + row * _ROW

    def write_head(self, legend: Sequence[Box]) -> str:
        """The beginning of the file."""
        wide = max(self.width, sum(box.width + _GAP for box in legend) + 2 * _MARGIN)
        size = f'viewBox="0 0 {wide:.0f} {self.height:.0f}" width="{wide:.0f}" height="{self.height:.0f}"'
        marks = "".join(
            f'<marker id="{name}" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" refX="7" refY="4"'
            f' orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
            for name, colour in (("tip", "#555"), ("cut", CUT))
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
            f'<rect width="100%" height="100%" fill="white"/>{marks}'
        )

    def draw_arrow(self, route: Sequence[int], cut: bool) -> str:
        """An arrow along the places of a route."""
        x, y = self.find_anchor(route[0])
        path = [f"M{x:.1f},{y + _HEIGHT:.1f}"]
        y += _HEIGHT
        for before, box in itertools.pairwise(route):
            at, top = self.find_anchor(box)
            if self._layer[before] // self._rows != self._layer[box] // self._rows:
                path.append(self._draw_across(self._layer[before] // self._rows, at, top))
            else:
                half = (y + top) / 2
                path.append(f"C{x:.1f},{half:.1f} {at:.1f},{half:.1f} {at:.1f},{top:.1f}")
            x, y = at, top
        colour, name = (CUT, "cut") if cut else ("#555", "tip")
        dashes = ' stroke-width="2" stroke-dasharray="5 3"' if cut else ""
        return f'<path d="{" ".join(path)}" fill="none" stroke="{colour}"{dashes} marker-end="url(#{name})"/>'

    def _draw_across(self, column: int, at: float, top: float) -> str:
        """Below a column, up beside it, and into the next one from above."""
        lane = self._lanes[column] * _LANE
        self._lanes[column] += 1
        below = _LEGEND + 2 * _MARGIN + self._rows * _ROW + lane
        beside = self._right[column] + _MARGIN + lane
        return f"V{below:.1f} H{beside:.1f} V{top - _MARGIN - lane:.1f} H{at:.1f} V{top:.1f}"


def _draw_box(box: Box, x: float, top: float) -> str:
    ink, faint = ("white", "white") if box.cut else ("black", "#555")
    middle = f'x="{x:.1f}" text-anchor="middle"'
    return (
        f'<g><title>{escape(box.about)}</title><rect x="{x - box.width / 2:.1f}" y="{top:.1f}" width="{box.width:.1f}"'
        f' height="{_HEIGHT}" rx="5" fill="{box.fill}" stroke="{CUT if box.cut else "#777"}"/>'
        f'<text {middle} y="{top + 14:.1f}" fill="{ink}">{escape(box.label)}</text>'
        f'<text {middle} y="{top + 26:.1f}" font-size="8" fill="{faint}">{escape(box.note)}</text></g>'
    )


def _lower(layer: list[int], arrows: Sequence[tuple[int, int]]) -> None:
    """Boxes that nothing leads to stand right above what they lead to."""
    fed = {head for _, head in arrows}
    below: dict[int, int] = {}
    for tail, head in arrows:
        below[tail] = min(below.get(tail, layer[head]), layer[head])
    for box in range(len(layer)):
        if box not in fed:
            layer[box] = below.get(box, 1) - 1


def _place_boxes(layer: Sequence[int], width: Sequence[float], routes: Sequence[Sequence[int]]) -> list[float]:
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
        _separate(row, x, width)
    for sweep in range(_SWEEPS):
        towards = above if sweep % 2 == 0 else below
        for level in sorted(rows, reverse=towards is below):
            for box in rows[level]:
                if box in towards:
                    x[box] = sum(x[other] for other in towards[box]) / len(towards[box])
            rows[level].sort(key=x.__getitem__)
            _separate(rows[level], x, width)
    left = min((x[i] - width[i] / 2 for i in range(len(x))), default=0) - _MARGIN
    return [at - left for at in x]


def _separate(row: Sequence[int], x: list[float], width: Sequence[float]) -> None:
    """Move boxes of a row apart, so that none lies on another, about their common middle."""
    middle = sum(x[box] for box in row) / len(row)
    for one, other in itertools.pairwise(row):
        x[other] = max(x[other], x[one] + (width[one] + width[other]) / 2 + _GAP)
    shift = middle - sum(x[box] for box in row) / len(row)
    for box in row:
        x[box] += shift

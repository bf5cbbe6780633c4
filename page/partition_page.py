"""A partition as a page to look at: the picture of the cut, the steps, and why nodes are on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from ..conversion import summary
from .graph_nodes import shorten
from .render import hash_text, read_assets

#: so many rows of a table, and so many tensors of a row
_ROWS, _TENSORS = 20_000, 12


def render_partition(name: str, manifest: Mapping[str, Any], picture: str) -> str:
    """Render the page of a partition of a model; it has no scripts, and what a model says is escaped.

    `picture` is SVG as `nnrewrite.partition` draws it, `manifest` what it writes.
    """
    style = read_assets("page.css")
    bodies = manifest["bodies"]
    steps = [*manifest["steps"], *(part for body in bodies for part in body["parts"])]
    reasons = [each for held in (*manifest["steps"], *bodies) for each in held.get("reasons", ())]
    why = Counter((one["operator"], one["reason"]) for one in reasons)
    inner = sum(len(body["parts"]) for body in bodies)
    parts = f"{manifest['parts']:,} parts" + (f", {inner:,} in bodies" if inner else "")
    return Template(read_assets("partition.html")).substitute(
        policy=f"default-src 'none'; style-src {hash_text(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        title=escape(shorten(f"{name} for {manifest['target']}")),
        verdict=escape(f"{parts}, {manifest['bytes_moved']:,} bytes between"),
        picture=picture,
        steps=_draw_rows((_list_cells(step) for step in steps[:_ROWS]), (2,)),
        reasons=_draw_rows(
            ((operator, f"{count:,}", reason) for (operator, reason), count in why.most_common(_ROWS)), (1,)
        ),
    )


def _list_cells(step: Mapping[str, Any]) -> tuple[str, ...]:
    return step["name"], step["on"], f"{step['nodes']:,}", _list_tensors(step["inputs"]), _list_tensors(step["outputs"])


def _list_tensors(tensors: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{shorten(one['name'])} ({one['type']}, {summary.measure(one['bytes'])})" for one in tensors[:_TENSORS]]
    left = len(tensors) - len(told)
    return ", ".join(told) + (f" and {left:,} more" if left else "")


def _draw_rows(rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> str:
    """Rows of a table, whose columns in `numbers` are at the right."""
    return "\n".join(
        "<tr>"
        + "".join(
            f'<td class="n">{escape(cell)}</td>' if place in numbers else f"<td>{escape(shorten(cell))}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )

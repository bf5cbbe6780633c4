"""Pages rendered: templates, libraries and data put into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

_ASSETS = Path(__file__).parent / "assets"
#: scripts by their names in the template, each of files that are put one behind the other
_SCRIPTS = {
    "dagre": ("dagre.min.js",),
    "uplot": ("uPlot.iife.min.js",),
    "script": ("elements.js", "graph.js", "placement.js", "pane.js", "details.js", "tables.js", "plots.js", "page.js"),
}


def render(document: Mapping[str, Any]) -> str:
    """Render the page of a conversion; what a model says stays text, and only the page's own scripts may run."""
    scripts = {name: read_assets(*files) for name, files in _SCRIPTS.items()}
    style = read_assets("page.css", "uPlot.min.css")
    allowed = " ".join(map(hash_text, scripts.values()))
    title = f"{document['title']}"
    # Both libraries set styles of elements by script, which a policy admits; style attributes in markup are refused.
    own = hash_text(style)
    policy = f"default-src 'none'; script-src {allowed}; style-src {own}; base-uri 'none'; form-action 'none'"
    return Template(read_assets("page.html")).substitute(
        scripts,
        policy=policy,
        title=escape(title),
        short=escape(title.replace("\\", "/").rpartition("/")[2]),
        style=style,
        data=embed(document),
        dagre_licence=read_assets("dagre.LICENSE").replace("--", "- -"),
        uplot_licence=read_assets("uPlot.LICENSE").replace("--", "- -"),
    )


def embed(document: Mapping[str, Any]) -> str:
    """Data as JSON that nothing in it can lead out of a script element."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def read_assets(*names: str) -> str:
    """Files of the page, one behind the other."""
    return "\n".join((_ASSETS / name).read_text(encoding="utf-8") for name in names)


def hash_text(text: str) -> str:
    """A script or a style sheet as a content security policy admits it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

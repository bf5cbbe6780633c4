"""Syntax trees changed: nodes made anew where something below them is, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.startup import replace
from . import tree


def rebuild(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node, or a tuple of them, whose parts are what a function makes of them; the same one where it changes none."""
    if type(node) is tuple:
        items = tuple([change(item) for item in node])
        return node if all(new is old for new, old in zip(items, node, strict=True)) else items
    changed = {}
    for name in tree.below(type(node)) or ():
        old = getattr(node, name)
        if (type(old) is tuple or tree.below(type(old)) is not None) and (new := change(old)) is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node

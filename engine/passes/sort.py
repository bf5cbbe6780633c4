"""Pass `sort`: orders nodes topologically."""

from __future__ import annotations

from ..rewrite.traversal import is_sorted
from .base import Module, Visit


class Sort:
    """Bring nodes into an order in which each stands behind those that it reads, unless they are in one."""

    name, visits = "sort", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Sort the nodes of one graph."""
        if not is_sorted(module.graph):
            module.graph.sort()

"""Pass `sweep`: removes nodes and constants that nobody uses."""

from __future__ import annotations

from ..rewrite.edits import remove_unused
from .base import Module, Visit


class Sweep:
    """Remove what no output needs, in the graph and in the bodies of nodes."""

    name, visits = "sweep", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Remove what nobody uses from one graph."""
        remove_unused(module.graph)

"""A pass that applies the rules of one stage."""

from __future__ import annotations

from ..base.quantization import KEY
from ..base.startup import dataclass
from ..rewrite.driver import Driver
from ..rewrite.rules import Settle
from ..rewrite.stages import INTEGERS
from .base import Module, Visit


@dataclass(frozen=True, slots=True)
class Rules:
    """Run the rules of the stage of this name; with `coded` on graphs alone that compute with codes."""

    name: str
    visits: Visit
    coded: bool = False

    def run(self, module: Module) -> None:
        """Run the stage on one graph; raises RewriteError where its rules run in circles."""
        if self.coded and not any(KEY in value.meta for node in module.graph for value in node.outputs):
            return
        # rules over codes ask for extents of what others have made of the source
        settle = module.rules.settle_source if self.name == INTEGERS else None
        drive(module, self.name, settle).run()


def drive(module: Module, stage: str, settle: Settle | None = None) -> Driver:
    """Make the driver of a stage for the graph of a module; `settle` is called with each node that a template makes."""
    return Driver(
        module.graph, module.rules, stage, module.names, module.functions, module.outcome, module.depth > 0, settle
    )

"""A pass that applies the rules of one stage."""

from __future__ import annotations

from ..base.startup import dataclass
from ..rewrite.driver import Driver
from ..rewrite.rules import Settle
from .base import Module, Visit


@dataclass(frozen=True, slots=True)
class Rules:
    """Run the rules of the stage of this name."""

    name: str
    visits: Visit

    def run(self, module: Module) -> None:
        """Run the stage on one graph; raises RewriteError where its rules run in circles."""
        drive(module, self.name).run()


def drive(module: Module, stage: str, settle: Settle | None = None) -> Driver:
    """Make the driver of a stage for the graph of a module; `settle` is called with each node that a template makes."""
    return Driver(
        module.graph, module.rules, stage, module.names, module.functions, module.outcome, module.depth > 0, settle
    )

"""Pass `meanings`: operators become others of their dialect, which rules of the stage `meaning` say they equal."""

from __future__ import annotations

from ..base.startup import dataclass
from ..rewrite.rules import Settle
from ..rewrite.stages import MEANING
from .base import Module, Visit
from .rule_stage import drive
from .supported import refuse


@dataclass(frozen=True, slots=True)
class Meanings:
    """Put what operators mean in their places; `settle` is called with each node that a template makes."""

    settle: Settle | None = None
    name, visits = MEANING, Visit.MAIN

    def run(self, module: Module) -> None:
        """Rewrite the nodes of which rules say what they mean, and refuse those of them that no rule takes."""
        nodes = [n for n in module.graph if module.rules.list_candidates(MEANING, n.domain, n.op_type)]
        drive(module, MEANING, self.settle).rewrite_nodes(nodes)
        module.refusals.extend(refuse(module, MEANING, node) for node in nodes if node.graph is not None)

"""Pass `infer-again`: types that were not known follow from what rules wrote, and from branches that cannot be."""

from __future__ import annotations

import onnx_ir as ir

from ..base.startup import dataclass
from ..rewrite.stages import NORMALIZE
from ..rewrite.subgraphs import find_bodies
from .base import Module, Visit
from .fold import Fold
from .possible_branches import Trials, settle_branches
from .rule_stage import drive


@dataclass(frozen=True, slots=True)
class InferAgain:
    """Infer and normalize once more where the rank of some value is unknown, or was until it was normalized."""

    fold: Fold
    name, visits = "infer-again", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change one graph and those inside it; raises RewriteError where rules run in circles."""
        if not (module.outcome.inferred or _is_open(module.graph)):
            return
        self.fold.run(module)
        trials = Trials()
        while settle_branches(module, self.fold, trials):
            self.fold.run(module)
        drive(module, NORMALIZE).run()


def _is_open(graph: ir.Graph) -> bool:
    """Whether the rank of some value of a graph, or of a graph inside it, is unknown."""
    return any(
        any(one.shape is None and (one.uses() or one.is_graph_output()) for one in node.outputs)
        or any(map(_is_open, find_bodies(node)))
        for node in graph
    )

"""Pass `infer-again`: what rules wrote in place of operators without a schema tells types that were not known."""

from __future__ import annotations

from ..base.startup import dataclass
from ..rewrite.rules import NORMALIZE
from .base import Module, Visit
from .fold import Fold
from .rule_stage import drive


@dataclass(frozen=True, slots=True)
class InferAgain:
    """Infer and normalize once more where the rank of some value is unknown."""

    fold: Fold
    name, visits = "infer-again", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change one graph and those inside it; raises RewriteError where rules run in circles."""
        if any(output.shape is None and output.uses() for node in module.graph for output in node.outputs):
            self.fold.run(module)
            drive(module, NORMALIZE).run()

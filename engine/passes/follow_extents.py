"""Pass `follow-extents`: what nodes compute from extents of a run is known where the extents are."""

from __future__ import annotations

from ..base.startup import dataclass
from .base import Module, Visit
from .fold import Fold


@dataclass(frozen=True, slots=True)
class FollowExtents:
    """Infer a graph anew where some of its nodes ask for extents: a file may leave open what follows from its inputs.

    Extents that are free get a name, so that it shows which are equal.
    """

    name, visits = "follow-extents", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change one graph and those inside it; raises ModelError where operands do not fit."""
        dialect = module.target
        if not dialect.has_role("shape"):
            return
        asking = dialect.find_role("shape").name
        if any(node.op_type == asking and node.domain == dialect.domain for node in module.graph):
            Fold().run(module)

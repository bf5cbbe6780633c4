"""Pass `accept`: refuses what the target cannot run, and tells what is to be known, by the rules of that stage."""

from __future__ import annotations

from ..base.errors import Refusal
from ..base.provenance import RULE, SOURCE
from ..rewrite.stages import ACCEPT
from .base import Module, Visit
from .rule_stage import drive


class Accepted:
    """Refuse the nodes of a finished graph that a rule says the target cannot run."""

    name, visits = ACCEPT, Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Note what the target does not take in one graph; the runner raises UnsupportedError with all."""
        if ACCEPT not in module.rules.list_stages():
            return
        driver = drive(module, ACCEPT)
        for node in module.graph:
            reason = driver.refuse(node)
            if reason is None:
                continue
            output = next((value.name for value in node.outputs if value.name), node.name)
            source, maker = node.metadata_props.get(SOURCE), node.metadata_props.get(RULE)
            origin = f" (made of {source} by {maker})" if source and maker else ""
            what = "cannot be run by the target"
            module.refusals.append(
                Refusal(node.op_type, f"{output}{origin}", (reason,), what=what, source=source or "")
            )

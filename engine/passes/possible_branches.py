"""Branches that cannot be: what follows a choice of several graphs tells which of them a model means."""

from __future__ import annotations

import onnx_ir as ir

from ..base.errors import ModelError
from ..base.startup import dataclass, replace
from ..dialects.inference import InferenceError, infer, read_extents
from ..rewrite.subgraphs import find_bodies
from .base import Module, copy_graph
from .branches import inline
from .fold import Fold

#: how many nodes are copied in all for trials: each choice is tried on a copy of its graph for each of its graphs
_COPIES = 1 << 17


@dataclass(slots=True)
class Trials:
    """How many nodes may still be copied; what is not tried any more stays a choice."""

    left: int = _COPIES

    def take(self, count: int) -> bool:
        """Count the nodes of some copies; whether they may be made."""
        self.left -= count
        return self.left >= 0


def settle_branches(module: Module, fold: Fold, trials: Trials) -> bool:
    """Put a graph in place of the first node that chooses between results of several ranks, where no other can be.

    Exporters write so what depends on an extent that is free: an axis that is left out if its extent is 1. A graph
    cannot be where some node behind would have operands that its operator does not admit: the model fails with it.
    Tells whether there was such a node.
    """
    for node in list(module.graph):
        if any(settle_branches(module.enter_body(body), fold, trials) for body in find_bodies(node)):
            return True
        if node.domain != module.schematic.domain or not any(one.shape is None for one in node.outputs):
            continue
        spec = module.schematic.find_operator(node.op_type, module.opset)
        if spec is None or not spec.facts.chooses:
            continue
        names = [name for name in spec.facts.chooses if name in node.attributes]
        if not all(_has_ranks(node.attributes[name].as_graph()) for name in names):
            continue
        if not trials.take(len(names) * sum(1 for _ in module.graph.all_nodes())):
            return False
        possible = [name for name in names if not _is_contradicted(module, node, name, fold)]
        if len(possible) == 1:
            inline(node, node.attributes[possible[0]].as_graph(), module)
            return True
    return False


def _has_ranks(graph: ir.Graph) -> bool:
    return all(read_extents(one) is not None for one in graph.outputs)


def _is_contradicted(module: Module, node: ir.Node, name: str, fold: Fold) -> bool:
    """Whether some node behind a choice does not admit what the graph of a name yields, by a trial on a copy."""
    with copy_graph(replace(module, depth=0), module.graph) as trial:
        twin = trial.graph[module.graph.index(node)]
        inline(twin, twin.attributes[name].as_graph(), trial)
        try:
            fold.run(trial)
            return any(_is_ill_formed(one, trial) for one in trial.graph)
        except ModelError:  # a node that is run in any case
            return True


def _is_ill_formed(node: ir.Node, module: Module) -> bool:
    if node.domain != module.schematic.domain or find_bodies(node):
        return False
    try:
        infer(node, module.opset)
    except InferenceError:
        return True
    return False

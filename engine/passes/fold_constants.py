"""Pass `fold`: nodes of a source that has schemas get the types and shapes that follow, and constants are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import Elements
from ..dialects.folding import evaluate_node, fold
from ..dialects.inference import InferenceError, Inferred, describe, extents, infer, make_shape, merge, require_within
from ..dialects.operators import EXTENTS, OperatorSpec
from ..rewrite.subgraphs import bodies
from .base import Module, Visit


class FoldConstants:
    """Compute at once what reads constants alone, and let all other results have the types that schemas give them."""

    name, visits = "fold", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Fold the nodes of one graph, operands before what reads them."""
        if not module.source.schemas:
            return
        for node in list(module.graph):
            spec = module.source.operator(node.op_type, module.opset)
            if spec is None or node.domain != module.source.domain or bodies(node):
                continue
            try:
                require_within(node, spec.facts.within)
                inferred = infer(node, module.opset)
            except InferenceError:
                continue  # what is wrong with it is told where it is lowered
            folded = _measure(node, spec, module.opset) or fold(node, spec, module.opset, inferred)
            if folded is None:
                _refine(node, inferred)
                continue
            for output, array in zip(node.outputs, folded, strict=False):
                known = module.names.constant(array, output.name or spec.name)
                if known.graph is None:
                    module.graph.register_initializer(known)
                ir.convenience.replace_all_uses_with(output, known, replace_graph_outputs=True)
            module.graph.remove(node, safe=True)


def _measure(node: ir.Node, spec: OperatorSpec, opset: int) -> Sequence[Elements] | None:
    """The results of a node that reads nothing of its operand but extents, where these are known."""
    if EXTENTS not in spec.traits or len(node.inputs) != 1 or node.inputs[0] is None:
        return None
    shape = extents(node.inputs[0])
    if shape is None:
        return None
    tried = []
    for other in (1, 2):  # what does not depend on the extents that are not known is known
        known = [extent if isinstance(extent, int) else other for extent in shape]
        results = evaluate_node(node, [np.broadcast_to(np.float32(0), known)], opset)
        if results is None:
            return None
        tried.append(results)
    same = all(np.array_equal(one, two) for one, two in zip(*tried, strict=True))
    return tried[0] if same else None


def _refine(node: ir.Node, inferred: list[Inferred]) -> None:
    """Let results have what was inferred of them beside what the file says."""
    found = []
    for output, one in zip(node.outputs, inferred, strict=False):
        try:
            shape = merge(extents(output), one.shape)
        except InferenceError:
            shape = one.shape  # the file is wrong: nothing else computes with what it says
        found.append((one.dtype, None if shape is None else make_shape(shape)))
    describe(node, found)

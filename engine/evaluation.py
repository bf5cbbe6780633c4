"""Graphs of the source without inputs, computed at conversion time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .constants import stored
from .errors import ModelError
from .operators import Catalogue
from .rules import RuleSet
from .stages import Rewriter


def evaluate(
    graph: ir.Graph, rules: RuleSet, catalogue: Catalogue, opset: int, subgraphs: Sequence[ir.Graph] = ()
) -> list[np.ndarray[Any, Any]]:
    """Rewrite a graph of the source that has no inputs and compute its outputs; the graph is used up.

    Raises UnsupportedError with every node that no rule took, ModelError where the nodes do not run.
    """
    Rewriter(graph, rules, catalogue, opset, subgraphs).run()
    wanted = list(graph.outputs)
    computed = list(dict.fromkeys(value for value in wanted if stored(value) is None))
    results: dict[ir.Value, Any] = {}
    if computed:
        import onnx.reference  # few models compute what their variables begin with

        graph.outputs[:] = computed
        graph.opset_imports.clear()
        graph.opset_imports[rules.target.domain] = opset
        model = ir.to_proto(ir.Model(graph, ir_version=10))
        try:
            found = onnx.reference.ReferenceEvaluator(model).run(None, {})
        except Exception as error:  # of any kind, as numpy's own are among them
            said = " ".join(f"{error}".split())
            raise ModelError(f"graph {graph.name} is run at conversion time, and fails: {said}") from error
        results = dict(zip(computed, found, strict=True))
    return [np.asarray(stored(value) if value not in results else results[value]) for value in wanted]

"""Graphs of the source without inputs, computed at conversion time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .constants import stored
from .passes.lists import convert_graph
from .rules import RuleSet


def evaluate(graph: ir.Graph, rules: RuleSet, functions: Sequence[ir.Graph] = ()) -> list[np.ndarray[Any, Any]]:
    """Rewrite a graph of the source that has no inputs and compute its outputs; the graph is used up.

    Raises UnsupportedError with every node that no rule took.
    """
    convert_graph(graph, rules, functions)
    wanted = list(graph.outputs)
    computed = list(dict.fromkeys(value for value in wanted if stored(value) is None))
    results: dict[ir.Value, Any] = {}
    if computed:
        import onnx.reference  # few models compute what their variables begin with

        graph.outputs[:] = computed
        graph.opset_imports.clear()
        graph.opset_imports[rules.target.domain] = rules.opset
        model = ir.to_proto(ir.Model(graph, ir_version=10))
        results = dict(zip(computed, onnx.reference.ReferenceEvaluator(model).run(None, {}), strict=True))
    return [np.asarray(stored(value) if value not in results else results[value]) for value in wanted]

"""Graphs of the source converted by themselves, and evaluated where they have no inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import initial_array
from ..base.errors import ModelError
from ..base.names import Scope
from ..rewrite.rules import RuleSet
from .base import Module, run_passes
from .pass_list import PassOptions, list_passes


def convert_graph(graph: ir.Graph, rules: RuleSet, functions: Sequence[ir.Graph] = ()) -> Module:
    """Run the passes on a graph that is a model by itself, without state; permutations stay where rules put them.

    Raises UnsupportedError with every node that no rule took.
    """
    module = Module(graph, rules, Scope(graph), functions)
    run_passes(list_passes(rules, PassOptions()), module)
    return module


def evaluate(graph: ir.Graph, rules: RuleSet, functions: Sequence[ir.Graph] = ()) -> list[np.ndarray[Any, Any]]:
    """Rewrite a graph of the source that has no inputs and compute its outputs; the graph is used up.

    Raises UnsupportedError with every node that no rule took, ModelError where the nodes do not run.
    """
    convert_graph(graph, rules, functions)
    wanted = list(graph.outputs)
    computed = list(dict.fromkeys(value for value in wanted if initial_array(value) is None))
    results: dict[ir.Value, Any] = {}
    if computed:
        import onnx.reference  # few models compute what their variables begin with

        graph.outputs[:] = computed
        graph.opset_imports.clear()
        graph.opset_imports[rules.target.domain] = rules.opset
        model = ir.to_proto(ir.Model(graph, ir_version=10))
        try:
            found = onnx.reference.ReferenceEvaluator(model).run(None, {})
        except Exception as error:  # of any kind, as numpy's own are among them
            said = " ".join(f"{error}".split())
            raise ModelError(f"graph {graph.name} is run at conversion time, and fails: {said}") from error
        results = dict(zip(computed, found, strict=True))
    return [np.asarray(initial_array(value) if value not in results else results[value]) for value in wanted]

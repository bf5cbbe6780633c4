"""The outputs of a graph without inputs, computed when a model is converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.errors import ModelError, join_lines
from .base import Module


def compute_outputs(module: Module) -> list[np.ndarray[Any, Any]]:
    """Compute the outputs of a graph that has been converted and has no inputs; the graph is used up.

    Raises ModelError where the nodes do not run.
    """
    graph = module.graph
    wanted = list(graph.outputs)
    computed = list(dict.fromkeys(value for value in wanted if read_initializer(value) is None))
    results: dict[ir.Value, Any] = {}
    if computed:
        import onnx.reference  # few models compute what their variables begin with

        graph.outputs[:] = computed
        graph.opset_imports.clear()
        graph.opset_imports[module.target.domain] = module.opset
        model = ir.to_proto(ir.Model(graph, ir_version=10))
        try:
            found = onnx.reference.ReferenceEvaluator(model).run(None, {})
        except Exception as error:  # of any kind, as numpy's own are among them
            said = join_lines(error)
            raise ModelError(f"graph {graph.name} is run at conversion time, and fails: {said}") from error
        results = dict(zip(computed, found, strict=True))
    return [np.asarray(read_initializer(value) if value not in results else results[value]) for value in wanted]

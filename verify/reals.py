"""Real forms: a quantized model with real numbers in the place of all codes, as the option `float` promises it."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from ..backends import tflite as writer
from ..engine.operators import OperatorSpec, load
from ..engine.scope import Scope
from ..engine.view import expose
from ..frontends import tflite
from .interpreter import Source

_REAL = "f32"
#: what operators take and yield, in ops.yaml
_TAKES, _YIELDS = "types", "yields"


def real_form(source: Source) -> bytes:
    """Write a model whose constants are the real numbers that a quantized model's stand for, and all else is real.

    The interpreter computes it with its kernels for real numbers. Operators that only bring numbers from one form to
    another are left out. Raises ModelError where an operator means the codes, which have no real form.
    """
    catalogue = load()
    model, source_dialect = tflite.read(source, catalogue), catalogue.dialect("tflite")
    target = catalogue.dialect("onnx")
    for graph in model.meta["subgraphs"]:
        expose(graph, source_dialect, target, onnx.defs.onnx_opset_version(), Scope(graph), plain=True)
        for node in list(graph):
            spec = source_dialect.operators.get(node.op_type)
            if spec is not None and _recodes(node, spec):
                operand, [result] = node.inputs[0], node.outputs
                ir.convenience.replace_all_uses_with(result, operand, replace_graph_outputs=True)
                graph.remove(node, safe=True)
    return writer.write(model, catalogue)


def _recodes(node: ir.Node, spec: OperatorSpec) -> bool:
    """Whether a node takes real numbers and yields them, and is of an operator that is not for both."""
    ends = [*node.inputs, *node.outputs]
    if len(ends) != 2 or any(value is None or value.dtype != ir.DataType.FLOAT for value in ends):
        return False
    return any(_REAL not in spec.facts[key][0].split() for key in (_TAKES, _YIELDS) if key in spec.facts)

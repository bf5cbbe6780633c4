"""Real forms: a quantized model with real numbers in the place of all codes, as the option `float` promises it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from ..backends import tflite_writer as writer
from ..engine.base.errors import ModelError, VerificationError
from ..engine.base.names import Scope
from ..engine.base.quantization import KEY, Quantization, read_quantization
from ..engine.dialects.operators import Dialect
from ..engine.dialects.ops_files import load
from ..engine.passes.quantize_dequantize import insert_quantize_dequantize
from ..frontends import tflite_reader
from .interpreter import Source

#: of the types that operators take and yield those that hold real numbers
_REAL = frozenset(("f32", "any"))


def write_real_form(source: Source) -> Source:
    """Write a quantized model with real numbers in the place of all codes; any other model stays as it is.

    Constants are the real numbers that codes stand for, and the interpreter computes all else with its kernels for real
    numbers. Operators that only bring numbers from one form to another are left out, but where others mean the codes.
    Raises VerificationError where the format cannot say the result.
    """
    catalogue = load()
    model, dialect, target = (
        tflite_reader.read(source, catalogue),
        catalogue.find_dialect("tflite"),
        catalogue.find_dialect("onnx"),
    )
    graphs: list[ir.Graph] = model.meta["subgraphs"]
    values = (value for graph in graphs for node in graph for value in (*node.inputs, *node.outputs))
    if not any(read_quantization(value) for value in values):
        return source
    for graph in graphs:
        insert_quantize_dequantize(graph, dialect, target, onnx.defs.onnx_opset_version(), Scope(graph), plain=True)
        for node in list(graph):
            if node.domain == target.domain:
                _translate(node, dialect, target)
            elif _is_recoding(node, dialect):
                _leave_out(node, graph)
    try:
        return writer.write(model, catalogue)
    except ModelError as error:
        raise VerificationError(f"the original has no form with real numbers: {error}") from error


def _is_recoding(node: ir.Node, dialect: Dialect) -> bool:
    """Whether a node takes real numbers and yields them, and is of an operator that is not for both."""
    spec, ends = dialect.operators.get(node.op_type), [*node.inputs, *node.outputs]
    if spec is None or len(ends) != 2 or any(value is None or value.dtype != ir.DataType.FLOAT for value in ends):
        return False
    return not (_is_real(spec.facts.types) and _is_real(spec.facts.yields))


def _is_real(types: Sequence[str]) -> bool:
    """Whether what an operator takes or yields may be real numbers; what is not said is any type."""
    return not types or not _REAL.isdisjoint(types[0].split())


def _leave_out(node: ir.Node, graph: ir.Graph) -> None:
    operand, result = node.inputs[0], node.outputs[0]
    assert operand is not None
    if result.is_graph_output() and not operand.is_graph_input():
        operand.name, result.name = result.name, operand.name  # signatures know outputs by name
    ir.convenience.replace_all_uses_with(result, operand, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _translate(node: ir.Node, dialect: Dialect, target: Dialect) -> None:
    """Let a node that quantizes or dequantizes in the target's words do so in the source's."""
    writes = node.op_type == target.find_role("quantize").name
    coded, (_, scale, *zero) = (node.outputs[0] if writes else node.inputs[0]), node.inputs
    assert coded is not None and scale is not None and scale.const_value is not None
    known = scale.const_value.numpy().reshape(-1)
    points = [value.const_value.numpy() for value in zero if value is not None and value.const_value is not None]
    axis = node.attributes.get("axis")
    coded.meta[KEY] = Quantization(
        known, points[0].reshape(-1) if points else np.zeros(known.shape, np.int64), axis.as_int() if axis else 0
    )
    found = (
        spec
        for spec in dialect.operators.values()
        if spec.facts.yields and _is_real(spec.facts.types) == writes and _is_real(spec.facts.yields) != writes
    )
    node.domain, node.op_type = dialect.domain, next(spec.name for spec in found if len(spec.operands) == 1)
    node.resize_inputs(1)
    node.attributes.clear()

"""Extents that exported programs state wrongly: torch 2.9 gives states of recurrent layers an axis too many."""

from __future__ import annotations

import onnx_ir as ir

from ..engine.dialects.operators import Dialect, OperatorSpec


def forget_wrong_extents(graph: ir.Graph, dialect: Dialect) -> None:
    """Take the extents from results whose rank is not what the dialect says, and from all that is computed of them."""
    doubted: set[int] = set()
    for node in graph:
        spec = dialect.operators.get(node.op_type)
        if any(id(value) in doubted for value in node.inputs):
            wrong = list(node.outputs)
        else:
            wrong = [value for value in node.outputs if spec is not None and _is_wrong(node, value, spec)]
        for value in wrong:
            value.shape = None
            doubted.add(id(value))


def _is_wrong(node: ir.Node, value: ir.Value, spec: OperatorSpec) -> bool:
    """Whether a result is stated to have another rank than the operand whose rank it has."""
    if not spec.facts.ranks or len(node.outputs) != len(spec.results):
        return False
    name = spec.facts.ranks.get(spec.results[value.index() or 0].name)
    place = spec.find_operand(name) if name is not None else None
    like = node.inputs[place] if place is not None and place < len(node.inputs) else None
    if like is None or like.shape is None or value.shape is None:
        return False
    return like.shape.rank() != value.shape.rank()

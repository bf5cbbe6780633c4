"""Failures of rules: whether the rule is at fault for what is ill-formed, or the model that holds the node."""

from __future__ import annotations

import onnx_ir as ir

from ..base.errors import ModelError, RewriteError, RewriteFailure
from ..dialects.inference import read_extents
from ..dialects.operators import Dialect
from ..expressions.functions.registry import SHORT

#: what admits all element types
_ANY = "any"
#: marks types that quantized values are stored in; rules see real numbers in their place
_STORED, _REAL = "q", "f32"


def explain_failure(failure: RewriteFailure, node: ir.Node, source: Dialect) -> RewriteError:
    """The error to raise for a failure: a ModelError where ops.yaml does not admit the types of the node's operands.

    Otherwise nobody can tell, so that it is the failure with the node's operands beside it.
    """
    spec = source.operators.get(node.op_type) if node.domain != "" else None
    if spec is not None:
        for operand, value, types in zip(spec.operands, node.inputs, spec.facts.types, strict=False):
            if value is not None and value.dtype is not None and not _can_have(types, value):
                said = f"{node.name}: operand {operand.name} of {node.op_type} is {_describe_value(value)}"
                return ModelError(f"{said}, the operator takes {', '.join(types.split())}")
    operands = ", ".join(map(_describe_value, node.inputs))
    message = f"{failure.message}; the model has {node.op_type}({operands}) there, which may be what is wrong"
    return RewriteFailure(failure.span, failure.rule, failure.node, message)


def _can_have(types: str, value: ir.Value) -> bool:
    known = types.split()
    name = _format_type(value)
    stored = [kind for kind in known if kind.startswith(_STORED)]
    return _ANY in known or name in known or f"{_STORED}{name}" in stored or bool(stored and name == _REAL)


def _format_type(value: ir.Value) -> str:
    return "?" if value.dtype is None else SHORT.get(value.dtype, value.dtype.name.lower())


def _describe_value(value: ir.Value | None) -> str:
    if value is None:
        return "none"
    shape = read_extents(value)
    return _format_type(value) + (
        "" if shape is None else f"[{', '.join('?' if n is None else str(n) for n in shape)}]"
    )

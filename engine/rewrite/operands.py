"""Operands of a node made from the values and numbers that a template gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import read_constant
from ..base.errors import Span
from ..base.names import Scope
from ..dialects.literals import make_array, make_attribute
from ..dialects.operators import OperatorSpec, describe_operator
from ..expressions.functions import EvaluationError
from .replacement import MalformedError
from .subgraphs import Body


def make_operands(spec: OperatorSpec, operands: list[Any], scope: Scope) -> list[ir.Value | None]:
    """The operands of a node to be: numbers and lists become constants of the types that the operator asks for.

    Operands left out at the end are dropped. Raises what `literals.array` does for numbers that a type does not hold.
    """
    while operands and operands[-1] is None:
        operands = operands[:-1]
    operands = [scope.adopt(operand) if _is_nameless(operand) else operand for operand in operands]
    if all(operand is None or type(operand) is ir.Value for operand in operands):
        return list(operands)
    found = spec.schema or describe_operator(spec)
    asked = [found.find_operand(position) if found else None for position in range(len(operands))]
    bound: dict[str, ir.DataType] = {}
    for exact in (True, False):  # run-time values say what a type variable is before arrays do
        for parameter, operand in zip(asked, operands, strict=True):
            if parameter is None or not parameter.variable or (type(operand) is ir.Value) != exact or operand is None:
                continue
            if type(operand) is ir.Value and operand.dtype is not None:
                bound.setdefault(parameter.variable, operand.dtype)
            elif isinstance(operand, np.ndarray):
                bound.setdefault(parameter.variable, ir.DataType.from_numpy(operand.dtype))
    inputs: list[ir.Value | None] = []
    for position, (parameter, operand) in enumerate(zip(asked, operands, strict=True)):
        if operand is None or type(operand) is ir.Value:
            inputs.append(operand)
            continue
        name = parameter.name if parameter else f"operand{position}"
        allowed = parameter.types if parameter else ()
        elements = make_array(operand, bound.get(parameter.variable) if parameter else None, allowed, name)
        inputs.append(scope.make_constant(elements, name))
    return inputs


def split_attributes(spec: OperatorSpec, operands: list[Any], opset: int) -> tuple[list[Any], list[ir.Attr]]:
    """Operands and attributes of an operator as it stands at an opset, of operands as its newest form has them.

    Raises EvaluationError for a value that is known at run time only where it would be an attribute, and for an operand
    that it does not have.
    """
    most = len(spec.operands) - len(spec.stored)
    if not spec.stored or len(operands) <= most:
        return operands, []
    if any(operand is not None for operand in operands[len(spec.operands) :]):
        raise EvaluationError(f"{spec.name} has no more than {len(spec.operands)} operands")
    attributes = []
    for option, operand in zip(spec.stored.values(), operands[most:], strict=False):
        known = read_constant(operand) if type(operand) is ir.Value else operand
        if type(operand) is ir.Value and known is None:
            raise EvaluationError(f"{option.name} of {spec.name} is an attribute at opset {opset}, and not known yet")
        if known is not None:
            attributes.append(make_attribute(option, known))
    return operands[:most], attributes


def _is_nameless(operand: Any) -> bool:
    """Whether an operand is a constant that a function has made."""
    return type(operand) is ir.Value and operand.name is None and operand.const_value is not None


def make_option(span: Span, spec: OperatorSpec, name: str, value: Any, opset: int) -> ir.Attr | None:
    """An option as an attribute, None for one that is left out; raises MalformedError where the operator has none."""
    if value is None or type(value) is ir.Attr:
        return value
    if type(value) is Body:
        value = value.graph  # it goes to this node from the one whose place this takes
    if type(value) is ir.Graph:
        return ir.AttrGraph(name, value)
    option = spec.options.get(name)
    if option is None:
        raise MalformedError(span, f"{spec.name} has no attribute {name} at opset {opset}")
    return make_attribute(option, value)

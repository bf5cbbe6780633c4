"""Conversions of element types as nodes: the operator with the role `convert` names the type that it yields."""

from __future__ import annotations

import onnx_ir as ir

from ..base.errors import RewriteError
from .operators import Dialect, OperatorSpec


def name_type(dialect: Dialect, spec: OperatorSpec, dtype: ir.DataType | None) -> ir.Attr:
    """The attribute that names the element type which a node yields; raises RewriteError where ops.yaml says none."""
    name = spec.facts.names_type
    if name is None:
        raise RewriteError(f"ops.yaml: {spec.name} does not say which option names the type of its results")
    option = spec.options.get(name)
    if option is None or option.type not in dialect.enums:
        return ir.AttrInt64(name, int(dtype or 0))
    return ir.AttrString(name, find_type_name(dialect, dtype))


def find_type_name(dialect: Dialect, dtype: ir.DataType | None) -> str:
    """What the files of a dialect call an element type; raises RewriteError where they have none such."""
    for name, entry in dialect.types.items():
        if dtype is not None and entry["dtype"] == dtype.name:
            return name
    raise RewriteError(f"dialect {dialect.name} has no element type {dtype.name if dtype is not None else None}")


def find_named_type(dialect: Dialect, spec: OperatorSpec, node: ir.Node) -> ir.DataType | None:
    """The element type that an attribute of a node says its first result has; None where none says so."""
    attribute = node.attributes.get(spec.facts.names_type or "")
    if attribute is None:
        return None
    if attribute.type == ir.AttributeType.INT:
        return ir.DataType(attribute.as_int())
    entry = dialect.types.get(attribute.as_string())
    return None if entry is None or entry["dtype"] is None else ir.DataType[entry["dtype"]]

"""Options of operators in a TensorFlow Lite file, turned into attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from ..engine.dialects.operators import Dialect, OperatorSpec, Option
from . import flexbuffer_reader, nodedef

Maker = Callable[[str, Any], ir.Attr]


def list_makers(spec: OperatorSpec, dialect: Dialect) -> dict[str, Maker]:
    """How each option of an operator becomes an attribute."""
    return {name: _choose_maker(option, dialect) for name, option in spec.options.items() if option.type != "bytes"}


def _choose_maker(option: Option, dialect: Dialect) -> Maker:
    types = ir.AttributeType
    base = option.type.strip("[]")
    vector = option.type.startswith("[")
    if base in dialect.enums:
        names = {number: enumerant for enumerant, number in dialect.enums[base].items()}

        def name_enumerant(number: int) -> str:
            return names.get(number) or f"{base}({number})"

        if vector:
            return lambda name, value: ir.Attr(name, types.STRINGS, [name_enumerant(number) for number in value or ()])
        return lambda name, value: ir.Attr(name, types.STRING, name_enumerant(value))
    single, many = {"float": (types.FLOAT, types.FLOATS), "double": (types.FLOAT, types.FLOATS)}.get(
        base, (types.STRING, types.STRINGS) if base == "string" else (types.INT, types.INTS)
    )
    if vector:
        return lambda name, value: ir.Attr(name, many, value if value is not None else ())
    return lambda name, value: ir.Attr(name, single, value)


def read_custom_options(raw: memoryview) -> dict[str, Any]:
    """The options of a custom operator, by name: a FlexBuffers map, or TensorFlow's name of an operator and its node.

    Custom operators may keep anything in their options: none are found in bytes of another form.
    """
    try:
        return flexbuffer_reader.read_options(raw)
    except flexbuffer_reader.FlexBufferError:
        pass
    try:
        _, node = flexbuffer_reader.read_blobs(raw)
        return nodedef.read_attributes(node)
    except ValueError:
        return {}


def make_attribute(name: str, value: Any) -> ir.Attr | None:
    """The attribute for a value out of a FlexBuffers map; None where a list has mixed types."""
    types = ir.AttributeType
    if isinstance(value, str):
        return ir.Attr(name, types.STRING, value)
    if isinstance(value, float):
        return ir.Attr(name, types.FLOAT, value)
    if not isinstance(value, list):
        return ir.Attr(name, types.INT, value)
    if all(isinstance(item, str) for item in value) and value:
        return ir.Attr(name, types.STRINGS, value)
    if any(isinstance(item, str) for item in value):
        return None
    return ir.Attr(name, types.FLOATS if any(isinstance(item, float) for item in value) else types.INTS, value)

"""Shapes of results as comments."""

from __future__ import annotations

import onnx_ir as ir

from .identifiers import make_identifier
from .statements import is_number


def write_shape(value: ir.Value) -> str:
    """The extents of a value in brackets; nothing of a number or a value of unknown rank."""
    if value.shape is None or len(value.shape) == 0 or is_number(value):
        return ""
    extents = [str(d) if isinstance(d, int) else _name_extent(str(d.value or "")) for d in value.shape]
    return "" if {*extents} == {"?"} else f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def _name_extent(name: str) -> str:
    """What a free extent is called in a comment; names with numbers in them were made by machines."""
    return "?" if any(letter.isdigit() for letter in name) else make_identifier(name) or "?"

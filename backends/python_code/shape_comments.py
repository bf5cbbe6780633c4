"""What the shapes of values say in code: comments on results, and dots in brackets."""

from __future__ import annotations

import ast
from collections.abc import Sequence

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


def shorten_places(made: ast.Subscript, values: Sequence[ir.Value | None]) -> ast.expr:
    """Places in brackets with dots for whole axes before the last axis of what they are of."""
    shape = None if not values or values[0] is None else values[0].shape
    places = made.slice.elts if isinstance(made.slice, ast.Tuple) else []
    whole = [isinstance(one, ast.Slice) and (one.lower, one.upper, one.step) == (None, None, None) for one in places]
    if shape is None or len(shape) != len(places) or len(places) < 3 or not all(whole[:-1]):
        return made
    return ast.Subscript(made.value, ast.Tuple([ast.Constant(...), places[-1]]))

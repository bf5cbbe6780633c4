"""Real numbers that are not of 32 bits: which element type a layer is constructed with, and a model as a whole."""

from __future__ import annotations

import ast

import onnx_ir as ir

from ...engine.base.startup import dataclass
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions.registry import SHORT
from .printer import write_expression
from .templates import parse_template

#: the key under which a node has the element type of what it computes, where layers have not this by themselves
PRECISION = "precision"


@dataclass(frozen=True, slots=True)
class Precision:
    """Of the real numbers of a model: the one type that all have, or nothing, and whether some are not of 32 bits."""

    only: ir.DataType | None = None
    other: bool = False

    def write_parameters(self, python: DialectPython) -> list[str]:
        """What the constructor of a model takes: its element type and keywords, where it hands these on."""
        if python.keywords is None:
            return []
        typed = [one for one in self.write_arguments(python) if one.arg == python.typed]
        return [*(f"{one.arg}={write_expression(one.value)}" for one in typed), f"**{python.keywords}"]

    def write_arguments(self, python: DialectPython, whole: bool = False) -> list[ast.keyword]:
        """What the constructor of a class is given by that of a block, or of a `whole` model, which hands on."""
        if whole and python.keywords is not None:
            given = self.write_arguments(python)
            typed = ast.Name(python.typed or "")
            handed = [ast.keyword(one.arg, typed) if one.arg == python.typed else one for one in given]
            return [*handed, ast.keyword(None, ast.Name(python.keywords))]
        if not self.other or python.typed is None:
            return []
        if self.only is not None:
            return [ast.keyword(python.typed, parse_template(python.types[SHORT[self.only]]))]
        call = parse_template(python.mixed)
        return call.keywords if isinstance(call, ast.Call) else []


def note_precision(graph: ir.Graph, python: DialectPython) -> Precision:
    """Note in each node the type of real numbers that it computes with, and tell that of all."""
    kinds = {value.dtype for value in (*graph.inputs, *graph.initializers.values()) if _is_real(value)}
    nodes = [(node, [one for one in (*node.inputs, *node.outputs) if _is_real(one)]) for node in graph.all_nodes()]
    kinds |= {value.dtype for _, values in nodes for value in values if value is not None}
    other = bool(kinds - {ir.DataType.FLOAT})
    only = kinds.pop() if len(kinds) == 1 else None
    for node, values in nodes if other else ():
        constants = [value for value in values if value is not None and value.const_value is not None]
        found = next((value.dtype for value in [*constants, *values] if value is not None), only)
        if found is not None and found != ir.DataType.FLOAT and SHORT[found] in python.types:
            node.meta[PRECISION] = python.types[SHORT[found]]
    return Precision(only, other)


def _is_real(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and value.dtype.is_floating_point()


def give_precision(made: ast.expr, name: str | None, kind: str | None) -> ast.expr:
    """A layer as it is constructed, with its element type, which layers in it have as well."""
    if name is None or kind is None:
        return made
    for call in (one for one in ast.walk(made) if isinstance(one, ast.Call)):
        call.keywords.append(ast.keyword(name, parse_template(kind)))
    return made

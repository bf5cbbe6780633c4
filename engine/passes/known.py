"""Integers that are computed from extents, found where they are there already: in an equal value, or in a shape."""

from __future__ import annotations

from collections import ChainMap

import onnx_ir as ir

from ..base.constants import ELEMENTS
from ..dialects.inference import read_extents
from ..dialects.operators import OperatorSpec
from .base import Module

#: from this opset on, the operator that tells extents can tell some of them
PARTS = 15
#: extents of tensors of more axes are not noted
_RANK = 8


class Known:
    """What nodes before have made, in a graph and in those around it."""

    __slots__ = ("_elements", "_makers", "_shapes")

    def __init__(self, module: Module, outer: Known | None = None) -> None:
        # What lies between codes has to have no other reader: runtimes take it and these for one operator.
        self._makers = _list_quantizing(module)
        self._elements: ChainMap[object, ir.Value] = ChainMap() if outer is None else outer._elements.new_child()
        self._shapes: ChainMap[object, tuple[ir.Value, int, int]] = (
            ChainMap() if outer is None else outer._shapes.new_child()
        )

    def note_value(self, value: ir.Value) -> None:
        """Record a value whose extents may be asked for later."""
        shape = read_extents(value)
        if shape is None or not 0 < len(shape) <= _RANK or None in shape or not any(type(one) is str for one in shape):
            return
        if not isinstance(value.type, ir.TensorType):
            return
        maker = value.producer()
        if self._makers and maker is not None and maker.op_type not in self._makers:
            return
        for start in range(len(shape)):
            for end in range(start + 1, len(shape) + 1):
                part = shape[start:end]
                if any(isinstance(extent, str) for extent in part):
                    self._shapes.setdefault(part, (value, start, end))

    def find(self, node: ir.Node, spec: OperatorSpec, module: Module) -> ir.Value | None:
        """A value that equals the result of a node, or is made to: from the shape of what has these extents."""
        output = node.outputs[0]
        found = output.meta.get(ELEMENTS)
        if len(node.outputs) != 1 or found is None or output.dtype is None:
            return None
        items = found.ravel().tolist()
        if None in items:
            return None
        key = output.dtype, found.shape, tuple(items)
        equal = self._elements.setdefault(key, output)
        if equal is not output:
            return equal
        if found.ndim != 1 or output.dtype != ir.DataType.INT64 or spec.facts.tells is not None:
            return None
        place = self._shapes.get(tuple(items))
        if place is None:
            return None
        value, start, end = place
        rank = len(read_extents(value) or ())
        if (start, end) != (0, rank) and module.opset < PARTS:
            return None
        made = make_shape_node(value, start, end if end < rank else None, module)
        module.graph.insert_before(node, [made])
        result = made.outputs[0]
        result.type, result.shape, result.meta[ELEMENTS] = output.type, output.shape, found
        self._elements[key] = result
        return result


def _list_quantizing(module: Module) -> frozenset[str]:
    """The operators between codes and real numbers, if a graph has one that makes codes."""
    dialect = module.schematic
    if not dialect.has_role("quantize"):
        return frozenset()
    names = [dialect.find_role(role).name for role in ("quantize", "dequantize")]
    found = any(node.op_type == names[0] and node.domain == dialect.domain for node in module.graph)
    return frozenset(names) if found else frozenset()


def make_shape_node(value: ir.Value, start: int, end: int | None, module: Module) -> ir.Node:
    """A node that reads extents of a value from one axis on, to before another or to the last."""
    role = module.schematic.find_role("shape")
    attributes = [ir.AttrInt64("start", start)] if start else []
    attributes += [] if end is None else [ir.AttrInt64("end", end)]
    made = ir.Node(role.domain, role.name, [value], attributes, num_outputs=1)
    module.names.name_node(made, f"{value.name}/{role.name}")
    return made

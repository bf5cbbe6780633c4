"""The least opset that holds the element types of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx.defs
import onnx_ir as ir

from ..base.quantization import RAW, is_blockwise, read_quantization
from ..base.startup import dataclass
from .operators import Dialect, OperatorSpec

#: the newest opset that the installed package knows
NEWEST = onnx.defs.onnx_opset_version()
#: the attribute that says of how many elements a block is
BLOCKS = "block_size"
#: roles of the operators that a quantized value is read and written with, and of the one that takes values of all types
_QUANTIZED, _PLAIN = ("quantize", "dequantize"), ("convert",)


@dataclass(frozen=True, slots=True)
class LeastOpset:
    """The first opset that holds what a model has, and what that is, in words."""

    opset: int
    held: str = ""


def find_least_opset(graphs: Iterable[ir.Graph], source: Dialect, target: Dialect, plain: bool = False) -> LeastOpset:
    """The first opset that holds the element types of some graphs, and the type that needs it.

    With `plain`, quantized values matter only where they are computed for operators that mean their integers.
    """
    wanted: set[tuple[ir.DataType | None, bool, bool]] = set()
    for graph in graphs:
        meant = set(_list_raw_codes(graph, source)) if plain else None
        for value in set(_iterate_values(graph)):
            quantized = read_quantization(value) is not None
            if not quantized or meant is None or value in meant:
                wanted.add((value.dtype, quantized, is_blockwise(value)))
    found = LeastOpset(1)
    for dtype, quantized, blocks in sorted(wanted, key=str):
        for role in _QUANTIZED if quantized else _PLAIN:
            opset = _find_first_opset(target, role, dtype, blocks) or 1
            if opset > found.opset:
                name = "" if dtype is None else dtype.name.lower()
                held = f"quantized {name}" if quantized else name
                found = LeastOpset(opset, f"{held} with scales of blocks" if blocks else held)
    return found


def can_take(spec: OperatorSpec, dtype: ir.DataType | None, blocks: bool = False) -> bool:
    """Whether an operator as it stands at an opset has a place for an element type, and for scales of blocks."""
    found = spec.schema
    if found is None or (blocks and BLOCKS not in spec.options):
        return False
    return any(dtype in one.types for one in (*found.operands, *found.results))


def can_yield(spec: OperatorSpec, dtype: ir.DataType | None) -> bool:
    """Whether an operator as it stands at an opset has results of an element type."""
    return spec.schema is not None and any(dtype in one.types for one in spec.schema.results)


def _find_first_opset(target: Dialect, role: str, dtype: ir.DataType | None, blocks: bool) -> int | None:
    return next((n for n in range(1, NEWEST + 1) if can_take(target.find_role(role, n), dtype, blocks)), None)


def _list_raw_codes(graph: ir.Graph, source: Dialect) -> Iterator[ir.Value]:
    """Quantized values of which an operator means the integers, but for constants."""
    for node in graph:
        spec = source.operators.get(node.op_type)
        if spec is not None and spec.facts.quantization == RAW:
            for value in (*node.inputs, *node.outputs):
                if value is not None and read_quantization(value) is not None and value.const_value is None:
                    yield value


def _iterate_values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs
        yield from (value for value in node.inputs if value is not None)

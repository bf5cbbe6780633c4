"""Pass `float-interface`: quantized inputs and outputs become real numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from ..base.quantization import KEY, Quantization, read_node_grid, read_quantization
from ..dialects.operators import Dialect, OperatorSpec
from ..dialects.opsets import BLOCKS
from .base import Module, Visit
from .quantize_dequantize import Inserter


class FloatInterface:
    """Let the inputs and outputs be real numbers: quantized on their way in, dequantized on their way out.

    What integers stand for the source says by their types, or by the nodes that read an input and make an output.
    Integers of which nothing says it stay as they are, and so do inputs with an initial value: they are state.
    """

    name, visits = "float-interface", Visit.MAIN

    def run(self, module: Module) -> None:
        """Put the conversions into the main graph; raises RewriteError for types that nothing is quantized to."""
        graph, named = module.graph, module.source.schemas
        if named:
            for value, known in list(list_named_grids(graph, module.source)):
                value.meta[KEY] = known
        view = Inserter(graph, module.source if named else module.target, module.opset, module.names)
        for position, value in enumerate(list(graph.inputs)):
            if value.const_value is None and read_quantization(value) is not None:
                graph.inputs[position] = view.insert_entrance(value)
        before = list(graph.outputs)
        view.insert_exits()
        for codes, real in dict(zip(before, graph.outputs, strict=True)).items():  # some are listed twice
            if real is not codes and codes.name is not None:
                codes.name, real.name = module.names.make_name(f"{codes.name}/codes"), codes.name
        if named:  # where nodes say what integers stand for, types do not
            for value in (*graph.inputs, *(result for node in graph for result in node.outputs)):
                value.meta.pop(KEY, None)


def list_named_grids(graph: ir.Graph, dialect: Dialect) -> Iterator[tuple[ir.Value, Quantization]]:
    """The inputs that are dequantized wherever they are read, and the outputs that were quantized, with their grids.

    What moves elements may stand between, if all elements have one grid.
    """
    quantize, dequantize = (dialect.find_role(role) for role in ("quantize", "dequantize"))
    for value in graph.inputs:
        yield from _read_grids(value, [*_follow_down(value, dialect)], dequantize)
    for value in graph.outputs:
        maker = _follow_up(value, dialect)
        yield from _read_grids(value, [] if maker is None else [maker], quantize)


def _read_grids(
    value: ir.Value, nodes: Sequence[ir.Node], spec: OperatorSpec
) -> Iterator[tuple[ir.Value, Quantization]]:
    """A value with the grid that nodes name, where all are of an operator and name the same."""
    alike = all(node.op_type == spec.name and node.domain == spec.domain for node in nodes)
    if not alike or not nodes or any(BLOCKS in node.attributes for node in nodes):
        return
    try:
        first, *others = [read_node_grid(node) for node in nodes]
    except ValueError:  # it is computed
        return
    beside = all(value in (*node.inputs[:1], *node.outputs) for node in nodes)
    if all(one == first for one in others) and (beside or not first.per_axis):
        yield value, first


def _follow_down(value: ir.Value, dialect: Dialect) -> Iterator[ir.Node]:
    """The nodes that read what a value holds, in whatever order."""
    work = [value]
    while work:
        for usage in work.pop().uses():
            if usage.idx == 0 and _is_moving(usage.node, dialect):
                work.append(usage.node.outputs[0])
            else:
                yield usage.node


def _follow_up(value: ir.Value, dialect: Dialect) -> ir.Node | None:
    """The node that makes what a value holds, in whatever order."""
    maker = value.producer()
    while maker is not None and _is_moving(maker, dialect) and (read := maker.inputs[0]) is not None:
        maker = read.producer()
    return maker


def _is_moving(node: ir.Node, dialect: Dialect) -> bool:
    spec = dialect.find_operator(node.op_type) if node.domain == dialect.domain else None
    return spec is not None and "moves" in spec.traits and len(node.outputs) == 1

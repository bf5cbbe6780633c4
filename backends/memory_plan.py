"""Where the values of a graph lie in one block of memory: those that are alive at the same time do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from ..engine.base.errors import ModelError
from ..engine.base.startup import dataclass

#: what values begin at a multiple of, as kernels for microcontrollers want it
_ALIGNED = 16


@dataclass(frozen=True, slots=True)
class Block:
    """The bytes of one value, from its `first` to its `last` node, both by their places in the graph."""

    value: ir.Value
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How many bytes all values take at once, and at which each begins."""

    size: int
    offsets: dict[ir.Value, int]


def plan_memory(graph: ir.Graph, batch: int = 1) -> Plan:
    """Place the values of a graph, the largest first, each at the lowest bytes that are free all the while.

    Constants take no place, nor do values of unknown rank; an extent that is not known counts as `batch`. Raises
    ModelError for strings, which take any number of bytes.
    """
    placed: list[tuple[int, Block]] = []
    for block in sorted(_list_blocks(graph, batch), key=lambda block: (-block.size, block.first)):
        taken = [(at, at + other.size) for at, other in placed if _are_overlapping(block, other)]
        placed.append((_find_gap(sorted(taken), block.size), block))
    size = max((at + block.size for at, block in placed), default=0)
    return Plan(size, {block.value: at for at, block in placed})


def _list_blocks(graph: ir.Graph, batch: int) -> Iterable[Block]:
    nodes = {node: place for place, node in enumerate(graph)}
    ends = set(graph.outputs)
    values = [*graph.inputs, *(value for node in graph for value in node.outputs)]
    for value in values:
        size = count_bytes(value, batch)
        if value.const_value is not None or not size:
            continue
        producer = value.producer()
        first = -1 if producer is None else nodes[producer]
        uses = [nodes[use.node] for use in value.uses() if use.node in nodes]
        last = len(nodes) if value in ends or value.is_graph_input() else max(uses, default=first)
        yield Block(value, size, first, last)


def count_bytes(value: ir.Value, batch: int = 1) -> int:
    """The bytes of a value, as many more as make them end at an aligned one; 0 where they cannot be told."""
    if value.dtype is None or value.shape is None:
        return 0
    if value.dtype == ir.DataType.STRING:
        raise ModelError(f"{value.name} holds strings, for which no memory can be set apart")
    count = 1
    for extent in value.shape:
        count *= extent if isinstance(extent, int) else batch
    size = (count * value.dtype.bitwidth + 7) // 8
    return -(-size // _ALIGNED) * _ALIGNED


def _are_overlapping(one: Block, other: Block) -> bool:
    return one.first <= other.last and other.first <= one.last


def _find_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The first byte from which on as many are free."""
    at = 0
    for start, end in taken:
        if start - at >= size:
            break
        at = max(at, end)
    return at

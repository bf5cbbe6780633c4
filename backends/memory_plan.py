"""Where the values of a graph lie in one block of memory: those that are alive at the same time do not overlap."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

import onnx_ir as ir

from ..engine.base.errors import ModelError
from ..engine.base.startup import dataclass

#: what values begin at a multiple of, as kernels for microcontrollers want it
_ALIGNED = 16

#: where bytes begin and end
Bytes = tuple[int, int]


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
    nodes = {node: place for place, node in enumerate(graph)}
    blocks = sorted(_list_blocks(graph, nodes, batch), key=lambda block: (-block.size, block.first))
    memory, offsets = _Memory(len(nodes)), dict[ir.Value, int]()
    for block in blocks:
        at = offsets[block.value] = _find_gap(sorted(memory.iterate_taken(block.first, block.last)), block.size)
        memory.take(block.first, block.last, (at, at + block.size))
    return Plan(max((offsets[block.value] + block.size for block in blocks), default=0), offsets)


class _Memory:
    """Which bytes are taken while which nodes run; the places of nodes are -1 (the inputs) to `last`.

    A segment tree, in which each span of places lies over its two halves, finds what is taken at one node, and a sorted
    list what is taken from a later one on: of a long graph a value looks at those alone that it lives with.
    """

    def __init__(self, last: int) -> None:
        self._leaves = last + 2
        self._spans: list[list[Bytes]] = [[] for _ in range(2 * self._leaves)]
        self._starts: list[tuple[int, Bytes]] = []

    def take(self, first: int, last: int, taken: Bytes) -> None:
        """Take some bytes from one node to another."""
        bisect.insort(self._starts, (first, taken))
        low, high = self._leaves + first + 1, self._leaves + last + 2
        while low < high:
            if low % 2:
                self._spans[low].append(taken)
                low += 1
            if high % 2:
                high -= 1
                self._spans[high].append(taken)
            low, high = low // 2, high // 2

    def iterate_taken(self, first: int, last: int) -> Iterator[Bytes]:
        """The bytes that are taken at any time from one node to another."""
        span = self._leaves + first + 1
        while span:
            yield from self._spans[span]
            span //= 2
        begin, end = (bisect.bisect_right(self._starts, place, key=itemgetter(0)) for place in (first, last))
        yield from (taken for _, taken in self._starts[begin:end])


def _list_blocks(graph: ir.Graph, nodes: Mapping[ir.Node, int], batch: int) -> Iterable[Block]:
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
    """The bytes of a value, as many more as make them end at an aligned one; 0 where they cannot be told.

    Raises ModelError for strings.
    """
    if value.dtype is None or value.shape is None:
        return 0
    if value.dtype == ir.DataType.STRING:
        raise ModelError(f"{value.name} holds strings, for which no memory can be set apart")
    count = 1
    for extent in value.shape:
        count *= extent if isinstance(extent, int) else batch
    size = (count * value.dtype.bitwidth + 7) // 8
    return -(-size // _ALIGNED) * _ALIGNED


def _find_gap(taken: Iterable[Bytes], size: int) -> int:
    """The first byte from which on as many are free."""
    at = 0
    for start, end in taken:
        if start - at >= size:
            break
        at = max(at, end)
    return at

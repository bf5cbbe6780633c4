"""Why permutations are left in a model: what each moves, and the two operators that it stands between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from ...base.provenance import RULE, SOURCE
from ...base.startup import dataclass
from ...dialects.inference import read_extents
from ...dialects.operators import Dialect
from .axis_groups import find_arrangement, find_order
from .order import Order, count_elements, invert, make_identity
from .permute_weights import Tensors

#: the fewest letters that are left of a name
_LEAST = 12
_GAP = "..."


@dataclass(frozen=True, slots=True)
class Remaining:
    """One permutation that is left: its name, what it does to the axes, and the elements it moves.

    `before` and `after` are the nearest operators on either side that cannot run in the other order, or the graph's
    input or output that is reached. `fixed` tells whether the number of elements is known. `purpose` says why rules put
    it in that would not have had to.
    """

    name: str
    perm: Order
    elements: int
    fixed: bool
    before: str
    after: str
    purpose: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self._moves}: {self._why}"

    def format_lines(self, width: int) -> list[str]:
        """Tell of it in one line, or in two, of which none is wider than so many letters: long names lose a part."""
        if len(f"{self}") <= width:
            return [f"{self}"]
        moves = f"{self._moves}:"
        first = _shorten([self.name], width - len(moves))[0] + moves
        if self.purpose:
            return [first, f"  {self.purpose}"]
        before, after = _shorten([self.before, self.after], width - len("   -> "))
        return [first, f"  {before} -> {after}"]

    @property
    def _moves(self) -> str:
        return f" {list(self.perm)} moves {'' if self.fixed else 'about '}{self.elements:,} elements"

    @property
    def _why(self) -> str:
        return self.purpose or f"{self.before} -> {self.after}"


def _shorten(names: Sequence[str], room: int) -> list[str]:
    """Names that take up so much room together: the longest lose a part behind their first word, to equal lengths."""
    most = max(map(len, names))
    while most > _LEAST and sum(min(len(name), most) for name in names) > room:
        most -= 1
    return [name if len(name) <= most else _abbreviate(name, most) for name in names]


def _abbreviate(name: str, most: int) -> str:
    first, space, _ = name.partition(" ")
    kept = f"{first} {_GAP}" if space and len(first) < most // 2 else _GAP
    return kept + name[len(kept) - most :]


def explain(graph: ir.Graph, dialect: Dialect, purposes: Mapping[str, str] | None = None) -> list[Remaining]:
    """Explain every permutation of a graph of a dialect, in the graph's order, as far as shapes are known.

    `purposes` says why rules, by their places, make permutations that nothing would have asked for.
    """
    opset = graph.opset_imports.get(dialect.domain, 0)
    tensors = Tensors(graph, dialect, opset)
    return [found for node in graph for found in _explain_node(tensors, node, purposes or {})]


def _explain_node(tensors: Tensors, node: ir.Node, purposes: Mapping[str, str]) -> Iterator[Remaining]:
    perm = tensors.read_permutation(node)
    value = node.inputs[0] if node.inputs else None
    shape = read_extents(value) if value is not None else None
    if perm is None or value is None or shape is None:
        return
    fixed = all(isinstance(extent, int) for extent in shape)
    ends = _explain_producer(tensors, value, perm), _explain_reader(tensors, node.outputs[0], perm)
    purpose = purposes.get(node.metadata_props.get(RULE, ""), "")
    yield Remaining(node.name or value.name or "", perm, count_elements(shape), fixed, *ends, purpose)


def _explain_producer(tensors: Tensors, value: ir.Value, order: Order) -> str:
    """Say which node yields a value and cannot yield it in another order."""
    producer = value.producer()
    while producer is not None:
        perm, blocks = tensors.read_permutation(producer), tensors.find_blocks(producer)
        at = value.index() or 0
        arranged = find_arrangement(blocks.results[at], order) if blocks is not None and perm is None else None
        if blocks is None or arranged is None or not blocks.can_arrange(arranged):
            return _name_node(producer)
        moved = ((producer.inputs[position], find_order(side, arranged)) for position, side in blocks.operands.items())
        following = next(((v, o) for v, o in moved if v is not None and v.const_value is None), None)
        if following is None or following[1] == make_identity(len(following[1])):
            return _name_node(producer)
        value, order = following
        producer = value.producer()
    return f"input {value.name}"


def _explain_reader(tensors: Tensors, value: ir.Value, order: Order) -> str:
    """Say which node reads a value and cannot read it in the order that it had before."""
    back = invert(order)
    while not value.is_graph_output():
        use = next(iter(value.uses()), None)
        if use is None:
            break
        blocks = tensors.find_blocks(use.node) if tensors.read_permutation(use.node) is None else None
        side = blocks.operands.get(use.idx) if blocks is not None else None
        arranged = find_arrangement(side, back) if side is not None else None
        if blocks is None or arranged is None or not blocks.can_arrange(arranged):
            return _name_node(use.node)
        value, back = use.node.outputs[0], find_order(blocks.results[0], arranged)
        if back == make_identity(len(back)):
            return _name_node(use.node)
    return f"output {value.name}"


def _name_node(node: ir.Node) -> str:
    source = node.metadata_props.get(SOURCE)
    name = node.name or next((output.name for output in node.outputs if output.name), "")
    return f"{node.op_type} {name}" + (f" (from {source})" if source and source != name else "")

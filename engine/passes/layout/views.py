"""The tensors of a graph, each with every order in which it is read: permutations are views and no operators."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...base.errors import ModelError
from ...base.quantization import DEQUANTIZE_BY, QUANTIZE_BY
from ...base.startup import dataclass, field
from ...dialects.folding import GROWTH
from ...dialects.inference import read_extents
from ...dialects.operators import Dialect, OperatorSpec
from ...dialects.permutations import read_permutation
from .axis_groups import Blocks, find_blocks
from .order import Extents, Order, compose, make_identity

PERMUTE, QUANTIZE, DEQUANTIZE = "permute", "quantize", "dequantize"
#: what nodes of either kind are called, those too whose operands name the grid
_SCALES = {QUANTIZE: QUANTIZE, DEQUANTIZE: DEQUANTIZE, QUANTIZE_BY: QUANTIZE, DEQUANTIZE_BY: DEQUANTIZE}

#: a node that quantizes or dequantizes, and the order of the tensor that it saw
Scaled = tuple[ir.Node, Order]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a tensor: operand `position` of `node`, or the graph's output `position` where there is no node.

    `stem` are the nodes that quantize the tensor on the way there and move with its producer, `chain` those that
    dequantize it and move with its user.
    """

    node: ir.Node | None
    position: int
    order: Order
    stem: tuple[Scaled, ...] = ()
    chain: tuple[Scaled, ...] = ()


@dataclass(slots=True, eq=False)
class Tensor:
    """What a graph computes with, whatever the order it is stored in: `root` is the value that nothing permuted."""

    root: ir.Value
    extents: Extents
    uses: list[Use] = field(default_factory=list)

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.extents)

    @property
    def constant(self) -> bool:
        """Whether its elements are known, so that any order of them is free."""
        root = self.root
        return root.const_value is not None and not root.is_graph_input() and root.dtype != ir.DataType.STRING

    @property
    def own(self) -> Order:
        """The order in which its root stands."""
        return make_identity(self.rank)


class TensorViews:
    """All tensors of a graph, and what the operator of each node lets through by itself.

    Without `copies`, no large constant is stored in two orders: a permutation of one that is read as it stands is a
    node like any other.
    """

    __slots__ = (
        *("_copies", "_movable", "_permute", "_plain", "_specs"),
        *("all", "dialect", "graph", "of", "opset", "permutations", "views"),
    )

    def __init__(self, graph: ir.Graph, dialect: Dialect, opset: int, copies: bool = True) -> None:
        self._copies = copies
        self.graph, self.dialect, self.opset = graph, dialect, opset
        self._specs: dict[str, OperatorSpec | None] = {}
        self._permute = dialect.find_role(PERMUTE)
        schema = dialect.find_role(PERMUTE, opset).schema
        self._movable = frozenset() if schema is None else frozenset(schema.operands[0].types)
        self._plain: dict[ir.Node, Blocks | None] = {}
        #: permutations by what they permute and how
        self.permutations: dict[tuple[ir.Value, Order], ir.Value] = {}
        self.views: list[ir.Node] = []
        self.all: list[Tensor] = []
        #: the tensor and the order in which a value holds it, for every operand of a node that is no view
        self.of: dict[ir.Value, tuple[Tensor, Order]] = {}
        outputs: dict[ir.Value, list[int]] = {}
        for position, value in enumerate(graph.outputs):
            outputs.setdefault(value, []).append(position)
        for root in self._iterate_roots():
            shape = read_extents(root)
            if shape is not None:
                self._read(Tensor(root, shape), outputs)

    def find_spec(self, node: ir.Node) -> OperatorSpec | None:
        """What ops.yaml says of a node of the dialect."""
        if node.domain != self.dialect.domain:
            return None
        if node.op_type not in self._specs:
            self._specs[node.op_type] = self.dialect.find_operator(node.op_type, self.opset)
        return self._specs[node.op_type]

    def find_plain_blocks(self, node: ir.Node) -> Blocks | None:
        """The blocks of a node as its operator alone has them, whatever reads its results."""
        if node not in self._plain:
            known = node.graph is self.graph and self._can_permute(node)
            self._plain[node] = find_blocks(node, self.find_spec(node)) if known else None
        return self._plain[node]

    def _can_permute(self, node: ir.Node) -> bool:
        """Whether the opset has permutations of the types of all that a node reads and yields."""
        values = (*node.inputs, *node.outputs)
        return not self._movable or all(v is None or v.dtype is None or v.dtype in self._movable for v in values)

    def read_permutation(self, node: ir.Node) -> Order | None:
        """The permutation that a node does, None where it does something else."""
        if node.op_type != self._permute.name or node.domain != self.dialect.domain or node.graph is not self.graph:
            return None
        shape = read_extents(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
        if shape is None or not (self._copies or self._is_alone(node)):
            return None
        return read_permutation(node, self._permute, len(shape))

    def _is_alone(self, node: ir.Node) -> bool:
        """Whether what a permutation reads is no large constant that others read as well."""
        value = node.inputs[0] if node.inputs else None
        if value is None or value.const_value is None or value.const_value.nbytes <= GROWTH:
            return True
        return all(usage.node.op_type == self._permute.name for usage in value.uses())

    def find_scaling(self, node: ir.Node) -> str | None:
        """Whether a node quantizes or dequantizes, and does it for any order of axes."""
        spec = self.find_spec(node)
        role = _SCALES.get(spec.role or "") if spec is not None else None
        return role if role is not None and self.find_plain_blocks(node) is not None else None

    def _iterate_roots(self) -> Iterator[ir.Value]:
        yield from self.graph.inputs
        yield from (v for v in self.graph.initializers.values() if not v.is_graph_input())
        for node in self.graph:
            if self.read_permutation(node) is None and self.find_scaling(node) is None:
                yield from node.outputs

    def _read(self, tensor: Tensor, outputs: dict[ir.Value, list[int]]) -> None:
        """Follow a tensor through its views to everything that uses it."""
        start: tuple[ir.Value, Order, tuple[Scaled, ...]] = (tensor.root, tensor.own, ())
        pending = [start]
        held: dict[ir.Value, tuple[Tensor, Order]] = {}
        views: list[tuple[ir.Node, Order | None]] = []
        while pending:
            value, order, path = pending.pop()
            if value.is_graph_output() and value not in outputs:
                return  # an inner graph yields it as it stands, and no use says so
            held[value] = tensor, order
            stem, chain = _split_path(path, self)
            for position in outputs.get(value, ()):
                tensor.uses.append(Use(None, position, order, stem, chain))
            for node, position in value.uses():
                perm = self.read_permutation(node) if position == 0 else None
                if perm is not None and sorted(perm) != list(range(len(order))):
                    raise ModelError(f"{node.name}: {list(perm)} is no order of the {len(order)} axes of {value.name}")
                if perm is not None:
                    views.append((node, perm))
                    pending.append((node.outputs[0], compose(order, perm), path))
                elif position == 0 and self.find_scaling(node) is not None:
                    views.append((node, None))
                    pending.append((node.outputs[0], order, (*path, (node, order))))
                else:
                    tensor.uses.append(Use(node, position, order, stem, chain))
        self.all.append(tensor)
        self.of |= held
        for node, perm in views:
            self.views.append(node)
            if perm is not None and node.inputs[0] is not None:
                self.permutations.setdefault((node.inputs[0], perm), node.outputs[0])


def _split_path(path: tuple[Scaled, ...], tensors: TensorViews) -> tuple[tuple[Scaled, ...], tuple[Scaled, ...]]:
    """Quantization belongs to the producer, what dequantizes after the last one to the user."""
    if not path:
        return (), ()
    last = max((i for i, (node, _) in enumerate(path, 1) if tensors.find_scaling(node) == QUANTIZE), default=0)
    return path[:last], path[last:]

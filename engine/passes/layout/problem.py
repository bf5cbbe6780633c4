"""Regions of operators that can run in one of two layouts, and what each choice costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from ...base.quantization import EXTENTS
from ...base.startup import dataclass, field
from .axis_groups import Arrangement, Blocks, Side, find_arrangement, find_changes, find_order
from .cut import FIRST, SECOND, THIRD, Problem, Term, solve
from .interface import Port, make_channels_first, make_channels_last
from .order import Order, are_alike, compose, count_elements, find_permutation, is_still, make_identity
from .permute_weights import Tensors
from .remap import COMPUTED, Reordered
from .views import Tensor

Pair = tuple[Order, Order]
Unit = ir.Node | Port

#: what a Transpose counts in ties beside the bytes of an element, so that nodes come before bytes
_NODE = 16

#: so many elements are moved in the time that one more node takes to start
_START = 1 << 12

#: the category of an operator with a layout of its own
IMPLICIT = "implicit"


@dataclass(slots=True)
class Region:
    """Tensors with the two orders each may be stored in, and units with what they do in either layout.

    A node's choices are arrangements of its blocks; a port's are the orders themselves.
    """

    pairs: dict[Tensor, Pair] = field(default_factory=dict)
    units: dict[Unit, tuple[Arrangement, Arrangement]] = field(default_factory=dict)

    def swap_sides(self) -> Region:
        """The same with first and second exchanged."""
        return Region({t: (b, a) for t, (a, b) in self.pairs.items()}, {u: (b, a) for u, (a, b) in self.units.items()})


@dataclass(frozen=True, slots=True)
class _End:
    """Where a unit meets a tensor: the blocks of its operand or result, and the order in which it has it now."""

    tensor: Tensor
    order: Order
    side: Side


class Regions:
    """Grows the regions of a graph, each from a tensor that is read in several orders."""

    def __init__(self, tensors: Tensors, free: frozenset[Port] = frozenset()) -> None:
        self._tensors = tensors
        self._free = free
        self._taken: set[Unit] = set()
        self._pairs: dict[Tensor, Pair] = {}
        self._inputs = {value: position for position, value in enumerate(tensors.graph.inputs)}
        #: whether some tensor is wanted in an order that its region does not know, so that another round may gain
        self.unsettled = False

    def grow(self, tried: set[tuple[ir.Value, Pair]]) -> Iterator[Region]:
        """Yield regions that share no unit; `tried` are seeds of earlier rounds, and gets the new ones."""
        for tensor, pairs in _find_seeds(self._tensors.all):
            if tensor in self._pairs:
                continue
            pair = next((pair for pair in pairs if (tensor.root, pair) not in tried), None)
            if pair is not None:
                tried.add((tensor.root, pair))
                region = self._grow(tensor, pair)
                yield region.swap_sides() if self._is_first_preferred(region) else region

    def _grow(self, seed: Tensor, pair: Pair) -> Region:
        region = Region()
        refused: set[Unit] = set()
        region.pairs[seed] = self._pairs[seed] = pair
        queue = deque([seed])
        while queue:
            tensor = queue.popleft()
            for unit in self._list_neighbours(tensor):
                if unit in self._taken or unit in refused:
                    continue
                reached = self._join(region, unit)
                if reached is None:
                    refused.add(unit)
                else:
                    self._taken.add(unit)
                    queue.extend(reached)
        return region

    def _list_neighbours(self, tensor: Tensor) -> Iterator[Unit]:
        producer = tensor.root.producer()
        if producer is not None:
            yield producer
        elif tensor.root in self._inputs:
            yield (True, self._inputs[tensor.root])
        for use in tensor.uses:
            yield (False, use.position) if use.node is None else use.node

    def _find_ends(self, unit: Unit) -> list[_End] | None:
        """Where a unit meets tensors; None where it cannot be moved, and is fixed."""
        if not isinstance(unit, ir.Node):
            return self._find_port_ends(unit)
        blocks = self._tensors.find_blocks(unit)
        if blocks is None:
            return None
        ends: list[_End] = []
        values = [(unit.inputs[position], side) for position, side in blocks.operands.items()]
        for value, side in [*values, *zip(unit.outputs, blocks.results, strict=True)]:
            if value is None or value not in self._tensors.of:
                return None
            ends.append(_End(*self._tensors.of[value], side))
        return ends

    def _find_port_ends(self, port: Port) -> list[_End] | None:
        if port not in self._free:
            return None
        graph = self._tensors.graph
        value = graph.inputs[port[1]] if port[0] else graph.outputs[port[1]]
        if value not in self._tensors.of:
            return None
        tensor, order = self._tensors.of[value]
        return [_End(tensor, order, _make_single_side(tensor.rank))]

    def _join(self, region: Region, unit: Unit) -> list[Tensor] | None:
        """Take a unit into a region; the tensors it leads to, None where it cannot be moved or does not fit."""
        ends = self._find_ends(unit)
        if ends is None:
            return None
        fitting = self._fit_unit(region, unit, ends)
        self.unsettled |= fitting is None
        return fitting

    def _find_image_order(self, rank: int) -> Order:
        """The order in which inputs and outputs may be, other than their own."""
        return make_channels_last(rank) if self._tensors.dialect.facts.channels == "last" else make_channels_first(rank)

    def _fit_unit(self, region: Region, unit: Unit, ends: list[_End]) -> list[Tensor] | None:
        known = [end for end in ends if not end.tensor.constant and end.tensor in region.pairs]
        if not known:
            return None
        guide = max(known, key=lambda end: sum(map(bool, end.side)))
        first, second = (
            find_arrangement(guide.side, find_permutation(guide.order, o)) for o in region.pairs[guide.tensor]
        )
        asis = make_identity(len(guide.side))
        if first is None or second is None or asis not in (first, second):
            return None
        blocks = self._tensors.find_blocks(unit) if isinstance(unit, ir.Node) else None
        if blocks is not None and not (blocks.can_arrange(first) and blocks.can_arrange(second)):
            return None
        if not isinstance(unit, ir.Node) and self._find_image_order(len(asis)) not in (first, second):
            return None
        reached: dict[Tensor, Pair] = {}
        for end in ends:
            if end.tensor.constant:
                continue
            need = _reach_order(end, first), _reach_order(end, second)
            if need[0] == need[1]:
                continue
            pair = reached.setdefault(end.tensor, self._pairs.get(end.tensor, need))
            if not _must_differ(end.tensor, need, pair) and (need != pair or self._is_elsewhere(end.tensor, region)):
                return None
        fresh = [tensor for tensor in reached if tensor not in self._pairs]
        for tensor in fresh:
            region.pairs[tensor] = self._pairs[tensor] = reached[tensor]
        region.units[unit] = first, second
        return fresh

    def _is_elsewhere(self, tensor: Tensor, region: Region) -> bool:
        """Whether another region decides on a tensor."""
        return tensor in self._pairs and tensor not in region.pairs

    def _is_first_preferred(self, region: Region) -> bool:
        """Whether the operators with a layout of their own have it first; the second wins when nothing is to gain."""
        balance = 0
        for tensor, pair in region.pairs.items():
            for node, order in _iterate_touching(tensor):
                spec = self._tensors.find_spec(node)
                if spec is not None and spec.facts.layout == IMPLICIT:
                    balance += (order == pair[1]) - (order == pair[0])
        return balance < 0

    def decide(self, region: Region) -> Iterator[tuple[Unit, Arrangement]]:
        """What each unit does at the least cost; what it does now, where more nodes would not be worth it."""
        problem, units = self.make_problem(region)
        choice = solve(problem)
        now = [one[1] == make_identity(len(one[1])) for one in region.units.values()]
        added = problem.count(choice, _NODE) - problem.count(now, _NODE)
        if added > 0 and problem.compute_cost(now)[0] - problem.compute_cost(choice)[0] < _START * added:
            choice = now
        for unit, second in zip(units, choice, strict=True):
            yield unit, region.units[unit][second]

    # ---- costs

    def make_problem(self, region: Region) -> tuple[Problem, Sequence[Unit]]:
        """What each choice in a region costs: elements, and in ties nodes and then bytes."""
        units = list(region.units)
        number = {unit: position for position, unit in enumerate(units)}
        terms: list[Term] = []
        for tensor, pair in region.pairs.items():
            terms += self._make_terms(tensor, pair, region, number)
        alone = {number[unit]: self._count_alone(unit, choices) for unit, choices in region.units.items()}
        return Problem(len(units), terms, {unit: costs for unit, costs in alone.items() if costs[0] != costs[1]}), units

    def _make_terms(self, tensor: Tensor, pair: Pair, region: Region, number: Mapping[Unit, int]) -> Iterator[Term]:
        """One term for the tensor, and one for each quantization of it, which is stored and moved apart."""

        def find_label(unit: Unit | None, order: Order, side: Side | None) -> int:
            """What decides on the order in which a unit has the tensor: the unit, or nothing that is open."""
            if unit not in number or unit is None or side is None:
                return _match_order(tensor, order, pair)
            first, second = (compose(order, find_order(side, choice)) for choice in region.units[unit])
            return (
                number[unit]
                if (first, second) == pair
                else _match_order(tensor, first, pair)
                if first == second
                else THIRD
            )

        producer = tensor.root.producer()
        if producer is None:
            made = find_label((True, self._inputs.get(tensor.root, -1)), tensor.own, _make_single_side(tensor.rank))
        else:
            blocks = self._tensors.find_blocks(producer) if producer in number else None
            made = find_label(
                producer, tensor.own, None if blocks is None else blocks.results[tensor.root.index() or 0]
            )
        nothing = are_alike(tensor.extents, *pair)
        users: dict[ir.Value, set[int]] = {}
        for use in tensor.uses:
            if self._is_read_for_extents(use.node):
                continue  # those of what is turned are had without turning it
            stored = use.stem[-1][0].outputs[0] if use.stem else tensor.root
            if use.node is None:
                found = find_label((False, use.position), use.order, _make_single_side(tensor.rank))
            else:
                blocks = self._tensors.find_blocks(use.node) if use.node in number else None
                found = find_label(use.node, use.order, None if blocks is None else blocks.operands.get(use.position))
            users.setdefault(stored, set()).add(found)
            self.unsettled |= found == THIRD
        for stored, numbers in users.items():
            bytes_ = 0 if nothing else min(_NODE - 1, max(1, int(stored.dtype.itemsize) if stored.dtype else 4))
            moved = 0 if nothing else count_elements(tensor.extents)
            yield Term(made, frozenset(numbers - {THIRD}), moved, _NODE + bytes_)

    def _count_reordered(self, node: ir.Node, blocks: Blocks, choice: Arrangement) -> int:
        """How many operands a run computes that need a node to be in another order."""
        spec = self._tensors.find_spec(node)
        if spec is None or COMPUTED not in spec.facts.remap_result.values():
            return 0
        changes = find_changes(node, spec, blocks, choice).values()
        return sum(isinstance(one, Reordered) and one.order != make_identity(len(one.order)) for one in changes)

    def _is_read_for_extents(self, node: ir.Node | None) -> bool:
        """Whether a node reads no elements of its operand."""
        spec = None if node is None else self._tensors.find_spec(node)
        return spec is not None and spec.facts.quantization == EXTENTS

    def _count_alone(self, unit: Unit, choices: tuple[Arrangement, Arrangement]) -> tuple[int, int]:
        """Operands of lower rank need a node where they are not aligned with the last axes any more, and extents that a
        run computes one to be in another order."""
        blocks = self._tensors.find_blocks(unit) if isinstance(unit, ir.Node) else None
        if blocks is None or not isinstance(unit, ir.Node):
            return 0, 0
        if not blocks.broadcasts:
            first, second = (self._count_reordered(unit, blocks, choice) for choice in choices)
            return _NODE * first, _NODE * second
        computed = [
            position
            for position, side in blocks.operands.items()
            if not all(side)
            and (value := unit.inputs[position]) is not None
            and not self._tensors.of[value][0].constant
        ]
        first, second = (sum(bool(blocks.find_gaps(position, choice)) for position in computed) for choice in choices)
        return _NODE * first, _NODE * second


def _make_single_side(rank: int) -> Side:
    return tuple((axis,) for axis in range(rank))


def _must_differ(tensor: Tensor, first: Pair, second: Pair) -> bool:
    """Whether no order of one pair is one of the other, so that the tensor is moved between them whatever is chosen."""
    return not any(are_alike(tensor.extents, one, other) for one in first for other in second)


def _match_order(tensor: Tensor, order: Order, pair: Pair) -> int:
    """Which of the two an order is: the very same, or one that the elements need not be moved for."""
    if order in pair:
        return FIRST if order == pair[0] else SECOND
    near = [are_alike(tensor.extents, order, known) for known in pair]
    return FIRST if near[0] else SECOND if near[1] else THIRD


def _iterate_touching(tensor: Tensor) -> Iterator[tuple[ir.Node, Order]]:
    producer = tensor.root.producer()
    if producer is not None:
        yield producer, tensor.own
    for use in tensor.uses:
        if use.node is not None:
            yield use.node, use.order


def _reach_order(end: _End, arranged: Arrangement) -> Order:
    return compose(end.order, find_order(end.side, arranged))


def _find_seeds(tensors: Iterable[Tensor]) -> list[tuple[Tensor, list[Pair]]]:
    """Tensors read in several orders with the pairs that may come of it, those that move most elements first."""
    found: list[tuple[int, Tensor, list[Pair]]] = []
    for tensor in tensors:
        orders = [order for order in dict.fromkeys(use.order for use in tensor.uses) if order != tensor.own]
        if orders and not tensor.constant:
            moves = count_elements(tensor.extents) * sum(not is_still(tensor.extents, order) for order in orders)
            orders.sort(key=lambda order: is_still(tensor.extents, order))
            found.append((moves, tensor, [(tensor.own, order) for order in orders]))
    found.sort(key=lambda seed: -seed[0])
    return [(tensor, pairs) for _, tensor, pairs in found]

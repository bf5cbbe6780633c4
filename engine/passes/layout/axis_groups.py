"""What an operator lets through: the axes of its operands and results in blocks that can stand in any order.

An operator commutes with a permutation of its operands if there is one of its results such that F'(x^s) = F(x)^s'. All
pairs (s, s') for which the F' that ops.yaml describes does so are the arrangements of one list of blocks: each block
is a run of axes in each operand and result, possibly an empty one, and an arrangement puts the blocks in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...base.constants import read_constant
from ...base.startup import dataclass
from ...dialects.inference import read_extents
from ...dialects.operators import OperatorSpec, get_option
from .order import Extents, Order
from .regroup import Axes, Opaque, Pairs, regroup
from .remap import COMPUTED, WORDS, Reordered

#: the axes of a tensor that belong to each block, in the blocks' original order
Side = tuple[Axes, ...]
#: block `arrangement[i]` stands at position i
Arrangement = tuple[int, ...]

TRANSPARENT, ATTRIBUTE = "transparent", "attribute"


@dataclass(frozen=True, slots=True)
class Slot:
    """A constant operand of a node that takes up a shuffle: along `axis`, from the element `start` on."""

    node: ir.Node
    position: int
    axis: int
    start: int


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks that a Reshape merges into one axis, or makes of one, and that may stand in any order side by side.

    The separate axes are the operand's where `given`, the result's otherwise; `shape` has their extents. What their
    order does to the merged axis is taken up by `slots`.
    """

    members: tuple[int, ...]
    given: bool
    shape: tuple[int, ...]
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one node: its operands that take part, by position, and its results.

    With `broadcasts`, operands of lower rank are aligned with the last axes of the result. Blocks that are `fixed` stay
    where they are.
    """

    operands: Mapping[int, Side]
    results: tuple[Side, ...]
    broadcasts: bool = False
    groups: tuple[Group, ...] = ()
    fixed: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self.results[0])

    def can_arrange(self, arrangement: Sequence[int]) -> bool:
        """Whether the members of each group stand side by side, but for axes that the merged value has not got, and no
        block that is fixed moves."""
        if any(arrangement[block] != block for block in self.fixed):
            return False
        for group in self.groups:
            merged = self.results[0] if group.given else next(iter(self.operands.values()))
            there = [block for block in arrangement if block in group.members or merged[block]]
            first = min(there.index(block) for block in group.members)
            if not set(there[first : first + len(group.members)]) <= set(group.members):
                return False
        return True

    def find_gaps(self, position: int, arrangement: Sequence[int]) -> list[int]:
        """Where an operand of lower rank needs axes of extent 1, so that broadcasting aligns it as before.

        Positions count the axes of the extended operand.
        """
        side = self.operands[position]
        if not self.broadcasts or all(side):
            return []
        leading = next((i for i, block in enumerate(arrangement) if side[block]), 0)
        later = [i - leading for i, block in enumerate(arrangement) if i > leading and not side[block]]
        return later if any(side) else []


def find_order(side: Side, arrangement: Arrangement) -> Order:
    """The order of a tensor's axes under an arrangement."""
    return tuple(axis for block in arrangement for axis in side[block])


def find_arrangement(side: Side, order: Order) -> Arrangement | None:
    """The arrangement that gives a tensor an order; None where the order tears a block apart.

    Blocks that the tensor has no axes of keep their position.
    """
    first = {axes[0]: block for block, axes in enumerate(side) if axes}
    found: list[int] = []
    at = 0
    while at < len(order):
        block = first.get(order[at])
        if block is None or order[at : at + len(side[block])] != side[block]:
            return None
        found.append(block)
        at += len(side[block])
    for block, axes in enumerate(side):
        if not axes:
            found.insert(block, block)
    return tuple(found)


def find_blocks(node: ir.Node, spec: OperatorSpec | None) -> Blocks | None:
    """The blocks of a node's axes; None for a node that nothing may be moved through."""
    category = spec.facts.layout if spec is not None else None
    if spec is None or not (category in (TRANSPARENT, ATTRIBUTE) or spec.facts.fixed):
        return None
    try:
        _check_category(node, spec)
        if spec.facts.fixed:
            return _fix_axes(node, spec)
        if category == TRANSPARENT:
            operands = tuple(None if value is None else require_extents(value) for value in node.inputs)
            return _align_broadcast(operands, tuple(len(require_extents(output)) for output in node.outputs))
        if (position := _find_places(node, spec)) is not None:
            axes = _list_axes(len(require_extents(node.outputs[0])))
            return Blocks({position: axes}, (axes,))
        found = _group_by_attribute(node, spec)
        _check_whole(node, found)
        find_changes(node, spec, found, tuple(range(found.count)))  # everything that will have to change is known
    except Opaque:
        return None
    return found


def _find_places(node: ir.Node, spec: OperatorSpec) -> int | None:
    """The position of the operand whose numbers are places in a list of one axis; the result has the axes of that."""
    if not spec.facts.replaces or len(require_extents(node.inputs[_find_data_operands(node, spec)[0]])) != 1:
        return None
    (operand,) = spec.facts.replaces.values()
    return find_place(spec, operand)


def _check_category(node: ir.Node, spec: OperatorSpec) -> None:
    """The category may hold only for some values of options; options that an opset has not got do not count."""
    for name, wanted in spec.facts.only.items():
        if name in spec.options and (get_option(node, spec.options[name]) or 0) != wanted:
            raise Opaque


def _check_whole(node: ir.Node, found: Blocks) -> None:
    """The blocks must cover the axes of what is there, or the node is not what its description says."""
    sides = [(node.inputs[position], side) for position, side in found.operands.items()]
    for value, side in [*sides, *zip(node.outputs, found.results, strict=True)]:
        if sum(map(len, side)) != len(require_extents(value)):
            raise Opaque


def read(node: ir.Node, spec: OperatorSpec, name: str) -> list[int] | None:
    """The numbers that an attribute or a constant operand holds, None where it is absent; raises Opaque for others."""
    if name in spec.options:
        value: Any = get_option(node, spec.options[name])
        return None if value is None else [int(v) for v in value] if isinstance(value, list) else [int(value)]
    if all(operand.name != name for operand in spec.operands):
        return None  # of a later opset
    position = find_place(spec, name)
    operand = node.inputs[position] if position < len(node.inputs) else None
    if operand is None:
        return None
    array = read_constant(operand)
    if array is None or array.dtype.kind not in "iu":
        raise Opaque
    return [int(number) for number in np.ravel(array)]


def find_place(spec: OperatorSpec, name: str) -> int:
    """The position of an operand; raises ValueError where the operator has none of that name."""
    return [operand.name for operand in spec.operands].index(name)


def find_changes(
    node: ir.Node, spec: OperatorSpec, found: Blocks, arranged: Arrangement
) -> dict[str, list[int] | Reordered]:
    """The attributes and operands of a node that differ under an arrangement of its blocks, with their new values."""
    if _find_places(node, spec) is not None:
        return {}  # what is picked from has one axis
    operand, result = (find_order(side, arranged) for side in (next(iter(found.operands.values())), found.results[0]))
    remap, remap_result = spec.facts.remap, spec.facts.remap_result
    values = {name: read(node, spec, name) for name, word in {**remap, **remap_result}.items() if word == "axes"}
    # Where axes are listed, the numbers for each axis go along that list and not along the tensor's axes.
    listed = any(value is not None for value in values.values())
    new: dict[str, list[int] | Reordered] = {}
    for words, order in ((remap, operand), (remap_result, result)):
        for name, word in words.items():
            if (listed and word.startswith("per_axis")) or (word == "axis" and is_per_tensor(node, spec)):
                continue
            if word == COMPUTED and _is_computed(node, spec, name):
                new[name] = Reordered(order)
                continue
            value = values[name] if name in values else read(node, spec, name)
            if value is None:
                continue
            if word.startswith("per_axis"):
                value = _complete(node, spec, value, len(order) * (1 if word in ("per_axis", COMPUTED) else 2))
            new[name] = WORDS[word](value, order, result)
    return new


def _is_computed(node: ir.Node, spec: OperatorSpec, name: str) -> bool:
    """Whether a run decides the numbers of an operand."""
    position = find_place(spec, name)
    operand = node.inputs[position] if position < len(node.inputs) else None
    return operand is not None and read_constant(operand) is None


def is_per_tensor(node: ir.Node, spec: OperatorSpec) -> bool:
    """Whether what can go along an axis, as scales do, is one element for the whole tensor: the axis means nothing."""
    along = spec.facts.along
    operand = node.inputs[find_place(spec, along)] if along is not None else None
    return operand is not None and operand.const_value is not None and operand.const_value.size == 1


def _complete(node: ir.Node, spec: OperatorSpec, value: list[int], wanted: int) -> list[int]:
    """Numbers for all axes: a shape that is broadcast has leading ones, 0 in a Reshape copies an extent."""
    if spec.facts.broadcasts:
        value = [1] * (wanted - len(value)) + value
    if spec.facts.regroups:
        shape = require_extents(node.outputs[0])
        numbers = [extent if isinstance(extent, int) else -1 for extent in shape]
        if numbers.count(-1) > 1 or 0 in numbers:
            raise Opaque
        value = numbers
    if len(value) != wanted:
        raise Opaque
    return value


# ---- one function for each way in which results' axes come of operands'


def _align_broadcast(shapes: tuple[Extents | None, ...], ranks: tuple[int, ...]) -> Blocks:
    """Axes align at the last one; operands that are alike in all orders stay out of it."""
    rank = ranks[0]
    # Bits read as wider or narrower numbers have an axis less or more.
    if any(other != rank for other in (*ranks, max(len(shape) for shape in shapes if shape is not None))):
        raise Opaque
    operands: dict[int, Side] = {}
    for position, shape in enumerate(shapes):
        if shape is None:
            continue
        if any(extent != 1 for extent in shape):
            missing = rank - len(shape)
            operands[position] = tuple((axis - missing,) if axis >= missing else () for axis in range(rank))
    if not operands:
        raise Opaque
    return Blocks(operands, (_list_axes(rank),) * len(ranks), broadcasts=True)


def _group_by_attribute(node: ir.Node, spec: OperatorSpec) -> Blocks:
    positions = _find_data_operands(node, spec)
    first = node.inputs[positions[0]]
    shape = require_extents(first)
    if any(len(require_extents(node.inputs[position])) != len(shape) for position in positions):
        raise Opaque
    facts = spec.facts
    if facts.broadcasts:
        rank = len(require_extents(node.outputs[0]))
        missing = rank - len(shape)
        side: Side = tuple((axis - missing,) if axis >= missing else () for axis in range(rank))
        return Blocks({positions[0]: side}, (_list_axes(rank),), broadcasts=True)
    if facts.regroups:
        return _group_pairs(positions[0], regroup(shape, require_extents(node.outputs[0])))
    if facts.permutes is not None:
        perm = read(node, spec, facts.permutes) or list(reversed(range(len(shape))))
        return _group_pairs(positions[0], [((axis,), (at,)) for at, axis in enumerate(perm)])
    if facts.inserts is not None:
        return _group_pairs(positions[0], _pair_inserted_axes(len(shape), read(node, spec, facts.inserts)))
    if facts.replaces:
        ((name, operand),) = facts.replaces.items()
        axis, into = read(node, spec, name), node.inputs[find_place(spec, operand)]
        return _group_pairs(positions[0], _pair_gathered_axis(len(shape), axis, len(require_extents(into))))
    keeps = facts.keeps
    if facts.removes is not None and (keeps is None or not get_option(node, spec.options[keeps])):
        axes = read(node, spec, facts.removes)
        if axes is None:
            return _group_pairs(positions[0], regroup(shape, require_extents(node.outputs[0])))
        gone = {axis % len(shape) for axis in axes}
        return _group_pairs(
            positions[0], _number_axes((axis,) if axis not in gone else None for axis in range(len(shape)))
        )
    side = _list_axes(len(shape))
    if facts.adjacent is not None:
        side = _join_axes(len(shape), read(node, spec, facts.adjacent) or [])
    if any(len(require_extents(output)) != len(shape) for output in node.outputs):
        raise Opaque
    return Blocks(dict.fromkeys(positions, side), (side,) * len(node.outputs))


def _fix_axes(node: ir.Node, spec: OperatorSpec) -> Blocks:
    """All axes apart, of which some have their place."""
    ranks = [len(require_extents(value)) for value in (node.inputs[0], *node.outputs)]
    narrow = [
        (require_extents(node.inputs[find_place(spec, name)]), axes) for name, axes in spec.facts.pointwise.items()
    ]
    if len({*ranks}) > 1 or any(shape[axis] != 1 for shape, axes in narrow for axis in axes):
        raise Opaque
    side = _list_axes(ranks[0])
    return Blocks({0: side}, (side,) * len(node.outputs), fixed=tuple([axis % ranks[0] for axis in spec.facts.fixed]))


def _find_data_operands(node: ir.Node, spec: OperatorSpec) -> list[int]:
    """The positions of the operands that hold data and no numbers of axes: those named, or else the first."""
    names = spec.facts.frame or [spec.operands[0].name]
    found: list[int] = []
    for name in names:
        at = find_place(spec, name)
        found += range(at, len(node.inputs)) if spec.operands[at].variadic else [at]
    if not found or any(position >= len(node.inputs) or node.inputs[position] is None for position in found):
        raise Opaque
    return found


def _group_pairs(position: int, pairs: Pairs) -> Blocks:
    return Blocks({position: tuple(a for a, _ in pairs)}, (tuple(b for _, b in pairs),))


def _list_axes(rank: int) -> Side:
    return tuple((axis,) for axis in range(rank))


def _join_axes(rank: int, axes: Sequence[int]) -> Side:
    """One block of the axes that are to stay side by side; raises Opaque where they do not stand so."""
    joined = tuple(sorted({axis % rank for axis in axes}))
    if not joined:
        return _list_axes(rank)
    first, last = joined[0], joined[-1]
    if joined != tuple(range(first, last + 1)):
        raise Opaque
    return (*_list_axes(first), joined, *((axis,) for axis in range(last + 1, rank)))


def _number_axes(kept: Iterable[Axes | None]) -> Pairs:
    """Axes that stay, numbered through in the result, and axes that go."""
    pairs: Pairs = []
    count = 0
    for axis, axes in enumerate(kept):
        pairs.append(((axis,), () if axes is None else (count,)))
        count += axes is not None
    return pairs


def _pair_inserted_axes(rank: int, axes: list[int] | None) -> Pairs:
    if axes is None:
        raise Opaque
    total = rank + len(axes)
    new = {axis % total for axis in axes}
    pairs: Pairs = []
    count = 0
    for axis in range(total):
        pairs.append(((), (axis,)) if axis in new else ((count,), (axis,)))
        count += axis not in new
    return pairs


def _pair_gathered_axis(rank: int, axis: list[int] | None, by: int) -> Pairs:
    """One axis becomes as many as the operand that picks from it has."""
    if axis is None or rank == 0:
        raise Opaque
    at = axis[0] % rank
    before: Pairs = [((i,), (i,)) for i in range(at)]
    after: Pairs = [((i,), (i + by - 1,)) for i in range(at + 1, rank)]
    return [*before, ((at,), tuple(range(at, at + by))), *after]


def require_extents(value: ir.Value | None) -> Extents:
    """The extents of a value; raises Opaque where not even their number is known."""
    found = None if value is None else read_extents(value)
    if found is None:
        raise Opaque
    return found

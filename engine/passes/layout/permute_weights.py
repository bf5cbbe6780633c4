"""Permutations of the elements along one axis ("shuffles"), folded into the constants that are read along it.

A Reshape that merges axes, or splits one, lets these axes through in any order as long as whatever is computed along
the merged axis tells its elements apart by constants alone: these are put in the same order, once and for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from ...dialects.inference import read_extents
from ...dialects.operators import Dialect, OperatorSpec, get_option
from .axis_groups import Blocks, Group, Slot, is_per_tensor, read, require_extents
from .regroup import Axes, Opaque
from .views import Tensor, TensorViews

#: tensors beyond which nobody looks: the weights that take a shuffle up are near by, or nowhere
_REACH = 32

#: an operand (True) or a result of a node, by its position, and one of its axes
Place = tuple[bool, int, int]


class Tensors(TensorViews):
    """The tensors of a graph, and what each node lets through, constants that take up another order counted in."""

    __slots__ = ("_blocks",)

    def __init__(self, graph: ir.Graph, dialect: Dialect, opset: int, copies: bool = True) -> None:
        super().__init__(graph, dialect, opset, copies)
        self._blocks: dict[ir.Node, Blocks | None] = {}

    def find_blocks(self, node: ir.Node) -> Blocks | None:
        """The blocks of a node of this graph, None where nothing may be moved through it."""
        if node not in self._blocks:
            plain = self.find_plain_blocks(node)
            found = None if plain is None else split_groups(self, node, plain)
            self._blocks[node] = found if found is not None and found.count > 1 else None
        return self._blocks[node]


def find_sources(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Where each element of the merged axes of a shape stood before the axes were put in an order."""
    return [int(at) for at in np.arange(int(np.prod(shape))).reshape(shape).transpose(order).ravel()]


def split_groups(tensors: TensorViews, node: ir.Node, found: Blocks) -> Blocks:
    """The blocks of a node with every run that may stand in any order parted into its axes."""
    spec = tensors.find_spec(node)
    if spec is None or not spec.facts.regroups:
        return found
    ((position, before),) = found.operands.items()
    pairs: list[tuple[Axes, Axes]] = []
    groups: list[Group] = []
    for a, b in zip(before, found.results[0], strict=True):
        group = _find_group(tensors, node, position, (a, b), len(pairs)) if min(len(a), len(b)) == 1 else None
        if group is None:
            pairs.append((a, b))
            continue
        groups.append(group)
        many, one = (a, b) if group.given else (b, a)
        parted = [((axis,), one if i == 0 else ()) for i, axis in enumerate(many)]
        pairs += parted if group.given else [(y, x) for x, y in parted]
    if not groups:
        return found
    return Blocks({position: tuple(a for a, _ in pairs)}, (tuple(b for _, b in pairs),), groups=tuple(groups))


def _find_group(tensors: TensorViews, node: ir.Node, position: int, run: tuple[Axes, Axes], first: int) -> Group | None:
    given = len(run[0]) > 1
    many, (one,) = run if given else (run[1], run[0])
    shape = [require_extents(node.inputs[position] if given else node.outputs[0])[axis] for axis in many]
    if len(many) == 1 or not all(isinstance(extent, int) for extent in shape):
        return None
    slots = _find_slots(tensors, node, (not given, 0 if given else position, one))
    if slots is None:
        return None
    members = tuple(range(first, first + len(many)))
    return Group(members, given, tuple(extent for extent in shape if isinstance(extent, int)), tuple(slots))


def _find_slots(tensors: TensorViews, regroup: ir.Node, where: Place) -> list[Slot] | None:
    """The constants that take up any shuffle along the merged axis of a node.

    None where something else would notice: an input or output, or an operator that does not treat all elements along
    the axis alike.
    """
    found: list[Slot] = []
    seen: set[tuple[ir.Node, Place]] = set()
    try:
        tensor, axis = _find_tensor(tensors, regroup, where)
        reached = {tensor: (axis, 0)}
        pending = [tensor]
        while pending:
            tensor = pending.pop()
            axis, start = reached[tensor]
            for node, touched in _list_neighbours(tensor, axis):
                if node is regroup or (node, touched) in seen:
                    continue
                for other_place, offset in list_linked_places(tensors, node, touched):
                    seen.add((node, other_place))
                    other, at = _find_tensor(tensors, node, other_place)
                    here = at, start + offset
                    if other.constant and other_place[0]:
                        found.append(Slot(node, other_place[1], other_place[2], start + offset))
                    elif other not in reached:
                        reached[other] = here
                        pending.append(other)
                    elif reached[other] != here:
                        return None
            if len(reached) > _REACH:
                return None
    except Opaque:
        return None
    return found


def _find_tensor(tensors: TensorViews, node: ir.Node, where: Place) -> tuple[Tensor, int]:
    """The tensor that stands at a place, and its axis; Opaque where the axis has scales of its own."""
    given, position, axis = where
    value = node.inputs[position] if given else node.outputs[position]
    if value is None or value not in tensors.of:
        raise Opaque
    tensor = tensors.of[value][0]
    while value is not None and value is not tensor.root:
        view = value.producer()
        if view is None:
            raise Opaque
        perm, spec = tensors.read_permutation(view), tensors.find_spec(view)
        if perm is not None:
            axis = perm[axis]
        elif spec is None or _is_axis_special(view, spec, axis, len(tensor.extents)):
            raise Opaque
        value = view.inputs[0]
    return tensor, axis


def _list_neighbours(tensor: Tensor, axis: int) -> Iterator[tuple[ir.Node, Place]]:
    """The node that yields a tensor and those that read it, with the axis as each has it."""
    producer = tensor.root.producer()
    if producer is None:
        raise Opaque
    yield producer, (False, tensor.root.index() or 0, axis)
    for use in tensor.uses:
        if use.node is None:
            raise Opaque
        yield use.node, (True, use.position, use.order.index(axis))


def list_linked_places(tensors: TensorViews, node: ir.Node, where: Place) -> list[tuple[Place, int]]:
    """All places whose elements must be in the same order as those at one place, and from which element on.

    Raises Opaque where a node tells elements along the axis apart by where they stand.
    """
    spec = tensors.find_spec(node)
    if spec is None or node.graph is not tensors.graph:
        raise Opaque
    if spec.facts.letters:
        return [(other, 0) for other in _link_letters(node, spec, where)]
    blocks = tensors.find_plain_blocks(node)
    given, position, axis = where
    if blocks is None or (given and position not in blocks.operands):
        raise Opaque
    side = blocks.operands[position] if given else blocks.results[position]
    block = next((at for at, axes in enumerate(side) if axes == (axis,)), None)
    if block is None:
        raise Opaque
    first = next(iter(blocks.operands.values()))[block]
    if first and _is_axis_special(node, spec, first[0], len(require_extents(node.inputs[next(iter(blocks.operands))]))):
        return _link_concatenated(node, spec, where, blocks.results[0][block])
    sides = [(True, at, other[block]) for at, other in blocks.operands.items()]
    sides += [(False, at, other[block]) for at, other in enumerate(blocks.results)]
    if any(len(axes) > 1 for _, _, axes in sides):
        raise Opaque  # what parts the axis tells its elements apart
    return [(other, 0) for other in _list_whole(node, [(g, p, axes[0]) for g, p, axes in sides if len(axes) == 1])]


def _is_axis_special(node: ir.Node, spec: OperatorSpec, axis: int, rank: int) -> bool:
    """Whether a node does something along one axis that it does not do along others."""
    words = spec.facts.remap
    values = {name: read(node, spec, name) for name in words}
    listed = any(words[name] == "axes" and value is not None for name, value in values.items())
    for name, value in values.items():
        if words[name].startswith("per_axis"):
            if not listed:
                return True
        elif value is None:
            if spec.facts.removes == name:
                return True
        elif any(number % rank == axis for number in value) and not is_per_tensor(node, spec):
            return True
    return False


def _link_concatenated(node: ir.Node, spec: OperatorSpec, where: Place, axes: Axes) -> list[tuple[Place, int]]:
    """Operands put one behind the other: each has its part of the result."""
    given, position, axis = where
    if not spec.facts.joins or not given:
        raise Opaque
    before = [require_extents(value)[axis] for value in node.inputs[:position]]
    if not all(isinstance(extent, int) for extent in before):
        raise Opaque
    return [(where, 0), ((False, 0, axes[0]), sum(extent for extent in before if isinstance(extent, int)))]


def _link_letters(node: ir.Node, spec: OperatorSpec, where: Place) -> list[Place]:
    """The places with the same letter in a product of matrices, whose last axes are named by letters."""
    places: dict[str, list[Place]] = {}
    letters = spec.facts.letters
    result = letters[spec.results[0].name]
    for position, value in enumerate(node.inputs):
        name = spec.operands[position].name
        if value is None:
            continue
        shape = read_extents(value)
        if name not in letters:
            if value.const_value is None or value.const_value.size != 1:
                raise Opaque
            continue
        swap = spec.facts.swaps.get(name)
        word = letters[name][::-1] if swap is not None and get_option(node, spec.options[swap]) else letters[name]
        if shape is None or (len(shape) < len(word) and not set(word) <= set(result)):
            raise Opaque
        for axis, letter in zip(range(len(shape))[::-1], word[::-1], strict=False):
            places.setdefault(letter, []).append((True, position, axis))
    rank = len(require_extents(node.outputs[0]))
    for axis, letter in zip(range(rank)[::-1], result[::-1], strict=False):
        places.setdefault(letter, []).append((False, 0, axis))
    found = next((group for group in places.values() if where in group), None)
    if found is None:
        raise Opaque
    return _list_whole(node, found)


def _list_whole(node: ir.Node, places: Sequence[Place]) -> list[Place]:
    """The places that have all the elements; those of extent 1 share theirs with all."""
    shapes = {where: require_extents(node.inputs[where[1]] if where[0] else node.outputs[where[1]]) for where in places}
    long = [where for where in places if shapes[where][where[2]] != 1]
    if len({shapes[where][where[2]] for where in long}) != 1:
        raise Opaque
    return long

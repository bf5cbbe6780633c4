"""A layout decision applied to the graph: nodes rewritten for their layout, permutations where two layouts meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ...base.constants import NUMBERS, Elements, find_trained, permute_elements, read_constant
from ...base.names import Scope
from ...base.provenance import RULE, SOURCE
from ...dialects.inference import read_extents
from ...dialects.literals import make_attribute
from ...dialects.permutations import make_permutation
from ...rewrite.operands import make_operands, split_attributes
from .axis_groups import Arrangement, find_changes, find_order, find_place
from .order import Order, compose, find_permutation, is_still, make_identity
from .permute_weights import Tensors, find_sources
from .problem import Unit
from .remap import Reordered
from .views import PERMUTE, Scaled, Tensor, Use

#: what takes the place of a rule in the provenance of nodes that the pass makes
PASS = "layout"

RESHAPE, EXTEND, PICK = "reshape", "extend", "pick"


class Layout:
    """Carries out decisions: `choices` says how each unit's blocks, or a port's axes, are to be arranged."""

    def __init__(self, tensors: Tensors, choices: Mapping[Unit, Arrangement], scope: Scope) -> None:
        self._tensors = tensors
        self._graph = tensors.graph
        self._choices = {unit: choice for unit, choice in choices.items() if choice != make_identity(len(choice))}
        self._scope = scope
        self._stored: dict[ir.Value, Order] = {}
        self._made: dict[tuple[object, ...], ir.Value] = {}
        #: operands that count axes and have been given new numbers
        self._counted: set[tuple[ir.Node, int]] = set()
        #: constant operands that take shuffles up: the axis, the first element, and where each comes from
        self._shuffles: dict[tuple[ir.Node, int], list[tuple[int, int, list[int]]]] = {}

    def apply(self) -> None:
        """Rewrite the graph; operators keep their order."""
        for unit, choice in self._choices.items():
            if isinstance(unit, ir.Node):
                self._rearrange_node(unit, choice)
            elif unit[0]:
                self._note_order(self._graph.inputs[unit[1]], choice)
        for tensor in self._tensors.all:
            for use in tensor.uses:
                if not self._is_settled(tensor, use):
                    self._connect(tensor, use)
        for node in reversed(list(dict.fromkeys(self._tensors.views))):
            self._drop(node)

    # ---- nodes

    def _rearrange_node(self, node: ir.Node, choice: Arrangement) -> None:
        """Make a node compute the same in another order."""
        spec, blocks = self._tensors.find_spec(node), self._tensors.find_blocks(node)
        if spec is None or blocks is None:
            raise ValueError(f"{node.name} cannot be moved")
        for name, value in find_changes(node, spec, blocks, choice).items():
            if name in spec.options:
                node.attributes[name] = make_attribute(spec.options[name], value)
            else:
                position = find_place(spec, name)
                self._counted.add((node, position))
                old = node.inputs[position]
                new = (
                    self._reorder(old, value.order)
                    if isinstance(value, Reordered)
                    else self._make_numbers(old, value, name)
                )
                node.replace_input_with(position, new)
        for output, side in zip(node.outputs, blocks.results, strict=True):
            self._note_order(output, find_order(side, choice))
        for group in blocks.groups:
            order = [group.members.index(block) for block in choice if block in group.members]
            for slot in group.slots if order != sorted(order) else ():
                shuffles = self._shuffles.setdefault((slot.node, slot.position), [])
                shuffles.append((slot.axis, slot.start, find_sources(group.shape, order)))

    def _make_numbers(self, old: ir.Value | None, value: Sequence[int], name: str) -> ir.Value:
        before = read_constant(old) if old is not None else None
        array = np.array(value, np.int64 if before is None else before.dtype)
        shaped = array if before is None or before.size != array.size else array.reshape(before.shape)
        return self._scope.register(self._scope.make_constant(shaped, name))

    def _reorder(self, numbers: ir.Value | None, order: Order) -> ir.Value | None:
        """The numbers of one axis in another order."""
        if numbers is None or order == make_identity(len(order)):
            return numbers
        key = numbers, "reordered", order
        if key not in self._made:
            self._made[key] = self._make_counting(PICK, numbers, list(order))
            self._made[key].shape = numbers.shape
        return self._made[key]

    def _note_order(self, value: ir.Value, order: Order) -> None:
        """Record that a value is stored in another order from here on."""
        self._stored[value] = order
        if value.shape is not None:
            value.shape = ir.Shape([value.shape[axis] for axis in order])
        if NUMBERS in value.meta:
            real = value.meta[NUMBERS]
            value.meta[NUMBERS] = lambda: np.transpose(real(), order)

    # ---- uses

    def _is_settled(self, tensor: Tensor, use: Use) -> bool:
        """Whether a use has the tensor as it is stored, and neither has changed."""
        return (
            use.node is not None
            and use.node.inputs[use.position] is tensor.root
            and tensor.root not in self._stored
            and use.node not in self._choices
            and (use.node, use.position) not in self._shuffles
        )

    def _connect(self, tensor: Tensor, use: Use) -> None:
        """Give a use the tensor in the order that it now wants."""
        if use.node is None:
            choice = self._choices.get((False, use.position))
            order = use.order if choice is None else compose(use.order, choice)
            self._graph.outputs[use.position] = self._make_view(tensor, use, order)
            return
        if (use.node, use.position) in self._counted:
            return
        choice = self._choices.get(use.node)
        blocks = self._tensors.find_blocks(use.node) if choice is not None else None
        if choice is None or blocks is None or use.position not in blocks.operands:
            wanted, gaps = use.order, []
        else:
            wanted = compose(use.order, find_order(blocks.operands[use.position], choice))
            gaps = blocks.find_gaps(use.position, choice)
        value = self._make_view(tensor, use, wanted)
        if gaps:
            value = self._insert_axes(value, gaps)
        if use.node.inputs[use.position] is not value:
            use.node.replace_input_with(use.position, value)
        if (use.node, use.position) in self._shuffles:
            for output in use.node.outputs:
                output.meta.pop(NUMBERS, None)  # which were those of the elements as they stood

    def _make_view(self, tensor: Tensor, use: Use, order: Order) -> ir.Value:
        """A tensor, or what quantizes and dequantizes it, in an order."""
        value, has = self._permute_constant(tensor, use), self._stored.get(tensor.root, tensor.own)
        for scaled in use.stem:
            value = self._requantize(value, scaled, has)
        value = self._permute(value, find_permutation(has, order))
        for scaled in use.chain:
            value = self._requantize(value, scaled, order)
        return value

    def _permute_constant(self, tensor: Tensor, use: Use) -> ir.Value:
        """A constant with its elements in the orders that a use wants them in; any other tensor as it is."""
        shuffles = self._shuffles.get((use.node, use.position)) if use.node is not None else None
        array = read_constant(tensor.root) if shuffles else None
        if shuffles is None or array is None:
            return tensor.root
        for axis, start, taken in shuffles:
            along = use.order[axis]
            before, after = np.arange(start), np.arange(start + len(taken), array.shape[along])
            array = np.take(array, [*before, *(start + at for at in taken), *after], along)
        return self._fold_constant(tensor.root, ("shuffled", repr(shuffles)), array)

    def _requantize(self, value: ir.Value, scaled: Scaled, order: Order) -> ir.Value:
        """What quantizes or dequantizes, over a tensor that stands in an order."""
        node, saw = scaled
        spec = self._tensors.find_spec(node)
        if spec is None or (node.inputs[0] is value and saw == order):
            return node.outputs[0]
        key = value, node, order
        if key not in self._made:
            blocks = self._tensors.find_blocks(node)
            perm = find_permutation(saw, order)
            attributes = dict(node.attributes)
            if blocks is not None:
                for name, number in find_changes(node, spec, blocks, perm).items():
                    attributes[name] = make_attribute(spec.options[name], number)
            inputs = [value, *node.inputs[1:]]
            copy = self._make_node(node.op_type, inputs, attributes.values(), node.outputs[0].dtype, value)
            copy.metadata_props.update(node.metadata_props)
            self._made[key] = copy.outputs[0]
            copy.outputs[0].shape = value.shape
        return self._made[key]

    def _permute(self, value: ir.Value, perm: Order) -> ir.Value:
        if perm == make_identity(len(perm)):
            return value
        if value.is_initializer() and (moved := permute_elements(value, perm)) is not None:
            return self._fold_constant(value, ("permuted", perm), moved)
        key = value, perm
        if key in self._made:
            return self._made[key]
        shape = read_extents(value)
        if shape is None:
            raise ValueError(f"{value.name} has no rank")
        # Of orders that differ in axes of extent 1 alone, one is made and the others are read off it.
        free = sum(not isinstance(extent, int) for extent in shape) <= 1
        alike = (value, "alike", tuple(axis for axis in perm if shape[axis] != 1))
        if free and is_still(shape, perm):
            made = self._reshape(value, [shape[axis] for axis in perm])
        elif free and alike in self._made:
            made = self._reshape(self._made[alike], [shape[axis] for axis in perm])
        elif key in self._tensors.permutations and value not in self._stored:
            made = self._made[alike] = self._tensors.permutations[key]
        else:
            spec = self._tensors.dialect.find_role(PERMUTE)
            operands, attributes = make_permutation(spec, value, perm, self._scope)
            made = self._make_node(
                spec.name, list(map(self._scope.register, operands)), attributes, value.dtype, value
            ).outputs[0]
            self._made[alike] = made
        if value.shape is not None:
            made.shape = ir.Shape([value.shape[axis] for axis in perm])
        self._made[key] = made
        return made

    def _reshape(self, value: ir.Value, wanted: Sequence[int | str | None]) -> ir.Value:
        to = [extent if isinstance(extent, int) else -1 for extent in wanted]
        return self._make_counting(RESHAPE, value, to)

    def _make_counting(self, role: str, value: ir.Value, numbers: list[int]) -> ir.Value:
        """Make a node of the operator of a role, which takes numbers as its second operand."""
        dialect, opset = self._tensors.dialect, self._tensors.opset
        spec = dialect.find_role(role, opset)
        given, attributes = split_attributes(spec, [value, numbers], opset)
        operands = make_operands(spec, given, self._scope)
        inputs = [None if operand is None else self._scope.register(operand) for operand in operands]
        return self._make_node(spec.name, inputs, attributes, value.dtype, value).outputs[0]

    def _insert_axes(self, value: ir.Value, gaps: Sequence[int]) -> ir.Value:
        if value.const_value is not None and value.is_initializer() and (array := read_constant(value)) is not None:
            return self._fold_constant(value, ("extended", tuple(gaps)), np.expand_dims(array, tuple(gaps)))
        key = value, "extended", tuple(gaps)
        if key not in self._made:
            if self._tensors.dialect.has_role(EXTEND):
                made = self._make_counting(EXTEND, value, list(gaps))
            else:
                known = iter(read_extents(value) or ())
                rank = len(read_extents(value) or ()) + len(gaps)
                made = self._reshape(value, [1 if axis in gaps else next(known) for axis in range(rank)])
            if value.shape is not None:
                rest = iter(value.shape)
                rank = len(value.shape) + len(gaps)
                made.shape = ir.Shape([1 if axis in gaps else next(rest) for axis in range(rank)])
            self._made[key] = made
        return self._made[key]

    def _fold_constant(self, value: ir.Value, how: tuple[object, ...], elements: Elements) -> ir.Value:
        key = (value, *how)
        if key not in self._made:
            self._made[key] = self._scope.register(
                self._scope.make_constant(elements, value.name or "constant", find_trained([value]))
            )
        return self._made[key]

    # ---- the graph

    def _make_node(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr],
        dtype: ir.DataType | None,
        after: ir.Value,
    ) -> ir.Node:
        """A node right behind the one that yields `after`, or first of all."""
        node = ir.Node(self._tensors.dialect.domain, operator, inputs, attributes, num_outputs=1)
        output = node.outputs[0]
        output.type = None if dtype is None else ir.TensorType(dtype)
        output.name = self._scope.make_name(f"{after.name}/{operator}")
        node.name = output.name
        producer = after.producer()
        node.metadata_props[RULE] = PASS
        node.metadata_props[SOURCE] = after.name or "" if producer is None else producer.metadata_props.get(SOURCE, "")
        if producer is not None and producer.graph is self._graph:
            self._graph.insert_after(producer, [node])
        else:
            self._graph.insert_before(self._graph[0], [node])
        return node

    def _drop(self, node: ir.Node) -> None:
        if node.graph is not None and not any(o.uses() or o.is_graph_output() for o in node.outputs):
            self._graph.remove(node, safe=True)

"""Where the samples of a batch stand in each value of a graph, and what its constants say of their number.

Nodes are gone over in their order with the inferred shapes of one batch and of another: the axis whose extent differs
has the samples. Constants that say a shape are said anew. A reshape may leave it open on which axis the samples stand
then; the choices are tried in turn, as what reads the result tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ..base.quantization import EXTENTS
from ..base.startup import dataclass, field, replace
from ..dialects.extents import complete
from ..dialects.inference import InferenceError, infer, make_shape
from ..dialects.operators import OperatorSpec, get_option
from .base import Module
from .known import PARTS

Shape = tuple[int, ...]

#: an end that no axis has
_END = np.iinfo(np.int64).max
#: how often a node is looked at in the mean before the search for places ends
_VISITS = 20
#: the layout of operators whose operands have samples, channels and places, in this order
_IMAGES = "implicit"


class BatchError(Exception):
    """A node that does not take another number of samples, and why."""

    def __init__(self, node: ir.Node, why: str) -> None:
        super().__init__(why)
        self.node, self.why = node, why


@dataclass(frozen=True, slots=True)
class BatchAxis:
    """The axis with the samples: `before` times all of them, each with `after` elements along it."""

    axis: int
    before: int = 1
    after: int = 1


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The shapes of values, and the operands, by their nodes and places, that are constant."""

    shapes: Mapping[ir.Value, Shape | None] = field(default_factory=dict)
    constants: Mapping[tuple[ir.Node, int], ir.TensorProtocol] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """The number of samples before, and the one to be had, None where a run tells it."""

    old: int
    new: int | None

    @property
    def tried(self) -> int:
        """The number that shapes are inferred with."""
        return self.new or 2 * self.old


@dataclass(frozen=True, slots=True)
class RunTimeExtents:
    """Extents whose entry at `axis` is the number of samples, which a run reads from `value` along the same axis.

    With `repeats` a constant is to be repeated to them.
    """

    extents: Shape
    axis: int
    value: ir.Value
    repeats: bool


class Samples:
    """The places of samples in the values of a graph, found out from those of its inputs.

    `known` is of values with the old number of samples. `places` has what was found, `changes` the constants to be put
    in the place of operands, `computed` the extents that a run tells. Raises BatchError with the first node that does
    not take another number.
    """

    def __init__(self, module: Module, counts: SampleCounts, known: KnownValues, inputs: Sequence[ir.Value]) -> None:
        self._dialect, self._opset, self._counts = module.source, module.opset, counts
        self._shapes, self._constants = known.shapes, known.constants
        self.places: dict[ir.Value, BatchAxis] = {}
        self.changes: dict[tuple[ir.Node, int], np.ndarray] = {}
        self.computed: dict[tuple[ir.Node, int], RunTimeExtents] = {}
        for value in inputs:
            self._put(value, BatchAxis(0))
        self._search(list(module.graph))

    def _search(self, nodes: Sequence[ir.Node]) -> None:
        """Follow the nodes; where one objects, go back to the last reshape with a place that was not tried."""
        choices: dict[int, list[BatchAxis]] = {}
        first: BatchError | None = None
        number, visits = 0, 0
        while number < len(nodes):
            visits += 1
            try:
                self._follow(nodes[number], number, choices)
                number += 1
            except BatchError as error:
                first = first or error
                while choices and len(choices[max(choices)]) < 2:
                    del choices[max(choices)]
                if not choices or visits > _VISITS * len(nodes):
                    raise first from None
                number = max(choices)
                choices[number].pop(0)

    def _follow(self, node: ir.Node, number: int, choices: dict[int, list[BatchAxis]]) -> None:
        """Find the places of samples in the results of a node; `choices` has those still to be tried at a reshape."""
        for result in node.outputs:
            self.places.pop(result, None)
            shape = self._shapes.get(result)
            result.shape = None if shape is None else make_shape(shape)
        for at in range(len(node.inputs)):
            self.changes.pop((node, at), None)
            self.computed.pop((node, at), None)
        carriers = [(value, self.places[value]) for value in node.inputs if value is not None and value in self.places]
        spec = self._dialect.find_operator(node.op_type, self._opset) if carriers else None
        if not carriers or (spec is not None and spec.facts.quantization == EXTENTS):
            return
        if spec is None or spec.domain != node.domain:
            raise BatchError(node, "nothing is known of it")
        (value, found), *_ = carriers
        read, shape = self._shapes.get(value), self._shapes.get(node.outputs[0])
        if read is None or shape is None:
            return  # a run tells
        facts = spec.facts
        self._follow_operands(node, spec)
        if facts.regroups and facts.extents and value is node.inputs[0]:
            if number not in choices:
                choices[number] = self._list_places(read, shape, found)
            if not choices[number]:
                raise BatchError(node, f"it makes a value of the shape {[*shape]} whatever its operand is")
            self._follow_reshape(node, spec, shape, choices[number][0])
        elif facts.broadcasts and facts.extents and value is node.inputs[0]:
            self._follow_broadcast(
                node, spec, read[found.axis], replace(found, axis=found.axis + len(shape) - len(read))
            )
        elif self._follow_same_axis(node, spec, value, shape):
            self._put(node.outputs[0], found)
        else:
            self._follow_by_inference(node, spec, carriers)

    def _follow_operands(self, node: ir.Node, spec: OperatorSpec) -> None:
        """Refuse samples where elements meet, and let constants have as many as the operands beside them."""
        carrier = next(value for value in node.inputs if value is not None and value in self.places)
        axes = {spec.operands[0].name: 0} if spec.facts.layout == _IMAGES else spec.facts.samples
        axes = axes or dict.fromkeys(spec.facts.frame, self.places[carrier].axis)
        for at, operand in enumerate(node.inputs):
            axis = axes.get(spec.operands[at].name) if at < len(spec.operands) else None
            if operand is None or axis is None:
                continue
            found = self.places.get(operand)
            if found is None:
                self._repeat(node, at, carrier, axis)
            elif found.axis != axis:
                raise BatchError(node, "it works along the samples")

    def _put(self, value: ir.Value, place: BatchAxis) -> None:
        """Let a value of a known shape have the samples at a place."""
        shape = self._shapes.get(value)
        if shape is not None:
            extents = list(shape)
            extents[place.axis] = place.before * self._counts.tried * place.after
            value.shape = make_shape(tuple(extents))
            self.places[value] = place

    def _list_places(self, read: Shape, shape: Shape, found: BatchAxis) -> list[BatchAxis]:
        """Where the samples may stand once elements in their order have another shape."""
        ahead = math.prod(read[: found.axis]) * found.before
        places = []
        for axis, extent in enumerate(shape):
            before, rest = divmod(ahead, math.prod(shape[:axis]) or 1)
            after, part = divmod(extent, before * self._counts.old or 1)
            if not rest and not part and after:
                places.append(BatchAxis(axis, before, after))
        return sorted(places, key=lambda place: (place.before > 1, place.after > 1))

    def _follow_reshape(self, node: ir.Node, spec: OperatorSpec, shape: Shape, found: BatchAxis) -> None:
        """Say the new shape of a reshape that has the samples at a place, in a constant."""
        at, said = self._read(node, spec, next(iter(spec.facts.extents)))
        if said is not None:
            extents = [*shape]
            extents[found.axis] = -1 if self._counts.new is None else found.before * self._counts.new * found.after
            self.changes[node, at] = np.array(extents, said.dtype)
        self._put(node.outputs[0], found)

    def _follow_broadcast(self, node: ir.Node, spec: OperatorSpec, extent: int, found: BatchAxis) -> None:
        """Say that the result has as many samples as the operand, whose axis had an extent, in a constant shape."""
        at, said = self._read(node, spec, next(iter(spec.facts.extents)))
        shape = self._shapes[node.outputs[0]] or ()
        axis = found.axis - len(shape)
        if shape[axis] != extent:
            raise BatchError(node, "it repeats the samples")
        if said is not None and len(said) >= -axis:
            self.changes[node, at] = said.copy()
            self.changes[node, at][axis] = 1  # as many as the operand has
        self._put(node.outputs[0], found)

    def _follow_same_axis(self, node: ir.Node, spec: OperatorSpec, value: ir.Value, shape: Shape) -> bool:
        """Let constants of a node whose result has the samples on the same axis follow them; False where none do."""
        if spec.facts.joins is not None and self._follow_join(node, spec, value, shape):
            return True
        if spec.facts.span and self._follow_slice(node, spec, value):
            return True
        if spec.facts.frame:  # elements are picked and put among those of their own sample
            self._check_batch_axis(node, spec, shape, self.places[value])
            return True
        return bool(spec.facts.extents) and self._follow_sizes(node, spec, value, shape)

    def _follow_join(self, node: ir.Node, spec: OperatorSpec, value: ir.Value, shape: Shape) -> bool:
        """Repeat constants that stand beside each sample; False where values are joined along the samples' axis."""
        axis, found = int(get_option(node, spec.options[f"{spec.facts.joins}"])) % len(shape), self.places[value]
        if axis == found.axis:
            return False
        for at, operand in enumerate(node.inputs):
            if operand is not None and self.places.get(operand, found) != found:
                raise BatchError(node, "it joins values that have the samples in different places")
            if operand is None or operand in self.places:
                continue
            self._repeat(node, at, value, found.axis)
        return True

    def _repeat(self, node: ir.Node, at: int, value: ir.Value, axis: int) -> None:
        """Repeat a constant operand along an axis for each of the samples that stand beside it in a value."""
        operand, tensor, found = node.inputs[at], self._constants.get((node, at)), self.places[value]
        if tensor is None:
            raise BatchError(node, f"it reads {operand and operand.name}, which does not follow the samples")
        extents, new = tuple(tensor.shape.numpy()), self._counts.new
        if new is None and self._can_read(found) and extents[axis] == 1 and axis == found.axis:
            self.computed[node, at] = RunTimeExtents(extents, axis, value, repeats=True)
        elif new is not None and new % self._counts.old == 0 and found.before == 1:
            self.changes[node, at] = np.concatenate([tensor.numpy()] * (new // self._counts.old), axis)
        else:
            raise BatchError(node, f"it reads a constant of the shape {[*extents]} with each sample")

    def _can_read(self, found: BatchAxis) -> bool:
        """Whether a run can tell the number of samples from a value."""
        return found.before == found.after == 1 and self._opset >= PARTS

    def _follow_slice(self, node: ir.Node, spec: OperatorSpec, value: ir.Value) -> bool:
        """Let a part that has all samples have them all again; False where other axes alone are cut."""
        (_, starts), (at, ends), (_, steps), (_, axes) = (self._read(node, spec, name) for name in spec.facts.span)
        read, found = self._shapes[value] or (), self.places[value]
        if starts is None or ends is None:
            return False
        listed = [axis % len(read) for axis in (range(len(starts)) if axes is None else axes.tolist())]
        if found.axis not in listed:
            return False
        place = listed.index(found.axis)
        if starts[place] != 0 or ends[place] < read[found.axis] or (steps is not None and steps[place] != 1):
            raise BatchError(node, "it takes a part of the samples")
        self.changes[node, at] = ends.copy()
        self.changes[node, at][place] = min(_END, np.iinfo(ends.dtype).max)
        return True

    def _follow_sizes(self, node: ir.Node, spec: OperatorSpec, value: ir.Value, shape: Shape) -> bool:
        """Let a constant with all extents of the result say the new number of samples; False where there is none."""
        found = self.places[value]
        for name in spec.facts.extents:
            at, said = self._read(node, spec, name)
            if said is None or len(said) != len(shape):
                continue
            if self._counts.new is not None:
                self.changes[node, at] = said.copy()
                self.changes[node, at][found.axis] = found.before * self._counts.new * found.after
            elif self._can_read(found):
                self.computed[node, at] = RunTimeExtents(tuple(said.tolist()), found.axis, value, repeats=False)
            else:
                raise BatchError(node, f"{name} says how many samples there are")
            return True
        return False

    def _read(self, node: ir.Node, spec: OperatorSpec, name: str) -> tuple[int, np.ndarray | None]:
        """The place of an operand and its elements as a list, None where it is not there or no constant."""
        place = spec.find_operand(name)
        at = len(node.inputs) if place is None else place
        tensor = self._constants.get((node, at))
        return at, None if tensor is None else tensor.numpy().ravel()

    def _check_batch_axis(self, node: ir.Node, spec: OperatorSpec, shape: Shape, found: BatchAxis) -> None:
        """Raise BatchError where a node works along the axis of the samples."""
        for option in (name for name, kind in spec.facts.remap.items() if kind == "axis"):
            _, said = self._read(node, spec, option)
            axes = get_option(node, spec.options[option]) if option in spec.options else said
            if axes is not None and found.axis in np.ravel(axes) % len(shape):
                raise BatchError(node, "it works along the samples")

    def _follow_by_inference(
        self, node: ir.Node, spec: OperatorSpec, carriers: Sequence[tuple[ir.Value, BatchAxis]]
    ) -> None:
        """Find the axis whose extent another number of samples changes."""
        read = [(self._shapes[value] or (), place) for value, place in carriers]
        first, found = read[0]
        if carriers[0][0] is node.inputs[0] and not spec.facts.along:
            # The axes of the first operand are counted: rows that samples choose from a table have no samples.
            self._check_batch_axis(node, spec, first, found)
        try:
            inferred = complete(node, spec, self._opset, infer(node, self._opset))
        except InferenceError as error:
            raise BatchError(node, f"{error}") from error
        carried = False
        for result, one in zip(node.outputs, inferred, strict=True):
            shape = self._shapes.get(result)
            if shape is None or one.shape is None or len(one.shape) != len(shape):
                carried = True  # a run tells
                continue
            known = [axis for axis, new in enumerate(one.shape) if isinstance(new, int)]
            changed = [axis for axis in known if one.shape[axis] != shape[axis]]
            if not changed and len(known) < len(shape):
                # Extents that are computed; what is as long as it was along the samples' axis has them there.
                for extents, place in read:
                    if len(extents) == len(shape) and extents[place.axis] == shape[place.axis]:
                        self._put(result, place)
                carried = True
            if not changed:
                continue
            [axis, *others] = changed
            old, new = shape[axis], one.shape[axis]
            if others or not isinstance(new, int) or new * self._counts.old != old * self._counts.tried:
                raise BatchError(node, f"it makes a value of the shape {[*one.shape]} of {self._counts.tried} samples")
            kept = self._find_carrier(spec, read, shape, axis)
            if kept is None:
                raise BatchError(node, "it puts the samples together with others")
            self._put(result, replace(kept, axis=axis))
            carried = True
        if not carried and any(result.uses() or result.is_graph_output() for result in node.outputs):
            raise BatchError(node, "it puts the samples together")

    def _find_carrier(
        self, spec: OperatorSpec, read: Sequence[tuple[Shape, BatchAxis]], shape: Shape, axis: int
    ) -> BatchAxis | None:
        """Which operand's samples are along the axis of a result of a `shape`; None where they are put together."""
        first, found = read[0]
        old = shape[axis]
        alike = (place for extents, place in read if extents and extents[place.axis] == old)
        kept = next(alike, BatchAxis(axis) if old == self._counts.old else None)
        if kept is None and "view" in spec.traits:
            kept = next((p for p in self._list_places(first, shape, found) if p.axis == axis), None)
        return kept

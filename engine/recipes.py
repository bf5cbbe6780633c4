"""What a template made of a node, kept to be made of the next node like it: networks repeat themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import onnx_ir as ir

from .errors import Span
from .inference import SHAPE_DATA, Inferred, describe, shaped
from .likeness import TOLD, Likeness
from .operators import OperatorSpec
from .records import dataclass
from .scope import is_shared

#: a value: the place of an operand or a result of the root, or of what a step made; or a constant that templates share
Ref: TypeAlias = "int | ir.Value | None"


@dataclass(frozen=True, slots=True)
class Made:
    """A node to be made, with what its results are; of the source dialect they are what the root's are."""

    domain: str
    operator: str
    operands: tuple[Ref, ...]
    attributes: dict[str, ir.Attr]
    count: int
    results: tuple[tuple[ir.DataType | None, ir.Shape | None], ...]
    inherits: bool


@dataclass(frozen=True, slots=True)
class Computed:
    """Constants to be computed of constants, by an operator or, where the axes of one are reordered, by `perm`."""

    spec: OperatorSpec | None
    operands: tuple[Ref, ...]
    attributes: tuple[ir.Attr, ...]
    count: int
    perm: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of a template, and for each result of the root, by place, the value that is put there instead."""

    span: Span
    steps: tuple[Made | Computed, ...]
    results: tuple[tuple[int, int], ...]


class Maker(Protocol):
    """What makes nodes of a template's calls."""

    nodes: list[ir.Node]

    def make(
        self, span: Span | None, spec: OperatorSpec, operands: list[Any], attributes: Sequence[ir.Attr], count: int
    ) -> list[ir.Value]:
        """Make a node, or what it computes where all that it reads is constant; its results."""

    def permute(self, value: ir.Value, perm: Sequence[int]) -> ir.Value:
        """A value with its axes in another order."""

    def inherit(self, node: ir.Node) -> None:
        """Let a node rebuilt in the source dialect yield what the root yields."""


def repeat(recipe: Recipe, root: ir.Node, builder: Maker) -> list[tuple[ir.Value, ir.Value]]:
    """Make what a template made of a node like the root; each result of the root with what takes its place."""
    values: list[Any] = [*root.inputs, *root.outputs]
    for step in recipe.steps:
        inputs: list[Any] = [values[ref] if type(ref) is int else ref for ref in step.operands]
        if isinstance(step, Computed):
            if step.spec is None:
                values.append(builder.permute(inputs[0], step.perm))
            else:
                values += builder.make(None, step.spec, inputs, step.attributes, step.count)
            continue
        node = ir.Node(step.domain, step.operator, inputs, num_outputs=step.count)
        node.attributes.data.update(step.attributes)
        builder.nodes.append(node)
        if step.inherits:
            builder.inherit(node)
        describe(node, step.results)
        values += node.outputs
    return [(values[before], values[after]) for before, after in recipe.results]


class Recorder:
    """Takes down what a builder makes of a node, as long as all of it hangs on the likeness of the node alone."""

    __slots__ = ("_complete", "_count", "_made", "_operands", "_places", "_spoilt", "_steps")

    def __init__(self, root: ir.Node, like: Likeness) -> None:
        self._complete = like.complete
        self._steps: list[Made | Computed] = []
        #: the nodes that steps make, and the values that there are before the next one
        self._made = 0
        self._count = len(root.inputs) + len(root.outputs)
        self._operands = len(root.inputs)
        self._places: dict[ir.Value, int] = {}
        for place, value in enumerate((*root.inputs, *root.outputs)):
            if value is not None:
                self._places.setdefault(value, place)
        #: whether something was made that cannot be made again by itself
        self._spoilt = False

    def made(self, node: ir.Node, operands: Sequence[Any], inferred: Sequence[Inferred] | None = None) -> None:
        """Take down a node, made of what a template names; of the source dialect where nothing is inferred of it."""
        if inferred is not None and not self._complete:
            open_ends = any(one.shape is None or None in one.shape for one in inferred)
            self._spoilt = self._spoilt or any(self._told_by(value, open_ends) for value in operands)
        results: tuple[tuple[ir.DataType | None, ir.Shape | None], ...] = tuple(
            (one.dtype, None if one.shape is None else shaped(one.shape)) for one in inferred or ()
        )
        attributes = dict(node.attributes.data)
        taken = self._taken(operands, node.inputs)
        count = len(node.outputs)
        self._steps.append(Made(node.domain, node.op_type, taken, attributes, count, results, inferred is None))
        self._made += 1
        self._add(node.outputs)

    def computed(
        self,
        spec: OperatorSpec,
        operands: Sequence[Any],
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr],
        results: Sequence[ir.Value],
    ) -> None:
        """Take down constants that an operator yields of constants."""
        taken = self._taken(operands, inputs)
        self._steps.append(Computed(spec, taken, tuple(attributes), len(results)))
        self._add(results)

    def reordered(self, value: ir.Value, perm: Sequence[int], result: ir.Value) -> None:
        """Take down the codes of a constant with their axes in another order."""
        self._steps.append(Computed(None, self._taken((value,), (value,)), (), 1, tuple(perm)))
        self._made += 1
        self._add((result,))

    def recipe(self, span: Span, nodes: Sequence[ir.Node], pairs: Sequence[tuple[ir.Value, ir.Value]]) -> Recipe | None:
        """What was taken down; None where that is not all that was made, or hangs on more than the likeness."""
        results = tuple((self._places.get(before, -1), self._places.get(after, -1)) for before, after in pairs)
        whole = self._made == len(nodes) and all(before >= 0 <= after for before, after in results)
        return Recipe(span, tuple(self._steps), results) if whole and not self._spoilt else None

    def _taken(self, operands: Sequence[Any], inputs: Sequence[ir.Value | None]) -> tuple[Ref, ...]:
        """Where operands come from: a value has a place, of numbers in a template a constant was made."""
        found: list[Ref] = []
        for operand, value in zip(operands, inputs, strict=False):
            if type(operand) is ir.Value:
                found.append(self._places.get(operand, -1))
                self._spoilt = self._spoilt or operand not in self._places
            else:
                found.append(value)
                self._spoilt = self._spoilt or (value is not None and not is_shared(value))
        return tuple(found)

    def _add(self, results: Sequence[ir.Value]) -> None:
        for value in results:
            # A constant that is there already may be another one next time.
            self._spoilt = self._spoilt or value in self._places
            self._places[value] = self._count
            self._count += 1

    def _told_by(self, value: Any, open_ends: bool) -> bool:
        """Whether inference may have looked at elements that the likeness does not tell."""
        tensor = value.const_value if type(value) is ir.Value and not value.is_graph_input() else None
        if tensor is None or tensor.size > SHAPE_DATA:
            return False
        if not (tensor.dtype.is_integer() or tensor.dtype == ir.DataType.BOOL):
            return open_ends
        return tensor.size > TOLD or self._places.get(value, self._operands) >= self._operands

"""Programs that write to tensors as programs that do not: what a tensor is after each write, views included.

Tensors that share their elements share a `Storage`, which has the value of the whole; each is reached from it by the
nodes that made views. A write makes a new whole, and what is read later through another view is taken from that anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from ..engine.base.startup import dataclass
from ..engine.dialects.operators import OperatorSpec

#: makes a node like another that views the first value: the view of a new whole
Repeat = Callable[[ir.Node, int, ir.Value], ir.Value]
#: makes the whole (first value) anew with a view of it, made by a node, that has become the second value
Restore = Callable[[ir.Node, int, ir.Value, ir.Value], ir.Value]


@dataclass(slots=True, eq=False)
class Storage:
    """Elements that tensors share: the value of the whole, and how often it was written to."""

    whole: ir.Value
    version: int = 0


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor of a program: the storage that it is of, the nodes and results by which it views that, and its value
    as of a version."""

    storage: Storage
    steps: tuple[tuple[ir.Node, int], ...]
    value: ir.Value
    version: int = 0

    @classmethod
    def make_own(cls, value: ir.Value) -> Tensor:
        """A tensor that shares nothing."""
        return cls(Storage(value), (), value)

    def make_view(self, node: ir.Node, result: int) -> Tensor:
        """The tensor that a node makes of this one, and that shares its elements."""
        return Tensor(self.storage, (*self.steps, (node, result)), node.outputs[result], self.storage.version)

    def read(self, repeat: Repeat) -> ir.Value:
        """The value of the tensor as it is now."""
        if self.version != self.storage.version:
            value = self.storage.whole
            for node, result in self.steps:
                value = repeat(node, result, value)
            self.value, self.version = value, self.storage.version
        return self.value

    def write(self, value: ir.Value, repeat: Repeat, restore: Restore) -> None:
        """Let the tensor, and so all that share its elements, have a new value."""
        wholes = [self.storage.whole]
        for node, result in self.steps[:-1]:
            wholes.append(repeat(node, result, wholes[-1]))
        whole = value
        for (node, result), around in zip(reversed(self.steps), reversed(wholes), strict=bool(self.steps)):
            whole = restore(node, result, around, whole)
        self.storage.whole = whole
        self.storage.version += 1
        self.value, self.version = value, self.storage.version


def restore_whole(
    node: ir.Node, operators: Mapping[str, OperatorSpec], whole: ir.Value, parts: Sequence[ir.Value], result: int
) -> ir.Node | None:
    """The node that writes a view back: it yields `whole` with the part that the view took replaced.

    `node` is the view, `parts` are the values of all that it yields, and the one at `result` is new. None where
    ops.yaml does not say which operator undoes the view's.
    """
    spec = operators[node.op_type]
    way = spec.facts.restores
    if way is None:
        return None
    inverse = operators[way]
    named = {operand.name: value for operand, value in zip(spec.operands, node.inputs, strict=False)}
    places = [operand.name for operand in inverse.operands]
    given = {"self": whole, "src": parts[result]} if "src" in places else {"self": parts[result], "other": whole}
    joined = inverse.operands[0].variadic
    return ir.Node(
        inverse.domain,
        inverse.name,
        parts if joined else [given.get(place, named.get(place)) for place in places],
        [attribute for attribute in node.attributes.values() if attribute.name in inverse.options],
        outputs=[ir.Value(type=whole.type, shape=whole.shape)],
        metadata_props=node.metadata_props,
    )

"""The layout of a graph's inputs and outputs: that of the source, that of the target, or one given by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

from ...base.errors import CallError
from ...base.names import Scope
from ...base.startup import dataclass, field
from ...dialects.inference import read_extents
from ...dialects.operators import Dialect
from ...dialects.permutations import make_permutation
from .order import Order, invert
from .views import PERMUTE

#: the key of a model's metadata that says what was asked, and with a dot and a tensor's name what became of it
LAYOUT = "nnrewrite.layout"

SOURCE_ORDER, TARGET_ORDER = "source", "target"

#: True for an input, and its position
Port = tuple[bool, int]

#: what axes are called where nobody named them, by rank
_LETTERS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


@dataclass(frozen=True, slots=True)
class Interface:
    """What is asked of inputs and outputs: `mode` for all, `named` for single ones, as the axes' letters before and
    after.
    """

    mode: str = SOURCE_ORDER
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: str | Iterable[str]) -> Interface:
        """Read `source`, `target` and `NAME=NHWC:NCHW`; raises CallError for anything else."""
        mode, named = SOURCE_ORDER, {}
        for text in (texts,) if isinstance(texts, str) else texts:
            name, found, axes = text.rpartition("=")
            before, colon, after = axes.partition(":")
            if not found and text in (SOURCE_ORDER, TARGET_ORDER):
                mode = text
            elif name and colon and len(set(before)) == len(before) and sorted(before) == sorted(after):
                named[name] = before, after
            else:
                raise CallError(
                    f"layout {text} is neither {SOURCE_ORDER}, {TARGET_ORDER} nor of the form NAME=NHWC:NCHW"
                )
        return cls(mode, named)

    def __str__(self) -> str:
        return ", ".join([self.mode, *(f"{name}={':'.join(axes)}" for name, axes in self.named.items())])


#: inputs and outputs as they are in the source
SOURCE_INTERFACE = Interface()


def find_ports(interface: Interface, inputs: Sequence[str], outputs: Sequence[str]) -> dict[Port, tuple[str, str]]:
    """The inputs and outputs that are named; raises CallError where a name is neither."""
    found: dict[Port, tuple[str, str]] = {}
    for name, axes in interface.named.items():
        named = [(True, i) for i, n in enumerate(inputs) if n == name]
        named += [(False, i) for i, n in enumerate(outputs) if n == name]
        if not named:
            raise CallError(
                f"layout {name}: the model has the inputs {_join_names(inputs)} and the outputs {_join_names(outputs)}"
            )
        found.update(dict.fromkeys(named, axes))
    return found


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"


def insert_permutation(scope: Scope, dialect: Dialect, port: Port, axes: tuple[str, str]) -> Order:
    """Give an input or output another order of axes, by a permutation behind or before it; that order is returned.

    Raises CallError where the tensor has another number of axes.
    """
    graph = scope.graph
    value = (graph.inputs if port[0] else graph.outputs)[port[1]]
    shape = read_extents(value)
    if shape is None or len(shape) != len(axes[0]):
        rank = "an unknown number of" if shape is None else len(shape)
        raise CallError(f"layout {axes[0]}:{axes[1]}: {value.name} has {rank} axes")
    order = tuple(axes[0].index(letter) for letter in axes[1])
    perm = invert(order) if port[0] else order
    spec = dialect.find_role(PERMUTE)
    operands, attributes = make_permutation(spec, value, perm, scope)
    for operand in operands[1:]:
        graph.register_initializer(operand)
    node = ir.Node(spec.domain, spec.name, operands, attributes, num_outputs=1)
    made = node.outputs[0]
    made.name = node.name = scope.make_name(f"{value.name}/layout")
    made.type = value.type
    if port[0]:
        made.shape, value.shape = value.shape, _permute_shape(value, order)
        for user, position in list(value.uses()):
            if user is not node:
                user.replace_input_with(position, made)
        for position, output in enumerate(graph.outputs):
            if output is value:
                graph.outputs[position] = made
        first = next(iter(graph), None)
        graph.append(node) if first is None else graph.insert_before(first, [node])
    else:
        made.shape = _permute_shape(value, order)
        graph.append(node)
        graph.outputs[port[1]] = made
    return order


def _permute_shape(value: ir.Value, order: Order) -> ir.Shape | None:
    return None if value.shape is None else ir.Shape([value.shape[axis] for axis in order])


def make_channels_first(rank: int) -> Order:
    """The order that brings the last axis behind the first."""
    return (0, rank - 1, *range(1, rank - 1))


def make_channels_last(rank: int) -> Order:
    """The order that brings the axis behind the first to the end."""
    return (0, *range(2, rank), 1)


def format_order(order: Sequence[int]) -> str:
    """An order of axes as letters before and after."""
    letters = _LETTERS.get(len(order)) or "".join(chr(ord("A") + axis) for axis in range(len(order)))
    if len(order) in _LETTERS and tuple(order) == make_channels_last(len(order)) != make_channels_first(len(order)):
        letters = "".join(letters[axis] for axis in make_channels_first(len(order)))
    return f"{letters}:{''.join(letters[axis] for axis in order)}"

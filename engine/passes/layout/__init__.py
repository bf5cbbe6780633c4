"""The layout pass: every operator that can be moved runs in the axis order that moves the fewest elements.

Permutations stand where operators with a layout of their own need them. The pass decides for every other operator
between the two orders that meet there, by an exact minimum cut, and puts permutations where the decisions differ.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from ...base.errors import CallError
from ...base.names import Scope
from ...base.startup import dataclass
from ...dialects.inference import read_extents
from ...dialects.operators import Dialect
from ...rewrite.edits import remove_unused
from ..base import Module, Visit
from .axis_groups import Arrangement
from .interface import (
    LAYOUT,
    SOURCE_INTERFACE,
    SOURCE_ORDER,
    TARGET_ORDER,
    Interface,
    Port,
    find_ports,
    format_order,
    insert_permutation,
)
from .order import Order, compose, make_identity
from .permute_weights import Tensors
from .placement import Layout
from .problem import Regions, Unit
from .views import PERMUTE

#: rounds, each with another pair of orders for tensors that are read in three or more, and for what is bound to them
_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class PlaceTransposes:
    """Place permutations where layouts meet, as few and small as can be.

    `interface` says what is asked of the inputs and outputs of the main graph, which are to be called `outputs`; bodies
    of nodes keep theirs. Without `copies`, no large constant is stored in two orders.
    """

    interface: Interface
    outputs: tuple[str, ...]
    copies: bool = True
    name, visits = "layout", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Arrange one graph; raises CallError where the interface names what the graph has not got, or state."""
        if module.depth:
            arrange(module.names.make_inner(module.graph), module.target, module.opset, copies=self.copies)
        else:
            outputs = (*self.outputs, *module.state.values())
            state = frozenset((*module.state, *module.state.values()))
            module.layouts.update(
                arrange(module.names, module.target, module.opset, self.interface, outputs, state, self.copies)
            )
        remove_unused(module.graph)


def arrange(
    scope: Scope,
    dialect: Dialect,
    opset: int,
    interface: Interface = SOURCE_INTERFACE,
    outputs: tuple[str, ...] = (),
    state: frozenset[str] = frozenset(),
    copies: bool = True,
) -> dict[str, str]:
    """Place the permutations of a graph of one dialect, whose outputs are to be called `outputs`.

    What the graph computes stays as it is, up to the order of axes of the inputs and outputs that `interface` names or
    leaves open. Those that are called `state` keep theirs: they are fed to each other, and have initial values.
    Returned are the inputs and outputs with another order than before, as letters before and after. Raises CallError
    where the interface names what the graph has not got, or state. Without `copies`, no large constant is stored in
    two orders.
    """
    graph = scope.graph
    inputs = [value.name or "" for value in graph.inputs]
    names = outputs or tuple(value.name or "" for value in graph.outputs)
    changed: dict[Port, str] = {}
    if carried := sorted(state & interface.named.keys()):
        raise CallError(f"layout {carried[0]}: it carries state from one call to the next, which keeps its layout")
    named = find_ports(interface, inputs, names)
    for port, axes in named.items():
        insert_permutation(scope, dialect, port, axes)
        if axes[0] != axes[1]:
            changed[port] = ":".join(axes)
    free: frozenset[Port] = frozenset()
    if interface.mode == TARGET_ORDER:
        fixed = {
            (given, i) for given, side in ((True, inputs), (False, names)) for i, n in enumerate(side) if n in state
        }
        free = frozenset(_open(graph) - set(named) - fixed)
    turned = _place_all(scope, dialect, opset, free, copies)
    changed |= {port: format_order(order) for port, order in turned.items() if order != make_identity(len(order))}
    return {(inputs if given else names)[position]: axes for (given, position), axes in changed.items()}


def _open(graph: ir.Graph) -> set[Port]:
    """Inputs and outputs with space between the batch and the channels."""
    sides = ((True, graph.inputs), (False, graph.outputs))
    return {(given, i) for given, side in sides for i, value in enumerate(side) if len(read_extents(value) or ()) > 2}


def _place_all(scope: Scope, dialect: Dialect, opset: int, free: frozenset[Port], copies: bool) -> Mapping[Port, Order]:
    """Decide and carry it out, until nothing is left to decide; the orders that free inputs and outputs got."""
    tried: set[tuple[ir.Value, tuple[Order, Order]]] = set()
    turned: dict[Port, Order] = {}
    if not free and not _has_permutation(scope.graph, dialect):
        return turned
    for _ in range(_ROUNDS):
        tensors = Tensors(scope.graph, dialect, opset, copies)
        regions = Regions(tensors, free)
        choices: dict[Unit, Arrangement] = {}
        for region in regions.grow(tried):
            choices.update(regions.decide(region))
        Layout(tensors, choices, scope).apply()
        for unit, order in choices.items():
            if not isinstance(unit, ir.Node):
                turned[unit] = compose(turned.get(unit, make_identity(len(order))), order)
        if not choices or not regions.unsettled:
            break
    return turned


def _has_permutation(graph: ir.Graph, dialect: Dialect) -> bool:
    permute = dialect.find_role(PERMUTE)
    return any(node.op_type == permute.name and node.domain == dialect.domain for node in graph)


__all__ = ["LAYOUT", "SOURCE_INTERFACE", "SOURCE_ORDER", "Interface", "PlaceTransposes"]

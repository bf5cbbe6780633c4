"""The layout pass: every operator that can be moved runs in the axis order that moves the fewest elements.

Permutations stand where operators with a layout of their own need them. The pass decides for every other operator
between the two orders that meet there, by an exact minimum cut, and puts permutations where the decisions differ.
"""

from __future__ import annotations

import onnx_ir as ir

from ..builder import Scope
from ..operators import Dialect
from .apply import Layout
from .cut import solve
from .region import Port, Regions
from .tensors import Tensors

#: rounds, each with another pair of orders for tensors that are read in three or more
_ROUNDS = 4


def arrange(scope: Scope, dialect: Dialect, opset: int, free: frozenset[Port] = frozenset()) -> None:
    """Place the permutations of a graph of one dialect; `free` are inputs and outputs that may change their layout.

    What the graph computes stays as it is, up to the order of axes at those inputs and outputs.
    """
    tried: set[tuple[ir.Value, tuple[tuple[int, ...], tuple[int, ...]]]] = set()
    for _ in range(_ROUNDS):
        tensors = Tensors(scope.graph, dialect, opset)
        regions = Regions(tensors, free)
        choices = {}
        for region in regions.grow(tried):
            problem, units = regions.problem(region)
            second = solve(problem)
            for unit, chosen in zip(units, second, strict=True):
                choices[unit] = region.units[unit][chosen]
        Layout(tensors, choices, scope).apply()
        if not choices:
            return

"""The matcher: tries the ways in which a rule's left side fits at a node, until one is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import onnx_ir as ir

from ..base.budget import Budget
from ..expressions.compile import OPSET
from .conditions import Guard
from .pattern import Defined, is_connected, map_names
from .pattern_search import Bindings, Holds, Made, Note, Search, Then


class Matcher:
    """The left side of a rule, compiled: its equations, matched from the last one, the root.

    Where equations meet in a value that they share, guards are asked for, and asked as soon as what they speak of is
    bound. With `codes` constants may be codes, which are not the numbers that the model computes with.
    """

    __slots__ = ("_codes", "_definers", "_equations", "_guards")

    def __init__(self, equations: Sequence[Defined], guards: Callable[[], Iterable[Guard]], codes: bool = True) -> None:
        self._equations, self._codes = equations, codes
        self._definers = map_names(equations)
        self._guards = () if is_connected(equations, self._definers) else tuple(guards())

    def search(
        self,
        node: ir.Node,
        accept: Then[Made],
        opset: int,
        graphs: Sequence[ir.Graph] = (),
        budget: Budget | None = None,
        holds: Holds | None = None,
        note: Note | None = None,
    ) -> Made | None:
        """What `accept` makes of the first way to fit that it takes, the root at `node`; None where it takes none.

        `graphs` are those that options name by number. Raises TooManyError beyond the attempts of the budget.
        """
        found = Search(self._definers, graphs, budget or Budget(), holds, note, self._codes)
        root, guards = self._equations[-1], self._guards if holds is not None else ()

        def match_others(bound: Bindings) -> Made | None:
            return found.extend(self._equations, guards, bound, accept)

        return found.match_equation(root, node, {OPSET: opset}, accept if len(self._equations) == 1 else match_others)

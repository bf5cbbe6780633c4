"""How much one rule may compute and build at one node, so that no rule file goes on for ever or fills the memory."""

from __future__ import annotations

from typing import Any

#: steps of one attempt: calls of definitions, items of lists, nodes looked at
STEPS = 1 << 22
#: nodes that one template may build
NODES = 1 << 17
#: bits of the longest integer
BITS = 1 << 12


class Exhausted(Exception):
    """A rule that has spent all it may, in words."""


class Budget:
    """What is left of the steps and nodes of one attempt."""

    __slots__ = ("_nodes", "_steps")

    def __init__(self, steps: int = STEPS, nodes: int = NODES) -> None:
        self._steps, self._nodes = steps, nodes

    def step(self) -> None:
        """Spend one step; raises Exhausted after the last."""
        self._steps -= 1
        if self._steps < 0:
            raise Exhausted(f"takes more than {STEPS:,} steps at one node")

    def node(self) -> None:
        """Spend one node; raises Exhausted after the last."""
        self._nodes -= 1
        if self._nodes < 0:
            raise Exhausted(f"builds more than {NODES:,} nodes for one")

    def items(self, value: list[Any]) -> list[Any]:
        """The list itself, once a step is spent for each item in it, and in the lists in it."""
        pending = [value]
        while pending:
            found = pending.pop()
            self._steps -= len(found)
            if self._steps < 0:
                self.step()  # the one that is not there
            pending += [item for item in found if type(item) is list]
        return value

"""Budgets: how much one rule may compute and build at one node, so that none runs for ever or fills the memory."""

from __future__ import annotations

from typing import Any

#: steps of one attempt: calls of definitions, items of lists
STEPS = 1 << 22
#: nodes that one template may build
NODES = 1 << 17
#: bits of the longest integer
BITS = 1 << 12
#: what a pattern may be held against at one root in the smallest graph: nodes, and divisions of lists
ATTEMPTS = 1 << 14


class Exhausted(Exception):
    """A rule that has spent all it may, in words."""


class TooManyError(Exception):
    """A pattern that could fit at one root in more ways than are tried, in words."""


def limit_attempts(size: int) -> int:
    """Bound how often a pattern is tried at one root of a graph of `size` nodes: in the order of n log n."""
    return max(ATTEMPTS, 8 * size * size.bit_length())


class Budget:
    """What is left of the attempts, steps and nodes of one rule at one root."""

    __slots__ = ("_attempts", "_nodes", "_steps", "tried")

    def __init__(self, steps: int = STEPS, nodes: int = NODES, attempts: int = STEPS) -> None:
        self._steps, self._nodes, self._attempts = steps, nodes, attempts
        #: how often the pattern was held against a node, or a list was divided for it
        self.tried = 0

    def spend_attempt(self) -> None:
        """Spend one attempt; raises TooManyError after the last."""
        self.tried += 1
        if self.tried > self._attempts:
            raise TooManyError(f"its pattern could fit in more than {self._attempts:,} ways")

    def spend_step(self) -> None:
        """Spend one step; raises Exhausted after the last."""
        self._steps -= 1
        if self._steps < 0:
            raise Exhausted(f"takes more than {STEPS:,} steps at one node")

    def spend_node(self) -> None:
        """Spend one node; raises Exhausted after the last."""
        self._nodes -= 1
        if self._nodes < 0:
            raise Exhausted(f"builds more than {NODES:,} nodes for one")

    def spend_items(self, value: list[Any]) -> list[Any]:
        """Spend one step for each item of a list, and of the lists in it; the list itself."""
        pending = [value]
        while pending:
            found = pending.pop()
            self._steps -= len(found)
            if self._steps < 0:
                self.spend_step()  # the one that is not there
            pending += [item for item in found if type(item) is list]
        return value

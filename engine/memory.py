"""What became of rules at nodes, so that the next node like one of them is neither matched nor built by a template."""

from __future__ import annotations

import onnx_ir as ir

from .likeness import Likeness, Likenesses
from .recipes import Recipe, Recorder
from .rules import Rule

_Order = tuple[int, int, int, int]

#: how many outcomes are known at a time
_MOST = 1 << 16


class Memory:
    """The outcomes of rules about one node that look at nothing else, by what the node looks like."""

    __slots__ = ("_known", "_last", "_likenesses")

    def __init__(self) -> None:
        self._likenesses = Likenesses()
        self._known: dict[tuple[_Order, int], Recipe | None] = {}
        #: the node that was looked at last, which several rules are tried on
        self._last: tuple[ir.Node, Likeness | None] | None = None

    def turn(self) -> None:
        """Look anew at the next node, which may have changed since."""
        self._last = None

    def likeness(self, rule: Rule, node: ir.Node) -> Likeness | None:
        """What a node looks like, where that alone may say what becomes of a rule."""
        if rule.local is None:
            return None
        if self._last is None or self._last[0] is not node:
            self._last = node, self._likenesses.of(node)
        like = self._last[1]
        return None if like is None or (rule.local.matches and not like.complete) else like

    def knows(self, rule: Rule, like: Likeness) -> bool:
        """Whether it is known what becomes of a rule at such a node."""
        return (rule.order, like.number) in self._known

    def recipe(self, rule: Rule, like: Likeness) -> Recipe | None:
        """What is known to be made; None where the rule does not take such nodes."""
        return self._known[rule.order, like.number]

    def tells(self, rule: Rule, held: int, like: Likeness | None) -> bool:
        """Whether the likeness decides on the first clause that does not hold, after so many that do."""
        local = rule.local
        return local is not None and like is not None and held < (local.told if like.complete else local.clauses)

    def recorder(self, rule: Rule, root: ir.Node, like: Likeness | None) -> Recorder | None:
        """What takes down the template of a rule that looks at the node alone."""
        local = rule.local
        if like is None or local is None or not local.templates or (local.elements and not like.complete):
            return None
        return Recorder(root, like)

    def keep(self, rule: Rule, like: Likeness, recipe: Recipe | None) -> None:
        """Remember what becomes of a rule at such nodes."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[rule.order, like.number] = recipe

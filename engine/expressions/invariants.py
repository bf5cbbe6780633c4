"""Loop-invariant code motion: parts of a loop's body that are the same for each item, computed once."""

from __future__ import annotations

from typing import Any

from ..syntax import tree
from ..syntax.tree_traversal import rebuild, walk
from .functions import FUNCTIONS
from .functions.registry import fail


def hoist_invariants(
    body: tree.Expression, names: frozenset[str]
) -> tuple[tree.Expression, dict[str, tree.Expression]]:
    """The body of a loop over some names, with names in place of what calls functions of none of them, and these parts.

    Only what each turn computes is hoisted: no branch of a condition, and nothing that makes nodes or fails.
    """
    found: dict[str, tree.Expression] = {}

    def hoist(part: Any) -> Any:
        if isinstance(part, tree.Conditional | tree.Comprehension | tree.Fold | tree.GraphOf):
            return part
        if isinstance(part, tree.Binary) and part.operator in ("and", "or"):
            return part
        if isinstance(part, tree.Call) and _is_invariant(part, names):
            name = f"invariant {len(found)}"  # which no rule can say
            found[name] = part
            return tree.Name(name, part.span)
        return rebuild(part, hoist)

    return hoist(body), found


def _is_invariant(call: tree.Call, names: frozenset[str]) -> bool:
    """Whether a call computes the same whatever some names stand for."""
    for node in walk(call):
        if isinstance(node, tree.Name | tree.Symbol) and node.name in names:
            return False
        if isinstance(node, tree.GraphOf | tree.Member | tree.Conditional | tree.Comprehension | tree.Fold):
            return False
        if isinstance(node, tree.Call) and (node.callee not in FUNCTIONS or node.callee == fail.__name__):
            return False
        if isinstance(node, tree.Argument) and node.layout is not None:
            return False
    return True

"""Which nodes compute with complex numbers, and which rules know of them."""

from __future__ import annotations

import onnx_ir as ir

from ..expressions.functions import is_complex
from ..syntax import tree
from ..syntax.tree_traversal import walk
from .rules import Rule


def is_complex_node(node: ir.Node) -> bool:
    """Whether a node takes or yields complex numbers."""
    return any(is_complex(value) for value in (*node.inputs, *node.outputs) if value is not None)


def inherit_part_type(node: ir.Node, root: ir.Node) -> bool:
    """Give a node that does to real numbers what another does to complex ones the types of its parts; whether it is
    one."""
    if not any(map(is_complex, root.outputs)) or any(map(is_complex, node.inputs)):
        return False
    for output, old in zip(node.outputs, root.outputs, strict=False):
        output.type, output.shape = old.type, None if old.shape is None else ir.Shape(old.shape[:-1])
    return True


def is_about_complex(rule: Rule) -> bool:
    """Whether a rule asks which values are complex; one that does not speaks of real numbers alone."""
    calls = (one for one in walk((rule.clauses, rule.templates)) if isinstance(one, tree.Call))
    return any(call.callee == is_complex.__name__ for call in calls)

"""What a rule looks at: a node's own options, types, extents and small constants, or what stands around it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .functions import FUNCTIONS
from .functions.registry import ELEMENTS, GRAPH
from .language import tree
from .pattern import AnyOf, Defined, NodePattern, Number, Variable, nodes
from .records import dataclass


@dataclass(frozen=True, slots=True)
class Locality:
    """Of a rule about one node: how many of its first clauses, and whether its templates, look at the node alone.

    `elements` says that it looks at the elements of constants among the operands.
    """

    clauses: int
    templates: bool
    elements: bool


def locality(
    rule: tree.Rule, equations: Sequence[Defined], definitions: Mapping[str, tree.Definition]
) -> Locality | None:
    """What a rule with a compiled left side looks at; None for one about several nodes."""
    if is_deep(equations):
        return None
    read = [_reads(clause, definitions) for clause in rule.clauses]
    local = next((i for i, found in enumerate(read) if GRAPH in found), len(read))
    made = _reads(rule.templates, definitions)
    elements = any(ELEMENTS in found for found in (*read[:local], made)) or _constants(equations)
    return Locality(local, local == len(read) and GRAPH not in made, elements)


def is_deep(equations: Sequence[Defined]) -> bool:
    """Whether a left side covers more than one node."""
    operands = (operand for equation in equations for node in nodes(equation.value) for operand in node.operands)
    return len(equations) > 1 or any(isinstance(operand, NodePattern | AnyOf) for operand in operands)


def _reads(node: Any, definitions: Mapping[str, tree.Definition]) -> set[str]:
    """What the functions look at that an expression calls, and those that its definitions call in turn."""
    found: set[str] = set()
    work, seen = [node], set()
    while work:
        for one in tree.walk(work.pop()):
            if isinstance(one, tree.GraphOf):
                found.add(GRAPH)
            if not isinstance(one, tree.Call):
                continue
            if one.callee in FUNCTIONS:
                found.add(FUNCTIONS[one.callee].reads)
            elif one.callee in definitions and one.callee not in seen:
                seen.add(one.callee)
                work.append(definitions[one.callee].body)
    return found


def _constants(equations: Sequence[Defined]) -> bool:
    """Whether operands are compared with numbers or bound to elements."""
    operands = (operand for node in nodes(equations[-1].value) for operand in node.operands)
    return any(isinstance(operand, Number) or (isinstance(operand, Variable) and operand.const) for operand in operands)

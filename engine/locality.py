"""What a rule looks at: a node's own options, types, extents and small constants, or what stands around it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from .functions import FUNCTIONS
from .functions.registry import ELEMENTS, GRAPH
from .language import tree
from .pattern import AnyOf, Defined, NodePattern, Number, Variable, nodes
from .records import dataclass

#: the `calls` of each definition by its name
Definitions = Mapping[str, tuple[set[str], set[str]]]


@dataclass(frozen=True, slots=True)
class Locality:
    """Of a rule about one node: how many of its first clauses, and whether its templates, look at the node alone.

    `clauses` are those that look at no elements of its operands, `told` those that may. `matches` says that the pattern
    compares elements, `elements` that anything looks at them.
    """

    clauses: int
    told: int
    templates: bool
    matches: bool
    elements: bool


def locality(rule: tree.Rule, equations: Sequence[Defined], definitions: Definitions) -> Locality | None:
    """What a rule with a compiled left side looks at; None for one about several nodes."""
    if is_deep(equations):
        return None
    bound, matches = _constants(equations)
    read = [_reads(clause, definitions, bound) for clause in rule.clauses]
    told = next((i for i, found in enumerate(read) if GRAPH in found), len(read))
    clauses = next((i for i, found in enumerate(read[:told]) if ELEMENTS in found), told)
    made = _reads(rule.templates, definitions, bound)
    templates = told == len(read) and GRAPH not in made
    return Locality(clauses, told, templates, matches, matches or clauses < told or ELEMENTS in made)


def is_deep(equations: Sequence[Defined]) -> bool:
    """Whether a left side covers more than one node."""
    operands = (operand for equation in equations for node in nodes(equation.value) for operand in node.operands)
    return len(equations) > 1 or any(isinstance(operand, NodePattern | AnyOf) for operand in operands)


def _reads(node: Any, definitions: Definitions, bound: Set[str]) -> set[str]:
    """What the functions look at that an expression calls, and those that its definitions call in turn."""
    found, called = calls(node)
    if any(isinstance(one, tree.Name) and one.name in bound for one in tree.walk(node)):
        found.add(ELEMENTS)
    work, seen = [*called], set()
    while work:
        name = work.pop()
        if name in definitions and name not in seen:
            seen.add(name)
            inside, called = definitions[name]
            found |= inside
            work += called
    return found


def calls(node: Any) -> tuple[set[str], set[str]]:
    """What the functions look at that an expression calls by itself, and what else it calls."""
    found: set[str] = set()
    called: set[str] = set()
    for one in tree.walk(node):
        if isinstance(one, tree.GraphOf):
            found.add(GRAPH)
        elif isinstance(one, tree.Call) and one.callee in FUNCTIONS:
            found.add(FUNCTIONS[one.callee].reads)
        elif isinstance(one, tree.Call):
            called.add(one.callee)
    return found, called


def _constants(equations: Sequence[Defined]) -> tuple[set[str], bool]:
    """The names that stand for elements, and whether some are compared."""
    operands = [operand for node in nodes(equations[-1].value) for operand in node.operands]
    bound = [operand.name for operand in operands if isinstance(operand, Variable) and operand.const]
    return set(bound), len(set(bound)) < len(bound) or any(isinstance(operand, Number) for operand in operands)

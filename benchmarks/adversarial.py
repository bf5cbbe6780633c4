"""How often the pattern of each rule is held against nodes at one root of graphs that are made to be hard for it.

    python benchmarks/adversarial.py [--rules PACK]... [--sizes N,N,N] [--worst COUNT]

For each rule a graph is made in which its pattern fits, with N of what makes it fit in other ways as well: each value
that equations share has N readers of every kind the rule asks for, a list that takes any number of values has N, and
beside each operand of a commutative operator stands a chain like the other. No guard helps: every fit is turned down,
so that all are found. Printed are the rules with the most attempts at the largest N, and how these grow with N; a rule
that reaches the bound of the engine is marked.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from nnrewrite.conversion.compiled_rules import prepare
from nnrewrite.engine.base.budget import Budget, TooManyError, limit_attempts
from nnrewrite.engine.dialects.literals import make_attribute
from nnrewrite.engine.expressions.compile import Frame, Located, evaluate
from nnrewrite.engine.expressions.functions import EvaluationError
from nnrewrite.engine.packs import folders
from nnrewrite.engine.rewrite.pattern import (
    Absent,
    AnyOf,
    Defined,
    NodePattern,
    Number,
    Operand,
    Variable,
    map_names,
)
from nnrewrite.engine.rewrite.rules import Rule

SIZES = (50, 200, 800)
#: rows that are printed
WORST = 12


@dataclass(frozen=True, slots=True)
class Count:
    """How often a pattern was tried at one root, how many nodes there were, and whether the engine went no further."""

    tried: int
    nodes: int
    bounded: bool


class Maker:
    """Makes a graph in which the pattern of a rule fits in many ways."""

    def __init__(self, rule: Rule, size: int) -> None:
        self._definers, self._size = map_names(rule.equations), size
        self._values: dict[str, ir.Value] = {}
        self._made: dict[int, ir.Node] = {}
        self.nodes: list[ir.Node] = []
        for equation in rule.equations:
            self.root = self._equation(equation)
        several = len(rule.equations) > 1
        for equation in rule.equations if several else ():
            for _ in range(size // len(rule.equations)):
                self._copy(self._made[id(equation)])

    def _equation(self, equation: Defined) -> ir.Node:
        if id(equation) not in self._made:
            node = self._node(equation.value, 1 if equation.spread else len(equation.targets))
            self._made[id(equation)] = node
            for target, output in zip(equation.targets, node.outputs, strict=False):
                self._values[target.name] = output
        return self._made[id(equation)]

    def _node(self, pattern: NodePattern | AnyOf, results: int = 1) -> ir.Node:
        while isinstance(pattern, AnyOf):
            pattern = pattern.alternatives[-1]  # the one that is tried last
        name = next(iter(pattern.specs), None)
        if name is None:
            raise LookupError("no operator at this opset")
        spec = pattern.specs[name]
        operands = list(self._operands(pattern))
        if "commutative" in spec.traits and len(operands) == len(pattern.operands) == 2:
            for place, other in ((0, 1), (1, 0)):
                mine, beside = pattern.operands[place], pattern.operands[other]
                if isinstance(mine, Variable) and not mine.const and isinstance(beside, NodePattern | AnyOf):
                    operands[place] = self._node(beside).outputs[0]
        options = []
        for option in pattern.options:
            if option.variable is None and option.graph is None:
                value = evaluate(option.value, Frame({"opset": 18}))
                options.append(make_attribute(spec.options[option.name], value))
        node = ir.Node(spec.domain, name, operands, [o for o in options if o is not None], num_outputs=results)
        for output in node.outputs:
            output.type = ir.TensorType(ir.DataType.FLOAT)
        self.nodes.append(node)
        return node

    def _operands(self, pattern: NodePattern) -> Iterator[ir.Value | None]:
        several = len(pattern.operands) - pattern.fixed
        nested = next((one for one in pattern.operands if isinstance(one, NodePattern | AnyOf)), None)
        for operand in pattern.operands:
            if not operand.spread:
                yield self._operand(operand)
                continue
            for _ in range(self._size // several):
                yield self._node(nested).outputs[0] if nested is not None else _value(4)

    def _operand(self, operand: Operand) -> ir.Value | None:
        if isinstance(operand, Absent):
            return None
        if isinstance(operand, Number):
            return _constant(np.asarray(operand.value, np.float32))
        if not isinstance(operand, Variable):
            return self._node(operand).outputs[0]
        if operand.name in self._definers and operand.name not in self._values:
            self._equation(self._definers[operand.name])
        rank = len(operand.layout or "abcd")
        if operand.name not in self._values or operand.name == "_":
            known = _constant(np.ones([1] * rank, np.float32)) if operand.const else _value(rank)
            self._values[operand.name] = known
        return self._values[operand.name]

    def _copy(self, node: ir.Node) -> None:
        copy = ir.Node(node.domain, node.op_type, node.inputs, list(node.attributes.values()), num_outputs=1)
        for output in copy.outputs:
            output.type = ir.TensorType(ir.DataType.FLOAT)
        self.nodes.append(copy)


def _value(rank: int) -> ir.Value:
    return ir.Value(name="v", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2] * rank))


def _constant(array: np.ndarray) -> ir.Value:
    tensor = ir.tensor(array)
    return ir.Value(name="c", type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)


def count(rule: Rule, size: int, opset: int) -> Count | None:
    """Try a rule at its root in a graph of about a size; None for a pattern that no such graph can be made for."""
    try:
        made = Maker(rule, size)
    except (LookupError, Located, EvaluationError, ValueError, TypeError, AttributeError):
        return None
    nodes = len(made.nodes) + len(made.root.inputs)
    budget = Budget(attempts=limit_attempts(nodes))
    try:
        rule.matcher.search(made.root, lambda bound: None, opset, (), budget)
    except TooManyError:
        return Count(limit_attempts(nodes), nodes, True)
    return Count(budget.tried, nodes, False)


def rules(names: Sequence[str]) -> tuple[list[Rule], int]:
    """All rules of some packs, compiled, and the opset."""
    prepared = prepare(tuple(names), None)
    found = {}
    for stage, (domain, operator) in prepared.rules.list_roots():
        found.update({rule.order: rule for rule in prepared.rules.list_candidates(stage, domain, operator)})
    return list(found.values()), prepared.opset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", action="append", metavar="PACK", help="packs, by default each that there is")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="N,N,N")
    parser.add_argument("--worst", type=int, default=WORST, metavar="COUNT")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    found: dict[str, list[Count]] = {}
    left: set[str] = set()
    for pack in asked.rules or folders.list_built_in():
        each, opset = rules([pack])
        for rule in each:
            if rule.place in found or rule.place in left:
                continue
            counts = [count(rule, size, opset) for size in sizes]
            if None in counts:
                left.add(rule.place)
            else:
                found[rule.place] = [one for one in counts if one is not None]
    print(f"{len(found)} rules, {len(left)} that no graph was made for\n")
    print(f"| rule | {' | '.join(f'attempts at {size}' for size in sizes)} | nodes | grows with nodes to the |")
    print("|---|" + "--:|" * (len(sizes) + 2))
    for place, counts in sorted(found.items(), key=lambda item: -item[1][-1].tried)[: asked.worst]:
        last, before = counts[-1], counts[-2]
        power = math.log(last.tried / before.tried) / max(math.log(last.nodes / before.nodes), 1e-9)
        cells = [f"{one.tried:,}{' (bound)' * one.bounded}" for one in counts]
        print(f"| `{place}` | {' | '.join(cells)} | {last.nodes:,} | {power:.2f} |")


if __name__ == "__main__":
    main()

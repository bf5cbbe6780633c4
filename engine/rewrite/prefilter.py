"""The early reject of a pattern: whether operators, constants and element types right beneath a node are as it asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from ..base.constants import NUMBERS
from ..base.startup import dataclass
from ..dialects.operators import OperatorSpec
from ..expressions.compile import Frame, Located, evaluate, read_truth
from ..expressions.functions.tensors import dtype
from ..syntax import tree
from ..syntax.tree_traversal import walk
from .conditions import Condition
from .pattern import IGNORED, Absent, AnyOf, Defined, NodePattern, Number, Operand, Variable

#: whether a node may fit, and whether an operand may
NodeTest = Callable[[ir.Node], bool]
Test = Callable[["ir.Value | None"], bool]
#: a variable, and a guard about its element type
_Typed = tuple[str, tree.Expression]


def compile_prefilter(equations: Sequence[Defined], conditions: Iterable[Condition]) -> NodeTest:
    """Compile a necessary condition of a match that is cheap to test: it binds nothing, and may let others pass.

    Patterns ask for much that takes long to find out; nearly all nodes lack an operator, a constant or an element type
    that they name.
    """
    named = {target.name: equation.value for equation in equations[:-1] for target in equation.targets}
    return _compile_node_test(equations[-1].value, _Known(named, _collect_types(conditions)))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a rule says of names: the patterns of those that nodes yield, and the types of operands."""

    defined: Mapping[str, NodePattern | AnyOf]
    types: Mapping[str, Sequence[_Typed]]


def _collect_types(conditions: Iterable[Condition]) -> dict[str, list[_Typed]]:
    """The conditions that ask for nothing but the element type of one value, by the name of that value."""
    found: dict[str, list[_Typed]] = {}
    for condition in itertools.takewhile(lambda one: one.certain, conditions):
        expression = condition.expression
        calls = [node for node in walk(expression) if isinstance(node, tree.Call)]
        uses = [node.name for node in walk(expression) if isinstance(node, tree.Name)]
        asked = [call.arguments[0].value for call in calls if call.callee == dtype.__name__]
        of_types = all(isinstance(value, tree.Name) for value in asked) and len(set(uses)) == 1
        if of_types and len(uses) == len(asked):
            found.setdefault(condition.meant.get(uses[0], uses[0]), []).append((uses[0], expression))
    return found


def _compile_node_test(pattern: NodePattern | AnyOf, rule: _Known) -> NodeTest:
    if isinstance(pattern, AnyOf):
        alternatives = [_compile_node_test(alternative, rule) for alternative in pattern.alternatives]
        return lambda node: any(may_fit(node) for may_fit in alternatives)
    tests = tuple(_compile_operand_tests(pattern, rule))
    most = len(pattern.operands)
    several = pattern.fixed < most
    known: dict[str, OperatorSpec | None] = {}

    def test_operands(inputs: Sequence[ir.Value | None]) -> bool:
        count = len(inputs)
        for place, test in tests:
            if not test(inputs[place] if place < count else None):
                return False
        return count <= most or several or all(value is None for value in inputs[most:])

    def may_fit(node: ir.Node) -> bool:
        operator = node.op_type
        if operator not in known:
            known[operator] = pattern.specs.get(operator)
        spec = known[operator]
        if spec is None or spec.domain != node.domain:
            return False
        inputs = spec.list_inputs(node)
        return test_operands(inputs) or (most == 2 and "commutative" in spec.traits and test_operands(inputs[::-1]))

    return may_fit


def _compile_operand_tests(pattern: NodePattern, rule: _Known) -> Iterator[tuple[int, Test]]:
    """Tests of the operands that stand at fixed places."""
    for place, operand in enumerate(pattern.operands):
        if operand.spread:
            return
        test = _compile_operand_test(operand, rule)
        if test is not None:
            yield place, test


def _compile_operand_test(operand: Operand, rule: _Known) -> Test | None:
    if isinstance(operand, Absent):
        return lambda value: value is None
    if isinstance(operand, Number):
        return lambda value: value is not None and is_constant(value)
    if not isinstance(operand, Variable):
        return _test_producer(_compile_node_test(operand, rule), optional=False)
    if operand.name == IGNORED:
        return None
    optional = operand.optional
    if operand.name in rule.defined:
        others = {name: value for name, value in rule.defined.items() if name != operand.name}
        return _test_producer(_compile_node_test(rule.defined[operand.name], _Known(others, rule.types)), optional)
    typed = _compile_type_test(rule.types[operand.name]) if operand.name in rule.types else None
    if operand.const:
        return lambda value: optional if value is None else is_constant(value) and (typed is None or typed(value))
    return None if typed is None else lambda value: value is None or typed(value)


def _compile_type_test(conditions: Sequence[_Typed]) -> Callable[[ir.Value], bool]:
    """Whether the element type of a value is one that a rule asks for, which is found out once for each type."""
    known: dict[ir.DataType, bool] = {}

    def test_type(value: ir.Value) -> bool:
        found = value.dtype if value.const_value is None else value.const_value.dtype
        if found is None or found == ir.DataType.STRING:
            return True
        if found not in known:
            known[found] = all(_is_met(condition, name, found) for name, condition in conditions)
        return known[found]

    return test_type


def _is_met(condition: tree.Expression, name: str, kind: ir.DataType) -> bool:
    try:
        return read_truth(evaluate(condition, Frame({name: ir.Value(type=ir.TensorType(kind))})))
    except Located:
        return True  # the guard itself tells what is wrong


def _test_producer(may_fit: NodeTest, optional: bool) -> Test:
    def test_producer(value: ir.Value | None) -> bool:
        if value is None:
            return optional
        producer = value.producer()
        return producer is not None and may_fit(producer)

    return test_producer


def is_constant(value: ir.Value) -> bool:
    """Whether the elements of a value are known at conversion time."""
    return value.const_value is not None or NUMBERS in value.meta

"""What a rule needs of nodes: operators, options, constants, element types; told without compiling it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from ..base.constants import NUMBERS
from ..base.startup import dataclass, replace
from ..dialects.operators import Dialect, OperatorSpec, get_option
from ..expressions.compile import TRAIT
from ..expressions.functions.tensors import dtype
from ..syntax import tree
from ..syntax.tree_traversal import walk
from . import subgraphs
from .conditions import Condition, Guard, group_by_name, list_certain, may_hold
from .pattern import IGNORED

#: the spec of an operator at the opset of the rules, where there is one
FindSpec = Callable[[str], "OperatorSpec | None"]


@dataclass(frozen=True, slots=True)
class Need:
    """What a pattern asks of a node: its operator (None for any), operands at fixed places, and how many there may be.

    It is a necessary condition of a match that is cheap to test. Patterns ask for much that takes long to find out;
    nearly all nodes lack an operator, an option, a constant or an element type that they name.
    """

    operators: frozenset[str] | None
    options: tuple[OptionNeed, ...]
    operands: tuple[OperandNeed, ...]
    most: int | None


@dataclass(frozen=True, slots=True)
class OptionNeed:
    """What a pattern asks of an option: conditions about it alone."""

    name: str
    conditions: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class OperandNeed:
    """What a pattern asks of an operand: that it is left out, may be, is constant, or has one of some element types.

    `producers` are alternatives for the node that it comes from, None where it may come from anywhere; `operators` are
    those of all of them, None where one may be any.
    """

    place: int
    absent: bool
    optional: bool
    constant: bool
    types: frozenset[int] | None
    producers: tuple[Need, ...] | None
    operators: frozenset[str] | None


def list_orders(node: ir.Node, find_spec: FindSpec) -> list[Sequence[ir.Value | None]]:
    """The operands of a node, in both orders where that does not matter; none where rules do not know its operator."""
    spec = find_spec(node.op_type)
    if spec is None or spec.domain != node.domain:
        return []
    inputs = spec.list_inputs(node)
    return [inputs, inputs[::-1]] if len(inputs) == 2 and "commutative" in spec.traits else [inputs]


def may_match_producers(needs: Sequence[Need], operator: str, orders: Sequence[Sequence[str | None]]) -> bool:
    """Whether a node may match one of some patterns, as far as its operator and those of its first operands tell.

    An order lists the operators that make the operands: "" for one that no node makes, None for one that is left out.
    """
    return any(
        (need.operators is None or operator in need.operators)
        and any(all(_may_come_from(one, made) for one in need.operands) for made in orders)
        for need in needs
    )


def may_match(
    needs: Sequence[Need], node: ir.Node, orders: Sequence[Sequence[ir.Value | None]], find_spec: FindSpec
) -> bool:
    """Whether a node, its operands in one of some orders, is what one of some patterns needs."""
    operator = node.op_type
    for need in needs:
        if (need.operators is None or operator in need.operators) and (
            not need.options or _may_match_options(need, node, find_spec)
        ):
            for inputs in orders:
                if _take_operands(need, inputs, find_spec):
                    return True
    return False


def is_constant(value: ir.Value) -> bool:
    """Whether the elements of a value are known at conversion time."""
    return value.const_value is not None or NUMBERS in value.meta


def _may_match_options(need: Need, node: ir.Node, find_spec: FindSpec) -> bool:
    """Whether the options of a node are such as a pattern asks for."""
    spec = find_spec(node.op_type)
    for wanted in need.options:
        described = None if spec is None else spec.options.get(wanted.name)
        if described is None:
            continue
        value = subgraphs.bind_option(described, get_option(node, described), ())
        for condition in wanted.conditions if value is not None else ():  # as a graph is that is named
            if not may_hold(condition, value):
                return False
    return True


def _may_come_from(one: OperandNeed, made: Sequence[str | None]) -> bool:
    """Whether an operand may be what a pattern asks, as far as is known where the first few come from."""
    if one.place >= len(made):
        return True
    if made[one.place] is None:
        return one.optional or one.absent
    if one.absent or (one.producers is not None and not made[one.place]):
        return False
    return one.operators is None or made[one.place] in one.operators


def _take_operands(need: Need, inputs: Sequence[ir.Value | None], find_spec: FindSpec) -> bool:
    """Whether operands are what a pattern asks of them, in this order."""
    count = len(inputs)
    for one in need.operands:
        value = inputs[one.place] if one.place < count else None
        if value is None:
            if not (one.optional or one.absent):
                return False
            continue
        if one.absent or (one.constant and not is_constant(value)):
            return False
        if one.types is not None:
            found = value.dtype if value.const_value is None else value.const_value.dtype
            if found is not None and found != ir.DataType.STRING and found not in one.types:
                return False
        if one.producers is not None:
            producer = value.producer()
            if producer is None or (one.operators is not None and producer.op_type not in one.operators):
                return False
            if not may_match(one.producers, producer, list_orders(producer, find_spec), find_spec):
                return False
    return need.most is None or count <= need.most or all(value is None for value in inputs[need.most :])


def list_needs(rule: tree.Rule, reads: Dialect, conditions: Iterable[Condition]) -> tuple[Need, ...]:
    """What a rule needs at its root: alternatives, one of which has to be met."""
    marked = {
        one.value.name
        for one in walk(rule.equations)
        if isinstance(one, tree.Argument) and one.const and isinstance(one.value, tree.Name)
    }
    named = {target.name: equation.value for equation in rule.equations[:-1] for target in equation.targets}
    certain = list_certain(conditions)
    asked = group_by_name(one for one in certain if not _is_about_traits(one))
    reading = _Reading(reads, named, _collect_types(certain), asked, marked)
    return _list_alternatives(rule.equations[-1].value, reading) or ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is known of names when a pattern is read: what nodes yield, admitted element types, conditions about a name
    alone, and constants."""

    dialect: Dialect
    named: Mapping[str, tree.Expression]
    types: Mapping[str, frozenset[int]]
    conditions: Mapping[str, Sequence[Guard]]
    marked: set[str]


def _list_alternatives(pattern: tree.Expression, reading: _Reading) -> tuple[Need, ...] | None:
    """The alternatives of a pattern of nodes; None where it is none."""
    if isinstance(pattern, tree.Choice):
        left, right = _list_alternatives(pattern.left, reading), _list_alternatives(pattern.right, reading)
        return (*(left or ()), *(right or ()))
    if not isinstance(pattern, tree.Call):
        return None
    found = None if pattern.wildcard else reading.dialect.find_operator(pattern.callee)
    operators = (
        None if pattern.wildcard else frozenset({pattern.callee} if found is None else {pattern.callee, found.name})
    )
    several = any(argument.spread or isinstance(argument.value, tree.Index) for argument in pattern.arguments)
    operands = tuple(one for one in _list_operands(pattern, reading) if one is not None)
    options = tuple(_list_option_needs(pattern, reading))
    return (Need(operators, options, operands, None if several else len(pattern.arguments)),)


def _list_option_needs(pattern: tree.Call, reading: _Reading) -> Iterator[OptionNeed]:
    """What is asked of options: the value that a pattern says, or what conditions say of a variable alone."""
    for attribute in pattern.attributes:
        value = attribute.value
        if isinstance(value, tree.GraphOf):
            continue
        if isinstance(value, tree.Name):
            conditions = tuple(reading.conditions.get(value.name, ()))
        else:
            names = any(isinstance(node, tree.Name | tree.Call) for node in walk(value))
            same = tree.Binary("==", tree.Name(attribute.name, value.span), value, value.span)
            conditions = () if names else (Guard(same, frozenset({attribute.name})),)
        if conditions:
            yield OptionNeed(attribute.name, conditions)


def _list_operands(pattern: tree.Call, reading: _Reading) -> Iterator[OperandNeed | None]:
    """What is asked of the operands that stand at fixed places; None for one that may be anything."""
    for place, argument in enumerate(pattern.arguments):
        value = argument.value
        if argument.spread and isinstance(value, tree.Call) and len(pattern.arguments) == 1:
            yield _require_producers(place, False, _list_alternatives(value, reading))
        if argument.spread or isinstance(value, tree.Index):
            return
        if isinstance(value, tree.Literal):
            yield OperandNeed(place, value.value is None, False, value.value is not None, None, None, None)
        elif not isinstance(value, tree.Name):
            yield _require_producers(place, False, _list_alternatives(value, reading))
        elif value.name == IGNORED:
            yield None
        elif value.name in reading.named:
            others = {name: one for name, one in reading.named.items() if name != value.name}
            inner = replace(reading, named=others)
            producers = _list_alternatives(reading.named[value.name], inner)
            yield _require_producers(place, argument.optional, producers)
        else:
            constant, types = value.name in reading.marked, reading.types.get(value.name)
            asked = constant or types is not None
            optional = argument.optional or not constant
            yield OperandNeed(place, False, optional, constant, types, None, None) if asked else None


def _require_producers(place: int, optional: bool, producers: tuple[Need, ...] | None) -> OperandNeed:
    known = [one.operators for one in producers or ()]
    operators = None if None in known else frozenset[str]().union(*(one for one in known if one is not None))
    return OperandNeed(place, False, optional, False, None, producers, operators)


def _collect_types(conditions: Iterable[Condition]) -> dict[str, frozenset[int]]:
    """The element types that conditions admit which ask for nothing but that of one value, by the name of the value."""
    found: dict[str, frozenset[int]] = {}
    for condition in conditions:
        expression = condition.expression
        calls = [node for node in walk(expression) if isinstance(node, tree.Call)]
        uses = [node.name for node in walk(expression) if isinstance(node, tree.Name)]
        asked = [call.arguments[0].value for call in calls if call.callee == dtype.__name__]
        of_types = all(isinstance(value, tree.Name) for value in asked) and len(set(uses)) == 1
        if of_types and len(uses) == len(asked):
            name = condition.meant.get(uses[0], uses[0])
            kinds = ((kind, ir.Value(type=ir.TensorType(kind))) for kind in ir.DataType)
            guard = Guard(expression, frozenset(uses))
            admitted = frozenset(kind.value for kind, value in kinds if may_hold(guard, value))
            found[name] = found.get(name, admitted) & admitted
    return found


def _is_about_traits(condition: Condition) -> bool:
    return any(isinstance(node, tree.Call) and node.callee == TRAIT for node in walk(condition.expression))

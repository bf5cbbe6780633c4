"""Patterns: left sides of rules, compiled from the syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import onnx_ir as ir

from ..base.errors import Span
from ..base.startup import dataclass, replace
from ..dialects.operators import Dialect, OperatorSpec, list_catalogue
from ..syntax import tree
from ..syntax.tree_traversal import walk

#: the variable that binds nothing
IGNORED = "_"


@dataclass(frozen=True, slots=True)
class Variable:
    """Binds the value that stands in its place; a repeat must be the same value.

    `count` names the number of values of one that is spread, where the pattern says it.
    """

    name: str
    const: bool
    optional: bool
    spread: bool
    layout: str | None
    span: Span
    count: str | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A constant of one element that equals a number."""

    value: int | float | bool
    span: Span
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """An operand that is left out, written `none`."""

    span: Span
    spread: bool = False


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A graph that belongs to a node: its inputs, nodes in it, and what it yields."""

    parameters: tuple[Variable, ...]
    equations: tuple[Defined, ...]
    results: tuple[Operand, ...]

    def compute_weight(self) -> int:
        """How much it asks for."""
        asked = [equation.value for equation in self.equations]
        return sum(compute_weight(pattern) for pattern in (*asked, *self.results))


@dataclass(frozen=True, slots=True)
class OptionPattern:
    """An option that is bound to a variable, ignored, compared with an expression, or a graph that is looked into."""

    name: str
    value: tree.Expression
    span: Span
    #: the variable it binds, None where it is compared
    variable: str | None
    graph: GraphPattern | None = None


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A node of one of some operators, with patterns for its operands and options."""

    specs: Mapping[str, OperatorSpec]
    wildcard: str | None
    operands: tuple[Operand, ...]
    options: tuple[OptionPattern, ...]
    rest: bool
    span: Span
    #: how many operands take one value each, the names of the options, and those that are graphs to look into
    fixed: int
    named: frozenset[str]
    graphs: tuple[OptionPattern, ...]
    #: whether it stands for any number of operands, each of which such a node computes
    spread: bool = False

    def compute_weight(self) -> int:
        """How much it asks for; of two rules that both match, the one that asks for more goes first."""
        own = 4 * (self.wildcard is None) + sum(not option.variable for option in self.options)
        own += sum(option.graph.compute_weight() for option in self.graphs if option.graph is not None)
        return own + sum(compute_weight(operand) for operand in self.operands)


def name_rest(wildcard: str) -> str:
    """The name under which a match holds the node that a wildcard stands for, for the options that `..` keeps."""
    return f"{wildcard}.."


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Alternatives, tried in the order they are written."""

    alternatives: tuple[NodePattern | AnyOf, ...]
    span: Span
    spread: bool = False


Operand = Variable | Number | Absent | NodePattern | AnyOf


def compute_weight(pattern: Operand) -> int:
    """How much a pattern asks for."""
    match pattern:
        case Variable():
            return int(pattern.const)
        case NodePattern():
            return pattern.compute_weight()
        case AnyOf():
            return min(compute_weight(alternative) for alternative in pattern.alternatives)
    return 1


@dataclass(frozen=True, slots=True)
class Defined:
    """An equation of a left side: the names of a node's results, whether one of them takes several, and whether it is
    about any number of nodes that are alike."""

    targets: tuple[tree.Target, ...]
    value: NodePattern | AnyOf
    spread: bool
    repeated: bool = False


def iterate_nodes(pattern: Operand) -> Iterator[NodePattern]:
    """The node patterns that may match at the root of a pattern."""
    if isinstance(pattern, NodePattern):
        yield pattern
    elif isinstance(pattern, AnyOf):
        for alternative in pattern.alternatives:
            yield from iterate_nodes(alternative)


def is_deep(equations: Sequence[Defined]) -> bool:
    """Whether a left side covers more than one node."""
    operands = (
        operand for equation in equations for node in iterate_nodes(equation.value) for operand in node.operands
    )
    return len(equations) > 1 or any(isinstance(operand, NodePattern | AnyOf) for operand in operands)


#: whether the node that a wildcard stands for may be of an operator, as far as its name tells
Admits = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a left side is compiled by: the operators of a dialect at an opset, and the names that are constants."""

    dialect: Dialect
    opset: int
    marked: Set[str]
    admits: Admits


def compile_equations(
    equations: Iterable[tree.Equation],
    dialect: Dialect,
    opset: int,
    admits: Admits = lambda wildcard, operator: True,
) -> tuple[Defined, ...]:
    """Compile the equations of a left side; the operators are those of `dialect` at `opset`.

    A variable that is `const` in one place is so in all of them: it denotes its elements.
    """
    marked = {
        argument.value.name
        for argument in walk(tuple(equations))
        if isinstance(argument, tree.Argument) and argument.const and isinstance(argument.value, tree.Name)
    }
    return _compile_equations(equations, _Reading(dialect, opset, marked, admits))


def map_names(equations: Sequence[Defined]) -> Mapping[str, Defined]:
    """The equation of each name that is a result of a node, those in the graphs of nodes among them."""
    inner = (equation for graph in iterate_graphs(equations) for equation in graph.equations)
    return {target.name: one for one in (*equations, *inner) for target in one.targets}


def is_connected(equations: Sequence[Defined], definers: Mapping[str, Defined]) -> bool:
    """Whether all equations are matched from the last one on, by the names of what its operands are computed by."""
    found, work = set[str](), list(iterate_nodes(equations[-1].value))
    while work:
        for operand in work.pop().operands:
            if isinstance(operand, NodePattern | AnyOf):
                work += iterate_nodes(operand)
            elif isinstance(operand, Variable) and operand.name in definers and operand.name not in found:
                one = definers[operand.name]
                found.update(target.name for target in one.targets)
                work += iterate_nodes(one.value)
    return all(any(target.name in found for target in one.targets) for one in equations[:-1])


def list_shared_users(pattern: Operand, bound: Mapping[str, Any]) -> list[ir.Node]:
    """The nodes that may be the root of a pattern: each reads the first of its values that is bound, or what nodes in
    between compute of it."""
    for node in iterate_nodes(pattern):
        for operand in node.operands:
            if isinstance(operand, Variable):
                value = bound.get(operand.name)
                read = [value] if type(value) is ir.Value else []
            else:
                read = [output for inner in list_shared_users(operand, bound) for output in inner.outputs]
            if read:
                return list(dict.fromkeys(usage.node for value in read for usage in value.uses()))
    return []


def leave_matched(
    nodes: Iterable[ir.Node], equations: Iterable[Defined], bound: Mapping[str, Any]
) -> Iterator[ir.Node]:
    """Those of some nodes that no equation stands for yet: no two equations are one node."""
    found = [bound.get(target.name) for one in equations for target in one.targets]
    taken = [value for one in found for value in (one if isinstance(one, list) else [one])]
    return (node for node in nodes if not any(output is value for output in node.outputs for value in taken))


def list_bound(patterns: Iterable[Operand]) -> list[Variable]:
    """What each of some patterns takes of a list: one value or several, under a name where it is one."""
    return [pattern if isinstance(pattern, Variable) else _SEVERAL if pattern.spread else _ONE for pattern in patterns]


_ONE = Variable(IGNORED, False, False, False, None, Span("", 0, 0, 0, 0))
_SEVERAL = replace(_ONE, spread=True)


def list_names(pattern: Operand) -> list[str]:
    """The names that a pattern binds."""
    if isinstance(pattern, Variable):
        return [] if pattern.name == IGNORED else [pattern.name]
    found: list[str] = []
    for node in iterate_nodes(pattern):
        found += [option.variable for option in node.options if option.variable not in (None, IGNORED)]
        found += [name for operand in node.operands for name in list_names(operand)]
    return found


def iterate_graphs(equations: Iterable[Defined]) -> Iterator[GraphPattern]:
    """The graphs that the nodes of some equations look into, those that these look into as well."""
    for equation in equations:
        for found in _iterate_within(equation.value):
            yield found
            yield from iterate_graphs(found.equations)
            for result in found.results:
                yield from _iterate_within(result)


def _iterate_within(pattern: Operand) -> Iterator[GraphPattern]:
    for node in iterate_nodes(pattern):
        yield from (option.graph for option in node.graphs if option.graph is not None)
        for operand in node.operands:
            yield from _iterate_within(operand)


def _compile_equations(equations: Iterable[tree.Equation], reading: _Reading) -> tuple[Defined, ...]:
    found = []
    for equation in equations:
        value = _compile_operand(equation.value, reading)
        assert isinstance(value, NodePattern | AnyOf)
        spread = any(target.spread for target in equation.targets)
        found.append(Defined(equation.targets, value, spread, equation.repeated))
    return tuple(found)


def _compile_graph(written: tree.GraphOf, reading: _Reading) -> GraphPattern:
    parameters = tuple(Variable(p.name, False, False, p.spread, p.layout, p.span, p.count) for p in written.parameters)
    results = tuple(_compile_argument(argument, reading) for argument in written.results)
    return GraphPattern(parameters, _compile_equations(written.equations, reading), results)


def _compile_operand(expression: tree.Expression, reading: _Reading) -> Operand:
    match expression:
        case tree.Call():
            return _compile_node(expression, reading)
        case tree.Choice(left, right, span):
            sides = (_compile_operand(left, reading), _compile_operand(right, reading))
            return AnyOf(tuple(side for side in sides if isinstance(side, NodePattern | AnyOf)), span)
        case tree.Name(name, span):
            return Variable(name, name in reading.marked, False, False, None, span)
        case tree.Index(tree.Name(name, span), tree.Name(count)):
            return Variable(name, False, False, True, None, span, count)
        case tree.Literal(None, span):
            return Absent(span)
        case tree.Literal(value, span) if not isinstance(value, str) and value is not None:
            return Number(value, span)
    raise AssertionError(f"{expression.span}: no pattern")  # the checker says so before


class _Any(Mapping[str, OperatorSpec]):
    """All operators of a dialect that a wildcard may stand for and that have some options, each looked up when it is
    asked for."""

    def __init__(self, wildcard: str, options: Iterable[str], reading: _Reading) -> None:
        self._wildcard, self._options, self._reading = wildcard, tuple(options), reading
        self._found: dict[str, OperatorSpec | None] = {}

    def __getitem__(self, name: str) -> OperatorSpec:
        if name not in self._found:
            spec = self._reading.dialect.find_operator(name, self._reading.opset)
            fits = spec is not None and spec.has(self._options) and self._reading.admits(self._wildcard, name)
            self._found[name] = spec if fits else None
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in list_catalogue(self._reading.dialect, self._reading.opset) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _compile_node(call: tree.Call, reading: _Reading) -> NodePattern:
    options = tuple(
        OptionPattern(
            a.name,
            a.value,
            a.span,
            a.value.name if isinstance(a.value, tree.Name) else None,
            _compile_graph(a.value, reading) if isinstance(a.value, tree.GraphOf) else None,
        )
        for a in call.attributes
    )
    # An operator that lacks an option at this opset has no node that the pattern could match.
    asked = [option.name for option in options if call.wildcard or option.variable != IGNORED]
    named = None if call.wildcard else reading.dialect.find_operator(call.callee, reading.opset)
    specs: Mapping[str, OperatorSpec] = {named.name: named} if named is not None and named.has(asked) else {}
    if call.wildcard:
        specs = _Any(call.callee, asked, reading)
    operands = tuple(_compile_argument(argument, reading) for argument in call.arguments)
    wildcard = call.callee if call.wildcard else None
    fixed = sum(not operand.spread for operand in operands)
    inside = tuple(option for option in options if option.graph is not None)
    asked = [option.name for option in options]
    return NodePattern(specs, wildcard, operands, options, call.rest, call.span, fixed, frozenset(asked), inside)


def _compile_argument(argument: tree.Argument, reading: _Reading) -> Operand:
    pattern = _compile_operand(argument.value, reading)
    if isinstance(pattern, Variable):
        marks = pattern.const, argument.optional, argument.spread, argument.layout
        return Variable(pattern.name, *marks, pattern.span, pattern.count)
    if isinstance(pattern, NodePattern) and argument.spread:
        return replace(pattern, spread=True)
    return pattern

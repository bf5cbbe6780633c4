"""Patterns against the graph: every way in which a rule's left side fits at a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from . import subgraphs
from .budget import Budget
from .constants import constant, single
from .errors import Span
from .expressions import Frame, evaluate, same
from .functions import plain
from .language import tree
from .operators import OperatorSpec, Option, option_value
from .pattern import IGNORED, Absent, AnyOf, Defined, NodePattern, Number, Operand, OptionPattern, Variable, rest_of
from .spreads import Taking, spread

#: under this name a match holds the graphs that it looked into
LOOKED_INTO = "graphs.."

Bindings = Mapping[str, Any]
#: told where a pattern stopped and why; kept only when somebody asks
Note = Callable[[Span, str], None]


_ONE = Variable(IGNORED, False, False, False, None, Span("", 0, 0, 0, 0))


class Matcher:
    """The equations of one left side, matched from the last one, its root; `defined` has them by their names."""

    __slots__ = ("_budget", "_definers", "_equations", "_note", "_opset", "_subgraphs")

    def __init__(
        self,
        equations: Sequence[Defined],
        defined: Mapping[str, Defined],
        opset: int,
        note: Note | None = None,
        subgraphs: Sequence[ir.Graph] = (),
        budget: Budget | None = None,
    ) -> None:
        self._equations = equations
        self._definers = defined
        self._opset = opset
        self._budget = budget or Budget()
        self._note = note
        self._subgraphs = subgraphs

    def matches(self, node: ir.Node) -> Iterator[Bindings]:
        """Yield the bindings of each way in which the equations fit, the root at `node`."""
        start: Bindings = {"opset": self._opset}
        for found in self._equation(self._equations[-1], node, start):
            yield from self._others(self._equations, found)

    def options(self, node: ir.Node) -> Bindings | None:
        """What the options of a root bind, None where they do not fit; for a root without alternatives."""
        pattern = self._equations[-1].value
        assert isinstance(pattern, NodePattern)
        spec = pattern.specs.get(node.op_type)
        if spec is None or spec.domain != node.domain:
            return None
        wild = {} if pattern.wildcard is None else {pattern.wildcard: node.op_type, rest_of(pattern.wildcard): node}
        return self._options(pattern, spec, node, {"opset": self._opset, **wild})

    def _others(self, equations: Sequence[Defined], found: Bindings) -> Iterator[Bindings]:
        """Match the equations that the root does not lead to, through the users of a value they share."""
        for equation in equations:
            if any(target.name in found for target in equation.targets):
                continue
            for user in self._users(equation.value, found):
                for more in self._equation(equation, user, found):
                    yield from self._others(equations, more)
            return
        yield found

    def _users(self, pattern: Operand, found: Bindings) -> list[ir.Node]:
        for value in _bound(pattern, found):
            return list(dict.fromkeys(usage.node for usage in value.uses()))
        return []

    def _equation(self, equation: Defined, node: ir.Node, found: Bindings) -> Iterator[Bindings]:
        for results in self._results(equation, node, found):
            yield from self._node(equation.value, node, results)

    def _results(self, equation: Defined, node: ir.Node, found: Bindings) -> Iterator[Bindings]:
        outputs, targets = node.outputs, equation.targets
        if not any(target.spread for target in targets):  # the first results have names, and those that there are
            bound = dict(found)
            for place, target in enumerate(targets):
                if not self._result(target, list(outputs[place : place + 1]), bound):
                    return
            yield bound
            return
        for places, start in spread(targets, len(outputs), found):
            bound = dict(start)
            values = (list(outputs[place]) for place in places)
            if all(self._result(target, value, bound) for target, value in zip(targets, values, strict=True)):
                yield bound

    def _result(self, target: tree.Target, values: list[ir.Value], bound: dict[str, Any]) -> bool:
        if target.name == IGNORED:
            return True
        value: Any = values
        if not target.spread:
            value = values[0] if values else None
        known = bound.get(target.name)
        if known is not None and known is not value and not (target.spread and known == value):
            return self._no(target.span, f"{target.name} is not this result of the node")
        unknown = type(value) is ir.Value and value.shape is None  # a result then has the rank the rule says
        if target.layout and not unknown and not self._fits(value, target.layout):
            return self._no(
                target.span, f"{target.name} has {_rank(value)}, {target.layout} asks for {len(target.layout)}"
            )
        bound[target.name] = value
        return True

    def _node(self, pattern: Operand, node: ir.Node, found: Bindings) -> Iterator[Bindings]:
        if isinstance(pattern, AnyOf):
            for alternative in pattern.alternatives:
                yield from self._node(alternative, node, found)
            return
        assert isinstance(pattern, NodePattern)
        self._budget.step()
        spec = pattern.specs.get(node.op_type)
        if spec is None or spec.domain != node.domain:
            wanted = "an operator with these options" if pattern.wildcard else next(iter(pattern.specs), "nothing")
            self._miss(pattern.span, f"wants {wanted}, finds {node.op_type}")
            return
        if pattern.wildcard:
            found = {**found, pattern.wildcard: node.op_type, rest_of(pattern.wildcard): node}
        bound = self._options(pattern, spec, node, found)
        if bound is None:
            return
        inputs = list(node.inputs)
        looked_into = [option for option in pattern.options if option.graph is not None]
        yield from self._graphs(looked_into, node, self._operands(pattern, inputs, bound))
        if "commutative" in spec.traits and len(inputs) == len(pattern.operands) == 2 and inputs[0] is not inputs[1]:
            yield from self._graphs(looked_into, node, self._operands(pattern, inputs[::-1], bound))

    def _graphs(
        self, wanted: Sequence[OptionPattern], node: ir.Node, matches: Iterator[Bindings]
    ) -> Iterator[Bindings]:
        """Match the graphs of a node that a pattern looks into, for each match of its operands."""
        if not wanted:
            yield from matches
            return
        pattern = wanted[0].graph
        attribute = node.attributes.get(wanted[0].name)
        if pattern is None or attribute is None or attribute.type is not ir.AttributeType.GRAPH:
            self._miss(wanted[0].span, f"{wanted[0].name} is no graph of the node")
            return
        body = attribute.as_graph()
        for found in matches:
            known = {**found, LOOKED_INTO: (*found.get(LOOKED_INTO, ()), body)}
            for inside in self._list(pattern.parameters, list(body.inputs), known):
                for yielded in self._list(pattern.results, list(body.outputs), inside):
                    yield from self._graphs(wanted[1:], node, self._others(pattern.equations, yielded))

    def _options(self, pattern: NodePattern, spec: OperatorSpec, node: ir.Node, found: Bindings) -> Bindings | None:
        bound = dict(found)
        named = set()
        for wanted in pattern.options:
            named.add(wanted.name)
            if wanted.graph is not None:
                continue
            described = spec.options[wanted.name]
            value = subgraphs.bound(described, option_value(node, described), self._subgraphs)
            unknown = type(value) is str and value.endswith(")") and value.startswith(f"{described.type}(")
            if unknown and wanted.variable != IGNORED:
                return self._miss(wanted.span, f"option {wanted.name} is {value}, which nothing says the meaning of")
            if not self._option(wanted, value, bound):
                return None
        if not pattern.rest:
            for name in node.attributes:
                option = spec.options.get(name)
                if name in named or (option is not None and _is_default(node, option)):
                    continue
                value = node.attributes[name].value if option is None else option_value(node, option)
                return self._miss(pattern.span, f"option {name} is {_words(value)}, and the rule does not mention it")
        return bound

    def _option(self, wanted: OptionPattern, value: Any, bound: dict[str, Any]) -> bool:
        if wanted.variable == IGNORED:
            return True
        if wanted.variable is not None and wanted.variable not in bound:
            bound[wanted.variable] = value
            return True
        expected = evaluate(wanted.value, Frame(bound))
        if same(value, expected):
            return True
        self._miss(wanted.span, f"option {wanted.name} is {_words(value)}, the rule asks for {_words(expected)}")
        return False

    def _operands(self, pattern: NodePattern, inputs: Sequence[ir.Value | None], found: Bindings) -> Iterator[Bindings]:
        patterns = pattern.operands
        fixed = sum(not operand.spread for operand in patterns)
        if fixed == len(patterns):
            if any(value is not None for value in inputs[len(patterns) :]):
                self._miss(pattern.span, f"the node has {len(inputs)} operands, the rule names {len(patterns)}")
                return
            yield from self._each(list(zip(patterns, [*inputs, *[None] * len(patterns)], strict=False)), found)
        elif len(inputs) < fixed:
            self._miss(pattern.span, f"the node has {len(inputs)} operands, the rule names at least {fixed}")
        else:
            yield from self._list(patterns, inputs, found)

    def _list(
        self, patterns: Sequence[Operand], values: Sequence[ir.Value | None], found: Bindings
    ) -> Iterator[Bindings]:
        """Match each value of a list, where some patterns may take several."""
        for places, start in spread([_taking(pattern) for pattern in patterns], len(values), found):
            self._budget.step()
            bound = dict(start)
            pairs: list[tuple[Operand, ir.Value | None]] = []
            fits = True
            for pattern, place in zip(patterns, places, strict=True):
                if isinstance(pattern, Variable) and pattern.spread:
                    fits = fits and self._several(pattern, list(values[place]), bound)
                else:
                    pairs.append((pattern, values[place][0]))
            if fits:
                yield from self._each(pairs, bound)

    def _several(self, pattern: Variable, values: list[ir.Value | None], bound: dict[str, Any]) -> bool:
        if pattern.name == IGNORED:
            return True
        if pattern.name in bound and bound[pattern.name] != values:
            return self._no(pattern.span, f"{pattern.name} stands for other values before")
        bound[pattern.name] = values
        return True

    def _each(self, pairs: Sequence[tuple[Operand, ir.Value | None]], found: Bindings) -> Iterator[Bindings]:
        bound = dict(found)
        for position, (pattern, value) in enumerate(pairs):
            if isinstance(pattern, Variable) and (value is None or pattern.name not in self._definers):
                fits = self._variable(pattern, value, bound)
            elif value is None or isinstance(pattern, Number | Absent):
                fits = self._plain(pattern, value)
            else:
                # Only what a node computes may fit in several ways, and what stands behind it then fits anew.
                for more in self._computed(pattern, value, bound):
                    yield from self._each(pairs[position + 1 :], more)
                return
            if not fits:
                return
        yield bound

    def _plain(self, pattern: Operand, value: ir.Value | None) -> bool:
        if isinstance(pattern, Absent):
            return value is None or self._no(pattern.span, f"operand {value.name} is there, the rule asks for none")
        if value is None:
            return self._no(pattern.span, "the operand is left out")
        assert isinstance(pattern, Number)
        return _equals(single(value), pattern.value) or self._no(
            pattern.span, f"{value.name} is not the constant {pattern.value}"
        )

    def _variable(self, pattern: Variable, value: ir.Value | None, found: dict[str, Any]) -> bool:
        """Bind a variable, or compare it with what it stands for."""
        name = pattern.name
        if name == IGNORED:
            return True
        bound: Any = value
        if value is None:
            if not pattern.optional or found.get(name) is not None:
                return self._no(pattern.span, f"operand {name} is left out")
            found[name] = None
            return True
        if pattern.layout and not self._fits(value, pattern.layout):
            return self._no(pattern.span, f"{name} has {_rank(value)}, {pattern.layout} asks for {len(pattern.layout)}")
        if pattern.const:
            bound = constant(value)
            if bound is None:
                return self._no(pattern.span, f"{name} ({value.name}) is not constant")
        if name in found and not same(found[name], bound):
            return self._no(pattern.span, f"{name} stands for another value before")
        found[name] = bound
        return True

    def _computed(self, pattern: Operand, value: ir.Value, found: Bindings) -> Iterator[Bindings]:
        """Match a value by the node that computes it: a pattern in its place, or the equation of its name."""
        definer = None
        if isinstance(pattern, Variable):
            if pattern.name in found or (pattern.layout and not self._fits(value, pattern.layout)):
                bound = dict(found)
                if self._variable(pattern, value, bound):
                    yield bound
                return
            definer = self._definers[pattern.name]
        producer = value.producer()
        if producer is None:
            name = f"{pattern.name} ({value.name})" if isinstance(pattern, Variable) else value.name
            self._miss(pattern.span, f"{name} is not computed by a node")
        elif definer is not None:
            for more in self._equation(definer, producer, found):
                if isinstance(pattern, Variable) and more[pattern.name] is value:
                    yield more
        elif producer.outputs[0] is value:
            yield from self._node(pattern, producer, found)

    def _fits(self, value: ir.Value | None, layout: str) -> bool:
        return value is None or (value.shape is not None and len(value.shape) == len(layout))

    def _no(self, span: Span, message: str) -> bool:
        self._miss(span, message)
        return False

    def _miss(self, span: Span, message: str) -> Bindings | None:
        """Tell why nothing fits; always None, for a caller to return."""
        if self._note is not None:
            self._note(span, message)
        return None


def _taking(pattern: Operand) -> Taking:
    return pattern if isinstance(pattern, Variable) else _ONE


def _bound(pattern: Operand, found: Bindings) -> Iterator[ir.Value]:
    if isinstance(pattern, Variable) and isinstance(found.get(pattern.name), ir.Value):
        yield found[pattern.name]
    elif isinstance(pattern, NodePattern):
        for operand in pattern.operands:
            yield from _bound(operand, found)
    elif isinstance(pattern, AnyOf):
        for alternative in pattern.alternatives:
            yield from _bound(alternative, found)


def _is_default(node: ir.Node, option: Option) -> bool:
    return same(option_value(node, option), option.default)


def _equals(array: np.ndarray[Any, Any] | None, number: float) -> bool:
    if array is None or array.dtype.kind not in "biuf":
        return False
    # A rule writes 0.1 and means the nearest number of the constant's type.
    return bool(array.reshape(()) == np.asarray(number).astype(array.dtype))


def _rank(value: ir.Value | None) -> str:
    return "an unknown rank" if value is None or value.shape is None else f"rank {len(value.shape)}"


def _words(value: Any) -> str:
    value = plain(value)
    return str(value).lower() if isinstance(value, bool) else str(value)

"""A search for the ways in which the nodes of a pattern fit at one node, until one is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import onnx_ir as ir

from ..base.budget import Budget
from ..base.constants import TRAINED, is_number, read_constant
from ..base.errors import Span
from ..base.quantization import read_quantization
from ..dialects.operators import OperatorSpec, get_option
from ..expressions.compile import OPSET, Frame, evaluate, is_same
from ..expressions.functions import convert_to_python, format_value
from ..syntax import tree
from . import subgraphs
from .conditions import Guard
from .pattern import (
    IGNORED,
    Absent,
    AnyOf,
    Defined,
    NodePattern,
    Number,
    Operand,
    OptionPattern,
    Variable,
    leave_matched,
    list_bound,
    list_names,
    list_shared_users,
    name_rest,
)
from .variadics import assign_places

#: under this name a match holds the graphs that it looked into
SEARCHED = "graphs.."

#: what the names of a pattern stand for; whoever looks for several ways to fit gives each a copy of its own
Bindings = dict[str, Any]
#: told where a pattern stopped and why; kept only when somebody asks
Note = Callable[[Span, str], None]
#: whether a guard holds with what is bound so far
Holds = Callable[[Guard, Bindings], bool]

Made = TypeVar("Made")
#: goes on with a way to fit; None asks for another
Then = Callable[[Bindings], "Made | None"]


class Search:
    """One search at one node. Its methods yield what `then` makes of the first way to fit, None where there is none."""

    __slots__ = ("_budget", "_codes", "_definers", "_graphs", "_holds", "_note")

    def __init__(
        self,
        definers: Mapping[str, Defined],
        graphs: Sequence[ir.Graph],
        budget: Budget,
        holds: Holds | None,
        note: Note | None,
        codes: bool,
    ) -> None:
        self._definers, self._graphs, self._budget = definers, graphs, budget
        self._holds, self._note, self._codes = holds, note, codes

    def extend(
        self,
        equations: Sequence[Defined],
        guards: Sequence[Guard],
        bound: Bindings,
        then: Then[Made],
        fitting: Mapping[int, Sequence[ir.Node]] | None = None,
    ) -> Made | None:
        """Match the equations that the root does not lead to, by the users of a value they share.

        Where there are several, `fitting` has for some of them the users that fit whatever the others are. Those that
        are about any number of nodes come last.
        """
        later = self._check_guards(guards, bound)
        if later is None:
            return None
        left = [one for one in equations if not any(target.name in bound for target in one.targets)]
        if not left:
            return then(bound)
        left.sort(key=lambda one: one.repeated)
        if left[0].repeated:
            found = self._match_siblings(left[0], equations, bound)
            return None if found is None else self.extend(equations, later, found, then)
        if fitting is None and later and len(left) > 1:
            single = (one for one in left if not one.repeated)
            fitting = {id(one): users for one in single if (users := self._find_fitting(one, later, bound))}

        def match_following(more: Bindings) -> Made | None:
            return self.extend(equations, later, more, then, fitting)

        others = (fitting or {}).get(id(left[0])) or list_shared_users(left[0].value, bound)
        for user in leave_matched(others, equations, bound):
            made = self.match_equation(left[0], user, dict(bound), match_following)
            if made is not None:
                return made
        return None

    def _match_siblings(self, equation: Defined, equations: Sequence[Defined], bound: Bindings) -> Bindings | None:
        """Match all users of a shared value that an equation fits, at least one; what is not bound yet is a list."""
        names = [name for name in list_names(equation.value) if name not in bound]
        users = leave_matched(list_shared_users(equation.value, bound), equations, bound)
        ways = ((user, self._match_node(equation.value, user, dict(bound), dict)) for user in users)
        fits = [(user.outputs[0], one) for user, one in ways if one is not None]
        found = {name: [one[name] for _, one in fits] for name in names}
        return {**bound, **found, equation.targets[0].name: [result for result, _ in fits]} if fits else None

    def _check_guards(self, guards: Sequence[Guard], bound: Bindings) -> list[Guard] | None:
        """The guards that speak of what is not bound yet; None where one of the others does not hold."""
        later: list[Guard] = []
        for guard in guards:
            if not guard.names <= bound.keys():
                later.append(guard)
            elif self._holds is not None and not self._holds(guard, bound):
                return None
        return later

    def _find_fitting(self, equation: Defined, guards: Sequence[Guard], bound: Bindings) -> list[ir.Node]:
        """The users of a shared value that an equation fits by itself."""
        check, users = partial(self._check_guards, guards), list_shared_users(equation.value, bound)
        return [user for user in users if self.match_equation(equation, user, dict(bound), check) is not None]

    def match_equation(self, equation: Defined, node: ir.Node, bound: Bindings, then: Then[Made]) -> Made | None:
        """Match a node, and bind the names of its results."""
        outputs, targets = node.outputs, equation.targets
        if not equation.spread:  # the first results have names, and those that there are
            count = len(outputs)
            for place, target in enumerate(targets):
                if not self._bind_result(target, outputs[place] if place < count else None, bound):
                    return None
            return self._match_node(equation.value, node, bound, then)
        for places, start in assign_places(targets, len(outputs), bound):
            own = dict(start)
            for target, taken in zip(targets, places, strict=True):
                values = list(outputs[taken])
                if not self._bind_result(target, values if target.spread else values[0], own):
                    break
            else:
                made = self._match_node(equation.value, node, own, then)
                if made is not None:
                    return made
        return None

    def _bind_result(self, target: tree.Target, value: Any, bound: Bindings) -> bool:
        if target.name == IGNORED:
            return True
        known = bound.get(target.name)
        if known is not None and known is not value and not (target.spread and known == value):
            return self._fail(target.span, "{} is not this result of the node", target.name)
        unknown = type(value) is ir.Value and value.shape is None  # a result then has the rank the rule says
        if target.layout and not unknown and not _has_rank(value, target.layout):
            return self._refuse_rank(target.span, target.name, value, target.layout)
        bound[target.name] = value
        return True

    def _match_node(self, pattern: Operand, node: ir.Node, bound: Bindings, then: Then[Made]) -> Made | None:
        if isinstance(pattern, AnyOf):
            for alternative in pattern.alternatives:
                made = self._match_node(alternative, node, dict(bound), then)
                if made is not None:
                    return made
            return None
        assert isinstance(pattern, NodePattern)
        self._budget.spend_attempt()
        spec = pattern.specs.get(node.op_type)
        if spec is None or spec.domain != node.domain:
            wanted = "an operator with these options" if pattern.wildcard else next(iter(pattern.specs), "nothing")
            self._fail(pattern.span, "wants {}, finds {}", wanted, node.op_type)
            return None
        if pattern.wildcard:
            bound[pattern.wildcard], bound[name_rest(pattern.wildcard)] = node.op_type, node
        if not self._match_options(pattern, spec, node, bound):
            return None
        following = self._match_inside(pattern.graphs, spec, node, then) if pattern.graphs else then
        inputs = spec.list_inputs(node)
        if not (len(inputs) == len(pattern.operands) == 2 and "commutative" in spec.traits) or inputs[0] is inputs[1]:
            return self._match_operands(pattern, inputs, bound, following)
        made = self._match_operands(pattern, inputs, dict(bound), following)
        return self._match_operands(pattern, inputs[::-1], bound, following) if made is None else made

    def _match_inside(
        self, wanted: Sequence[OptionPattern], spec: OperatorSpec, node: ir.Node, then: Then[Made]
    ) -> Then[Made]:
        """Match the graphs of a node that a pattern looks into, once its operands fit."""

        def match_graphs(bound: Bindings) -> Made | None:
            pattern, described = wanted[0].graph, spec.options[wanted[0].name]
            found = subgraphs.bind_option(described, get_option(node, described), self._graphs)
            if pattern is None or not isinstance(found, subgraphs.Body):
                self._fail(wanted[0].span, "{} is no graph of the node", wanted[0].name)
                return None
            body, equations, results = found.graph, pattern.equations, pattern.results
            rest = self._match_inside(wanted[1:], spec, node, then) if len(wanted) > 1 else then
            bound[SEARCHED] = (*bound.get(SEARCHED, ()), body)

            def match_yielded(more: Bindings) -> Made | None:
                return self._match_all(results, body.outputs, more, lambda last: self.extend(equations, (), last, rest))

            return self._match_all(pattern.parameters, body.inputs, bound, match_yielded)

        return match_graphs

    def _match_options(self, pattern: NodePattern, spec: OperatorSpec, node: ir.Node, bound: Bindings) -> bool:
        for wanted in pattern.options:
            if wanted.graph is not None or wanted.variable == IGNORED:
                continue
            described = spec.options[wanted.name]
            value = subgraphs.bind_option(described, get_option(node, described), self._graphs)
            if type(value) is str and value.endswith(")") and value.startswith(f"{described.type}("):
                return self._fail(wanted.span, "option {} is {}, which nothing says the meaning of", wanted.name, value)
            if wanted.variable is not None and wanted.variable not in bound:
                bound[wanted.variable] = value
                continue
            expected = evaluate(wanted.value, Frame(bound))
            if not is_same(value, expected):
                return self._fail(wanted.span, "option {} is {}, the rule asks for {}", wanted.name, value, expected)
        if not pattern.rest:
            shown = spec.facts.shown
            if shown is not None and shown not in spec.options and len(node.outputs) > 1:
                return self._fail(pattern.span, "{} results show that {} is 1", len(node.outputs), shown)
            for name in node.attributes.data:
                option = spec.options.get(name)
                if name in pattern.named or any(name == stored.name for stored in spec.stored.values()):
                    continue
                if option is not None and is_same(get_option(node, option), option.default):
                    continue
                value = node.attributes[name].value if option is None else get_option(node, option)
                return self._fail(pattern.span, "option {} is {}, and the rule does not mention it", name, value)
        return True

    def _match_operands(
        self, pattern: NodePattern, inputs: Sequence[ir.Value | None], bound: Bindings, then: Then[Made]
    ) -> Made | None:
        patterns, count = pattern.operands, len(inputs)
        if pattern.fixed < len(patterns):
            if count >= pattern.fixed:
                return self._match_all(patterns, inputs, bound, then)
            self._fail(pattern.span, "the node has {} operands, the rule names at least {}", count, pattern.fixed)
            return None
        if count > len(patterns) and any(value is not None for value in inputs[len(patterns) :]):
            self._fail(pattern.span, "the node has {} operands, the rule names {}", count, len(patterns))
            return None
        return self._match_each(patterns, inputs, 0, bound, then)

    def _match_all(
        self, patterns: Sequence[Operand], values: Sequence[ir.Value | None], bound: Bindings, then: Then[Made]
    ) -> Made | None:
        """Match each value of a list, where some patterns may take several."""
        for places, start in assign_places(list_bound(patterns), len(values), bound):
            self._budget.spend_attempt()
            own = dict(start)
            single: list[Operand] = []
            taken: list[ir.Value | None] = []
            for pattern, place in zip(patterns, places, strict=True):
                if not pattern.spread:
                    single.append(pattern)
                    taken.append(values[place][0])
                elif isinstance(pattern, Variable):
                    if not self._bind_several(pattern, list(values[place]), own):
                        break
                elif not self._match_repeated(pattern, values[place], own):
                    break
            else:
                made = self._match_each(single, taken, 0, own, then)
                if made is not None:
                    return made
        return None

    def _bind_several(self, pattern: Variable, values: list[ir.Value | None], bound: Bindings) -> bool:
        if pattern.name == IGNORED:
            return True
        if pattern.name in bound and bound[pattern.name] != values:
            return self._fail(pattern.span, "{} stands for other values before", pattern.name)
        bound[pattern.name] = values
        return True

    def _match_repeated(self, pattern: Operand, values: Sequence[ir.Value | None], bound: Bindings) -> bool:
        """Match each of some values by the same pattern, and bind its names to the lists of what they stand for.

        The first way in which it fits a value is the only one that is tried.
        """
        fits: list[Bindings] = []
        for value in values:
            if value is None:
                return self._fail(pattern.span, "an operand is left out")
            one = self._match_producer(pattern, value, {OPSET: bound[OPSET]}, dict)
            if one is None:
                return False
            fits.append(one)
        bound.update({name: [one[name] for one in fits] for name in list_names(pattern)})
        return True

    def _match_each(
        self,
        patterns: Sequence[Operand],
        values: Sequence[ir.Value | None],
        start: int,
        bound: Bindings,
        then: Then[Made],
    ) -> Made | None:
        """Match values by patterns, from a place on; those that there are no values for are left out."""
        count = len(values)
        for place in range(start, len(patterns)):
            pattern = patterns[place]
            value = values[place] if place < count else None
            if isinstance(pattern, Variable) and (value is None or pattern.name not in self._definers):
                fits = self._match_variable(pattern, value, bound)
            elif value is None or isinstance(pattern, Number | Absent):
                fits = self._match_plain(pattern, value)
            elif place + 1 == len(patterns):
                return self._match_producer(pattern, value, bound, then)
            else:
                # Only what a node computes may fit in several ways, and what stands behind it then fits anew.
                def match_following(more: Bindings, rest: int = place + 1) -> Made | None:
                    return self._match_each(patterns, values, rest, more, then)

                return self._match_producer(pattern, value, bound, match_following)
            if not fits:
                return None
        return then(bound)

    def _match_plain(self, pattern: Operand, value: ir.Value | None) -> bool:
        if isinstance(pattern, Absent):
            return value is None or self._fail(pattern.span, "operand {} is there, the rule asks for none", value.name)
        if value is None:
            return self._fail(pattern.span, "the operand is left out")
        assert isinstance(pattern, Number)
        fits = TRAINED not in value.meta and is_number(value, pattern.value)  # which training changes
        return fits or self._fail(pattern.span, "{} is not the constant {}", value.name, f"{pattern.value}")

    def _match_variable(self, pattern: Variable, value: ir.Value | None, bound: Bindings) -> bool:
        """Bind a variable, or compare it with what it stands for."""
        name = pattern.name
        if name == IGNORED:
            return True
        found: Any = value
        if value is None:
            if not pattern.optional or bound.get(name) is not None:
                return self._fail(pattern.span, "operand {} is left out", name)
            bound[name] = None
            return True
        if pattern.layout and not _has_rank(value, pattern.layout):
            return self._refuse_rank(pattern.span, name, value, pattern.layout)
        if pattern.const:
            found = read_constant(value)
            if found is None:
                return self._fail(pattern.span, "{} ({}) is not constant", name, value.name)
            if not self._codes and read_quantization(value) is not None:
                return self._fail(pattern.span, "{} ({}) is codes, and no numbers", name, value.name)
        if name in bound and not is_same(bound[name], found):
            return self._fail(pattern.span, "{} stands for another value before", name)
        bound[name] = found
        return True

    def _match_producer(self, pattern: Operand, value: ir.Value, bound: Bindings, then: Then[Made]) -> Made | None:
        """Match a value by the node that computes it: a pattern in its place, or the equation of its name."""
        definer = None
        if isinstance(pattern, Variable):
            if pattern.name in bound or (pattern.layout and not _has_rank(value, pattern.layout)):
                return then(bound) if self._match_variable(pattern, value, bound) else None
            definer = self._definers[pattern.name]
        producer = value.producer()
        if producer is None:
            named = f"{pattern.name} ({value.name})" if isinstance(pattern, Variable) else value.name
            self._fail(pattern.span, "{} is not computed by a node", named)
            return None
        if definer is None:
            return self._match_node(pattern, producer, bound, then) if producer.outputs[0] is value else None
        assert isinstance(pattern, Variable)
        name = pattern.name
        return self.match_equation(definer, producer, bound, lambda more: then(more) if more[name] is value else None)

    def _refuse_rank(self, span: Span, name: str, value: Any, layout: str) -> bool:
        known = type(value) is ir.Value and value.shape is not None
        rank = f"rank {len(value.shape)}" if known else "an unknown rank"
        return self._fail(span, "{} has {}, {} asks for {}", name, rank, layout, len(layout))

    def _fail(self, span: Span, message: str, *parts: Any) -> bool:
        """Record why a pattern does not match, where somebody asks; always False."""
        if self._note is not None:
            self._note(span, message.format(*map(_describe_value, parts)))
        return False


def _has_rank(value: ir.Value | None, layout: str) -> bool:
    return value is None or (value.shape is not None and len(value.shape) == len(layout))


def _describe_value(value: Any) -> str:
    return str(found).lower() if isinstance(found := convert_to_python(value), bool) else format_value(found)

"""Generates subgraphs of nodes: what a pattern matches in them, and sums where it matches nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir

from ..engine.dialects.facts import OperatorFacts
from ..engine.dialects.operators import OperatorSpec
from ..engine.expressions.functions import DTYPES
from ..engine.rewrite.pattern import Defined, GraphPattern, NodePattern, Operand, Variable, list_names
from ..engine.rewrite.variadics import assign_places
from ..verify.frames import Array
from .choices import Choices
from .finding import Grids, Rejected
from .sketch import Body, Step, Value
from .subjects import Subject

_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
#: in so many of a hundred draws a result that is carried on is computed, and one more comes of each turn
_COMPUTED, _GATHERED = 75, 50
#: in so many all that it reads may depend on what it is given
_MOVING = 50
#: what a turn may add to or take from what it was given
_SUMS = ("+", "-")


class BodyContext(Protocol):
    """What a body needs of the case in the making."""

    choices: Choices
    subject: Subject
    opset: int
    made: list[Step]
    values: dict[str, Any]
    counts: dict[str, int]
    definers: dict[str, Defined]
    within: str
    parameters: Sequence[Value]
    moving: bool

    @property
    def settle(self) -> Callable[[Step, Sequence[int], Sequence[ir.DataType], Grids], Step]: ...

    def add(self, step: Step) -> list[Value]: ...

    def build_node(self, pattern: Operand, equation: Defined | None) -> list[Value]: ...

    def make_name(self, stem: str) -> str: ...


def build_siblings(bench: BodyContext, equation: Defined, count: int) -> None:
    """Build some nodes beside those that there are, each with operands of its own where no other has them."""
    own, found = [name for name in list_names(equation.value) if name not in bench.values], []
    for _ in range(count):
        for name in own:
            bench.values.pop(name, None)
        found += bench.build_node(equation.value, None)[:1]
    bench.values[equation.targets[0].name] = tuple(found)


def list_leading_types(facts: OperatorFacts, option: str) -> list[str]:
    """The types of what a body yields before the results of its node: whether there is another turn."""
    return [kind for kind in facts.parameters.get(option, ()) if kind == "bool"]


def draw_graphs(
    bench: BodyContext,
    pattern: NodePattern,
    spec: OperatorSpec,
    operands: Sequence[Value | None],
    options: Mapping[str, Any],
) -> dict[str, Body]:
    """Draw the options of a node that are graphs: those that a pattern looks into, and those that a test lists."""
    found: dict[str, Body] = {}
    for option in pattern.options:
        if option.graph is not None:
            found[option.name] = _draw(bench, option.graph, spec.facts, option.name, operands, {**options, **found})
    for name, value in options.items():
        if spec.options[name].type == "subgraph" and isinstance(value, list):
            found[name] = _build(bench, value, spec.facts.fuzz.elements.get(name), operands)
    return found


def _draw(
    bench: BodyContext,
    pattern: GraphPattern,
    facts: OperatorFacts,
    option: str,
    operands: Sequence[Value | None],
    options: Mapping[str, Any],
) -> Body:
    """Draw a graph that a pattern looks into, for a node with some operands; raises Rejected where that cannot be."""
    outer = bench.made, bench.within, bench.parameters, bench.moving
    bench.made, bench.within, bench.moving = [], bench.make_name("in"), bench.choices.draw_chance(_MOVING)
    bench.definers |= {target.name: equation for equation in pattern.equations for target in equation.targets}
    try:
        kinds: Sequence[str] = facts.parameters.get(option, ())
        sliced = int(options.get(facts.slices or "", 0))
        bench.parameters = parameters = _build_parameters(bench, pattern, kinds, operands, sliced)
        likes: list[Value | None] = [*parameters[len(kinds) - len(list_leading_types(facts, option)) :]]
        return Body(tuple(parameters), *_draw_yielded(bench, pattern, likes))
    finally:
        bench.made, bench.within, bench.parameters, bench.moving = outer


def _build(
    bench: BodyContext, operators: Sequence[str], elements: Sequence[int] | None, operands: Sequence[Value | None]
) -> Body:
    """Build a graph of some operators: the first is given all parameters, each other what the one before it yields.

    Parameters are like the operands of its node, or like an element of each of those in the places `elements`. Without
    an operator the last of them is yielded. Raises Rejected where it cannot be.
    """
    outer = bench.made, bench.within
    bench.made, bench.within = [], bench.make_name("in")
    try:
        likes = operands if elements is None else [operands[place] for place in elements if place < len(operands)]
        given: list[Value] = []
        for like in likes:
            if like is None or not like.content.size:
                raise Rejected("a graph is given nothing")
            content = like.content if elements is None else like.content.reshape(-1)[0].reshape(())
            given.append(Value(bench.make_name("parameter"), like.dtype, content))
        found = given[-1:]
        for place, name in enumerate(operators):
            step = Step(bench.subject.reads.operators[name], tuple(found if place else given), {})
            found = [_run(bench, step, given[0].dtype)]
        return Body(tuple(given), tuple(bench.made), tuple(found))
    finally:
        bench.made, bench.within = outer


def _build_parameters(
    bench: BodyContext, pattern: GraphPattern, kinds: Sequence[str], operands: Sequence[Value | None], sliced: int
) -> list[Value]:
    """What a body is given in its first turn, under the names that the pattern has for it.

    The first are of some kinds, whatever the operands are; of the last operands so many are given slice by slice.
    """
    found: list[Value] = []
    for place, operand in enumerate(operands if kinds or sliced else ()):
        if place < len(kinds):
            dtype = DTYPES[kinds[place]]
            content: Array = np.array(dtype == ir.DataType.BOOL, dtype.numpy())  # the first turn, which takes place
        elif operand is None:
            raise Rejected("an operand of a graph is left out")
        else:
            dtype, content = operand.dtype, operand.content
            content = content[0] if place >= len(operands) - sliced else content
        found.append(Value(bench.make_name("parameter"), dtype, content))
    _take(bench, pattern.parameters, found)
    return found


def _take(bench: BodyContext, patterns: Sequence[Variable], values: Sequence[Value]) -> None:
    """Give values the names of a list of variables, some of which take several."""
    places = next(assign_places(patterns, len(values), bench.counts), None)
    if places is None:
        raise Rejected("the graph has another number of values than the pattern names")
    for variable, place in zip(patterns, places[0], strict=True):
        bench.values[variable.name] = list(values[place]) if variable.spread else values[place][0]


def _draw_yielded(
    bench: BodyContext, pattern: GraphPattern, likes: Sequence[Value | None]
) -> tuple[tuple[Step, ...], tuple[Value, ...]]:
    """The steps of a body, and what it yields: values like those it was given, and maybe one more."""
    taking = [one if isinstance(one, Variable) and one.spread else _ONE for one in pattern.results]
    more = int(bench.choices.draw_chance(_GATHERED)) if any(one.spread and one.count is None for one in taking) else 0
    total = max(
        len(likes) + more,
        sum(not one.spread for one in taking)
        + sum(bench.counts.get(one.count or "", 0) for one in taking if one.spread),
    )
    places = next(assign_places(taking, total, bench.counts), None)
    if places is None:
        raise Rejected("the graph yields another number of values than the pattern names")
    yields: list[Value] = []
    wanted: list[Value | None] = [*likes, *[None] * total]
    for one, place in zip(pattern.results, places[0], strict=True):
        for like in wanted[place]:
            value = _build_result(bench, one, like)
            own = any(value in step.results for step in bench.made) and value not in yields
            yields.append(value if own else _copy(bench, value))
    return tuple(bench.made), tuple(yields)


_ONE = Variable("", False, False, False, None, None)  # type: ignore[arg-type]


def _build_result(bench: BodyContext, pattern: Operand, like: Value | None) -> Value:
    if not isinstance(pattern, Variable):
        return bench.build_node(pattern, None)[0]
    if pattern.name in bench.definers and pattern.name not in bench.values:
        bench.build_node(bench.definers[pattern.name].value, bench.definers[pattern.name])
    known = bench.values.get(pattern.name)
    if isinstance(known, Value):
        return known
    alike = [one for one in bench.parameters if like is not None and _are_same(one, like)]
    base = bench.choices.pick(alike or bench.parameters)
    if base.dtype == ir.DataType.BOOL:
        found = _build_flag(bench, base)
    else:
        found = add_computed(bench, base) if bench.choices.draw_chance(_COMPUTED) else base
    if not pattern.spread:
        bench.values[pattern.name] = found
    return found


def add_computed(bench: BodyContext, base: Value) -> Value:
    """A value like another one that depends on what a body is given, and so differs from turn to turn."""
    shape = base.content.shape
    fit = [
        value
        for value in (*bench.parameters, *(result for step in bench.made for result in step.results))
        if value.dtype == base.dtype and value is not base and _can_extend(value.content.shape, shape)
    ]
    fit += _find_counters(bench.parameters)
    sums = [_find_spec(bench, spec) for spec in bench.subject.reads.operators.values() if spec.infix in _SUMS]
    if not fit or not sums or base.dtype in (ir.DataType.BOOL, ir.DataType.STRING):
        return base
    other = bench.choices.pick(fit)
    if other.dtype != base.dtype:
        other = _convert(bench, other, base.dtype)
    spec = bench.choices.pick(sums)
    return _run(bench, Step(spec, (base, other), {}), base.dtype)


def _are_same(one: Value, other: Value) -> bool:
    return (one.dtype, one.content.shape) == (other.dtype, other.content.shape)


def _build_flag(bench: BodyContext, base: Value) -> Value:
    """Whether there is another turn: what was said before, or whether a count has not come to its end."""
    counters = _find_counters(bench.parameters)
    less = [_find_spec(bench, spec) for spec in bench.subject.reads.operators.values() if spec.infix == "-"]
    if not counters or not less or bench.choices.draw_chance(30):
        return base
    counter = bench.choices.pick(counters)
    end = Value(
        bench.make_name("end"), counter.dtype, np.array(bench.choices.draw_int(1, 4), counter.dtype.numpy()), True
    )
    return _convert(bench, _run(bench, Step(less[0], (end, counter), {}), counter.dtype), base.dtype)


def _find_counters(values: Sequence[Value]) -> list[Value]:
    return [value for value in values if value.dtype in _INTEGERS and not value.content.ndim]


def _convert(bench: BodyContext, value: Value, dtype: ir.DataType) -> Value:
    return _run(
        bench, Step(_find_spec(bench, bench.subject.reads.find_role("convert")), (value,), {"to": int(dtype)}), dtype
    )


def _copy(bench: BodyContext, value: Value) -> Value:
    return _run(bench, Step(_find_spec(bench, bench.subject.reads.find_role("copy")), (value,), {}), value.dtype)


def _run(bench: BodyContext, step: Step, dtype: ir.DataType) -> Value:
    return bench.add(bench.settle(step, [1], [dtype], lambda dtype: []))[0]


def _find_spec(bench: BodyContext, known: OperatorSpec) -> OperatorSpec:
    """An operator as it is at the opset of the case."""
    found = bench.subject.reads.find_operator(known.name, bench.opset)
    if found is None:
        raise Rejected(f"there is no {known.name} at opset {bench.opset}")
    return found


def _can_extend(inner: Sequence[int], outer: Sequence[int]) -> bool:
    """Whether one shape can be extended to another."""
    pairs = zip(reversed(inner), reversed(outer), strict=False)
    return len(inner) <= len(outer) and all(a in (1, b) for a, b in pairs)


__all__ = ["add_computed", "draw_graphs", "list_leading_types"]

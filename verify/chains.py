"""Chains: small graphs of several operators, where layouts, fused activations, quantization and sharing meet."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.errors import Span
from .cases import Bench
from .dice import Dice
from .finding import Rejected
from .laboratory import Laboratory
from .sketch import Case, Step, Value, leaves
from .subjects import Subject

#: how many operators, and how many draws an operator is given before the graph goes on without it
_LENGTHS = (2, 6)
_DRAWS = 5
#: what a graph of several operators is called where a rule would be named
NAME = "several operators"
#: elements of a value that is used again, at most
_LARGEST = 4096


def chains(subjects: Sequence[Subject]) -> Subject:
    """The subject that stands for graphs of several operators of the source dialect."""
    first = subjects[0]
    nowhere = Span("graphs drawn from the tests of several rules", 0, 0, 0, 0)
    return Subject(NAME, nowhere, first.stage, first.reads, (), (), first.definitions, first.opsets)


def draw(dice: Dice, subjects: Sequence[Subject], laboratory: Laboratory) -> Case:
    """Draw a graph out of the tests of rules; raises Rejected where fewer than two operators came about.

    Every operator but the first takes results or inputs of those before it where they fit, so that values are shared.
    """
    wanted = dice.number(*_LENGTHS)
    opset = dice.pick(subjects[0].opsets) if dice.chance(25) else None
    steps: list[Step] = []
    for _ in range(wanted):
        for _ in range(_DRAWS):
            subject = dice.pick(subjects)
            bench = Bench(
                dice, laboratory.settle, subject, dice.pick(subject.tests), opset or subject.opsets[-1], _given(steps)
            )
            bench.position = len(steps)
            try:
                made = bench.steps()
            except Rejected:
                continue
            if not steps or _joined(made, steps):
                steps += made
                break
    if len(steps) < _LENGTHS[0]:
        raise Rejected("the operators drawn do not fit each other")
    return Case(NAME, tuple(steps), opset, True)


def _given(steps: Sequence[Step]) -> list[Value]:
    """The values that a further operator may take: results, the latest last, and what was fed."""
    fed = [value for value in leaves(steps) if value.fed]
    results = [value for step in steps for value in step.results]
    return [value for value in (*fed, *results) if 0 < value.content.size <= _LARGEST]


def _joined(made: Sequence[Step], steps: Sequence[Step]) -> bool:
    known = {value for step in steps for value in (*step.operands, *step.results)}
    return any(value in known for step in made for value in step.operands if value is not None)

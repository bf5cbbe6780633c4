"""Random graphs of several operators, where layouts, fused activations, quantization and sharing meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..engine.base.errors import Span
from ..engine.base.quantization import HYBRID
from ..engine.rewrite.pattern import Variable, iterate_nodes
from .cases import draw_opset, find_settle
from .choices import Choices
from .finding import Rejected
from .generate import CaseBuilder
from .oracle import RANDOM, Oracle
from .sketch import Case, Step, Value, iterate_leaves
from .subjects import Subject

#: how many operators, and how many draws an operator is given before the graph goes on without it
_LENGTHS = (2, 6)
_DRAWS, _FEW = 5, 2
#: what a graph of several operators is called where a rule would be named
NAME = "several operators"
#: elements of a value that is used again, at most
_LARGEST = 4096
_HUGE = 1e6
#: the rank of images, whose layouts differ
_IMAGE = 4
_REAL = "f32"


def make_graph_subject(subjects: Sequence[Subject]) -> Subject:
    """The subject that stands for graphs of several operators of the source dialect."""
    nowhere = Span("graphs drawn from the tests of several rules", 0, 0, 0, 0)
    return subjects[0].make_stand_in(NAME, nowhere)


def draw(choices: Choices, subjects: Sequence[Subject], oracle: Oracle) -> Case:
    """Draw a graph out of the tests of rules; raises Rejected where fewer than two operators came about.

    Every operator but the first takes results or inputs of those before it where they fit, so that values are shared.
    """
    graph = _Graph(choices, oracle, draw_opset(choices, subjects[0], oracle.opset))
    for _ in range(choices.draw_int(*_LENGTHS)):
        for _ in range(_DRAWS):
            if graph.add(choices.pick(subjects), free=choices.draw_chance(30)):
                break
    return graph.make_case()


def draw_between(choices: Choices, subject: Subject, subjects: Sequence[Subject], oracle: Oracle) -> Case:
    """Draw a graph with the operator of one rule between two whose layouts differ on both sides.

    Raises Rejected where it does not take what the first of them yields, or where no operator of them has a layout.
    """
    images = [other for other in subjects if has_layout(other)]
    if not images:
        raise Rejected("no operator has a layout")
    graph = _Graph(choices, oracle, None)
    if not any(graph.add(choices.pick(images), free=False) for _ in range(_FEW)):
        raise Rejected("no operator on images came about")
    if not any(graph.add(subject, free=True) for _ in range(_FEW)):
        raise Rejected("the operator does not take an image")
    for _ in range(_FEW):
        if graph.add(choices.pick(images), free=False, latest=True):
            break
    return graph.make_case()


class _Graph:
    """A graph in the making."""

    def __init__(self, choices: Choices, oracle: Oracle, opset: int | None) -> None:
        self._choices, self._laboratory, self._opset = choices, oracle, opset
        self._steps: list[Step] = []

    def add(self, subject: Subject, free: bool, latest: bool = False) -> bool:
        """Add the operator of a rule where it fits; `latest` wants it to take a result of the last step."""
        steps = self._steps
        given = _list_usable(steps[-1].results) if latest else _list_given(steps)
        bench = CaseBuilder(
            self._choices,
            find_settle(subject, self._laboratory, self._opset),
            subject,
            self._choices.pick(subject.tests),
            self._opset or subject.newest,
            given,
            len(steps),
            free,
        )
        try:
            made = bench.build_steps()
        except Rejected:
            return False
        fit = all(_is_moderate(value) for value in made[-1].results) and RANDOM not in made[-1].operator.traits
        fit = fit and not any(_is_coarse(step) for step in made)
        if not fit or (steps and not _is_joined(made, steps)):
            return False
        steps += made
        return True

    def make_case(self) -> Case:
        """The graph as it stands; raises Rejected where it is one operator, or none."""
        if len(self._steps) < _LENGTHS[0]:
            raise Rejected("the operators drawn do not fit each other")
        return Case(NAME, tuple(self._steps), self._opset, True)


def can_take_images(subject: Subject) -> bool:
    """Whether the operator of a rule may come between two that have layouts: one of its operands is of real numbers."""
    return subject.of_source and any(d.type == _REAL and d.shape for test in subject.tests for d in test.declarations)


def has_layout(subject: Subject) -> bool:
    """Whether the operator of a rule has an image layout of its own."""
    patterns = iterate_nodes(subject.compile_pattern(subject.newest)[-1].value)
    operands = (operand for pattern in patterns for operand in pattern.operands if isinstance(operand, Variable))
    return any(operand.layout is not None and len(operand.layout) == _IMAGE for operand in operands)


def _list_given(steps: Sequence[Step]) -> list[Value]:
    """The values that a further operator may take: what was fed, and results, the latest last."""
    fed = [value for value in iterate_leaves(steps) if value.fed]
    return _list_usable([*fed, *(value for step in steps for value in step.results)])


def _list_usable(values: Sequence[Value]) -> list[Value]:
    return [value for value in values if 0 < value.content.size <= _LARGEST and not value.open]


def _is_moderate(value: Value) -> bool:
    """Whether what follows can still compute with a value: no infinities, and nothing close to them."""
    return value.content.dtype.kind != "f" or bool((np.abs(value.content.astype(np.float64)) < _HUGE).all())


def _is_coarse(step: Step) -> bool:
    """Whether a kernel rounds real operands to codes of its own, as rules follow it only where that is faster."""
    scaled = any(value is not None and value.grid is not None for value in step.operands)
    return HYBRID in step.operator.traits and scaled and not any(value.grid is not None for value in step.results)


def _is_joined(made: Sequence[Step], steps: Sequence[Step]) -> bool:
    known = {value for step in steps for value in (*step.operands, *step.results)}
    return any(value in known for step in made for value in step.operands if value is not None)

"""Cases: models of one operator or a few, drawn out of a rule's `test` clause and ops.yaml."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from . import perturb
from .choices import Choices
from .generate import CaseBuilder, Settle
from .oracle import Oracle
from .sketch import Case, Step, Value
from .subjects import Subject

#: in so many of a hundred draws the opset is one at which the rule takes a turn, or any that matters
_TURNING, _OTHER_OPSET = 50, 15
#: in so many a result is not asked for, and one that others read is
_FEWER, _INNER = 30, 10
#: the fixed cases in which one that others read is asked for, each in turn
_INNER_TURNS = range(16, 24)
#: so many fixed cases in a row are of one test, the next of another
_OF_ONE_TEST = 2


def draw(choices: Choices, subject: Subject, oracle: Oracle) -> Case:
    """Draw a case for a rule; raises Rejected where the interpreter does not take what was drawn.

    For rules over the target alone it is the runtime that does or does not.
    """
    test = choices.pick(subject.tests, None if choices.turn is None else choices.turn // _OF_ONE_TEST)
    opset = draw_opset(choices, subject, oracle.opset)
    settle = find_settle(subject, oracle, opset)
    bench = CaseBuilder(
        choices,
        settle,
        subject,
        test,
        subject.choose_opset(opset),
        varied=perturb.choose_varied(choices, subject, test),
    )
    steps = bench.build_steps()
    return Case(
        subject.name, steps, opset, bench.widened, None if subject.of_source else _choose_outputs(choices, steps)
    )


def find_settle(subject: Subject, oracle: Oracle, opset: int | None) -> Settle:
    """What finds the results of a step: the interpreter, or ONNX Runtime where the left side of a rule is of ONNX."""
    if subject.interpreted:
        return oracle.settle
    runtime = oracle.conversions if subject.of_source else oracle.self_check
    return functools.partial(runtime.settle, opset=subject.choose_opset(opset))


def draw_opset(choices: Choices, subject: Subject, usual: int | None = None) -> int | None:
    """An opset to aim at, most often the `usual` one, that of a target, or one at which the rule takes a turn.

    None stands for the one that the rules aim at, where no target sets another.
    """
    if subject.turning and choices.draw_chance(_TURNING):
        return choices.pick(subject.turning)
    any_of = choices.draw_chance(_OTHER_OPSET) or (usual is None and not subject.of_source)
    return choices.pick(subject.opsets) if any_of else usual


def _choose_outputs(choices: Choices, steps: Sequence[Step]) -> tuple[Value, ...] | None:
    """At times fewer results than nobody uses, or others too: who reads a value may decide whether a rule applies."""
    read = {value for step in steps for value in step.reads}
    free = [value for step in steps for value in step.results if value not in read]
    inner = [value for step in steps for value in step.results if value in read]
    if len(free) > 1 and choices.draw_chance(_FEWER):
        free.remove(choices.pick(free))
        return tuple(free)
    wanted = None if choices.turn is None else choices.turn in _INNER_TURNS
    if not inner or not choices.draw_chance(_INNER, wanted):
        return None
    return (*free, choices.pick(inner, None if choices.turn is None else choices.turn - _INNER_TURNS.start))

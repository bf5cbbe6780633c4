"""Fixed cases: what they are drawn by differs by more than chance, and a rule fires on the first ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("hypothesis")

from nnrewrite.conversion.options import Options
from nnrewrite.fuzz import perturb
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.finding import Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.rule_sets import RuleSets, list_stacks
from nnrewrite.fuzz.runner import repeat
from nnrewrite.fuzz.sketch import Case
from nnrewrite.fuzz.subjects import Subject
from nnrewrite.verify import Interpreter

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stack() -> RuleSets:
    return list_stacks(Options(rules=("onnx2onnx",)))[0]


@pytest.fixture
def oracle(stack: RuleSets, interpreter: Interpreter) -> Oracle:
    return Oracle(interpreter, stack.pack.catalogue, stack.rules, stack.exact, stack.opset)


def named(stack: RuleSets, name: str) -> Subject:
    return next(one for one in stack.trials if isinstance(one, Subject) and one.name == name)


def test_each_name_of_a_guard_has_its_turn_to_be_astray(stack: RuleSets) -> None:
    subject = named(stack, "slice_nothing")
    (test,) = subject.tests
    found = [perturb.choose_varied(Choices.make_seeded(f"{turn}", turn), subject, test) for turn in range(24)]
    assert [name is not None for name in found] == [8 <= turn < 16 for turn in range(24)]
    assert {"x", "steps"} <= set(found)


def test_operands_may_be_the_results_of_one_node_in_any_number(stack: RuleSets, oracle: Oracle) -> None:
    subject = named(stack, "concat_of_split")

    def cases() -> Iterator[bool]:
        for seed in range(24):
            try:
                split, concat = draw(Choices.make_seeded(f"{seed}"), subject, oracle).steps
            except Rejected:
                continue
            yield set(concat.operands) == set(split.results)

    found = [*cases()]
    assert found
    assert all(found)


def test_a_rule_fires_on_the_first_fixed_cases(stack: RuleSets, oracle: Oracle) -> None:
    found = repeat(named(stack, "gelu"), oracle, ())
    assert not found.explain_problem()
    assert sum(":1/" in one for one in found.outcomes[:8]) >= 6


def drawn_of(subject: Subject, oracle: Oracle, make: Callable[[int], Choices]) -> Iterator[Case]:
    for seed in range(60):
        try:
            yield draw(make(seed), subject, oracle)
        except Rejected:
            continue


def free(seed: int) -> Choices:
    return Choices(random.Random(seed).randint)


def test_options_that_a_rule_reads_and_no_test_names_are_drawn_but_for_recorded_cases(
    stack: RuleSets, oracle: Oracle
) -> None:
    subject = named(stack, "term_before_convolution")

    def options(make: Callable[[int], Choices]) -> set[str]:
        cases = drawn_of(subject, oracle, make)
        return {name for case in cases for step in case.steps if step.operator.name == "Conv" for name in step.options}

    told = {generator.name for test in subject.tests for generator in test.generators}
    assert {"dilations", "auto_pad"}.isdisjoint(told)
    assert {"dilations", "auto_pad"} <= options(free)
    assert {"dilations", "auto_pad"}.isdisjoint(options(lambda seed: Choices.make_seeded(f"{seed}")))


def test_constants_that_guards_speak_of_have_other_shapes_at_times(stack: RuleSets, oracle: Oracle) -> None:
    subject = named(stack, "relu_of_max")

    def shapes(make: Callable[[int], Choices]) -> set[tuple[int, ...]]:
        cases = drawn_of(subject, oracle, make)
        return {value.content.shape for case in cases for value in case.steps[0].operands[1:] if value is not None}

    assert len(shapes(free)) >= 3
    assert shapes(lambda seed: Choices.make_seeded(f"{seed}")) == {()}

"""Every rule, tried on cases drawn from its own `test` clause: the interpreter is the oracle.

`NNREWRITE_EXAMPLES` says how many cases each rule is tried on, one unless it does, `NNREWRITE_SEED` which ones.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from nnrewrite.engine.base.data_files import BUILT_IN
from nnrewrite.engine.base.held_files import hold_files
from nnrewrite.engine.packs import loader
from nnrewrite.engine.rewrite import coverage
from nnrewrite.fuzz import baseline
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.runner import examine, try_firing
from nnrewrite.fuzz.subjects import Subject, list_subjects
from nnrewrite.verify import Interpreter

#: the record has what the interpreter made of each case
pytestmark = [pytest.mark.slow, pytest.mark.runtime_fact("ai-edge-litert", "rewrite fuzz --record")]

#: with the rules of the default targets, which are tried on their own left sides
RULES = (
    ("tflite2onnx", "onnxruntime", "uint8", "kernels", "hybrid"),
    ("onnx2tflite", "litert"),
    ("onnx2tflite", "dynamic-range", "litert"),
)
#: onnx whose evaluator has no recurrent layers with samples first
OLDER = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 23)
EXAMPLES = int(os.environ.get("NNREWRITE_EXAMPLES", "1"))
SEED = int(os.environ.get("NNREWRITE_SEED", "0"))

SUBJECTS: list[tuple[tuple[str, ...], Subject]] = []
for rules in RULES:
    known = {subject.name for _, subject in SUBJECTS}
    SUBJECTS += [(rules, subject) for subject in list_subjects(loader.load(rules), known) if subject.tests]


@pytest.fixture(scope="session")
def oracles() -> Iterator[dict[tuple[str, ...], Oracle]]:
    with Interpreter(timeout=20) as interpreter:
        yield {rules: Oracle(interpreter, loader.load(rules).catalogue, rules) for rules in RULES}
    coverage.save()


@functools.cache
def read_record(pack: str) -> dict[str, baseline.Entry]:
    return baseline.read_entries(BUILT_IN / pack / baseline.NAME)


def anew(oracle: Oracle) -> Oracle:
    """The same in which nothing was tried yet, as the cases of the record need one."""
    return Oracle(oracle.interpreter, oracle.catalogue, oracle.rules)


@pytest.mark.parametrize(("rules", "subject"), SUBJECTS, ids=[subject.name for _, subject in SUBJECTS])
def test_rule(rules: tuple[str, ...], subject: Subject, oracles: dict[tuple[str, ...], Oracle]) -> None:
    if subject.excuse:
        pytest.skip(subject.excuse)
    oracle, pack = oracles[rules], Path(subject.rule.span.file).parts[0]
    with hold_files():  # no longer: other tests of this process write packs
        tally = examine(subject, oracle, EXAMPLES, SEED)
        if tally.idle and pack not in rules:  # a step to another dialect computes constants before rules see them
            subject = next(one for one in list_subjects(loader.load([pack]), set()) if one.name == subject.name)
            oracle = Oracle(oracle.interpreter, loader.load([pack]).catalogue, (pack,))
            tally = examine(subject, oracle, EXAMPLES, SEED)
        known = read_record(pack)[subject.name].outcomes
        if tally.idle:
            tally.add(try_firing(subject, anew(oracle), known))
        # One that fires in none of the recorded cases does so in one of fifty others: `make thorough` waits for it.
        rare = EXAMPLES == 1 and baseline.find_firing(known) is None
        if tally.idle and not rare:
            tally.add(examine(subject, oracle, 240, f"{SEED} once more", until=True))
        elif not tally.tried:
            tally.add(examine(subject, oracle, 1, f"{SEED} once more", patience=400))
    problem = tally.explain_problem()
    if OLDER and not tally.tried and "the evaluator fails" in problem:
        pytest.skip(f"the evaluator of an older onnx than 1.23 cannot: {problem}")
    if problem:
        pytest.fail(problem, pytrace=False)
    if not tally.tried:
        pytest.fail(
            f"the interpreter takes none of {tally.rejected.total()} draws: {tally.rejected.most_common(1)}",
            pytrace=False,
        )

"""Every rule, tried on cases drawn from its own `test` clause: the interpreter is the oracle.

`NNREWRITE_EXAMPLES` says how many cases each rule is tried on, `NNREWRITE_SEED` which ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from nnrewrite.engine import coverage, packs
from nnrewrite.verify import Interpreter
from nnrewrite.verify.campaign import examine
from nnrewrite.verify.laboratory import Laboratory
from nnrewrite.verify.subjects import Subject, subjects

#: with the rules of the default target, which are tried on their own left sides
RULES = ("tflite2onnx", "onnxruntime")
EXAMPLES = int(os.environ.get("NNREWRITE_EXAMPLES", "12"))
SEED = int(os.environ.get("NNREWRITE_SEED", "0"))

#: rules whose left side cannot be drawn from types and options alone, and where they are tested instead
ELSEWHERE = {
    "convolution_2d_transpose_bias": "its options are raw bytes that no test clause draws: test_models.py has networks",
    "densify": "its operand is stored as sparse blocks: test_tflite_reader.py reads those",
    "stablehlo_or": "the interpreter has no kernel for it, so there is nothing to compare with",
    "stablehlo_gather": "its kernel takes the shape of the result from the file, which is not known before it has run",
}

SUBJECTS = [subject for subject in subjects(packs.load(RULES)) if subject.tests]


@pytest.fixture(scope="session")
def laboratory() -> Iterator[Laboratory]:
    with Interpreter(timeout=20) as interpreter:
        yield Laboratory(interpreter, packs.load(RULES).catalogue, RULES)
    coverage.save()


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_rule(subject: Subject, laboratory: Laboratory) -> None:
    if subject.name in ELSEWHERE:
        pytest.skip(ELSEWHERE[subject.name])
    problem = examine(subject, laboratory, EXAMPLES, SEED).problem()
    if problem:
        pytest.fail(problem, pytrace=False)


def test_what_is_tested_elsewhere_is_a_rule() -> None:
    assert ELSEWHERE.keys() <= {subject.name for subject in SUBJECTS}

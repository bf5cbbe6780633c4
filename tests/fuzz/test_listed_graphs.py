"""A test gives an option that is a graph by the operators in it: they are drawn, run and checked like others."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.finding import End, Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.subjects import list_subjects
from nnrewrite.verify import Interpreter

pytestmark = pytest.mark.slow

RULES = ("tflite2onnx",)


def test_graphs_of_the_operators_that_a_test_lists_are_drawn_and_agree(interpreter: Interpreter) -> None:
    pack = loader.load(RULES)
    subject = next(one for one in list_subjects(pack) if one.name == "stablehlo_scatter")
    oracle, found, ends = Oracle(interpreter, pack.catalogue, RULES), set(), set()
    for number in range(24):
        try:
            case = draw(Choices.make_seeded(f"{number}"), subject, oracle)
        except Rejected:
            continue
        (body,) = case.steps[0].graphs
        assert [value.content.shape for value in body.parameters] == [(), ()]
        found.add(tuple(step.operator.name for step in body.steps))
        ends.add(oracle.judge(case).end)
    assert {(), ("STABLEHLO_ADD",)} <= found
    assert End.PASSED in ends
    assert End.FAILED not in ends


@pytest.mark.parametrize(
    ("listed", "said"),
    [('["ADDD"]', "tflite has no operator `ADDD`"), ('"ADD"', "a subgraph, of which a test lists the operators")],
)
def test_a_list_of_what_is_no_operator_is_an_error(tmp_path: Path, listed: str, said: str) -> None:
    rule = (
        f"rule called {{ ys... = CALL(xs...) {{subgraph: f}} => ys... = f(xs...) test xs: f32[2] for f in [{listed}] }}"
    )
    (tmp_path / "mine.rules").write_text(f"ruleset mine over tflite2onnx : tflite -> onnx opset 13..25\n\n{rule}\n")
    with pytest.raises(RuleError, match=said):
        loader.load((f"{tmp_path}",))

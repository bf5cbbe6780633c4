"""Rules of the stage `adapt`: at which opsets each is tried."""

from __future__ import annotations

import pytest
from nnrewrite.engine.packs import loader
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.rewrite.stages import ADAPT


def candidates(opset: int, operator: str) -> list[str]:
    pack = loader.load(["onnx2onnx"])
    rules = RuleSet(pack.files, pack.catalogue, opset, pack.contents)
    return [rule.name for rule in rules.list_candidates(ADAPT, "", operator)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "rule", "opset"), [("Shape", "shape_before_15", 15), ("Trilu", "lower_triangle", 14)]
)
def test_a_rule_is_for_opsets_that_lack_the_form_which_it_reads(operator: str, rule: str, opset: int) -> None:
    assert rule in candidates(opset - 1, operator)
    assert rule not in candidates(opset, operator)


def test_a_rule_that_compares_with_an_opset_is_tried_where_the_form_exists() -> None:
    assert "grid_sample_before_20" in candidates(19, "GridSample")


def test_a_rule_about_a_form_of_all_opsets_is_tried_at_all() -> None:
    assert "clip_of_values" in candidates(28, "Clip")

"""Models for property tests: the interpreter takes them, and Hypothesis makes those small that fail."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.tflite_reader import read
from nnrewrite.fuzz import models

pytestmark = pytest.mark.slow


def test_the_example_of_the_documentation_holds() -> None:
    page = (OPS.parent / "docs" / "appendix" / "proof.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found: dict[str, Any] = {}
    models("RELU6")  # registers the profiles
    settings.register_profile("before", settings())
    settings.load_profile("nnrewrite-quick")
    try:
        exec(code, found)
        found["test_conversion"]()
    finally:
        settings.load_profile("before")
        found["interpreter"].close()


def operators(model: bytes) -> list[str]:
    return [node.op_type for node in read(model, load()).graph]


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=3, deadline=None, database=None)
def test_models_are_of_the_operators_or_rules_asked_for(data: st.DataObject) -> None:
    assert set(operators(data.draw(models("RELU6", "SOFTMAX")))) <= {"RELU6", "SOFTMAX"}
    assert operators(data.draw(models(names=["conv_2d"]))) == ["CONV_2D"]


def test_inputs_lie_beyond_where_an_operator_cuts_off() -> None:
    chosen = settings(max_examples=300, database=None, deadline=None, phases=(Phase.generate,))

    def is_cut(drawn: tuple[bytes, list[np.ndarray]]) -> bool:
        return any(array.dtype == np.float32 and (array > 6).any() for array in drawn[1])

    model, (x,) = find(models("RELU6", inputs=True), is_cut, settings=chosen)
    (value,) = read(model, load()).graph.inputs
    assert value.shape is not None and len(value.shape) == x.ndim
    known = [(extent, given) for extent, given in zip(value.shape, x.shape, strict=True) if isinstance(extent, int)]
    assert all(extent == given for extent, given in known)


def test_a_model_that_fails_is_made_small() -> None:
    chosen = settings(max_examples=20, database=None, deadline=None, phases=(Phase.generate, Phase.shrink))
    small = find(models("CONV_2D"), lambda model: len(operators(model)) == 1, settings=chosen)
    assert len(small) < 1500


def test_an_operator_that_no_rule_is_about_is_told_of() -> None:
    with pytest.raises(CallError, match="no rule with a test is about RELU7"):
        models("RELU7")

"""Cases are drawn around what a rule names, and those that are recorded are not."""

from __future__ import annotations

import random

import numpy as np
import onnx_ir as ir
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.parser import parse
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.elements import draw_elements
from nnrewrite.fuzz.landmarks import find_landmarks

_TEXT = """
ruleset tflite2onnx : tflite -> onnx opset 13..25 default 18
def bounded(x) = Clip(x, 0.0, 12.5)
def unused(x) = x + 77.0
rule relu6 {
  y = RELU6(x)
  where dtype(x) == "f32" and rank(x) <= 4
  => y = bounded(x) + 3.0
  test x: f32[2, 3]
}
"""


def test_numbers_types_and_ranks_are_those_of_the_rule_and_what_it_uses() -> None:
    file = parse(_TEXT, "a.rules")
    definitions = {item.name: item for item in file.items if isinstance(item, tree.Definition)}
    (rule,) = (item for item in file.items if isinstance(item, tree.Rule))

    found = find_landmarks(rule, definitions)

    assert set(found.numbers) == {0.0, 3.0, 4.0, 12.5}
    assert set(found.types) == {"f32"}
    assert found.ranks == {"x": (3, 4, 5)}


def test_many_elements_are_around_a_number_but_for_recorded_cases() -> None:
    def count(choices: Choices) -> int:
        drawn = (draw_elements(choices, ir.DataType.FLOAT, (50,), around=(700.0,)) for _ in range(20))
        return sum(int((np.abs(one - 700) <= 1).sum()) for one in drawn)

    assert count(Choices(random.Random(0).randint)) > 50
    assert count(Choices.make_seeded(0)) == 0

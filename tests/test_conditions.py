"""Guards taken apart: what a rule asks of a node's operator and options is asked once, wherever it is written."""

from __future__ import annotations

import pytest
from nnrewrite.engine.language.parser import parse
from nnrewrite.engine.operators import Catalogue
from nnrewrite.engine.rules import compile_rules


def screened(catalogue: Catalogue, guards: str) -> list[set[str]] | None:
    """What the conditions speak of that rule out nodes by their operator and options alone."""
    rules = parse(
        f"""ruleset demo : onnx -> onnx opset 13..25
        def stays(kind, v) = trait(kind, linear) and rank(v) == 2
        def refuses(v) = rank(v) == 2 or fail("no")
        rule r stage simplify {{ y = any op(x, w) {{..}} {guards} => y = op(w, x) {{..}} }}""",
        "demo.rules",
    )
    (rule,) = compile_rules([rules], catalogue, 18).candidates("simplify", "", "MatMul")
    return None if rule.screen is None else [condition.speaks_of for condition in rule.screen]


@pytest.mark.parametrize(
    "guards",
    [
        "where trait(op, linear)",
        "where rank(x) == 2 and trait(op, linear)",
        "where rank(x) == 2 where stays(op, w)",
    ],
)
def test_what_is_asked_of_the_operator_alone_is_found_in_definitions(catalogue: Catalogue, guards: str) -> None:
    assert screened(catalogue, guards) == [{"op"}]


@pytest.mark.parametrize(
    "guards", ["where refuses(x) and trait(op, linear)", "let n = rank(x) where trait(op, linear)"]
)
def test_what_stands_behind_a_clause_that_may_refuse_a_node_waits_for_it(catalogue: Catalogue, guards: str) -> None:
    assert not screened(catalogue, guards)

"""The driver: in which order stages go over nodes, what they come back to, and when they end."""

from __future__ import annotations

import onnx.parser
import onnx.shape_inference
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.errors import RewriteError, UnsupportedError
from nnrewrite.engine.base.names import Scope
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.pass_list import convert_graph
from nnrewrite.engine.rewrite.driver import Driver
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.syntax.parser import parse

OPSET = 18


class Run:
    """Some rules over a graph, and how often each fired."""

    def __init__(self, graph: ir.Graph, rules: RuleSet) -> None:
        self.graph, self.rules = graph, rules
        self.fired: dict[str, int] = {}

    def run(self) -> None:
        self.fired = dict(convert_graph(self.graph, self.rules).outcome.fired)


def rewriter(catalogue: Catalogue, rules: str, graph: str, between: str = "onnx -> onnx") -> Run:
    """What runs some rules over a graph in ONNX's own notation."""
    head = f'<ir_version: 10, opset_import: ["" : {OPSET}, "tflite" : 1]> graph'
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(f"{head} {graph}"))
    compiled = RuleSet([parse(f"ruleset demo : {between} opset 13..25\n{rules}", "d.rules")], catalogue, OPSET)
    return Run(ir.from_proto(proto).graph, compiled)


def operators(run: Run) -> list[str]:
    return [node.op_type for node in run.graph]


def test_neighbours_of_what_a_rule_makes_are_tried_again(catalogue: Catalogue) -> None:
    rules = "rule r stage simplify { y = Abs(Relu(x)) => y = Relu(x) }"
    run = rewriter(catalogue, rules, "(float[2] x) => (float[2] y) { a = Relu(x) b = Abs(a) c = Abs(b) y = Abs(c) }")
    run.run()
    assert operators(run) == ["Relu"]
    assert run.fired == {"r": 3}


def test_the_only_reader_left_of_a_value_is_tried_again(catalogue: Catalogue) -> None:
    rules = """
        rule alone stage simplify { y = Neg(x) where readers(x) == 1 => y = Relu(x) }
        rule without stage simplify { y = Max(x, Sigmoid(_v)) => y = Ceil(x) }"""
    graph = "(float[2] x) => (float[2] y, float[2] z) { v = Abs(x) y = Neg(v) s = Sigmoid(v) z = Max(x, s) }"
    run = rewriter(catalogue, rules, graph)
    run.run()
    assert operators(run) == ["Abs", "Relu", "Ceil"]


def test_of_two_rules_the_one_that_asks_for_more_goes_first(catalogue: Catalogue) -> None:
    rules = """
        rule any_abs stage simplify { y = Abs(x) => y = Relu(x) }
        rule of_neg stage simplify { y = Abs(Neg(x)) => y = Sigmoid(x) }"""
    run = rewriter(catalogue, rules, "(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    run.run()
    assert operators(run) == ["Sigmoid"]


def test_stages_run_one_after_the_other(catalogue: Catalogue) -> None:
    rules = """
        rule last stage tune { y = Neg(x) => y = Abs(x) }
        rule first stage simplify { y = Relu(x) => y = Neg(x) }
        rule never stage simplify { y = Abs(x) => y = Sigmoid(x) }"""
    run = rewriter(catalogue, rules, "(float[2] x) => (float[2] y) { y = Relu(x) }")
    run.run()
    assert operators(run) == ["Abs"]


def test_a_rule_is_tried_in_each_of_its_stages(catalogue: Catalogue) -> None:
    rules = """
        rule both stage recover, simplify { y = Neg(x) => y = Abs(x) }
        rule between stage simplify { y = Relu(x) => y = Neg(x) }"""
    run = rewriter(catalogue, rules, "(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }")
    run.run()
    assert operators(run) == ["Abs", "Abs"]


def test_what_was_written_before_its_operands_were_constant_is_computed(catalogue: Catalogue) -> None:
    rules = """
        rule several stage normalize { y = NEG(x) => y = Relu(ABS(x)) }
        rule abs { y = ABS(x) => y = Abs(x) }
        rule add { y = ADD(a, b) {fused_activation_function: NONE} => y = Add(a, b) }"""
    graph = "(float[2] x) => (float[2] y) <float[2] k = {-1, 2}> { c = tflite.NEG(k) y = tflite.ADD(x, c) }"
    run = rewriter(catalogue, rules, graph, "tflite -> onnx")
    run.run()
    assert operators(run) == ["Add"]


def test_patterns_of_several_nodes_are_lowered_before_single_ones(catalogue: Catalogue) -> None:
    rules = """
        rule relu { y = RELU(x) => y = Relu(x) }
        rule abs { y = ABS(x) => y = Abs(x) }
        rule both { y = ABS(RELU(x)) => y = Sigmoid(x) }"""
    graph = "(float[2] x) => (float[2] y) { a = tflite.RELU(x) y = tflite.ABS(a) }"
    run = rewriter(catalogue, rules, graph, "tflite -> onnx")
    run.run()
    assert operators(run) == ["Sigmoid"]


def test_all_nodes_that_no_rule_takes_are_told_together(catalogue: Catalogue) -> None:
    graph = "(float[2] x) => (float[2] y) { a = tflite.RELU(x) b = tflite.NEG(a) y = tflite.ABS(b) }"
    run = rewriter(catalogue, "rule relu { y = RELU(x) => y = Relu(x) }", graph, "tflite -> onnx")
    with pytest.raises(UnsupportedError) as raised:
        run.run()
    assert [refusal.operator for refusal in raised.value.refusals] == ["NEG", "ABS"]


def test_rules_that_run_in_circles_are_named(catalogue: Catalogue) -> None:
    rules = """
        rule there stage simplify { y = Relu(x) => y = Abs(x) }
        rule back stage simplify { y = Abs(x) => y = Relu(x) }"""
    run = rewriter(catalogue, rules, "(float[2] x) => (float[2] y) { y = Relu(x) }")
    circle = r"stage simplify does not end: back .* -> there .*: what is made there .* `where`"
    with pytest.raises(RewriteError, match=circle):
        run.run()


def test_a_result_that_nobody_reads_is_swept_away(catalogue: Catalogue) -> None:
    rules = "rule r stage simplify { y = Mul(Relu(x), z) => y = Mul(x, z) }"
    run = rewriter(catalogue, rules, "(float[2] x, float[2] z) => (float[2] y) { a = Relu(x) y = Mul(a, z) }")
    run.run()
    assert operators(run) == ["Mul"]


def test_a_guard_that_does_not_hold_is_told_and_not_the_order_that_does_not_fit(catalogue: Catalogue) -> None:
    run = rewriter(
        catalogue,
        """rule two_axes stage simplify {
          y = Mul(x, const c)
          where rank(c) == 2, "c has not two axes"
          => y = Add(x, c)
          test x: f32[2] for c in [[[1.0]]]
        }""",
        "(float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Mul(x, c) }",
    )
    driver = Driver(run.graph, run.rules, "simplify", Scope(run.graph))
    assert [reason.message for reason in driver.explain_misses(run.graph[0])] == ["c has not two axes"]


def test_messages_have_values_in_the_words_of_rules(catalogue: Catalogue) -> None:
    run = rewriter(
        catalogue,
        """rule told stage simplify {
          y = Relu(x)
          let found = [shape(x), rank(x) == 2, "SAME", 0.5]
          where false, "it has {found}"
          => y = Max(x, 0.0)
          test x: f32[2]
        }""",
        "(float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }",
    )
    (miss,) = Driver(run.graph, run.rules, "simplify", Scope(run.graph)).explain_misses(run.graph[0])
    assert miss.message == 'it has [[none, 3], true, "SAME", 0.5]'

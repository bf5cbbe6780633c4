"""What rules do to graphs: one behaviour of patterns, templates and stages a test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.errors import RewriteError, RewriteFailure, UnsupportedError
from nnrewrite.engine.base.provenance import RULE, SOURCE
from nnrewrite.engine.check.checker import check
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.pass_list import convert_graph
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.syntax.parser import parse

Rewrite = Callable[..., ir.Graph]


def model(text: str, opset: int = 18) -> ir.Graph:
    """A graph in ONNX's own notation: `(float[2] x) => (float[2] y) { y = Relu(x) }`."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}, "tflite" : 1]> graph'
    parsed = onnx.parser.parse_model(f"{head} {text}")
    return ir.from_proto(onnx.shape_inference.infer_shapes(parsed)).graph


def operators(graph: ir.Graph) -> dict[str, int]:
    return dict(Counter(node.op_type for node in graph))


@pytest.fixture
def rewrite(catalogue: Catalogue) -> Rewrite:
    """Rewrite a graph by some rules; a rule without a test is given one, `between` says the dialects."""

    def run(rules: str, graph: str | ir.Graph, opset: int = 18, between: str = "onnx -> onnx") -> ir.Graph:
        file = parse(f"ruleset demo : {between} opset 13..25\n{rules}", "demo.rules")
        found = [d for d in check([file], catalogue) if "test" not in d.message]
        assert not found, found
        graph = model(graph, opset) if isinstance(graph, str) else graph
        convert_graph(graph, RuleSet([file], catalogue, opset))
        return graph

    return run


TFLITE = "tflite -> onnx"


# ---- patterns


def test_a_commutative_operator_matches_either_way_round(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Add(Relu(a), b) => y = Max(a, b) }"
    left = rewrite(rule, "(float[2] x, float[2] z) => (float[2] y) { r = Relu(x)  y = Add(r, z) }")
    right = rewrite(rule, "(float[2] x, float[2] z) => (float[2] y) { r = Relu(x)  y = Add(z, r) }")
    assert operators(left) == operators(right) == {"Max": 1}


def test_other_operators_match_in_the_order_written(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Sub(Relu(a), b) => y = Max(a, b) }"
    graph = rewrite(rule, "(float[2] x, float[2] z) => (float[2] y) { r = Relu(x)  y = Sub(z, r) }")
    assert operators(graph) == {"Relu": 1, "Sub": 1}


@pytest.mark.parametrize("body", ["y = Mul(x, x)", "two = Constant <value = float {2.0}> ()  y = Pow(x, two)"])
def test_each_alternative_matches(rewrite: Rewrite, body: str) -> None:
    rule = "rule r stage simplify { y = Mul(d, d) | Pow(d, 2.0) => y = Abs(d) }"
    graph = model(f"(float[2] x) => (float[2] y) {{ {body} }}")
    for node in list(graph):
        if node.op_type == "Constant":
            constant = ir.Value(name="two", const_value=ir.tensor(np.float32(2.0)))
            graph.register_initializer(constant)
            ir.convenience.replace_all_uses_with(node.outputs[0], constant)
            graph.remove(node, safe=True)
    assert operators(rewrite(rule, graph)) == {"Abs": 1}


def test_a_repeated_variable_must_be_the_same_value(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Sub(a, a) => y = Neg(a) }"
    same = rewrite(rule, "(float[2] x, float[2] z) => (float[2] y) { y = Sub(x, x) }")
    other = rewrite(rule, "(float[2] x, float[2] z) => (float[2] y) { y = Sub(x, z) }")
    assert (operators(same), operators(other)) == ({"Neg": 1}, {"Sub": 1})


def test_nothing_is_bound_by_an_underscore(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Where(_, a, _) => y = Relu(a) }"
    graph = rewrite(rule, "(bool[2] c, float[2] x, float[2] z) => (float[2] y) { y = Where(c, x, z) }")
    assert operators(graph) == {"Relu": 1}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_variadics_take_what_the_others_leave(rewrite: Rewrite, count: int) -> None:
    rule = "rule r stage simplify { y = Sum(first, xs..., last) => y = Max(last, Neg(first), xs...) }"
    names = [f"x{i}" for i in range(count)]
    inputs = ", ".join(f"float[2] {name}" for name in names)
    graph = rewrite(rule, f"({inputs}) => (float[2] y) {{ y = Sum({', '.join(names)}) }}")
    last = next(node for node in graph if node.op_type == "Max")
    assert [value.name for value in last.inputs if value is not None] == [names[-1], "y/Neg", *names[1:-1]]


def test_an_optional_operand_may_be_absent_on_both_sides(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Gemm(a, b, c?) {transB: 1} => y = Gemm(a, Transpose(b) {perm: [1, 0]}, c?) }"
    two = rewrite(rule, "(float[2,3] x, float[4,3] w) => (float[2,4] y) { y = Gemm <transB = 1> (x, w) }")
    three = rewrite(
        rule, "(float[2,3] x, float[4,3] w, float[4] c) => (float[2,4] y) { y = Gemm <transB = 1> (x, w, c) }"
    )
    inputs = [[len([v for v in n.inputs if v is not None]) for n in g if n.op_type == "Gemm"] for g in (two, three)]
    assert inputs == [[2], [3]]


def test_an_operand_that_the_pattern_leaves_out_must_be_absent(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Gemm(a, b) => y = MatMul(a, b) }"
    graph = rewrite(rule, "(float[2,3] x, float[3,4] w, float[4] c) => (float[2,4] y) { y = Gemm(x, w, c) }")
    assert operators(graph) == {"Gemm": 1}


def test_two_roots_are_found_through_what_they_share(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      a = Relu(x)
      b = Neg(x)
      => a = Max(x, 0.0)
         b = Mul(x, -1.0)
    }"""
    graph = rewrite(rule, "(float[2] x) => (float[2] a, float[2] b) { a = Relu(x)  b = Neg(x) }")
    assert operators(graph) == {"Max": 1, "Mul": 1}


def test_what_a_pattern_names_beside_its_root_can_be_read(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      a = Sum(x, z)
      b = Sum(x, z, rest...)
      => b = Max(a, rest...)
    }"""
    graph = rewrite(
        rule,
        """(float[2] x, float[2] z) => (float[2] b, float[2] c) {
          a = Sum(x, z)
          u = Relu(a)
          b = Sum(x, z, u)
          c = Neg(a)
        }""",
    )
    assert operators(graph) == {"Sum": 1, "Relu": 1, "Max": 1, "Neg": 1}


def test_what_is_computed_from_the_root_is_not_read_for_it(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      a = Neg(x)
      b = Sum(x, z)
      => b = Max(a, z)
    }"""
    graph = rewrite(
        rule, "(float[2] x, float[2] y) => (float[2] b, float[2] a) { z = Relu(y)  b = Sum(x, z)  a = Neg(x) }"
    )
    assert operators(graph) == {"Max": 1, "Relu": 1, "Neg": 1}
    rule = rule.replace("Neg(x)", "Mul(x, Sum(x, z))")
    kept = rewrite(rule, "(float[2] x, float[2] z) => (float[2] a) { b = Sum(x, z)  a = Mul(x, b) }")
    assert operators(kept) == {"Sum": 1, "Mul": 1}


def test_all_results_of_an_operator_are_replaced(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      a, b = TopK(x, const k) {axis: -1, largest: 1, sorted: 1}
      => a, b = TopK(Neg(Neg(x)), k) {largest: 1, sorted: 0}
    }"""
    text = "(float[4] x) => (float[2] a, int64[2] b) <int64[1] k = {2}> { a, b = TopK(x, k) }"
    graph = rewrite(rule, text)
    assert operators(graph) == {"Neg": 2, "TopK": 1}
    assert [output.name for output in graph.outputs] == ["a", "b"]


def test_a_result_that_nobody_reads_beside_one_that_is_read_keeps_a_name(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = MaxPool(x) {kernel_shape: _} => y = Neg(x) }"
    body = "{ y, at = MaxPool<kernel_shape = [1]>(x) }"
    found = rewrite(rule, f"(float[1, 2, 3] x) => (float[1, 2, 3] y, int64[1, 2, 3] at) {body}")
    [pool] = [node for node in found if node.op_type == "MaxPool"]
    assert pool.outputs[0].name and not pool.outputs[0].uses()


def test_a_constant_denotes_its_elements(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = Reshape(x, const to)
      where to[0] == 3 and len(to) == 2
      => y = Transpose(x) {perm: [1, 0]}
    }"""
    graph = rewrite(rule, "(float[2,3] x) => (float[3,2] y) <int64[2] to = {3, 2}> { y = Reshape(x, to) }")
    assert operators(graph) == {"Transpose": 1}


def test_nobody_computes_the_elements_of_a_constant_and_who_reads_them_is_not_known(rewrite: Rewrite) -> None:
    graph = "(float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add(x, w) }"
    rule = "rule r stage simplify { y = Add(x, const w) where WHERE => y = Mul(x, w) }"
    assert operators(rewrite(rule.replace("WHERE", "producer(w) == none"), graph)) == {"Mul": 1}
    for guard in ("len(users(w)) > 1", "readers(w) > 1"):
        assert operators(rewrite(rule.replace("WHERE", guard), graph)) == {"Add": 1}


def test_a_constant_of_several_places_is_compared_by_its_elements(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      s = ReduceSum(x, const axes)
      y = Div(s, ReduceSum(Neg(x), axes))
      where axes == [1]
      => y = Relu(s)
    }"""
    text = """(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}, int64[1] b = {1}>
      { s = ReduceSum(x, a)  n = Neg(x)  m = ReduceSum(n, b)  y = Div(s, m) }"""
    assert operators(rewrite(rule, text)) == {"ReduceSum": 1, "Relu": 1}


def test_a_value_that_is_not_constant_is_no_const(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Reshape(x, const to) => y = Transpose(x) {perm: range(len(to))} }"
    graph = rewrite(rule, "(float[2,3] x, int64[2] to) => (float[3,2] y) { y = Reshape(x, to) }")
    assert operators(graph) == {"Reshape": 1}


def test_options_not_mentioned_must_equal_their_defaults(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Softmax(x) => y = Relu(x) }"
    written_out = rewrite(rule, "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = -1> (x) }")
    other = rewrite(rule, "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }")
    assert (operators(written_out), operators(other)) == ({"Relu": 1}, {"Softmax": 1})


def test_options_are_compared_with_what_the_pattern_says(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Softmax(x) {axis: 0} => y = Relu(x) }"
    yes = rewrite(rule, "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }")
    no = rewrite(rule, "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }")
    assert (operators(yes), operators(no)) == ({"Relu": 1}, {"Softmax": 1})


def test_one_variable_for_two_options_asks_for_equal_ones(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Softmax(LogSoftmax(x) {axis: a}) {axis: a} => y = Relu(x) }"
    text = "(float[2,3] x) => (float[2,3] y) {{ l = LogSoftmax <axis = {}> (x)  y = Softmax <axis = 1> (l) }}"
    assert operators(rewrite(rule, text.format(1))) == {"Relu": 1}
    assert operators(rewrite(rule, text.format(0))) == {"LogSoftmax": 1, "Softmax": 1}


def test_interior_nodes_that_others_use_survive(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(Exp(x)) => y = Relu(x) }"
    text = "(float[2] x) => (float[2] y, float[2] z) { e = Exp(x)  y = Neg(e)  z = Sin(e) }"
    assert operators(rewrite(rule, text)) == {"Relu": 1, "Exp": 1, "Sin": 1}


def test_interior_nodes_that_nobody_uses_go(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(Exp(x)) => y = Relu(x) }"
    assert operators(rewrite(rule, "(float[2] x) => (float[2] y) { e = Exp(x)  y = Neg(e) }")) == {"Relu": 1}


def test_a_graph_output_inside_a_pattern_stays(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(Exp(x)) => y = Relu(x) }"
    graph = rewrite(rule, "(float[2] x) => (float[2] y, float[2] e) { e = Exp(x)  y = Neg(e) }")
    assert operators(graph) == {"Relu": 1, "Exp": 1}
    assert [output.name for output in graph.outputs] == ["y", "e"]


def test_the_example_of_a_recovered_layer_matches_a_graph_with_a_shared_value(rewrite: Rewrite) -> None:
    rule = """rule layer_norm stage recover {
      mu = ReduceMean(x, const axes) {keepdims: 1}
      d = Sub(x, mu)
      var = ReduceMean(Mul(d, d) | Pow(d, 2.0), axes) {keepdims: 1}
      sd = Sqrt(Add(var, const eps))
      y = Add(Mul(Div(d, sd) | Mul(d, Reciprocal(sd)), gamma), beta)
      where opset >= 18
      where size(eps) == 1 and norm(axes, rank(x)) == [rank(x) - 1]
      where shape(gamma) == [shape(x)[-1]] and shape(beta) == shape(gamma)
      => y = LayerNormalization(x, gamma, beta) {axis: -1, epsilon: eps}
    }"""
    text = """(float[2,3] x, float[3] g, float[3] b) => (float[2,3] y)
      <int64[1] axes = {-1}, float eps = {0.001}> {
      mu = ReduceMean <keepdims = 1> (x, axes)  d = Sub(x, mu)  q = Mul(d, d)
      v = ReduceMean <keepdims = 1> (q, axes)  e = Add(v, eps)  s = Sqrt(e)  n = Div(d, s)  m = Mul(n, g)  y = Add(b, m)
    }"""
    graph = rewrite(rule, text)
    assert operators(graph) == {"LayerNormalization": 1}
    assert graph[0].attributes["epsilon"].as_float() == pytest.approx(0.001)


# ---- clauses and templates


def test_a_guard_that_fails_lets_the_next_rule_try(rewrite: Rewrite) -> None:
    rules = """
    rule first { y = ABS(x) where rank(x) == 3 => y = Neg(x) }
    rule second { y = ABS(x) => y = Abs(x) }
    """
    assert operators(rewrite(rules, "(float[2] x) => (float[2] y) { y = tflite.ABS(x) }", between=TFLITE)) == {"Abs": 1}


def test_a_demand_that_fails_stops_with_its_message(rewrite: Rewrite) -> None:
    rules = """
    rule first { y = ABS(x) require rank(x) == 3, "{x} has a rank other than 3" => y = Neg(x) }
    rule second { y = ABS(x) where rank(x) == 1 => y = Abs(x) }
    """
    with pytest.raises(UnsupportedError, match=re.escape("rule first: x has a rank other than 3")) as caught:
        rewrite(rules, "(float[2] x) => (float[2] y) { y = tflite.ABS(x) }", between=TFLITE)
    [refusal] = caught.value.refusals
    assert [reason.rule for reason in refusal.reasons] == ["first"]


def test_a_refusal_inside_a_definition_stops_with_its_message(rewrite: Rewrite) -> None:
    rules = """
    def only(n) = 1 if n == 3 else fail("{n} is not 3")
    rule r { y = ABS(x) let n = only(rank(x)) => y = Mul(x, n) }
    """
    with pytest.raises(UnsupportedError, match="rule r: 1 is not 3"):
        rewrite(rules, "(float[2] x) => (float[2] y) { y = tflite.ABS(x) }", between=TFLITE)


def test_the_first_template_whose_condition_holds_is_used(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = Neg(x)
      => when opset >= 20: y = Abs(x)
      => when rank(x) == 2: y = Relu(x)
      => y = Exp(x)
    }"""
    text = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    assert operators(rewrite(rule, text, opset=20)) == {"Abs": 1}
    assert operators(rewrite(rule, text, opset=18)) == {"Exp": 1}


def test_definitions_are_expanded_where_they_are_called(rewrite: Rewrite) -> None:
    rules = """
    def squared(x) = Mul(x, x)
    def fourth(x) = squared(squared(x))
    rule r stage simplify { y = Neg(x) => y = fourth(x) }
    """
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert operators(graph)["Mul"] in (2, 3)


def test_dimensions_keep_their_names_in_a_definition(rewrite: Rewrite) -> None:
    rule = """
    def area(v) = v.H * v.W
    def first(v, like) = Add(Relu(v), Mul(Relu(like @ NCHW), area(like) * 1.0))
    rule r { y @ NHWC = ABS(x @ NHWC) where area(x) == 6 => y @ NCHW = first(x @ NCHW, x) }
    """
    graph = rewrite(rule, "(float[1, 2, 3, 5] x) => (float[1, 2, 3, 5] y) { y = tflite.ABS(x) }", between=TFLITE)
    assert operators(graph) == {"Transpose": 2, "Relu": 1, "Mul": 1, "Add": 1}
    with pytest.raises(UnsupportedError):
        rewrite(rule, "(float[1, 3, 3, 5] x) => (float[1, 3, 3, 5] y) { y = tflite.ABS(x) }", between=TFLITE)


def test_a_fold_carries_what_the_items_before_came_to(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = Neg(x)
      where fold(n = 0 for a, b in [[1, 2], [3, 4]]: n * 100 + a * 10 + b) == 1234
      where fold(n = 7 for i in []: n + i) == 7
      => y = fold(sum = x for i in range(3): Add(sum, Abs(sum)))
    }"""
    graph = rewrite(rule, "(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert operators(graph) == {"Abs": 3, "Add": 3}


def test_one_result_is_picked_by_its_name(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = ArgMax(x) {keepdims: 1}
      => y = Squeeze(TopK(Abs(x), [1]) {axis: 0}.Indices) + TopK(x, [1]) {axis: 0}.Indices
    }"""
    graph = rewrite(rule, "(float[4] x) => (int64[1] y) { y = ArgMax(x) }")
    both = [node for node in graph if node.op_type == "TopK"]
    assert [len(node.outputs) for node in both] == [2, 2]
    read = [value for node in graph for value in node.inputs if value is not None and value.producer() in both]
    assert all(value.index() == 1 for value in read)


def test_arithmetic_on_values_is_the_targets_operator(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(x) => y = (x + 1.0) * 2.0 / x - 3.0 }"
    graph = rewrite(rule, "(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert operators(graph) == {"Add": 1, "Mul": 1, "Div": 1, "Sub": 1}


def test_arithmetic_on_constants_is_folded(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(x) => y = Add(x, Mul(2.0, 3.0)) }"
    graph = rewrite(rule, "(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert operators(graph) == {"Add": 1}
    constant = graph[0].inputs[1]
    assert constant is not None and constant.const_value is not None
    assert constant.const_value.numpy() == np.float32(6.0)


def test_a_list_of_nodes_is_spread(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Sum(xs...) where len(xs) > 1 => y = Max([Relu(x) for x in xs]...) }"
    graph = rewrite(rule, "(float[2] a, float[2] b, float[2] c) => (float[2] y) { y = Sum(a, b, c) }")
    assert operators(graph) == {"Relu": 3, "Max": 1}


STACK = """rule r stage simplify {
  y = Concat(Unsqueeze(xs, const at)...) {axis}
  where [i for i in at if flatten(i) != [axis]] == []
  => y = Expand(Sum(xs...), [len(xs), 2])
}"""


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_of_several_operands_is_matched_by_one_pattern(rewrite: Rewrite, count: int) -> None:
    names = [f"x{i}" for i in range(count)]
    extended = "  ".join(f"u{name} = Unsqueeze(x{name[1:]}, at)" for name in names)
    inputs = ", ".join(f"float[2] {name}" for name in names)
    text = f"({inputs}) => (float[{count},2] y) <int64[1] at = {{0}}>"
    graph = rewrite(
        STACK, f"{text} {{ {extended}  y = Concat <axis = 0> ({', '.join(f'u{name}' for name in names)}) }}"
    )
    assert operators(graph) == {"Sum": 1, "Expand": 1}
    total = next(node for node in graph if node.op_type == "Sum")
    assert [value.name for value in total.inputs if value is not None] == names


@pytest.mark.parametrize("other", ["Neg(c)", "Identity(c)", "Unsqueeze(b, last)"])
def test_a_pattern_of_several_operands_fits_all_of_them_or_none(rewrite: Rewrite, other: str) -> None:
    text = "(float[1] a, float[1] b, float[1,1] c) => (float[2,1] y) <int64[1] at = {0}, int64[1] last = {1}>"
    graph = rewrite(STACK, f"{text} {{ u = Unsqueeze(a, at)  v = {other}  y = Concat <axis = 0> (u, v) }}")
    assert operators(graph)["Concat"] == 1


def test_operands_beside_several_of_one_pattern_have_names_of_their_own(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Sum(first, Neg(xs)...) where len(xs) > 1 => y = Sub(first, Sum(xs...)) }"
    text = "(float[2] a, float[2] b, float[2] c) => (float[2] y) { n = Neg(b)  m = Neg(c)  y = Sum(a, n, m) }"
    assert operators(rewrite(rule, text)) == {"Sum": 1, "Sub": 1}
    assert operators(rewrite(rule, text.replace("Sum(a, n, m)", "Sum(n, a, m)"))) == {"Neg": 2, "Sum": 1}


ROWS = """rule r stage simplify {
  bs... = Gather(x, const js) {axis}...
  y = Gather(x, const i) {axis}
  where len(js) > 1
  => y = Slice(x, [int(i)], [int(i) + 1])
     bs... = [Slice(x, [int(j)], [int(j) + 1]) for j in js]
}"""


def test_any_number_of_nodes_beside_the_root_are_matched_by_one_equation(rewrite: Rewrite) -> None:
    places = ", ".join(f"int64[1] i{i} = {{{i}}}" for i in range(4))
    results = ", ".join(f"float[1,2] y{i}" for i in range(4))
    rows = "  ".join(f"y{i} = Gather <axis = AXIS{i}> (x, i{i})" for i in range(4))
    text = f"(float[4,2] x) => ({results}) <{places}> {{ {rows} }}"
    all_alike = text.replace("AXIS0", "0").replace("AXIS1", "0").replace("AXIS2", "0").replace("AXIS3", "0")
    graph = rewrite(ROWS, all_alike)
    assert operators(graph) == {"Slice": 4}
    starts = {node.outputs[0].name: node.inputs[1].const_value.numpy().tolist() for node in graph}
    assert starts == {f"y{i}": [i] for i in range(4)}


def test_nodes_that_an_equation_of_several_does_not_fit_stay(rewrite: Rewrite) -> None:
    results = "float[1,3] a, float[1,3] b, float[1,3] c, float[3,1] d, float[3,3] e"
    text = f"""(float[3,3] x) => ({results}) <int64[1] i = {{0}}, int64[1] j = {{1}}, int64[1] k = {{2}}> {{
      a = Gather <axis = 0> (x, i)  b = Gather <axis = 0> (x, j)  c = Gather <axis = 0> (x, k)
      d = Gather <axis = 1> (x, j)  e = Neg(x)
    }}"""
    assert operators(rewrite(ROWS, text)) == {"Slice": 3, "Gather": 1, "Neg": 1}


def test_nodes_that_share_a_value_may_compute_with_others_in_between(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      bs... = Relu(Mul(x, const ms))...
      y = Relu(Mul(x, const m))
      where len(ms) > 1
      => y = Mul(x, m)
         bs... = [Mul(x, m) for m in ms]
    }"""
    text = """(float[2] x) => (float[2] a, float[2] b, float[2] c, float[2] d)
      <float[2] k = {1, 2}, float[2] l = {3, 4}, float[2] m = {5, 6}> {
      p = Mul(x, k)  a = Relu(p)  q = Mul(l, x)  b = Relu(q)  r = Mul(x, m)  c = Relu(r)  d = Neg(q)
    }"""
    assert operators(rewrite(rule, text)) == {"Mul": 4, "Neg": 1}  # one for Neg stays
    assert operators(rewrite(rule, text.replace("Relu(r)", "Abs(r)"))) == {"Mul": 3, "Relu": 2, "Abs": 1, "Neg": 1}


def test_an_equation_of_several_nodes_asks_for_one_at_least(rewrite: Rewrite) -> None:
    rule = ROWS.replace("where len(js) > 1", "where len(js) >= 0")
    text = "(float[2,2] x) => (float[1,2] a) <int64[1] i = {0}> { a = Gather <axis = 0> (x, i) }"
    assert operators(rewrite(rule, text)) == {"Gather": 1}


def test_a_template_says_how_many_results_a_node_has(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = Neg(x)
      let n = shape(x)[0]
      => rows[n]... = Split(x) {axis: 0, num_outputs: n}
         y = Concat(reversed(rows)...) {axis: 0}
    }"""
    graph = rewrite(rule, "(float[3,2] x) => (float[3,2] y) { y = Neg(x) }")
    split = next(node for node in graph if node.op_type == "Split")
    assert len(split.outputs) == 3


def test_results_of_a_node_beside_the_root_are_read_where_they_are_several(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      parts... = Split(x) {axis: 0, num_outputs: _}
      y = Gather(x, const i) {axis: 0}
      => y = parts[int(i)]
    }"""
    text = "(float[2,2] x) => (float[1,2] a, float[1,2] b, float[1,2] y) <int64[1] i = {1}>"
    graph = rewrite(rule, text + " { a, b = Split <axis = 0, num_outputs = 2> (x)  y = Gather(x, i) }")
    assert operators(graph) == {"Split": 1, "Identity": 1} or operators(graph) == {"Split": 1}


def test_a_template_yields_as_many_results_as_the_pattern_has(rewrite: Rewrite) -> None:
    rule = "rule r { ys... = UNPACK(x) {axis, num} => ys... = [Gather(x, i) {axis} for i in range(num)] }"
    text = "(float[2,3] x) => (float[3] a, float[3] b) { a, b = tflite.UNPACK <axis = 0, num = 2> (x) }"
    graph = rewrite(rule, text, between=TFLITE)
    assert operators(graph) == {"Gather": 2}
    assert [output.name for output in graph.outputs] == ["a", "b"]


def test_numbers_in_an_operands_place_take_the_type_of_the_other_operands(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Neg(x) => y = Sub(0, x) }"
    graph = rewrite(rule, "(int32[2] x) => (int32[2] y) { y = Neg(x) }")
    constant = graph[0].inputs[0]
    assert constant is not None and constant.dtype == ir.DataType.INT32


def test_a_layout_puts_transposes_around_what_the_template_builds(rewrite: Rewrite) -> None:
    rule = "rule r { y @ NHWC = RELU(x @ NHWC) => y @ NCHW = Relu(x @ NCHW) }"
    text = "(float[1,4,5,3] x) => (float[1,4,5,3] y) { y = tflite.RELU(x) }"
    graph = rewrite(rule, text, between=TFLITE)
    assert [node.op_type for node in graph] == ["Transpose", "Relu", "Transpose"]
    assert list(graph[0].attributes["perm"].as_ints()) == [0, 3, 1, 2]
    assert list(graph[2].attributes["perm"].as_ints()) == [0, 2, 3, 1]


def test_a_layout_asks_for_its_rank(rewrite: Rewrite) -> None:
    rule = "rule r { y @ NHWC = RELU(x @ NHWC) => y @ NCHW = Relu(x @ NCHW) }"
    with pytest.raises(UnsupportedError, match="y has rank 2, NHWC asks for 4"):
        rewrite(rule, "(float[2,3] x) => (float[2,3] y) { y = tflite.RELU(x) }", between=TFLITE)


def test_what_a_rule_yields_must_have_the_type_it_replaces(rewrite: Rewrite) -> None:
    rule = 'rule r stage simplify { y = Neg(x) => y = Cast(x) {to: element_type("i64")} }'
    with pytest.raises(RewriteFailure, match=r"rule r on .*: yields INT64 where y is FLOAT"):
        rewrite(rule, "(float[2] x) => (float[2] y) { y = Neg(x) }")


@pytest.mark.parametrize(("added", "count"), [("1,1,3", 3), ("2,3", 6)])
def test_a_rule_that_may_leave_a_node_does_where_its_result_has_another_shape(
    rewrite: Rewrite, added: str, count: int
) -> None:
    rule = "rule r stage simplify { y = Add(x, const b) where fill(b) == 0 => y = x }"
    zeros = ", ".join(["0"] * count)
    text = f"(float[1,3] x) => (float[{added}] y) <float[{added}] b = {{{zeros}}}> {{ y = Add(x, b) }}"
    assert [node.op_type for node in rewrite(rule, text)] == ["Add"]


def test_a_rule_is_taken_where_its_result_has_the_shape_it_replaces(rewrite: Rewrite) -> None:
    rule = "rule r stage simplify { y = Add(x, const b) where fill(b) == 0 => y = x }"
    same = "(float[1,3] x) => (float[1,3] y) <float[3] b = {0, 0, 0}> { y = Add(x, b) }"
    assert [node.op_type for node in rewrite(rule, same)] != ["Add"]


# ---- stages


def test_any_stands_for_every_operator_with_the_options(rewrite: Rewrite) -> None:
    rules = """
    rule unfuse stage normalize {
      y = any op(xs...) {fused_activation_function: act, ..}
      where trait(op, output_activation) and act != NONE
      => y = TANH(op(xs...) {fused_activation_function: NONE, ..})
    }
    rule add { y = ADD(a, b) {pot_scale_int16: _} => y = Add(a, b) }
    rule mul { y = MUL(a, b) => y = Mul(a, b) }
    rule tanh { y = TANH(x) => y = Tanh(x) }
    """
    text = """(float[2] a, float[2] b) => (float[2] y) {
      m = tflite.MUL <fused_activation_function = "TANH"> (a, b)
      y = tflite.ADD <fused_activation_function = "TANH"> (m, b)
    }"""
    assert operators(rewrite(rules, text, between=TFLITE)) == {"Mul": 1, "Add": 1, "Tanh": 2}


def test_larger_patterns_are_lowered_first(rewrite: Rewrite) -> None:
    rules = """
    rule one { y = ABS(x) => y = Abs(x) }
    rule other { y = NEG(x) => y = Neg(x) }
    rule both { y = NEG(ABS(x)) => y = Exp(x) }
    """
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { a = tflite.ABS(x)  y = tflite.NEG(a) }", between=TFLITE)
    assert operators(graph) == {"Exp": 1}


def test_priority_goes_before_size(rewrite: Rewrite) -> None:
    rules = """
    rule small stage simplify priority 1 { y = Neg(x) where rank(x) == 1 => y = Sin(x) }
    rule large stage simplify { y = Neg(Abs(x)) => y = Exp(x) }
    """
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }")
    assert operators(graph) == {"Abs": 1, "Sin": 1}


def test_a_cycle_of_rules_is_stopped_and_shown(rewrite: Rewrite) -> None:
    rules = """
    rule there stage simplify { y = Neg(x) => y = Abs(x) }
    rule back stage simplify { y = Abs(x) => y = Neg(x) }
    """
    with pytest.raises(RewriteError) as caught:
        rewrite(rules, "(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert "stage simplify does not end" in str(caught.value)
    assert "there (demo.rules:3)" in str(caught.value)
    assert "back (demo.rules:4)" in str(caught.value)


def test_every_near_miss_is_told(rewrite: Rewrite) -> None:
    rules = """
    rule by_option { y = SOFTMAX(x) => y = Softmax(x) }
    rule by_guard { y = SOFTMAX(x) {beta} where beta == 2.0, "beta is {beta}" => y = Softmax(x * beta) }
    """
    with pytest.raises(UnsupportedError) as caught:
        rewrite(rules, "(float[2] x) => (float[2] y) { y = tflite.SOFTMAX <beta = 0.5> (x) }", between=TFLITE)
    message = str(caught.value)
    assert "rule by_option: option beta is 0.5, and the rule does not mention it" in message
    assert "rule by_guard: beta is 0.5" in message


def test_all_operators_without_a_rule_are_told_together(rewrite: Rewrite) -> None:
    text = """(float[2] x) => (float[2] y) {
      a = tflite.ABS(x)  b = tflite.ABS(a)  y = tflite.NEG(b)
    }"""
    with pytest.raises(UnsupportedError) as caught:
        rewrite("rule r { y = EXP(x) => y = Exp(x) }", text, between=TFLITE)
    assert Counter(refusal.operator for refusal in caught.value.refusals) == {"ABS": 2, "NEG": 1}
    assert str(caught.value).startswith("2 operators cannot be converted (3 nodes):")


def test_an_operator_that_no_rule_can_be_about_says_why(rewrite: Rewrite) -> None:
    with pytest.raises(UnsupportedError) as caught:
        rewrite(
            "rule r { y = EXP(x) => y = Exp(x) }",
            "(float[2] x) => (float[2] y) { y = tflite.SKIP_GRAM(x) }",
            between=TFLITE,
        )
    assert "it takes strings apart" in str(caught.value)


def test_nodes_know_their_rule_and_their_source(rewrite: Rewrite) -> None:
    rules = "rule r { y = ABS(x) => y = Abs(x) }"
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { [abs] y = tflite.ABS(x) }", between=TFLITE)
    assert dict(graph[0].metadata_props) == {RULE: "r (demo.rules:2)", SOURCE: "abs"}


def test_a_table_leads_one_to_one(rewrite: Rewrite) -> None:
    rules = "table direct { ABS <=> Abs  NEG <=> Neg }"
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { a = tflite.ABS(x)  y = tflite.NEG(a) }", between=TFLITE)
    assert [node.op_type for node in graph] == ["Abs", "Neg"]


def test_a_family_is_a_rule_for_each_of_its_members(rewrite: Rewrite) -> None:
    rules = "rule r over {ABS => Abs  NEG => Neg} { y = SRC(x) => y = DST(DST(x)) }"
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { a = tflite.ABS(x)  y = tflite.NEG(a) }", between=TFLITE)
    assert [node.op_type for node in graph] == ["Abs", "Abs", "Neg", "Neg"]
    assert graph[0].metadata_props[RULE] == "r.ABS (demo.rules:2)"


def test_a_pattern_is_for_the_opsets_at_which_its_operator_exists(rewrite: Rewrite) -> None:
    rules = "rule r stage simplify { y = Gelu(x) where opset >= 20 => y = Relu(x) }"
    graph = rewrite(rules, "(float[2] x) => (float[2] y) { y = Neg(x) }", opset=13)
    assert operators(graph) == {"Neg": 1}


def test_rules_run_on_a_graph_that_says_nothing_of_its_values(rewrite: Rewrite) -> None:
    graph = model("(float[2] x) => (float[2] y) { a = Exp(x)  y = Neg(a) }")
    for node in graph:
        for output in node.outputs:
            output.type, output.shape = None, None
    rule = "rule r stage simplify { y = Neg(x) => y = Abs(x) }"
    assert operators(rewrite(rule, graph)) == {"Exp": 1, "Abs": 1}


# ---- graphs of nodes


def test_a_name_that_a_rule_hands_on_is_not_given_again(rewrite: Rewrite) -> None:
    rules = """
    rule other stage simplify { y = Exp(x) => y = Abs(x) }
    rule branch stage simplify { ys... = If(_c) {then_branch: f, else_branch: _} => ys... = f() }"""
    text = """(float[2] x, bool c) => (float[2] z) {
      a = Exp (x)
      y = If (c) <
        then_branch = t () => (float[2] b) { a = Neg (x)  b = Sin (a) },
        else_branch = e () => (float[2] d) { d = Cos (x) }>
      z = Add (a, y)
    }"""
    graph = rewrite(rules, text)
    assert operators(graph) == {"Abs": 1, "Neg": 1, "Sin": 1, "Add": 1}
    assert len({node.outputs[0].name for node in graph}) == 4


LOOP = """(float[2] x, float[2] z) => (float[2] a, float[2] b) {
  n = Constant <value: tensor = int64 {3}> ()
  go = Constant <value: tensor = bool {1}> ()
  a, b = Loop (n, go, x, z) <body = turn (int64 i, bool c, float[2] v, float[2] w) => (bool d, float[2] e, float[2] f) {
    d = Identity (c)
    e = BODY
    f = Add (w, v)
  }>
}"""
UNCHANGED = """rule r stage recover {
  rs[k]..., y, ss... = Loop(n?, go, as[k]..., x, bs...) {body: graph(i, c, ps[k]..., v, qs...) {
    yield d, us[k]..., Identity(v), ws...
  }}
  => rs..., ss... = Loop(n, go, as..., bs...) {body: graph(i, c, ps..., qs...) { v = x  yield d, us..., ws... }}
     y = x
}"""


def inside(graph: ir.Graph) -> ir.Graph:
    (loop,) = (one for one in graph if one.op_type == "Loop")
    return loop.attributes["body"].as_graph()


def test_a_template_writes_the_graph_of_a_pattern_anew(rewrite: Rewrite) -> None:
    graph = rewrite(UNCHANGED, LOOP.replace("BODY", "Identity (v)"))
    body = inside(graph)
    assert len(body.inputs) == 3 and operators(body) == {"Identity": 1, "Add": 1}
    (add,) = (one for one in body if one.op_type == "Add")
    assert graph.inputs[0] in add.inputs and graph.outputs[0] is graph.inputs[0]


def test_elements_that_a_loop_carries_keep_their_type_beside_others(rewrite: Rewrite) -> None:
    rule = """rule r stage recover {
      a, b = Loop(n, go, const x, z) {body: graph(i, c, v, w) { yield d, Neg(v), e }}
      => a, b = Loop(n, go, x, z) {body: graph(i, c, v, w) { yield d, Abs(v), e }}
    }"""
    text = LOOP.replace("BODY", "Neg (v)").replace("float[2] v", "int64[2] v").replace("float[2] e", "int64[2] e")
    text = text.replace("(float[2] x, ", "(").replace("float[2] a", "int64[2] a")
    text = text.replace("float[2] b) {", "float[2] b) <int64[2] x = {0, 0}> {")
    (loop,) = (one for one in rewrite(rule, text) if one.op_type == "Loop")
    assert [value.dtype for value in loop.inputs[2:] if value is not None] == [ir.DataType.INT64, ir.DataType.FLOAT]
    assert "Abs" in operators(loop.attributes["body"].as_graph())


def test_a_pattern_of_a_graph_that_does_not_hold_leaves_the_node(rewrite: Rewrite) -> None:
    assert len(inside(rewrite(UNCHANGED, LOOP.replace("BODY", "Neg (v)"))).inputs) == 4


def test_a_graph_is_not_written_anew_without_an_input_that_it_needs(rewrite: Rewrite) -> None:
    rule = UNCHANGED.replace("v = x  ", "")
    assert len(inside(rewrite(rule, LOOP.replace("BODY", "Identity (v)"))).inputs) == 4


def test_a_value_of_a_graph_is_not_read_outside_of_it(rewrite: Rewrite) -> None:
    rule = """rule r stage recover {
      a, b = Loop(_, _, x, z) {body: graph(_, _, v, w) { yield _, Neg(v), Add(w, u) }}
      => a = Neg(x)
         b = Add(z, u)
    }"""
    graph = rewrite(rule, LOOP.replace("BODY", "Neg (v)"))
    assert operators(graph)["Loop"] == 1 and "Neg" not in operators(graph)


def test_names_take_as_many_values_as_their_count_says(rewrite: Rewrite) -> None:
    rule = """rule r stage simplify {
      y = Sum(as[n]..., Relu(x), bs[n]...)
      => y = Max(Sum(as...), x, Sum(bs...))
    }"""
    text = "(float[2] p, float[2] q, float[2] r) => (float[2] y) { s = Relu(q)  y = Sum(ORDER) }"
    assert "Max" in operators(rewrite(rule, text.replace("ORDER", "p, s, r")))
    assert "Max" not in operators(rewrite(rule, text.replace("ORDER", "s, p, r")))

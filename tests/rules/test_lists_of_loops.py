"""Loops and branches as scripts of PyTorch have them: lists that grow, bodies without the shapes of what they carry."""

from __future__ import annotations

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.verify import compare_models

pytestmark = pytest.mark.slow

GROWING = """<ir_version: 8, opset_import: ["": 17]>
g (float[BATCH,4] x) => (float[d,e,f] y, float[2] last)
  <int64 zero = {0}, bool go = {1}, float[2,4] w = {WEIGHTS}, float[2] h0 = {0, 0}> {
  shape = Shape(x)
  n = Gather <axis = 0> (shape, zero)
  list = SequenceEmpty <dtype = 1> ()
  last, all = Loop <
    body = body (int64 i, bool c, float[2] h, seq(float[?]) s) => (bool d, float[2] k, seq(float[?]) t) {
    row = Gather <axis = 0> (x, i)
    m = MatMul(w, row)
    sum = Add(m, h)
    k = Tanh(sum)
    pair = Concat <axis = 0> (k, sum)
    two = Constant <value = int64[2] {2, 2}> ()
    v = Reshape(pair, two)
    t = SequenceInsert(s, v)
    d = Identity(c)
  }> (n, go, h0, list)
  y = ConcatFromSequence <axis = AXIS, new_axis = NEW> (all)
}"""

UNSAID = """<ir_version: 8, opset_import: ["": 17]>
g (float[b,2,4,4] x, int64 n) => (float[b,2,2,2] y) <bool go = {1}, float half = {0.5}> {
  last = Loop <body = body (int64 i, bool c, float v) => (bool d, float w) {
    f = Mul(v, half)
    w = Relu(f)
    d = Identity(c)
  }> (n, go, x)
  y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (last)
}"""

COLLECTS = """<ir_version: 8, opset_import: ["": 17]>
g (floatROW x, floatROW step) => (floatALL y) <int64 n = {3}, bool go = {1}> {
  last, y = Loop <body = body (int64 i, bool c, floatROW v) => (bool d, floatROW w, floatROW r) {
    w = Add(v, step)
    r = Mul(v, v)
    d = Identity(c)
  }> (n, go, x)
}"""

LENGTHENS = """<ir_version: 8, opset_import: ["": 17]>
g (float[1REST] x, float[0REST] none) => (float[nREST] y) <int64 n = {3}, bool go = {1}> {
  y = Loop <body = body (int64 i, bool c, float[kREST] v) => (bool d, float[mREST] w) {
    w = Concat <axis = 0> (v, x)
    d = Identity(c)
  }> (n, go, none)
}"""

NESTED = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,2] x, int64 turns) => (float[m,2] y, float[q,2] z) <bool go = {1}, int64 two = {2}, float zero = {0}> {
  list = SequenceEmpty <dtype = 1> ()
  last, all = Loop <
    body = body (int64 i, bool c, float[h0,h1] h, seq(float[?]) s) => (bool d, float[k0,k1] k, seq(float[?]) t) {
    inner = Loop <body = turn (int64 j, bool e, float[a0,a1] a) => (bool f, float[b0,b1] b) {
      b = Add(a, x)
      f = Identity(e)
    }> (two, c, h)
    sum = ReduceSum <keepdims = 0> (inner)
    large = Greater(sum, zero)
    k = If(large) <
      then_branch = v () => (float[c0,c1] p) { p = Tanh(inner) },
      else_branch = w () => (float[d0,d1] q) { q = Sub(x, inner) }>
    t = SequenceInsert(s, k)
    d = Identity(c)
  }> (turns, go, x, list)
  y = ConcatFromSequence <axis = 0> (all)
  z = Loop <body = after (int64 i, bool c, float[e0,e1] u) => (bool d, float[f0,f1] w) {
    w = Mul(u, last)
    d = Identity(c)
  }> (two, go, x)
}"""

ASKED = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x, int64 turns)
  => (float[2,3] last, float[2,3] one, int64 count, float[n,2,3] y, float[2,m] z)
  <bool go = {1}, int64 end = {-1}> {
  list = SequenceEmpty <dtype = 1> ()
  after, all = Loop <
    body = body (int64 i, bool c, float[2,3] h, seq(float[?]) s) => (bool d, float[2,3] k, seq(float[?]) t) {
    k = Tanh(h)
    t = SequenceInsert(s, k)
    d = Identity(c)
  }> (turns, go, x, list)
  last = SequenceAt(all, end)
  count = SequenceLength(all)
  which = Add(count, end)
  one = SequenceAt(all, which)
  y = ConcatFromSequence <axis = 0, new_axis = 1> (all)
  z = ConcatFromSequence <axis = -1> (all)
}"""

TWICE = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x) => (float[n] y, float[n] u) <float zero = {0}, int64[1] first = {0}> {
  sum = ReduceSum <keepdims = 0> (x)
  c = SIDE(sum, zero)
  found = NonZero(x)
  at = Squeeze(found, first)
  z = Gather(x, at)
  y, u = If(c) <
    then_branch = t () => (float[k] a, float[k] b) { r = Relu(z)  a = Identity(r)  b = Identity(r) },
    else_branch = e () => (float[k] a, float[k] b) { a = Identity(z)  b = Identity(z) }>
}"""

GROWS = UNSAID.replace("w = Relu(f)", "w = Concat <axis = 2> (f, v)")


def read(text: str, unsaid: bool = False) -> bytes:
    model = onnx.parser.parse_model(text)
    if unsaid:
        [body] = [node.attribute[0].g for node in model.graph.node if node.op_type == "Loop"]
        for value in (body.input[2], body.output[1]):
            value.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


@pytest.mark.parametrize("batch", ["3", "b"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [1, 0])
def test_a_list_that_grows_in_a_loop_is_what_it_collects(batch: str, axis: int, new: int) -> None:
    pytest.importorskip("ai_edge_litert")
    weights = ", ".join(f"{number:.2f}" for number in np.linspace(-1, 1, 8))
    text = GROWING if new else GROWING.replace("float[d,e,f] y", "float[d,e] y")
    for name, said in (("BATCH", batch), ("AXIS", axis), ("NEW", new), ("WEIGHTS", weights)):
        text = text.replace(name, str(said))
    source = read(text)
    made = nnrewrite.rewrite(source, to="tflite")
    assert made.report.target_operators["WHILE"] == 1
    assert compare_models(source, made.encoded.encode()).passed


@pytest.mark.parametrize("row", ["", "[1]", "[1,1]", "[2]"])
def test_a_loop_collects_rows_of_one_number(row: str) -> None:
    pytest.importorskip("ai_edge_litert")
    text = COLLECTS.replace("ALL", f"[n,{row[1:-1]}]" if row else "[n]").replace("ROW", row)
    source = read(text)
    made = nnrewrite.rewrite(source, to="tflite")
    assert compare_models(source, made.encoded.encode()).passed


@pytest.mark.parametrize("rest", ["", ",3"])
def test_a_loop_makes_one_row_of_none(rest: str) -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(LENGTHENS.replace("REST", rest))
    assert compare_models(source, nnrewrite.rewrite(source, to="tflite").encoded.encode()).passed


def test_a_list_of_parts_grows_in_a_loop_with_others_in_it_and_behind_it() -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(NESTED)
    made = nnrewrite.rewrite(source, to="tflite")
    assert made.report.target_operators["WHILE"] == 2
    assert compare_models(source, made.encoded.encode()).passed


def test_a_list_that_grew_in_a_loop_is_asked_for_more_than_its_rows() -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(ASKED)
    made = nnrewrite.rewrite(source, to="tflite")
    assert compare_models(source, made.encoded.encode()).passed


def test_a_turn_puts_several_values_behind_a_list() -> None:
    pytest.importorskip("ai_edge_litert")
    several = "u = SequenceInsert(s, h)  e = Exp(k)  v = SequenceInsert(u, k)  t = SequenceInsert(v, e)"
    source = read(ASKED.replace("t = SequenceInsert(s, k)", several))
    assert compare_models(source, nnrewrite.rewrite(source, to="tflite").encoded.encode()).passed


@pytest.mark.parametrize("to", ["onnx", "tflite"])
def test_the_shape_of_the_first_turn_is_not_that_of_all(to: str) -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(LENGTHENS.replace("float[kREST] v", "float[0REST] v").replace("REST", ",3"))
    made = nnrewrite.rewrite(source, to=to)
    assert compare_models(source, made.encoded.encode() if to == "tflite" else made.model.SerializeToString()).passed


@pytest.mark.parametrize("side", ["Less", "Greater"])
def test_a_branch_yields_one_value_twice(side: str) -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(TWICE.replace("SIDE", side))
    assert compare_models(source, nnrewrite.rewrite(source, to="tflite").encoded.encode()).passed


@pytest.mark.parametrize("text", [UNSAID, GROWS])
def test_what_a_loop_carries_has_the_rank_that_it_begins_with(text: str) -> None:
    pytest.importorskip("ai_edge_litert")
    source = read(text, unsaid=True)
    made = nnrewrite.rewrite(source, to="tflite")
    assert made.report.target_operators["MAX_POOL_2D"] == 1
    assert compare_models(source, made.encoded.encode()).passed


def test_what_changes_its_rank_in_a_loop_has_none_that_is_known() -> None:
    source = read(
        UNSAID.replace("w = Relu(f)", "w = Unsqueeze(f, axes)").replace(
            "float half = {0.5}", "float half = {0.5}, int64[1] axes = {0}"
        ),
        True,
    )
    with pytest.raises(nnrewrite.UnsupportedError, match="MaxPool"):
        nnrewrite.rewrite(source, to="tflite")


OPTIONAL = """<ir_version: 9, opset_import: ["": 18]> g (float[2,3] x) => (float[2,3] y) {
  filled = Optional(x)
  there = OptionalHasElement(filled)
  missing = OptionalHasElement()
  tensor = OptionalHasElement(x)
  got = OptionalGetElement(filled)
  both = And(there, tensor)
  a = If (both) <
    then_branch = t () => (float[2,3] p) { p = OptionalGetElement(x) },
    else_branch = e () => (float[2,3] q) { q = Neg(x) }>
  b = If (missing) <
    then_branch = v () => (float[2,3] r) { r = Neg(x) },
    else_branch = w () => (float[2,3] s) { s = Tanh(got) }>
  y = Add(a, b)
}"""


def test_optional_values_that_nodes_make_are_what_they_hold() -> None:
    model = onnx.parser.parse_model(OPTIONAL).SerializeToString()
    made = nnrewrite.rewrite(model, rules="onnx2tflite")
    assert compare_models(model, made.encoded.encode()).passed

"""Odd, ill-formed and damaged models: converted to what the interpreter computes, or refused in clear words."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

import nnrewrite
import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.cli import dispatch
from nnrewrite.conversion import conversion_steps
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base.errors import InternalError, ModelError, RewriteError, UnsupportedError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.rewrite import matcher
from nnrewrite.fuzz import odd_models
from nnrewrite.fuzz.damage import list_kinds
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.rule_sets import list_stacks
from nnrewrite.fuzz.runner import examine
from nnrewrite.fuzz.subjects import Subject
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime

Make = Callable[..., bytes]
FLOATS = "FLOAT32"


def both(model: bytes, feeds: Sequence[Any], interpreter: Interpreter) -> tuple[Any, Any]:
    """The first output of the interpreter and of the converted model."""
    ((expected, *_),) = interpreter.run(model, [feeds], Kernels.OPTIMIZED)
    return expected, Runtime(nnrewrite.convert(model).SerializeToString()).run(feeds)[0]


def refusal(model: bytes, **options: Any) -> str:
    with pytest.raises(RewriteError) as caught:
        nnrewrite.convert(model, **options)
    assert not isinstance(caught.value, InternalError)
    return f"{caught.value}"


# ---- no elements


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("x", "w"),
    [([3, 0], [5, 0]), ([0, 4], [5, 4]), ([3, 4], [0, 4]), ([2, 3, 0], [5, 0]), ([2, 0, 4], [5, 0]), ([4], [5, 0])],
)
def test_products_of_nothing(single: Make, interpreter: Interpreter, x: list[int], w: list[int], keep: bool) -> None:
    operands = {"x": (FLOATS, x), "w": np.ones(w, np.float32), "b": np.full(w[0], 7, np.float32)}
    rank = len(x) if keep else 2
    model = single("FULLY_CONNECTED", operands, [(FLOATS, [None] * rank)], keep_num_dims=keep)
    expected, actual = both(model, [np.ones(x, np.float32)], interpreter)
    np.testing.assert_array_equal(expected, actual)
    assert expected.shape == actual.shape


def test_what_yields_no_elements_needs_no_kernel(single: Make, interpreter: Interpreter) -> None:
    options = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 3, "filter_height": 3}
    model = single("MAX_POOL_2D", {"x": (FLOATS, [0, 5, 5, 3])}, [(FLOATS, [0, 2, 2, 3])], **options)
    expected, actual = both(model, [np.zeros([0, 5, 5, 3], np.float32)], interpreter)
    assert expected.shape == actual.shape == (0, 2, 2, 3)


@pytest.mark.parametrize(
    ("x", "low", "high", "gaps"),
    [([2, 3], -1, -1, 0), ([2, 3], -2, -1, 0), ([2, 3], -2, -1, 1), ([0, 3], 1, 1, 0), ([0, 3], 1, 1, 1)],
)
def test_pads_that_leave_nothing_or_begin_with_it(
    single: Make, interpreter: Interpreter, x: list[int], low: int, high: int, gaps: int
) -> None:
    options = {"edge_padding_low": [low, 0], "edge_padding_high": [high, 1], "interior_padding": [gaps, 0]}
    model = single("STABLEHLO_PAD", {"x": (FLOATS, x), "v": (FLOATS, [])}, [(FLOATS, [None, None])], **options)
    expected, actual = both(model, [np.ones(x, np.float32), np.array(7, np.float32)], interpreter)
    np.testing.assert_array_equal(expected, actual)
    assert expected.shape == actual.shape


# ---- ranges


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "ends",
    [(0.0, 5.0, 0.01), (0.0, 50.0, 0.1), (5.0, 0.0, -0.01), (2.5, 0.0, -0.7), (1e8, 1e8 + 50, 1.0), (0.0, 1.0, 1e-3)],
)
def test_ranges_of_floats(single: Make, interpreter: Interpreter, ends: tuple[float, ...], known: bool) -> None:
    values = [np.array(value, np.float32) for value in ends]
    operands = {name: value if known else (FLOATS, []) for name, value in zip("abc", values, strict=True)}
    model = single("RANGE", operands, [(FLOATS, [None])])
    expected, actual = both(model, [] if known else values, interpreter)
    assert expected.tobytes() == actual.tobytes()


def test_a_step_of_zero_is_refused(single: Make) -> None:
    model = single(
        "RANGE",
        {name: np.array(value, np.int32) for name, value in zip("abc", (0, 9, 0), strict=True)},
        [("INT32", [None])],
    )
    assert "a range in steps of 0 has no end" in refusal(model)


# ---- what files do not say, or say wrongly


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("options", [{}, {"shrink_axis_mask": 1}])
def test_steps_without_a_start_are_not_read(
    single: Make, interpreter: Interpreter, known: bool, options: dict[str, int]
) -> None:
    start = np.array([1], np.int32) if known else ("INT32", [1])
    operands = {"x": (FLOATS, [4, 5]), "b": start, "e": np.array([3], np.int32), "s": np.array([1, 2], np.int32)}
    result = [-1, -1][len(options) :]
    feeds = [np.arange(20, dtype=np.float32).reshape(4, 5)] + ([] if known else [np.array([1], np.int32)])
    expected, actual = both(single("STRIDED_SLICE", operands, [(FLOATS, result)], **options), feeds, interpreter)
    assert np.array_equal(actual, expected)


def test_starts_without_a_step_are_refused(single: Make) -> None:
    ends = np.array([1, 1], np.int32)
    model = single("STRIDED_SLICE", {"x": (FLOATS, [4, 5]), "b": ends, "e": ends, "s": ends[:1]}, [(FLOATS, [1, 1])])
    assert "other numbers of starts, of ends and of steps" in refusal(model)


def test_a_shape_that_nobody_says_is_refused(single: Make) -> None:
    assert "neither an operand nor an option says the shape" in refusal(
        single("RESHAPE", {"x": (FLOATS, [2, 3])}, [(FLOATS, [6])])
    )


def test_scales_that_are_not_one_for_each_place_are_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (float[1, 4] x) => (float[1, 2] y)
      <int8[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[3] s = {1, 2, 3}, int8[3] z = {0, 0, 0}>
      { a = DequantizeLinear<axis = 1>(w, s, z)  y = MatMul(x, a) }"""
    with pytest.raises(RewriteError, match=r"^w has 3 scales or zero points for 2 places"):
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="tflite")


def test_strings_have_no_place_in_the_memory_of_a_microcontroller() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (string[2] words, float[2] x) => (float[2] y)
      { y = Relu(x) }"""
    with pytest.raises(ModelError, match="words holds strings, for which no memory can be set apart"):
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="cc")


def test_a_model_without_outputs_is_refused(catalogue: Catalogue) -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    graph = ir.Graph([x], [], nodes=[], opset_imports={"tflite": 1}, name="main")
    with pytest.raises(ModelError, match="graph main has no outputs"):
        nnrewrite.convert(write(ir.Model(graph, ir_version=10), catalogue))


def test_matrices_that_do_not_fit_are_named(single: Make) -> None:
    model = single("BATCH_MATMUL", {"x": (FLOATS, [2, 3]), "y": (FLOATS, [4, 5])}, [(FLOATS, [2, 5])])
    message = refusal(model)
    assert "rule batch_matmul on BATCH_MATMUL_0" in message
    assert "the model has BATCH_MATMUL(f32[2, 3], f32[4, 5]) there" in message


def test_operands_of_types_that_an_operator_does_not_take_are_named(single: Make) -> None:
    model = single("GREATER", {"x": (FLOATS, [2]), "y": ("INT16", [2])}, [("BOOL", [2])])
    assert refusal(model) == "GREATER_0: operand rhs of GREATER is i16[2], the operator takes f32, i32, i64, qu8, qi8"


@pytest.mark.parametrize("batch", [-(2**31), 3, 2**31 - 1])
def test_axes_that_operands_do_not_share_are_refused(single: Make, batch: int) -> None:
    operands = {"x": (FLOATS, [2, 3]), "i": ("INT32", [2, 2])}
    assert "batch_dims counts axes that the operands do not share" in refusal(
        single("GATHER", operands, [(FLOATS, [2, 2])], axis=1, batch_dims=batch)
    )


def test_an_enumerant_that_nobody_knows_is_refused(single: Make) -> None:
    pool = functools.partial(single, "MAX_POOL_2D", {"x": (FLOATS, [1, 5, 5, 3])}, [(FLOATS, [1, 5, 5, 3])])
    said = refusal(pool(padding="Padding(99)", stride_w=1, stride_h=1, filter_width=1, filter_height=1))
    assert "option padding is Padding(99), which nothing says the meaning of" in said


def test_an_operand_that_is_left_out_has_no_scale(single: Make) -> None:
    refusal(single("CONCATENATION", {"x": None}, [(FLOATS, [2])], axis=0))


def test_a_graph_that_calls_itself_is_refused(catalogue: Catalogue) -> None:
    def value(name: str) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))

    x, y = value("x"), value("y")
    call = ir.Node("tflite", "CALL", [x], [ir.AttrInt64("subgraph", 0)], outputs=[y])
    graph = ir.Graph([x], [y], nodes=[call], opset_imports={"tflite": 1}, name="main")
    with pytest.raises(ModelError, match="graph main calls itself"):
        nnrewrite.convert(write(ir.Model(graph, ir_version=10), catalogue))


# ---- mistakes of ours


def broken(*_: Any) -> Any:
    raise KeyError("lost")


def test_a_mistake_of_ours_names_rule_and_node(single: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher.Matcher, "search", broken)
    with pytest.raises(InternalError, match=r"internal error: rule \w+.* on ABS_0: KeyError: 'lost'") as caught:
        nnrewrite.convert(single("ABS", {"x": (FLOATS, [2])}, [(FLOATS, [2])]))
    assert len(f"{caught.value}".splitlines()) == 1
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_mistake_of_ours_between_rules_is_told_too(single: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_steps, "find_least_opset", broken)
    with pytest.raises(InternalError, match="internal error: the conversion: KeyError: 'lost'"):
        nnrewrite.convert(single("ABS", {"x": (FLOATS, [2])}, [(FLOATS, [2])]))


def test_a_want_of_memory_is_no_mistake_of_ours(single: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(conversion_steps, "find_least_opset", exhausted)
    assert (
        refusal(single("ABS", {"x": (FLOATS, [2])}, [(FLOATS, [2])]))
        == "there is not enough memory to convert the model"
    )


# ---- odd and damaged models at random


@pytest.mark.thorough
def test_odd_models_are_refused_or_yield_what_the_interpreter_does(interpreter: Interpreter) -> None:
    stack = list_stacks(Options())[0]
    sources = [t for t in stack.trials if isinstance(t, Subject) and t.of_source and not t.excuse]
    oracle = Oracle(interpreter, stack.pack.catalogue, stack.rules)
    drawn = functools.partial(odd_models.draw, subjects=sources, oracle=oracle)
    tally = examine(odd_models.make_odd_subject(sources), oracle, 60, "tests", drawn)
    assert tally.explain_problem() == ""
    assert tally.tried == 60
    assert tally.passed > 10
    assert tally.refused.total() > 10


@pytest.mark.slow
def test_a_wrong_answer_to_an_odd_model_is_found(interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = list_stacks(Options())[0]
    (reshape,) = [t for t in stack.trials if isinstance(t, Subject) and t.name == "reshape"]
    oracle = Oracle(interpreter, stack.pack.catalogue, stack.rules)
    monkeypatch.setattr(Oracle, "_convert", broken)
    drawn = functools.partial(odd_models.draw, subjects=[reshape], oracle=oracle)
    assert (
        "KeyError"
        in examine(odd_models.make_odd_subject([reshape]), oracle, 1, "tests", drawn, shrinking=0.1).explain_problem()
    )


@pytest.mark.slow
def test_damaged_models_are_converted_or_refused(single: Make, catalogue: Catalogue) -> None:
    grid = Quantization(np.array([0.5], np.float32), np.zeros(1, np.int64), 0)
    image, result = (FLOATS, [1, 6, 6, 3]), (FLOATS, [1, 6, 3, 2])
    filters, weights, ones = np.ones((2, 1, 1, 3), np.float32), np.ones((2, 4), np.int8), np.ones(2, np.int32)
    victims = [
        single("CONV_2D", {"x": image, "w": filters, "b": None}, [result], padding="SAME", stride_w=2, stride_h=1),
        single("FULLY_CONNECTED", {"x": ("INT8", [1, 4], grid), "w": (weights, grid)}, [("INT8", [1, 2], grid)]),
        single("GATHER", {"x": (FLOATS, [4, 5]), "i": ("INT32", [2, 3])}, [(FLOATS, [2, 3, 5])], axis=0),
        single("RESHAPE", {"x": (FLOATS, [2, 3]), "to": np.array([3, 2], np.int32)}, [(FLOATS, [3, 2])]),
        single("STRIDED_SLICE", {"x": (FLOATS, [4, 5]), "b": ones, "e": ones, "s": ones}, [(FLOATS, [0, 0])]),
        single("CONCATENATION", {"x": (FLOATS, [2]), "y": (FLOATS, [2])}, [(FLOATS, [4])], axis=0),
    ]  # fmt: skip
    chance, damages = random.Random(17), list_kinds(catalogue.find_dialect("tflite"))
    converted, refused = 0, set()
    for _ in range(400):
        data = chance.choice(list(damages.values()))(chance.choice(victims), chance)
        try:
            nnrewrite.convert(data)
            converted += 1
        except RewriteError as error:  # whatever else is raised fails the test
            assert not isinstance(error, InternalError), error
            refused.add(type(error))
    assert converted > 50
    assert refused >= {ModelError, UnsupportedError}


def test_a_damaged_model_is_told_in_one_line(single: Make, tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    from click.testing import CliRunner

    (tmp_path / "m.tflite").write_bytes(single("ABS", {"x": (FLOATS, [2])}, [(FLOATS, [2])])[:40])
    result = CliRunner().invoke(dispatch.app, [str(tmp_path / "m.tflite"), "-o", str(tmp_path / "m.onnx")])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "m.onnx").exists()


def test_codes_are_put_among_zeros_as_they_are(single: Make, interpreter: Interpreter) -> None:
    coarse, fine = (Quantization(np.array([s], np.float32), np.array([z])) for s, z in ((0.04, -24), (0.02, -51)))
    at, extents = np.array([[0, 1], [2, 3]], np.int64), np.array([3, 5], np.int64)
    values, otherwise = ("INT8", [2], coarse), (np.zeros((), np.int8), coarse)
    operands = {"at": at, "extents": extents, "values": values, "otherwise": otherwise}
    data = single("SPARSE_TO_DENSE", operands, [("INT8", [3, 5], fine)])
    made = nnrewrite.rewrite(data, to="onnx").model.SerializeToString()
    assert compare_models(data, made, interpreter=interpreter).passed


@pytest.mark.parametrize("operator", ["ARG_MAX", "ARG_MIN"])
def test_an_axis_that_old_files_leave_to_places_along_it_is_not_believed(
    single: Make, interpreter: Interpreter, operator: str
) -> None:
    operands = {"x": (FLOATS, [2, 3, 4]), "axis": np.array(2, np.int32)}
    data = single(operator, operands, [("INT32", [2, 3, 1])], output_type="INT32")
    made = nnrewrite.rewrite(data, to="onnx").model.SerializeToString()
    assert compare_models(data, made, interpreter=interpreter).passed


def test_places_are_integers_whatever_type_an_old_file_says(single: Make, interpreter: Interpreter) -> None:
    data = single("WHERE", {"x": ("BOOL", [2, 3])}, [("BOOL", [None, 2])])
    made = nnrewrite.rewrite(data, to="onnx").model.SerializeToString()
    assert compare_models(data, made, interpreter=interpreter).passed

"""Verification finds what differs, passes what does not, and survives an interpreter that does not."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.backends.probe import make_operator_model, write_operator_model
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.tflite_reader import Signature
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import (
    Interpreter,
    InterpreterError,
    Kernels,
    Tensor,
    Verdict,
    Verification,
    compare,
    compare_models,
)
from nnrewrite.verify.comparison import choose_worst, measure_distance, measure_largest_difference
from nnrewrite.verify.frames import Array, receive, send
from nnrewrite.verify.inputs import RANGES, draw
from nnrewrite.verify.interpreted import widen_integers
from nnrewrite.verify.verification_table import format_table, summarize


def floats(*shape: int) -> Tensor:
    return Tensor("y", "float32", shape, shape)


def codes(*shape: int) -> Tensor:
    return Tensor("y", "int8", shape, shape, (0.5,), (3,))


def against(tensor: Tensor, want: Any, got: Any, spread: float = 0.0) -> Any:
    dtype = np.dtype(tensor.dtype)
    return compare(tensor, np.asarray(want, dtype), np.asarray(got, dtype), Kernels.DEFAULT, spread)


# ---- one output ------------------------------------------------------------------------------------------------------


def test_equal_outputs_are_equal() -> None:
    one = against(floats(3), [1, -4, 2], [1, -4, 2])
    assert (one.verdict, one.absolute, one.low, one.high) == (Verdict.EQUAL, 0, -4, 2)


def test_a_float_may_be_off_by_a_share_of_the_largest_magnitude() -> None:
    assert against(floats(2), [100, 0], [100, 0.009]).verdict is Verdict.CLOSE
    one = against(floats(2), [100, 0], [100, 0.011])
    assert one.verdict is Verdict.DIFFERENT
    assert one.relative == pytest.approx(1.1e-4, rel=1e-3)
    assert "off by 0.011, tolerance 0.01" in one.reason


def test_a_quantized_value_may_be_off_by_one_step() -> None:
    assert against(codes(2), [5, -128], [6, -128]).verdict is Verdict.CLOSE
    one = against(codes(2), [127, 0], [-128, 0])
    assert one.verdict is Verdict.DIFFERENT
    assert "off by 255 steps" in one.reason


def test_a_float_view_of_a_quantized_value_may_be_off_by_one_step() -> None:
    tensor = Tensor("y", "float32", (2,), (2,), step=0.1)
    assert against(tensor, [1.0, 0.3], [1.1, 0.3]).verdict is Verdict.CLOSE
    assert against(tensor, [1.0, 0.3], [1.2, 0.3]).verdict is Verdict.DIFFERENT


def test_an_integer_may_not_be_off_at_all() -> None:
    tensor = Tensor("y", "int64", (1,), (1,))
    big = 2**62
    assert against(tensor, [big], [big]).verdict is Verdict.EQUAL
    assert against(tensor, [big], [big + 1]).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("dtype", "want", "got", "error"),
    [("int64", -(2**63), 0, 2**63), ("uint64", 2**63, 2**63 + 1, 1), ("int8", -128, 127, 255), ("bool", 0, 1, 1)],
)
def test_integers_at_the_ends_of_their_range_are_told_apart(dtype: str, want: int, got: int, error: float) -> None:
    tensor = Tensor("y", dtype, (2,), (2,))
    one = against(tensor, [want, 1], [got, 1])
    assert (one.verdict, one.differing, one.absolute) == (Verdict.DIFFERENT, 1, error)
    assert against(tensor, [want, 1], [want, 1]).verdict is Verdict.EQUAL
    assert measure_largest_difference(np.array(want, dtype), np.array(got, dtype)) == error


def test_integers_of_a_result_are_widened_and_never_narrowed() -> None:
    narrow, wide = np.array([5, 7], np.int32), np.array([2**32 + 5, 7], np.int64)
    [[widened], [kept]] = widen_integers([narrow], [wide]), widen_integers([wide], [narrow])
    assert (widened.dtype, kept.dtype) == (wide.dtype, wide.dtype)
    assert kept[0] == 2**32 + 5


def test_of_labels_it_is_told_how_many_differ() -> None:
    tensor = Tensor("y", "int32", (1, 1000), (1, 1000))
    want = np.arange(1000).reshape(1, 1000)
    got = np.where(want < 5, want + 700, want)
    one = against(tensor, want, got)
    assert (one.verdict, one.differing, one.reason) == (Verdict.DIFFERENT, 5, "5 of 1,000 elements differ")
    assert against(tensor, want, got, spread=2).verdict is Verdict.DIFFERENT
    assert against(tensor, want, got, spread=3).verdict is Verdict.SPREAD
    assert measure_distance(tensor, want, got) == 5
    assert measure_distance(floats(2), np.zeros(2), np.array([3.0, 4.0])) == 4
    assert choose_worst([against(tensor, want, got), against(tensor, want, want + 1)]).differing == 1000


def test_a_verdict_says_when_it_rests_on_the_spread_of_kernels() -> None:
    near = against(floats(1), [1], [1.00001])
    far = against(floats(1), [1], [1.5], spread=0.25)
    tensor = Tensor("classes", "int32", (4,), (4,))
    labels = against(tensor, [1, 2, 3, 4], [1, 2, 3, 5], spread=1)
    spread = "outputs agree within the spread of the interpreter's kernels"
    assert summarize(Verification((near,))) == "outputs agree, largest error 1e-05 of an output's magnitude"
    assert summarize(Verification((far,))) == f"{spread}, largest error 0.5 of an output's magnitude"
    assert summarize(Verification((labels,))) == f"{spread}, classes: 1 of 4 elements differ"
    assert summarize(Verification((near, far, labels))).startswith(f"{spread} (2 of 3 outputs), largest error 0.5")
    assert summarize(Verification((against(floats(1), [1], [3]),))) == "DIFFERENT"
    assert "1 of 4 elements differ, at most twice as much" in "\n".join(format_table(Verification((labels,))))


def test_the_interpreters_own_spread_is_allowed_for() -> None:
    assert against(floats(1), [1], [1.5], spread=0.25).verdict is Verdict.SPREAD
    assert against(floats(1), [1], [1.6], spread=0.25).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("want", "got"),
    [([np.nan, 1], [0, 1]), ([0, 1], [np.nan, 1]), ([np.inf, 1], [-np.inf, 1]), ([np.nan, 1], [np.inf, 1])],
)
def test_nan_and_infinity_must_stand_in_the_same_places(want: list[float], got: list[float]) -> None:
    one = against(floats(2), want, got, spread=1e9)
    assert one.verdict is Verdict.DIFFERENT
    assert "NaN or infinity" in one.reason


def test_values_beside_nan_and_infinity_are_still_compared() -> None:
    want = [np.nan, np.inf, -np.inf, 1]
    assert against(floats(4), want, want).verdict is Verdict.EQUAL
    assert against(floats(4), want, [*want[:3], 2]).verdict is Verdict.DIFFERENT


def test_shape_and_type_are_part_of_an_output() -> None:
    assert "shape [2] became [1, 2]" in against(floats(2), [1, 2], [[1, 2]]).reason
    assert against(floats(1), [1], 1).verdict is Verdict.EQUAL  # a scalar and a vector of one
    one = compare(floats(1), np.ones(1, np.float32), np.ones(1, np.float64), Kernels.DEFAULT)
    assert "type float32 became float64" in one.reason


def test_strings_are_compared_as_text() -> None:
    tensor = Tensor("y", "object", (1,), (1,))
    want = np.array([b"one"], dtype=object)
    assert compare(tensor, want, np.array(["one"], dtype=object), Kernels.DEFAULT).verdict is Verdict.EQUAL
    assert compare(tensor, want, np.array(["two"], dtype=object), Kernels.DEFAULT).verdict is Verdict.DIFFERENT


def test_empty_outputs_agree() -> None:
    assert against(floats(0, 4), np.zeros((0, 4)), np.zeros((0, 4))).verdict is Verdict.EQUAL


def test_the_ten_highest_scores_are_compared_where_there_are_scores() -> None:
    scores = np.linspace(0, 1, 20)
    assert against(floats(1, 20), [scores], [scores]).top == 1
    assert against(floats(1, 20), [scores], [scores[::-1]]).top == 0
    assert against(floats(1, 1, 1, 20), [[[scores]]], [[[scores]]]).top == 1
    assert against(floats(4, 20), [scores] * 4, [scores] * 4).top == 1
    assert against(floats(1, 9), [scores[:9]], [scores[:9]]).top is None
    assert against(floats(1, 8, 20), np.zeros((1, 8, 20)), np.zeros((1, 8, 20))).top is None


def test_ties_among_scores_are_not_held_against_anybody() -> None:
    want = np.array([[1.0] * 5 + [0.0] * 15])
    assert against(floats(1, 20), want, np.roll(want, 0) + np.linspace(0, 1e-6, 20)).top == 1


def test_the_worst_sample_stands_for_all() -> None:
    near, far = against(floats(1), [1], [1.00001]), against(floats(1), [1], [3])
    assert choose_worst([near, far]) is far
    assert choose_worst([far, near]) is far


def test_the_largest_difference_ignores_what_is_not_finite() -> None:
    assert measure_largest_difference(np.array([1.0, np.nan, 3.0]), np.array([1.5, 2.0, np.inf])) == 0.5
    assert measure_largest_difference(np.zeros(2), np.zeros(3)) == 0


# ---- inputs ----------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_inputs() -> None:
    tensors = [floats(2, 3), codes(4), Tensor("s", "object", (2,), (2,)), Tensor("b", "bool", (8,), (8,))]
    (first,), (second,), (other,) = (next(draw(tensors, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert [array.dtype.name for array in first] == ["float32", "int8", "object", "bool"]


def test_samples_differ_from_one_another() -> None:
    (first,), (second,) = next(draw([floats(8)], samples=2))
    assert not np.array_equal(first, second)


def test_sizes_of_which_the_file_says_nothing_are_tried_one_after_the_other_and_one_at_last() -> None:
    drawn = draw([Tensor("x", "float32", (1, 0, 3), (-1, -1, 3)), Tensor("n", "float32", (1,), (-1,))])
    assert [(one.shape, other.shape) for ((one, other),) in drawn] == [
        ((1, size, 3), (size,)) for size in (16, 64, 224, 1)
    ]


def test_sizes_that_the_file_says_beside_free_ones_are_taken() -> None:
    ((array,),) = next(draw([Tensor("x", "float32", (2, 30, 3), (-1, -1, 3))]))
    assert array.shape == (2, 30, 3)


def test_images_of_any_size_are_as_large_as_the_model_takes_them() -> None:
    padded = """<ir_version: 8, opset_import: ["": 18]> net (float[b, 3, h, w] x) => (float[b, 3, p, q] y) {
        p = Constant<value_ints = [0, 0, 20, 20, 0, 0, 20, 20]>() y = Pad<mode = "reflect">(x, p) }"""
    source = read_bytes(nnrewrite.rewrite(onnx.parser.parse_model(padded).SerializeToString(), to="tflite").encoded)
    verification = compare_models(source, nnrewrite.convert(source).SerializeToString())
    assert verification.passed, verification.differences


def test_sound_of_which_windows_leave_nothing_is_a_second_long() -> None:
    shapes = [one.shape for ((one,),) in draw([Tensor("x", "float32", (1, 0), (-1, -1))])]
    assert shapes == [(1, size) for size in (16, 64, 224, 1, 16000)]
    windows = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        net (float[1, n] x) => (float[1, 1, m] y)
        <int64[1] one = {1}> { z = Unsqueeze(x, one) y = Conv<strides = [200]>(z, w) }""")
    windows.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 1, 400), np.float32), "w"))
    source = read_bytes(nnrewrite.rewrite(windows.SerializeToString(), to="tflite").encoded)
    verification = compare_models(source, nnrewrite.convert(source).SerializeToString())
    assert verification.passed and verification.comparisons[0].shape == (1, 1, 79)


def test_integers_that_may_be_positions_are_drawn_from_ever_narrower_ranges() -> None:
    ranges = [(array.min(), array.max()) for ((array,),) in draw([Tensor("i", "int32", (99,), (99,))])]
    assert ranges == [(0, 9), (0, 1), (0, 0), (1, 9)]
    assert len(list(draw([floats(1), codes(1)]))) == 1


def test_integers_for_each_sample_may_be_the_lengths_of_sequences() -> None:
    *others, (lengths,) = draw([Tensor("x", "float32", (2, 80), (2, 80)), Tensor("n", "int64", (2,), (2,))])
    assert len(others) == len(RANGES) and lengths[1].tolist() == [80, 80]
    masked = """<ir_version: 8, opset_import: ["": 18]> net (float[2, 80] x, int64[2] n) => (float[2, 80] y)
        <int64 zero = {0}, int64 one = {1}, int64 all = {80}, float nothing = {0}>
        { p = Range(zero, all, one) e = Unsqueeze(n, axis) m = Less(p, e) z = Where(m, x, nothing)
          y = Slice(z, far, end, axis) }"""
    model = onnx.parser.parse_model(masked)
    constants = {"axis": [1], "far": [40], "end": [80]}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(v), k) for k, v in constants.items())
    del model.graph.output[0].type.tensor_type.shape.dim[1:]
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 40
    original = model.SerializeToString()
    (y,) = compare_models(
        original, nnrewrite.rewrite(original, rules="onnx2onnx").model.SerializeToString()
    ).comparisons
    assert y.low < 0 < y.high


@pytest.mark.parametrize("extent", ["4", "n"])
def test_inputs_of_which_results_are_not_finite_give_way_to_narrower_ones(extent: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 18]> net (float[1, {extent}] x, int64[1, {extent}] mask)
        => (float[1, {extent}] y) <float one = {{1}}, float lowest = {{-3e38}}>
        {{ m = CastLike(mask, one) gone = Sub(one, m) far = Mul(gone, lowest) z = Add(x, far) y = Softmax(z) }}"""
    original = onnx.parser.parse_model(text).SerializeToString()
    verification = compare_models(original, nnrewrite.rewrite(original, rules="onnx2onnx").model.SerializeToString())
    (y,) = verification.comparisons
    assert verification.samples == (2 if extent == "n" else 1)
    assert y.low is not None and np.isfinite([y.low, y.high]).all()


# ---- the worker ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3).T,
        np.float32(1.5).reshape(()),
        np.zeros((0, 3), np.complex64),
        np.array([[b"", b"a\0b"], [b"c", b"\xff"]], dtype=object),
    ],
)
def test_arrays_come_through_a_frame_as_they_were(array: Array) -> None:
    stream = io.BytesIO()
    send(stream, {"action": "run"}, [array, array])
    stream.seek(0)
    header, arrays = receive(stream)
    assert header == {"action": "run"}
    for received in arrays:
        assert (received.dtype, received.shape) == (array.dtype, array.shape)
        assert np.array_equal(received, array)


def test_a_frame_that_is_cut_off_is_noticed() -> None:
    stream = io.BytesIO()
    send(stream, {}, [np.zeros(9)])
    with pytest.raises(EOFError):
        receive(io.BytesIO(stream.getvalue()[:-1]))


@pytest.fixture
def moody(tmp_path: Path) -> list[str]:
    """A worker that treats a model by its name: `abort` ends the process, `sleep` keeps it from answering."""
    script = tmp_path / "moody.py"
    script.write_text(
        "import os, sys, time\n"
        "from nnrewrite.verify import worker\n"
        "def answer(request, arrays):\n"
        "    if request['path'] == 'abort':\n"
        "        print('it was the fault of node 7', file=sys.stderr, flush=True)\n"
        "        os.abort()\n"
        "    if request['path'] == 'sleep':\n"
        "        time.sleep(60)\n"
        "    print('native code prints here')\n"
        "    return {'inputs': [], 'outputs': []}, []\n"
        "worker.answer_request = answer\n"
        "worker.main()\n"
    )
    return [sys.executable, str(script)]


def test_a_crash_is_told_in_one_line_and_survived(moody: list[str]) -> None:
    with Interpreter(command=moody) as interpreter:
        interpreter.describe("well")
        for _ in range(2):
            with pytest.raises(InterpreterError, match=r"crashed \(SIGABRT: it was the fault of node 7\)$"):
                interpreter.describe("abort")
        interpreter.describe("well")
        assert interpreter.restarts == 2


@pytest.mark.slow
def test_a_time_limit_is_kept_and_the_worker_replaced(moody: list[str]) -> None:
    with Interpreter(timeout=0.5, command=moody) as interpreter:
        started = time.perf_counter()
        with pytest.raises(InterpreterError, match=r"more than 0\.5 s"):
            interpreter.describe("sleep")
        assert time.perf_counter() - started < 10
        interpreter.timeout = 30
        interpreter.describe("well")


def test_modules_in_the_working_directory_are_not_those_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("flatbuffers", "numpy", "types", "nnrewrite"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    with Interpreter() as interpreter:
        assert interpreter.describe(tflite("RELU")).inputs[0].name == "x0"


def test_an_error_that_the_interpreter_raises_does_not_cost_the_worker() -> None:
    with Interpreter() as interpreter:
        with pytest.raises(InterpreterError, match="says: "):
            interpreter.describe(b"this is no model")
        with pytest.raises(InterpreterError, match="says: "):
            interpreter.describe("no/such/file.tflite")
        assert interpreter.restarts == 0


def test_a_missing_package_is_told_with_what_installs_it() -> None:
    from nnrewrite.verify.interpreter import require

    with pytest.raises(VerificationError, match=r'needs no-such-runtime: pip install .*\[verify\]"$'):
        require("numpy", "no_such_runtime")


def test_what_installs_a_package_is_as_the_program_was_installed(tmp_path: Path) -> None:
    from nnrewrite.verify.packages import install_command

    assert install_command("verify", tmp_path) == 'pip install "nnrewrite[verify]"'
    (tmp_path / "pyproject.toml").touch()
    assert install_command("verify", tmp_path) == f'pip install -e "{tmp_path}[verify]"'


# ---- whole models ----------------------------------------------------------------------------------------------------

SHAPE = [1, 16]


def tflite(operator: str, inputs: int = 1, dtype: str = "FLOAT32", shape: list[int | None] | None = None) -> bytes:
    """A TensorFlow Lite model of one operator without options."""
    kind = (dtype, shape or SHAPE)
    return write_operator_model(load(), operator, {f"x{i}": kind for i in range(inputs)}, [kind])


def ported(
    nodes: str, inputs: str = "float[1,16] x0", output: str = "float[1,16] output_0", constants: str = ""
) -> bytes:
    """An ONNX model in the textual syntax of the onnx package."""
    text = f'<ir_version: 10, opset_import: ["": 21]> main ({inputs}) => ({output}) <{constants}> {{ {nodes} }}'
    return onnx.parser.parse_model(text).SerializeToString()


def test_a_faithful_model_passes() -> None:
    result = compare_models(tflite("RELU"), ported("output_0 = Relu(x0)"), samples=3)
    assert result.passed
    (one,) = result.comparisons
    assert (one.name, one.verdict, one.shape, one.top) == ("output_0", Verdict.EQUAL, (1, 16), 1.0)
    assert result.samples == 3


def test_models_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(tflite("RELU"))
    (tmp_path / "a.onnx").write_bytes(ported("output_0 = Relu(x0)"))
    assert compare_models(tmp_path / "a.tflite", str(tmp_path / "a.onnx")).passed


@pytest.mark.slow
def test_names_of_files_need_not_be_text(tmp_path: Path) -> None:
    source, target = (tmp_path / os.fsdecode(b"\xff" + ending) for ending in (b".tflite", b".onnx"))
    source.write_bytes(tflite("RELU"))
    twin = onnx.load_model_from_string(ported("output_0 = Max(x0, c)", constants="float[1] c = {0}"))
    twin.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.zeros(1, np.float32), "c"))
    onnx.save(twin, tmp_path / "m.onnx", save_as_external_data=True, location="c", size_threshold=0)
    (tmp_path / "m.onnx").rename(target)
    for pair in ((source, target), (target, source)):
        assert compare_models(*pair).passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "nodes"),
    [
        ("RELU", "output_0 = LeakyRelu <alpha = 0.001> (x0)"),
        ("LOGISTIC", "output_0 = HardSigmoid(x0)"),
        ("LOG", "n = Abs(x0) output_0 = Log(n)"),  # NaN where the original has it is no matter of tolerance
        ("RSQRT", "n = Abs(x0) m = Sqrt(n) output_0 = Reciprocal(m)"),
    ],
)
def test_a_wrong_model_is_found(operator: str, nodes: str) -> None:
    result = compare_models(tflite(operator), ported(nodes))
    assert not result.passed
    assert len(result.differences) == 1
    assert result.differences[0].startswith("output_0: ")


@pytest.mark.slow
def test_random_numbers_are_no_difference_and_no_agreement() -> None:
    model = ported("n = RandomNormalLike <dtype = 1> (x0) output_0 = Add(x0, n)")
    with pytest.raises(VerificationError, match=r"computes other numbers whenever it is run.*output_0"):
        compare_models(model, ported("output_0 = Identity(x0)"))


class Refusing(Interpreter):
    """An interpreter some of whose sets of kernels refuse every model; what the others yield is changed."""

    def __init__(self, change: Callable[[Array, Kernels], Array], *refuse: Kernels) -> None:
        super().__init__()
        self._change, self._refuse = change, refuse

    def run(self, model: Any, samples: Any, kernels: Kernels = Kernels.DEFAULT, *rest: Any, **more: Any) -> Any:
        if kernels in self._refuse:
            raise InterpreterError("not this one")
        return [[self._change(one, kernels) for one in sample] for sample in samples]


@pytest.mark.slow
@pytest.mark.parametrize(("refused", "passes"), [(Kernels.OPTIMIZED, True), (Kernels.REFERENCE, False)])
def test_the_spread_is_that_of_the_first_two_sets_of_kernels_that_run(refused: Kernels, passes: bool) -> None:
    def change(array: Array, kernels: Kernels) -> Array:
        return np.asarray(np.maximum(array, 0) + np.float32(0.2 * (kernels is Kernels.REFERENCE)))

    made = ported("r = Relu(x0) output_0 = Add(r, c)", constants="float c = {0.3}")
    with Refusing(change, refused) as interpreter:
        assert compare_models(tflite("RELU"), made, interpreter=interpreter).passed is passes


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "passes"), [(1e6, True), (1.0, False)])
def test_what_one_set_of_kernels_runs_may_be_off_as_far_as_its_inputs_make_it(factor: float, passes: bool) -> None:
    def change(array: Array, kernels: Kernels) -> Array:
        return np.sin(array.astype(np.float64) * factor).astype(np.float32)

    made = ported(
        "m = Mul(x0, c) s = Sin(m) output_0 = Add(s, d)", constants=f"float c = {{{factor}}}, float d = {{0.1}}"
    )
    with Refusing(change, Kernels.OPTIMIZED, Kernels.REFERENCE) as interpreter:
        found = compare_models(tflite("SIN"), made, interpreter=interpreter)
    assert found.passed is found.is_sensitive is passes


def test_nan_in_the_same_places_passes() -> None:
    assert compare_models(tflite("LOG"), ported("output_0 = Log(x0)")).passed


@pytest.mark.slow
def test_swapped_operands_are_found() -> None:
    inputs = "float[1,16] x0, float[1,16] x1"
    assert compare_models(tflite("SUB", 2), ported("output_0 = Sub(x0, x1)", inputs)).passed
    assert not compare_models(tflite("SUB", 2), ported("output_0 = Sub(x1, x0)", inputs)).passed


def test_inputs_in_another_order_are_a_difference() -> None:
    result = compare_models(tflite("SUB", 2), ported("output_0 = Sub(x0, x1)", "float[1,16] x1, float[1,16] x0"))
    assert result.differences == ("inputs in another order: x0, x1 became x1, x0",)


@pytest.mark.slow
def test_a_signature_may_name_inputs_the_other_way_round() -> None:
    kind = ("FLOAT32", SHAPE)
    model = make_operator_model(load(), "SUB", {"x": kind, "y": kind}, [kind])
    model.meta["signatures"] = [Signature("swapped", 0, {"x": "y", "y": "x"}, {"output_0": "output_0"})]
    source = write(model, load())
    converted = nnrewrite.convert(source)
    assert [value.name for value in converted.graph.input] == ["y", "x"]
    result = compare_models(source, converted.SerializeToString())
    assert result.passed, result.differences
    moved = converted.graph.input.pop(0)
    converted.graph.input.append(moved)
    result = compare_models(source, converted.SerializeToString())
    assert result.differences == ("inputs in another order: x, y became y, x",)


def test_inputs_under_other_names_correspond_by_place() -> None:
    assert compare_models(tflite("SUB", 2), ported("output_0 = Sub(a, b)", "float[1,16] a, float[1,16] b")).passed


def test_a_missing_input_is_a_difference() -> None:
    result = compare_models(tflite("SUB", 2), ported("output_0 = Relu(x0)"))
    assert result.differences == ("2 inputs became 1",)


@pytest.mark.slow
def test_quantized_outputs_are_held_to_a_step() -> None:
    scale = Quantization(np.array([0.05], np.float32), np.array([3], np.int64), 0)
    kind = ("INT8", SHAPE, scale)
    model = write_operator_model(load(), "RELU", {"x0": kind}, [kind])

    def twin(low: int) -> bytes:
        constants = f"int8 low = {{{low}}}"
        return ported("output_0 = Max(x0, low)", "int8[1,16] x0", "int8[1,16] output_0", constants)

    assert compare_models(model, twin(3)).passed
    assert compare_models(model, twin(4)).comparisons[0].verdict is Verdict.CLOSE
    assert not compare_models(model, twin(5)).passed


@pytest.mark.slow
def test_dynamic_dimensions_are_fed_as_the_file_says() -> None:
    model = tflite("RELU", shape=[None, 16])
    result = compare_models(model, ported("output_0 = Relu(x0)", "float[n,16] x0", "float[n,16] output_0"))
    assert result.passed
    assert result.comparisons[0].shape == (1, 16)
    feed = [[np.ones((5, 16), np.float32)]]
    result = compare_models(model, ported("output_0 = Relu(x0)", "float[n,16] x0", "float[n,16] output_0"), inputs=feed)
    assert result.comparisons[0].shape == (5, 16)


def test_positions_are_narrowed_until_the_model_takes_them() -> None:
    data = np.arange(4, dtype=np.float32).reshape(2, 2)
    model = write_operator_model(load(), "GATHER", {"x": data, "i": ("INT32", [64])}, [("FLOAT32", [64, 2])])
    constants = "float[2,2] x = {0, 1, 2, 3}"
    twin = ported("output_0 = Gather(x, i)", "int32[64] i", "float[64,2] output_0", constants)
    assert compare_models(model, twin).passed


@pytest.mark.slow
def test_a_model_that_a_runtime_refuses_is_no_verdict() -> None:
    with pytest.raises(VerificationError, match="the TFLite interpreter says"):
        compare_models(b"no model", ported("output_0 = Relu(x0)"))
    broken = ported("output_0 = Relu(x0)").replace(b"Relu", b"Rely")
    with pytest.raises(VerificationError, match="ONNX Runtime refuses the model"):
        compare_models(tflite("RELU"), broken)
    with pytest.raises(VerificationError, match=r"the TFLite interpreter says.*NoSuchOperator"):
        compare_models(tflite("NoSuchOperator"), ported("output_0 = Relu(x0)"))


@pytest.mark.slow
def test_a_result_that_kernels_refuse_as_they_do_the_original_is_run_by_the_others() -> None:
    def on_grid(scale: float) -> Quantization:
        return Quantization(np.array([scale], np.float32), np.array([3], np.int64))

    operands: dict[str, Any] = {"x": ("UINT8", [1, 3, 3, 2], on_grid(0.1)), "size": np.array([5, 5], np.int32)}
    # XNNPACK takes no images of another grid than their enlargements.
    model = write_operator_model(load(), "RESIZE_BILINEAR", operands, [("UINT8", [1, 5, 5, 2], on_grid(0.2))])
    verdict = compare_models(model, model)
    assert verdict.passed
    assert "default kernels" in verdict.remarks[0]


@pytest.mark.slow
def test_a_worker_serves_many_models() -> None:
    with Interpreter() as interpreter:
        for operator, twin in (("RELU", "Relu"), ("ABS", "Abs"), ("NEG", "Neg")):
            assert compare_models(tflite(operator), ported(f"output_0 = {twin}(x0)"), interpreter=interpreter).passed
        assert interpreter.restarts == 0


def test_a_report_has_a_row_for_each_output_and_says_what_differs() -> None:
    result = compare_models(tflite("RELU"), ported("output_0 = Abs(x0)"))
    for pretty in (False, True):
        text = "\n".join(format_table(result, pretty))
        assert "max abs" in text
        assert "different: output_0: off by" in text
        assert "seed 0, 1 sample" in text


def test_a_model_is_compared_at_the_batch_and_in_the_numbers_that_it_was_asked_for(interpreter: Interpreter) -> None:
    grid = Quantization(np.array([0.1], np.float32), np.array([3], np.int64))
    source = write_operator_model(load(), "RELU", {"x": ("INT8", [1, 4], grid)}, [("INT8", [1, 4], grid)])
    model = nnrewrite.convert(source, batch=3, float_io=True)
    assert [item.type.tensor_type.elem_type for item in model.graph.input] == [onnx.TensorProto.FLOAT]
    (compared,) = compare_models(source, model.SerializeToString(), interpreter=interpreter).comparisons
    assert (compared.shape, compared.dtype, compared.verdict.passed) == ((3, 4), "int8", True)
    other = write_operator_model(load(), "ABS", {"x": ("INT8", [1, 4], grid)}, [("INT8", [1, 4], grid)])
    model = nnrewrite.convert(other, batch=3, float_io=True)
    assert not compare_models(source, model.SerializeToString(), interpreter=interpreter).passed

"""ONNX models as originals."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.verify import Kernels, compare_models, runtime
from nnrewrite.verify.inputs import draw
from nnrewrite.verify.interpreter import Interpreter
from nnrewrite.verify.low_bit_weights import ROUNDED
from nnrewrite.verify.reference import CONVERTED, Reference
from nnrewrite.verify.symbolic_sizes import compute_size
from onnx import TensorProto, helper, numpy_helper


def model(operator: str, shape: list[int | str]) -> bytes:
    """A model of one operator over one tensor."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "net", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(made.SerializeToString())


def test_a_model_agrees_with_itself_at_sizes_that_are_free() -> None:
    found = compare_models(model("Relu", ["batch", 3, "size"]), model("Relu", ["batch", 3, "size"]))
    assert found.passed and found.comparisons[0].shape == (1, 3, 16)


def test_sizes_that_the_result_fixes_are_tried_first() -> None:
    for batch, tried in (("batch", 1), (5, 5)):
        found = compare_models(model("Relu", ["batch", 3, "size"]), model("Relu", [batch, 3, 7]))
        assert found.passed and found.comparisons[0].shape == (tried, 3, 7)


@pytest.mark.slow
def test_sound_is_as_long_as_its_windows_ask() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[b, n] x) => (float[b, 1, m] y)'
        " <int64[1] one = {1}> { t = Unsqueeze(x, one) y = Conv<strides=[500]>(t, w) }"
    )
    made.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1, 2000), np.float32), "w"))
    found = compare_models(made.SerializeToString(), made.SerializeToString())
    assert found.passed and found.comparisons[0].shape == (1, 1, 29)


def test_another_function_is_different() -> None:
    assert not compare_models(model("Relu", [4, 4]), model("Abs", [4, 4])).passed


def test_scales_are_read_from_where_the_weights_of_a_model_lie(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (uint8[4] x) => (float[4] y) { y = DequantizeLinear(x, s, z) }'
    )
    constants = {"s": np.float32(0.5), "z": np.uint8(3)}
    made.graph.initializer.extend(numpy_helper.from_array(one, name) for name, one in constants.items())
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="net.data")
    found = compare_models(path, path)
    assert found.passed and Reference().describe(path).inputs[0].scales == (0.5,)


def make_loop(turns: int) -> bytes:
    """A model that doubles its input so many times."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)'
        f" <int64 n = {{{turns}}}> {{ y = Loop (n, , x)"
        " <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) { d = Identity(c) t = Add(s, s) }> }"
    )
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(("turns", "others"), [(1 << 40, 3), (3, 1 << 40)])
def test_a_model_that_does_not_end_is_given_up(turns: int, others: int) -> None:
    with pytest.raises(VerificationError, match=r"ONNX Runtime did not end the model in 0\.2 s"):
        compare_models(make_loop(turns), make_loop(others), timeout=0.2)


def make_constants(products: int) -> bytes:
    """A model that adds what so many products of constants are, which the runtime computes when it loads it."""
    chain = " ".join(f"w{i + 1} = MatMul(w{i}, w0)" for i in range(products))
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[400, 400] x) => (float[400, 400] y)'
        f" {{ {chain} y = Add(x, w{products}) }}"
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(400, dtype=np.float32), "w0"))
    return bytes(made.SerializeToString())


@pytest.mark.slow
def test_a_model_that_takes_too_long_to_load_is_given_up() -> None:
    with pytest.raises(VerificationError, match=r"ONNX Runtime did not load the model in 0\.1 s"):
        compare_models(make_constants(0), make_constants(300), timeout=0.1)


@pytest.mark.parametrize("good", [0, 1])
def test_after_a_run_that_does_not_end_no_others_are_tried(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def run(session: Any, names: list[str], feeds: dict[str, Any], seconds: float) -> list[Any]:
        runs.append(seconds)
        if len(runs) > good:
            raise TimeoutError
        return list(session.run(names, feeds))

    monkeypatch.setattr(runtime, "_run_session", run)
    with pytest.raises(VerificationError, match="did not end"):
        compare_models(model("Relu", ["batch", 3, "size"]), model("Relu", ["batch", 3, "size"]), timeout=7)
    assert runs == [7] * (good + 1)


def test_a_signal_is_taken_while_a_model_runs() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            runtime.Runtime(make_loop(1 << 40), seconds=10).run_step([np.ones(2, np.float32)], {})
        assert time.monotonic() - started < 5
    finally:
        signal.signal(signal.SIGALRM, before)


def view_of_codes(more: str = "") -> bytes:
    """A model whose result is a view of codes, to which numbers of so many halves of a step are added before."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] y)'
        " <float s = {0.5}, uint8 z = {128}, float more = {0.51}, float[9] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>"
        f" {{ r = Round(x) {more or 'p = Identity(r)'} q = QuantizeLinear(p, s, z) y = DequantizeLinear(q, s, z) }}"
    )
    return bytes(made.SerializeToString())


@pytest.mark.slow
def test_a_view_of_codes_may_be_off_by_one_step_of_them() -> None:
    assert compare_models(view_of_codes(), view_of_codes("p = Add(r, more)")).passed
    two = compare_models(view_of_codes(), view_of_codes("t = Add(more, more) p = Add(r, t)"))
    assert not two.passed and "tolerance 0.505" in two.differences[0]


def codes(more: str = "") -> bytes:
    """A model that takes and yields codes, turned around, to which so many halves of a step are added before."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (uint8[2, 2] x) => (uint8[2, 2] y)'
        " <float s = {0.5}, uint8 z = {128}, float more = {0.51}>"
        " { t = Transpose <perm = [1, 0]> (x) r = DequantizeLinear(t, s, z)"
        f" {more or 'p = Identity(r)'} q = QuantizeLinear(p, s, z) y = Transpose <perm = [1, 0]> (q) }}"
    )
    return bytes(made.SerializeToString())


@pytest.mark.slow
def test_codes_may_be_off_by_one_of_them() -> None:
    one = compare_models(codes(), codes("p = Add(r, more)"))
    assert one.passed and one.comparisons[0].quantized and one.comparisons[0].absolute == 1
    two = compare_models(codes(), codes("t2 = Add(more, more) p = Add(r, t2)"))
    assert not two.passed and "2 steps" in two.differences[0]


@pytest.mark.parametrize("to", ["onnx", "tflite"])
def test_a_result_with_a_real_interface_is_called_with_the_numbers_of_the_codes(tmp_path: Path, to: str) -> None:
    path = tmp_path / f"real.{to}"
    rewrite(codes("p = Tanh(r)"), to=to, float_io=True).save(path)
    found = compare_models(codes("p = Tanh(r)"), path.read_bytes())
    assert found.passed and found.comparisons[0].dtype == "uint8"


def test_inputs_of_types_that_numpy_has_not_are_named() -> None:
    small = onnx.ModelProto.FromString(model("Identity", [4]))
    for value in (*small.graph.input, *small.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT8E5M2
    small.opset_import[0].version = 19
    with pytest.raises(VerificationError, match=r"input x is a tensor\(float8e5m2\): such inputs cannot be drawn"):
        compare_models(small.SerializeToString(), small.SerializeToString())


def test_an_original_of_an_opset_that_the_runtime_has_not_is_run_at_a_later_one() -> None:
    text = """<ir_version: 3, opset_import: ["": 6]> net (float[2, 3, 2] x, float[3] s) => (float[2, 3, 2] y)
      { y = Mul<broadcast = 1, axis = 1>(x, s) }"""
    old = onnx.parser.parse_model(text).SerializeToString()
    found = compare_models(old, rewrite(old).model.SerializeToString())
    assert found.passed
    assert CONVERTED in found.remarks


def test_an_original_that_does_not_load_is_no_verdict() -> None:
    broken = onnx.ModelProto.FromString(model("Relu", [4]))
    broken.graph.node[0].op_type = "Rilu"
    with pytest.raises(VerificationError, match="refuses"):
        compare_models(broken.SerializeToString(), model("Relu", [4]))


@pytest.mark.slow
@pytest.mark.parametrize(("others", "passed"), [(0.0, True), (0.2, False)])
def test_a_result_of_tensorflow_lite_may_be_off_as_the_interpreters_kernels_are(
    others: float, passed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = model("Relu", [4])
    rewrite(original, to="tflite").save(tmp_path / "net.tflite")
    run = Interpreter.run

    def run_badly(self: Interpreter, source: Any, samples: Any, kernels: Kernels = Kernels.DEFAULT) -> Any:
        off = 0.2 if kernels is Kernels.DEFAULT else others
        return [[one + np.float32(off) for one in results] for results in run(self, source, samples, kernels)]

    monkeypatch.setattr(Interpreter, "run", run_badly)
    assert compare_models(original, tmp_path / "net.tflite").passed is passed


@pytest.mark.slow
def test_a_result_of_tensorflow_lite_is_run_by_the_interpreter(tmp_path: Path) -> None:
    rewrite(model("Relu", [1, 4]), to="tflite").save(tmp_path / "net.tflite")
    assert compare_models(model("Relu", [1, 4]), tmp_path / "net.tflite").passed
    assert not compare_models(model("Abs", [1, 4]), tmp_path / "net.tflite").passed


def test_results_are_of_a_format_that_runs(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(b"PK\x03\x04")
    with pytest.raises(VerificationError, match="neither an ONNX nor a TensorFlow Lite model"):
        compare_models(model("Relu", [4]), tmp_path / "net.pt2")


def _write_sum(batch: int | str) -> bytes:
    text = f"""<ir_version: 8, opset_import: ["": 18]> net (float[{batch}, n] x, float[n] w) => (float[{batch}, n] y)
      {{ y = Add(x, w) }}"""
    return onnx.parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("batch", [1, 2, "batch"])
def test_a_model_that_was_given_another_batch_is_compared_with_several_runs(batch: int | str) -> None:
    found = compare_models(_write_sum(batch), _write_sum(4))
    assert (found.passed, found.comparisons[0].shape) == (True, (4, 16))


def test_a_batch_that_is_not_several_of_the_own_is_not_run() -> None:
    with pytest.raises(VerificationError, match="invalid dimensions"):
        compare_models(_write_sum(3), _write_sum(4))


def remember(*names: str) -> bytes:
    """A model that joins what it is given with what was before, weighted by a mask of both."""
    past, new, total = names
    values = [
        helper.make_tensor_value_info(name, kind, [1, size])
        for name, kind, size in (
            ("x", TensorProto.FLOAT, new),
            ("mask", TensorProto.INT64, total),
            ("past", TensorProto.FLOAT, past),
            ("y", TensorProto.FLOAT, total),
        )
    ]
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["all"], axis=1),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Reciprocal", ["kept"], ["weight"]),
        helper.make_node("Mul", ["all", "weight"], ["y"]),
    ]
    made = helper.make_model(
        helper.make_graph(nodes, "net", values[:3], values[3:]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    "names",
    [("past_sequence_length", "sequence_length", "total_sequence_length"), ("before", "new", "before + new")],
    ids=["words", "a sum"],
)
def test_sizes_that_are_sums_are_so_and_their_mask_is_whole(names: tuple[str, str, str]) -> None:
    found = Reference().describe(remember(*names))
    assert [tensor.shape for tensor in found.inputs] == [(1, 16), (1, 32), (1, 16)]
    [sample] = next(draw(found.inputs))
    assert (sample[1] == 1).all()
    both = compare_models(remember(*names), remember(*names))
    assert both.passed and both.samples == 2  # with other sizes as well


def test_sums_are_known_by_what_they_consist_of() -> None:
    texts = ("a", "a + b", "a + b + 1", "c + 1", "total_x", "total_y", "total_x + 1")
    known = {"a": 3, "b": 4, "past_x": 5, "sequence_length": 2}
    assert [compute_size(text, known) for text in texts] == [None, 7, 8, None, 7, None, None]


def multiply(level: int) -> bytes:
    """A model that multiplies by weights of 4 bits, and lets the runtime round what it multiplies."""
    random = np.random.default_rng(0)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, n]) for name, n in (("x", 64), ("y", 16))]
    constants = [
        numpy_helper.from_array(random.integers(0, 256, (16, 2, 16), np.uint8), "w"),
        numpy_helper.from_array(random.uniform(0.1, 1, 32).astype(np.float32), "scales"),
    ]
    sizes = {"K": 64, "N": 16, "bits": 4, "block_size": 32, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", "w", "scales"], ["y"], domain="com.microsoft", **sizes)
    graph = helper.make_graph([node], "net", values[:1], values[1:], constants)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString())


@pytest.mark.slow
def test_what_the_runtime_rounds_for_weights_of_few_bits_is_no_difference(tmp_path: Path) -> None:
    rewrite(multiply(4), to="tflite").save(tmp_path / "net.tflite")
    found = compare_models(multiply(4), tmp_path / "net.tflite")
    assert found.passed and found.comparisons[0].kernels is Kernels.REFERENCE
    assert compare_models(multiply(0), tmp_path / "net.tflite").comparisons[0].kernels is Kernels.DEFAULT
    spoilt = onnx.ModelProto.FromString(multiply(4))
    spoilt.graph.initializer[0].raw_data = bytes(reversed(spoilt.graph.initializer[0].raw_data))
    assert not compare_models(spoilt.SerializeToString(), tmp_path / "net.tflite").passed


@pytest.mark.slow
def test_what_the_runtime_rounds_in_a_result_is_told() -> None:
    made = rewrite(multiply(0), rules=("onnx2onnx", "standard")).model.SerializeToString()
    found = compare_models(multiply(0), made)
    assert found.passed and ROUNDED in found.remarks


def test_images_of_free_sizes_are_large_enough_for_several_layers() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> net (float[n, 3, h, w] x, float[n, s] t) => (float[n, 3, h, w] y)'
        "{ y = Relu (x) }"
    )
    found = Reference().describe(model.SerializeToString())
    assert [tensor.shape for tensor in found.inputs] == [(1, 3, 64, 64), (1, 16)]


def test_sparse_constants_of_nodes_are_verified() -> None:
    values = numpy_helper.from_array(np.array([1.0, 2.0, -3.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([0, 5, 7]), "places"), [3, 4])
    nodes = [
        helper.make_node("Constant", [], ["w"], sparse_value=sparse),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(name, 1, ["n", size]) for name, size in one] for one in ([("x", 3)], [("y", 4)])
    ]
    graph = helper.make_graph(nodes, "m", *ends)
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    made = rewrite(source, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    assert compare_models(source, made).passed

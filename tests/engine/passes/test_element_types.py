"""Element types without a kernel, computed in wider ones; complex numbers, carried as pairs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import pytest
from nnrewrite.engine.dialects.kernels import find_wider_type
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.runtime import Runtime
from nnrewrite.verify.runtime_kernels import Rows, intersect, list_kernels, subtract


@pytest.mark.parametrize(
    ("own", "allowed", "wide"),
    [
        ("i8", "f32 f64", "f32"),
        ("i8", "u8 i32 i64", "i32"),
        ("bool", "u8 i32", "u8"),
        ("i32", "f32 f64", "f64"),
        ("u32", "i32 i64", "i64"),
        ("i64", "f32 f64", "f64"),
        ("f64", "f32", "f32"),
        ("string", "f32", None),
    ],
)
def test_the_first_type_that_holds_every_number_is_computed_in(own: str, allowed: str, wide: str | None) -> None:
    assert find_wider_type(own, frozenset(allowed.split())) == wide


ANEW = "python -m nnrewrite.verify.runtime_kernels"


@pytest.mark.runtime_fact("onnxruntime", ANEW)
def test_the_runtime_has_the_kernels_that_ops_yaml_says(catalogue: Catalogue) -> None:
    pytest.importorskip("onnxruntime")
    assert subtract(catalogue.find_dialect("onnx").facts.kernels, list_kernels()) == {}


@pytest.mark.runtime_fact("onnxruntime", ANEW)
def test_the_runtime_has_no_other_kernels_than_ops_yaml_says(catalogue: Catalogue) -> None:
    runtime = pytest.importorskip("onnxruntime")
    facts = catalogue.find_dialect("onnx").facts
    known = {facts.measured["onnxruntime"][0]: {}, **facts.more_kernels}
    if runtime.__version__ not in known:
        pytest.skip(f"ops.yaml does not say what ONNX Runtime {runtime.__version__} has besides; `{ANEW}` tells")
    assert subtract(list_kernels(), facts.kernels) == known[runtime.__version__]


def test_kernels_of_two_versions_are_told_apart() -> None:
    old: Rows = {"Add": {13: {"T": "f32 i32"}}, "Max": {13: {"T": "f32"}}}
    new: Rows = {"Add": {13: {"T": "f32 i32"}, 14: {"T": "f32 i8"}}}
    assert subtract(new, old)["Add"] == {14: {"T": "i8"}}
    assert subtract(old, new)["Add"] == {14: {"T": "i32"}}
    assert intersect(old, new) == {"Add": {13: {"T": "f32 i32"}, 14: {"T": "f32"}}, "Max": {13: {"T": "f32"}}}


@pytest.mark.slow
def test_a_conversion_does_not_look_at_the_runtime_that_is_installed(single: Callable[..., bytes]) -> None:
    x = ("INT16", [2, 3])
    source = single("MAXIMUM", {"a": x, "b": x}, [x])
    program = """
import sys
sys.modules["onnxruntime"] = sys.modules["ai_edge_litert"] = None
import nnrewrite
sys.stdout.buffer.write(nnrewrite.convert(sys.stdin.buffer.read()).SerializeToString())
"""
    done = subprocess.run([sys.executable, "-c", program], input=source, capture_output=True, timeout=60, check=True)
    model = nnrewrite.convert(source)
    assert "Cast" in [node.op_type for node in model.graph.node]  # as no kernel takes the type
    assert done.stdout == model.SerializeToString()


def test_integers_are_added_two_at_a_time_as_the_sum_of_several_has_no_kernel(
    single: Callable[..., bytes], interpreter: Interpreter
) -> None:
    x = ("INT32", [2, 3])
    source = single("ADD_N", {"a": x, "b": x, "c": x}, [x])
    model = nnrewrite.convert(source)
    assert [node.op_type for node in model.graph.node] == ["Add", "Add"]
    assert compare_models(source, model.SerializeToString(), interpreter=interpreter).passed


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("MAXIMUM", {}),
        ("MINIMUM", {}),
        ("STABLEHLO_MAXIMUM", {}),
        ("ADD", {"fused_activation_function": "RELU6"}),
        ("SUB", {"fused_activation_function": "RELU_N1_TO_1"}),
        ("MUL", {"fused_activation_function": "RELU"}),
    ],
)
def test_numbers_of_64_bits_are_compared_as_such(
    single: Callable[..., bytes], interpreter: Interpreter, operator: str, options: dict[str, Any]
) -> None:
    """ONNX Runtime's Max, Min, Clip and Relu compare lower halves with their signs where upper ones are equal."""
    ends = np.array(
        [0, 5, -7, 2**31 - 1, 2**31, 2588934144, 2**32 - 1, -(2**31), -(2**31) - 1, 2**33, -(2**33)], np.int64
    )
    a, b = (part.reshape(-1) for part in np.meshgrid(ends, ends))
    x = ("INT64", [len(a)])
    source = single(operator, {"a": x, "b": x}, [x], **options)
    [[wanted]] = interpreter.run(source, [[a, b]])
    [found] = Runtime(nnrewrite.convert(source).SerializeToString()).run([a, b])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("transposed", [{}, {"adj_x": True}, {"adj_y": True}, {"adj_x": True, "adj_y": True}])
def test_a_product_of_plain_integers_is_as_wide_as_it_says(
    single: Callable[..., bytes], interpreter: Interpreter, transposed: dict[str, bool]
) -> None:
    x = ("INT8", [3, 3])
    source = single("BATCH_MATMUL", {"a": x, "b": x}, [("INT32", [3, 3])], **transposed)
    assert compare_models(source, nnrewrite.convert(source).SerializeToString(), interpreter=interpreter).passed


def test_complex_numbers_are_pairs_along_a_last_axis(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    from onnxruntime import InferenceSession

    product = single("MUL", {"a": ("COMPLEX64", [2, 3]), "b": ("COMPLEX64", [3])}, [("COMPLEX64", [2, 3])])
    session = InferenceSession(nnrewrite.convert(product).SerializeToString())
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=(*shape, 2)).astype(np.float32) for shape in ([2, 3], [3]))
    (found,) = session.run(None, {"a": a, "b": b})
    wanted = a.view(np.complex64)[..., 0] * b.view(np.complex64)[..., 0]
    np.testing.assert_allclose(found.view(np.complex64)[..., 0], wanted, rtol=1e-5)


@pytest.mark.parametrize(("name", "function"), [("FlexCos", np.cos), ("FlexSin", np.sin), ("FlexExp", np.exp)])
def test_functions_of_complex_numbers_are_those_of_their_parts(
    single: Callable[..., bytes], name: str, function: Callable[..., npt.NDArray[Any]]
) -> None:
    from onnxruntime import InferenceSession

    session = InferenceSession(
        nnrewrite.convert(single(name, {"x": ("COMPLEX64", [2, 3])}, [("COMPLEX64", [2, 3])])).SerializeToString()
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found.view(np.complex64), function(x.view(np.complex64)), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "function"), [("FlexReal", np.real), ("FlexImag", np.imag), ("FlexComplexAbs", np.abs)]
)
def test_parts_of_complex_numbers_are_real(
    single: Callable[..., bytes], name: str, function: Callable[..., npt.NDArray[Any]]
) -> None:
    from onnxruntime import InferenceSession

    source = single(name, {"x": ("COMPLEX64", [2, 3])}, [("FLOAT32", [2, 3])])
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    (found,) = InferenceSession(nnrewrite.convert(source).SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(found, function(x.view(np.complex64)[..., 0]), rtol=1e-5)


def test_complex_numbers_are_gathered_along_an_axis_counted_from_the_end(single: Callable[..., bytes]) -> None:
    from onnxruntime import InferenceSession

    at, axis = np.array([2, 0], np.int32), np.array(-1, np.int32)
    source = single("FlexGatherV2", {"x": ("COMPLEX64", [2, 3]), "at": at, "axis": axis}, [("COMPLEX64", [2, 2])])
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    (found,) = InferenceSession(nnrewrite.convert(source).SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(found, x[:, [2, 0]])


def test_a_rule_about_real_numbers_leaves_complex_ones_alone(single: Callable[..., bytes]) -> None:
    source = single("NEG", {"x": ("COMPLEX64", [2])}, [("COMPLEX64", [2])])
    with pytest.raises(nnrewrite.UnsupportedError, match="complex numbers"):
        nnrewrite.convert(source)

"""Results of operators over numbers: those that ops.yaml's facts give are those of onnx.reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nnrewrite.engine.dialects.folding import evaluate
from nnrewrite.engine.dialects.inference import Inferred, infer
from nnrewrite.engine.dialects.numpy_evaluation import compute_results
from nnrewrite.engine.dialects.ops_files import load

pytestmark = pytest.mark.slow

OPSET = 21
ONNX = load().find_dialect("onnx")
NUMBERS = ("float32", "float64", "int32", "int64")
Array = np.ndarray[Any, Any]


def compute_both(operator: str, operands: list[Array], **options: Any) -> tuple[list[Array] | None, list[Array] | None]:
    """What the facts give and what onnx.reference gives."""
    values = [ir.Value(name=f"x{i}", const_value=ir.Tensor(one)) for i, one in enumerate(operands)]
    for value, one in zip(values, operands, strict=True):
        value.type, value.shape = ir.TensorType(ir.DataType.from_numpy(one.dtype)), ir.Shape(one.shape)
    attributes = [ir.convenience.convert_attribute(name, option) for name, option in options.items()]
    node = ir.Node("", operator, values, attributes)
    spec = ONNX.find_operator(operator, OPSET)
    assert spec is not None
    return compute_results(node, spec, operands, infer(node, OPSET)), evaluate(node, operands, OPSET)


def require_equal(operator: str, operands: list[Array], **options: Any) -> None:
    found, wanted = compute_both(operator, operands, **options)
    assert found is not None and wanted is not None
    assert len(found) == len(wanted) == 1
    assert found[0].dtype == wanted[0].dtype and found[0].shape == wanted[0].shape
    np.testing.assert_array_equal(found[0], wanted[0])


@st.composite
def draw_arrays(draw: st.DrawFn, count: int, dtype: str | None = None, least: int = -9) -> list[Array]:
    """Arrays of one type whose shapes broadcast."""
    kind = draw(st.sampled_from(NUMBERS)) if dtype is None else dtype
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    found = []
    for _ in range(count):
        own = [n if draw(st.booleans()) else 1 for n in shape[draw(st.integers(0, len(shape))) :]]
        size = int(np.prod(own))
        numbers = draw(st.lists(st.integers(least, 9), min_size=size, max_size=size))
        found.append(np.array(numbers).reshape(own).astype(kind))
    return found


@given(
    st.sampled_from(["Add", "Sub", "Mul", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]), draw_arrays(2)
)
def test_two_numbers_are_computed_as_in_the_reference(operator: str, operands: list[Array]) -> None:
    require_equal(operator, operands)


@given(draw_arrays(2))
def test_quotients_of_integers_are_cut_towards_zero(operands: list[Array]) -> None:
    left, right = operands
    require_equal("Div", [left, np.where(right == 0, 1, right).astype(right.dtype)])


def test_integers_are_not_divided_by_nothing() -> None:
    found, _ = compute_both("Div", [np.array([3, 4]), np.array([1, 0])])
    assert found is None


@given(st.sampled_from(["And", "Or"]), draw_arrays(2, "bool"))
def test_truth_values_are_computed_as_in_the_reference(operator: str, operands: list[Array]) -> None:
    require_equal(operator, operands)
    require_equal("Not", operands[:1])


@given(draw_arrays(3))
def test_choices_and_roots_are_those_of_the_reference(operands: list[Array]) -> None:
    require_equal("Where", [operands[0] > 0, *operands[1:]])
    require_equal("Sqrt", [np.abs(operands[0]).astype(np.float32)])


@given(draw_arrays(3), st.sampled_from(["Max", "Min"]))
def test_the_greatest_and_the_least_are_those_of_the_reference(operands: list[Array], operator: str) -> None:
    require_equal(operator, operands)


@given(draw_arrays(2, "int64", least=0))
def test_what_is_left_of_quotients_is_that_of_the_reference(operands: list[Array]) -> None:
    require_equal("Mod", [operands[0], operands[1] + 1])


def test_what_is_left_of_a_quotient_below_zero_is_left_to_the_reference() -> None:
    found, _ = compute_both("Mod", [np.array([-3]), np.array([2])], fmod=1)
    assert found is None


@given(draw_arrays(1), st.sampled_from((*NUMBERS, "bool", "int8", "uint8")))
def test_conversions_are_those_of_the_reference(operands: list[Array], dtype: str) -> None:
    numbers = np.abs(operands[0]) if dtype == "uint8" else operands[0]
    require_equal("Cast", [numbers], to=int(ir.DataType.from_numpy(np.dtype(dtype))))
    require_equal("CastLike", [numbers, np.zeros(2, dtype)])


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e10])
def test_numbers_that_a_type_does_not_hold_are_left_to_runtimes(number: float) -> None:
    found, _ = compute_both("Cast", [np.array([number], np.float32)], to=int(ir.DataType.INT32))
    assert found is None


@given(draw_arrays(1))
def test_views_keep_the_order_of_elements(operands: list[Array]) -> None:
    array = operands[0]
    require_equal("Identity", [array])
    require_equal("Flatten", [array], axis=0)
    require_equal("Reshape", [array, np.array([-1])])
    require_equal("Unsqueeze", [array, np.array([0, -1])])
    require_equal("Squeeze", [array[np.newaxis], np.array([0])])


def test_a_view_of_another_number_of_elements_is_not_computed() -> None:
    """jax2onnx declares extents that its own constants contradict."""
    node = ir.Node("", "Identity", [ir.Value(name="x", shape=ir.Shape([7, 0]), type=ir.TensorType(ir.DataType.FLOAT))])
    spec = ONNX.find_operator("Identity", OPSET)
    assert spec is not None
    declared = [Inferred(ir.DataType.FLOAT, (7, 1))]
    assert compute_results(node, spec, [np.zeros((7, 0), np.float32)], declared) is None


@given(draw_arrays(1), st.lists(st.integers(1, 2), max_size=2))
def test_a_tensor_is_repeated_to_a_shape(operands: list[Array], front: list[int]) -> None:
    require_equal("Expand", [operands[0], np.array([*front, *operands[0].shape], np.int64)])


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from([None, 2.5]))
def test_a_tensor_is_filled(shape: list[int], number: float | None) -> None:
    options = {} if number is None else {"value": onnx.numpy_helper.from_array(np.array([number], np.float32))}
    options = {name: ir.serde.deserialize_tensor(one) for name, one in options.items()}
    require_equal("ConstantOfShape", [np.array(shape, np.int64)], **options)


@given(draw_arrays(1), st.integers(0, 2), st.lists(st.integers(-2, 1), min_size=1, max_size=4))
def test_parts_are_joined_and_picked_along_an_axis(operands: list[Array], axis: int, places: list[int]) -> None:
    array = np.concatenate([np.atleast_3d(operands[0])] * 2, axis)
    require_equal("Concat", [array, array], axis=axis)
    require_equal("Gather", [array, np.array(places)], axis=axis)
    require_equal("Gather", [array, np.array(places[0])], axis=axis)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.data(),
)
def test_slices_are_those_of_the_reference(shape: list[int], data: st.DataObject) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape)
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    places = st.lists(st.integers(-7, 7) | st.just(2**63 - 1), min_size=len(axes), max_size=len(axes))
    steps = data.draw(st.lists(st.sampled_from([1, 2, -1, -3]), min_size=len(axes), max_size=len(axes)))
    starts, ends = np.array(data.draw(places)), np.array(data.draw(places))
    require_equal("Slice", [array, starts, ends, np.array(axes), np.array(steps)])


@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([1, 2, -1, -3]))
def test_integers_are_counted(start: int, limit: int, step: int) -> None:
    require_equal("Range", [np.array(start), np.array(limit), np.array(step)])


@given(draw_arrays(1), st.integers(-4, 4), st.integers(-4, 4) | st.none())
def test_extents_of_constants_are_told(operands: list[Array], start: int, end: int | None) -> None:
    # The evaluator of onnx counts an end in front of the first axis once more from the last.
    assume(end is None or end >= -operands[0].ndim)
    require_equal("Shape", operands, **({"start": start} if end is None else {"start": start, "end": end}))

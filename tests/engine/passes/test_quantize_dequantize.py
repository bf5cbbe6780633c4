"""The real view of quantized values is a view: codes come back as they were, and a second one sees the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnx
import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("onnxruntime")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify.runtime import Runtime

pytestmark = pytest.mark.slow

TYPES = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16}
FEW = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: of two grids whose steps agree to the last bit some kernels round halves the other way
STEP = 1

Make = Callable[..., bytes]


@st.composite
def grids(draw: Any, dtype: str) -> Quantization:
    """A scale and a zero point that a value of some type may have."""
    limits = np.iinfo(TYPES[dtype])
    scale = draw(st.sampled_from([2.0**-8, 0.02, 0.3, 1.0, 7.5]))
    zero = 0 if dtype == "INT16" else draw(st.integers(limits.min, limits.max))
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))


@st.composite
def values(draw: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Codes of some type, both ends of its range among them."""
    limits = np.iinfo(TYPES[dtype])
    inner = draw(st.lists(st.integers(limits.min, limits.max), min_size=4, max_size=10))
    return np.array([limits.min, limits.max, *inner], TYPES[dtype])


def run(source: bytes, codes: np.ndarray[Any, Any], **options: Any) -> np.ndarray[Any, Any]:
    (result,) = Runtime(nnrewrite.convert(source, **options).SerializeToString(), threads=1).run([codes])
    return result


@FEW
@given(st.data())
def test_codes_come_back_from_the_view_as_they_were(single: Make, data: st.DataObject) -> None:
    """An operator that is no more than its view: the largest of one value and itself."""
    dtype = data.draw(st.sampled_from(sorted(TYPES)))
    codes, grid = data.draw(values(dtype)), data.draw(grids(dtype))
    described = (dtype, list(codes.shape), grid)
    source = single("MAXIMUM", {"x": described, "least": (codes[:1], grid)}, [described])
    assert np.array_equal(run(source, codes), codes)


@FEW
@given(st.data())
def test_a_view_of_a_view_is_a_view(single: Make, data: st.DataObject) -> None:
    """What only moves elements passes codes on, whatever they stand for, and with no other operator than its own."""
    dtype = data.draw(st.sampled_from(sorted(TYPES)))
    codes, grid = data.draw(values(dtype)), data.draw(grids(dtype))
    count = codes.size
    source = single("RESHAPE", {"x": (dtype, [count], grid), "shape": np.array([1, count], np.int32)},
                    [(dtype, [1, count], grid)])  # fmt: skip
    for activations in ("int8", "uint8"):
        assert np.array_equal(run(source, codes, activations=activations), codes.reshape(1, count))
    model: onnx.ModelProto = nnrewrite.convert(source, target="portable")
    assert [node.op_type for node in model.graph.node] == ["Reshape"]


@FEW
@given(st.data())
def test_requantization_rounds_to_the_nearest_code(single: Make, data: st.DataObject) -> None:
    dtype, other = (data.draw(st.sampled_from(sorted(TYPES))) for _ in range(2))
    codes, grid, onto = data.draw(values(dtype)), data.draw(grids(dtype)), data.draw(grids(other))
    source = single("QUANTIZE", {"x": (dtype, list(codes.shape), grid)}, [(other, list(codes.shape), onto)])
    limits = np.iinfo(TYPES[other])
    real = (codes.astype(np.float64) - grid.zero_point[0]) * np.float64(grid.scale[0])
    wanted = np.clip(np.rint(real / np.float64(onto.scale[0])) + onto.zero_point[0], limits.min, limits.max)
    got = run(source, codes)
    assert got.dtype == TYPES[other]
    assert np.abs(got.astype(np.int64) - wanted.astype(np.int64)).max() <= STEP


@FEW
@given(st.data())
def test_scales_of_an_axis_move_with_it(single: Make, data: st.DataObject) -> None:
    """Weights with a scale for each channel stand for the same numbers when their axes are put in another order."""
    channels = data.draw(st.integers(1, 4))
    scale = np.array(
        data.draw(st.lists(st.sampled_from([0.5, 0.25, 2.0]), min_size=channels, max_size=channels)), np.float32
    )
    codes = np.array(data.draw(st.lists(st.integers(-127, 127), min_size=channels * 6, max_size=channels * 6)), np.int8)
    weights = codes.reshape(channels, 1, 2, 3)
    grid = Quantization(scale, np.zeros(channels, np.int64), 0)
    operands = {"x": ("FLOAT32", [1, 1, 2, 3]), "w": (weights, grid)}
    source = single("CONV_2D", operands, [("FLOAT32", [1, 1, 1, channels])], padding="VALID", stride_w=1, stride_h=1)
    fed = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    wanted = ((weights * scale.reshape(-1, 1, 1, 1)) * fed).sum((1, 2, 3)).reshape(1, 1, 1, channels)
    assert np.allclose(run(source, fed, float=True), wanted, rtol=1e-5, atol=1e-4)

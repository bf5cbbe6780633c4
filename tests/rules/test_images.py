"""Images of codes of twice the size, which convolutions yield."""

from __future__ import annotations

from collections.abc import Callable

import nnrewrite
import numpy as np
import pytest
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify import Interpreter
from nnrewrite.verify.runtime import Runtime


@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
@pytest.mark.parametrize("half_pixel_centers", [True, False])
def test_every_code_is_that_of_the_kernels(
    single: Callable[..., bytes], interpreter: Interpreter, kind: str, half_pixel_centers: bool
) -> None:
    grid = Quantization(np.array([0.037], np.float32), np.array([5], np.int64))
    x, y = ((kind, shape, grid) for shape in ([1, 40, 52, 16], [1, 80, 104, 16]))
    source = single(
        "RESIZE_BILINEAR", {"x": x, "size": np.array([80, 104], np.int32)}, [y], half_pixel_centers=half_pixel_centers
    )
    model = nnrewrite.convert(source)
    assert "Resize" not in [node.op_type for node in model.graph.node]
    limits = np.iinfo(kind.lower())
    codes = np.random.default_rng(0).integers(limits.min, limits.max + 1, x[1], dtype=kind.lower())
    [got] = Runtime(model.SerializeToString(), threads=1).run([codes])
    [[want]] = interpreter.run(source, [[codes]])
    np.testing.assert_array_equal(got, want)

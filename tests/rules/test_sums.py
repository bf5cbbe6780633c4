"""Sums and differences of codes as one integer kernel, or as none."""

from __future__ import annotations

from collections.abc import Callable

import nnrewrite
import numpy as np
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter
from nnrewrite.verify.runtime import Runtime

CODES = np.arange(-128, 128, dtype=np.int8)


def grid(scale: float, zero: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))


def beside_constant(
    catalogue: Catalogue, operator: str, code: int, scales: tuple[float, float], zeros: list[int]
) -> bytes:
    """All codes, and a constant added to them or taken off, in the grid that they are in."""
    x, y = (("INT8", [256], grid(scales[0], zero)) for zero in zeros)
    model = probe.make_operator_model(catalogue, operator, {"x": x, "c": np.array([code], np.int8)}, [y])
    model.graph.initializers["c"].meta["quantization"] = grid(scales[1], 0)
    return write(model, catalogue)


@pytest.mark.parametrize(
    ("operator", "code", "scales", "zeros", "taken"),
    [
        ("SUB", 127, (2 / 255, 1 / 127), [-128, -1], True),  # an image from -1 to 1: 127.5 steps, less a little
        ("SUB", 20, (0.25, 0.26), [40, 61], True),
        ("SUB", 20, (0.25, 0.26), [40, 60], False),
        ("ADD", 20, (0.25, 0.26), [40, 19], True),
        ("ADD", 20, (0.25, 0.26), [40, 61], False),
        ("ADD", -90, (0.25, 0.0013), [40, 40], True),
    ],
)
def test_a_constant_that_the_zero_point_takes_up_costs_nothing(
    catalogue: Catalogue,
    interpreter: Interpreter,
    operator: str,
    code: int,
    scales: tuple[float, float],
    zeros: list[int],
    taken: bool,
) -> None:
    source = beside_constant(catalogue, operator, code, scales, zeros)
    model = nnrewrite.convert(source)
    [[want]] = interpreter.run(source, [[CODES]])
    [got] = Runtime(model.SerializeToString(), threads=1).run([CODES])
    np.testing.assert_array_equal(got, want)
    assert ("Add" not in [node.op_type for node in model.graph.node]) == taken


def test_a_difference_is_a_sum_of_which_one_part_counts_downwards(
    single: Callable[..., bytes], interpreter: Interpreter
) -> None:
    shape = [256, 256]
    grids = {"a": grid(0.0371, 10), "b": grid(0.0213, -100)}
    source = single(
        "SUB", {name: ("INT8", shape, one) for name, one in grids.items()}, [("INT8", shape, grid(0.057, 3))]
    )
    model = nnrewrite.convert(source)
    assert "Sub" not in [node.op_type for node in model.graph.node]
    feeds = [np.ascontiguousarray(codes) for codes in np.broadcast_arrays(CODES, CODES[:, None])]
    [[want]] = interpreter.run(source, [feeds])
    [got] = Runtime(model.SerializeToString(), threads=1).run(feeds)
    apart = np.abs(got.astype(int) - want)
    assert apart.max() <= 1 and apart.mean() < 0.001


def test_a_relu_in_another_scale_is_a_sum_with_zero(single: Callable[..., bytes], interpreter: Interpreter) -> None:
    shape = [1, 8, 8, 256]
    source = single("RELU", {"x": ("UINT8", shape, grid(0.271, 117))}, [("UINT8", shape, grid(0.137, 0))])
    model = nnrewrite.convert(source)
    assert "Relu" not in [node.op_type for node in model.graph.node]
    feed = np.broadcast_to(CODES.view(np.uint8), shape).copy()
    [[want]] = interpreter.run(source, [[feed]])
    [got] = Runtime(model.SerializeToString(), threads=1).run([feed])
    np.testing.assert_array_equal(got, want)

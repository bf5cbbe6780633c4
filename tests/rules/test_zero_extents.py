"""Extents that a run finds to be 0: in a Reshape a 0 is an extent, and never one of the operand's to copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx.parser
import pytest
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import tflite_reader
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime

from ..conversion.test_odd import FLOATS, Make
from .text_models import write_model

pytestmark = pytest.mark.slow

INTEGERS = "INT32"


def shapes(model: bytes, operands: dict[str, Any], extents: dict[str, Sequence[int]], **options: Any) -> list[Any]:
    """Of what shapes the results of a model are for operands of zeros of these shapes."""
    kinds = {FLOATS: np.float32, INTEGERS: np.int32}
    feeds = [np.zeros(extents[name], kinds[operands[name][0]]) for name in extents]
    return [found.shape for found in Runtime(nnrewrite.convert(model, **options).SerializeToString()).run(feeds)]


def unknown(kind: str, rank: int) -> tuple[str, list[None]]:
    return kind, [None] * rank


@pytest.mark.parametrize("opset", [14, 15, 18])
def test_what_is_scattered_into_no_room(single: Make, opset: int) -> None:
    operands = {"i": (INTEGERS, [None, 1]), "u": unknown(FLOATS, 2), "to": np.array([3, 0], np.int32)}
    model = single("SCATTER_ND", operands, [unknown(FLOATS, 2)])
    assert shapes(model, operands, {"i": [2, 1], "u": [2, 0]}, opset=opset) == [(3, 0)]


@pytest.mark.parametrize("rows", [[2, 3, 0, 4], [2, 3, 5, 0], [0, 3, 0, 4], [2, 0, 4, 4]])
@pytest.mark.parametrize("opset", [15, 18])
def test_segments_of_what_has_no_elements(single: Make, rows: list[int], opset: int) -> None:
    operands = {"x": unknown(FLOATS, 4), "ids": unknown(INTEGERS, 2), "n": np.array(6, np.int32)}
    model = single("UNSORTED_SEGMENT_SUM", operands, [unknown(FLOATS, 3)])
    assert shapes(model, operands, {"x": rows, "ids": rows[:2]}, opset=opset) == [(6, *rows[2:])]


@pytest.mark.parametrize("x", [[2, 3, 0, 4], [2, 3, 5, 0], [0, 3, 0, 4]])
def test_parts_of_what_has_no_elements(single: Make, x: list[int]) -> None:
    operands = {"x": unknown(FLOATS, 4), "parts": unknown(INTEGERS, 2)}
    results = [unknown(FLOATS, 3)] * 2
    model = single("FlexDynamicPartition", operands, results, num_partitions=2)
    assert shapes(model, operands, {"x": x, "parts": x[:2]}) == [(x[0] * x[1], *x[2:]), (0, *x[2:])]


@pytest.mark.parametrize("operator", ["FlexDynamicStitch", "FlexParallelDynamicStitch"])
def test_rows_without_elements_are_put_together(single: Make, operator: str) -> None:
    operands = {"at": (INTEGERS, [1, 2]), "x": unknown(FLOATS, 4)}
    model = single(operator, operands, [unknown(FLOATS, 3)], N=1)
    assert shapes(model, operands, {"at": [1, 2], "x": [1, 2, 0, 3]}) == [(1, 0, 3)]


@pytest.mark.parametrize("x", [[0, 3, 4], [2, 0, 4], [2, 0, 0], [0, 0, 3]])
def test_bands_of_no_matrices(single: Make, x: list[int]) -> None:
    operands = {"x": unknown(FLOATS, 3), "k": np.array(0, np.int32), "padding": np.array(0, np.float32)}
    model = single("FlexMatrixDiagPartV3", operands, [unknown(FLOATS, 2)], align="RIGHT_LEFT")
    assert shapes(model, operands, {"x": x}) == [(x[0], min(x[1:]))]


@pytest.mark.parametrize("x", [[0, 2, 3, 3], [2, 0, 3, 3], [2, 3, 0, 0]])
def test_factors_of_no_matrices(single: Make, x: list[int]) -> None:
    operands = {"x": unknown(FLOATS, 4)}
    model = single("FlexCholesky", operands, [unknown(FLOATS, 4)])
    assert shapes(model, operands, {"x": x}) == [tuple(x)]


@pytest.mark.parametrize("x", [[0, 2, 3, 3], [2, 0, 3, 3]])
def test_no_systems_of_equations(single: Make, x: list[int]) -> None:
    operands = {"a": unknown(FLOATS, 4), "b": unknown(FLOATS, 4)}
    model = single("FlexMatrixSolve", operands, [unknown(FLOATS, 4)])
    assert shapes(model, operands, {"a": x, "b": [*x[:3], 5]}) == [(*x[:3], 5)]


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("n", [[2, 0], [0, 5], [0, 0]])
def test_no_boxes_and_no_images(single: Make, n: list[int], classes: int) -> None:
    operands = {
        "boxes": (FLOATS, [None, None, classes, 4]), "scores": (FLOATS, [None, None, 3]), "each": np.array(2, np.int32),
        "total": np.array(4, np.int32), "iou": np.array(0.5, np.float32), "score": np.array(0.1, np.float32),
    }  # fmt: skip
    results = [unknown(FLOATS, 3), unknown(FLOATS, 2), unknown(FLOATS, 2), unknown(INTEGERS, 1)]
    model = single("FlexCombinedNonMaxSuppression", operands, results)
    found = shapes(model, operands, {"boxes": [*n, classes, 4], "scores": [*n, 3]})
    assert found == [(n[0], 4, 4), (n[0], 4), (n[0], 4), (n[0],)]


@pytest.mark.parametrize("width", [0, 4])
def test_lists_of_items_without_elements_are_joined(single: Make, width: int) -> None:
    operands = {
        "x": (FLOATS, [None, 2, width]), "extents": np.array([2, width], np.int32), "leading": np.zeros(0, np.int64),
    }  # fmt: skip
    model = single("FlexTensorListConcatV2", operands, [(FLOATS, [None, width]), ("INT64", [None])])
    for n in (0, 3):
        assert shapes(model, operands, {"x": [n, 2, width]})[0] == (2 * n, width)


@pytest.mark.parametrize("length", [64, 256, 512, 1024])
@pytest.mark.parametrize("frames", [[0, 7], [2, 0], [0, 0]])
def test_spectra_of_no_frames(single: Make, frames: list[int], length: int) -> None:
    operands = {"x": (FLOATS, [None, None, 1, length]), "n": np.array([1, length], np.int32)}
    model = single("RFFT2D", operands, [("COMPLEX64", [None, None, 1, length // 2 + 1])])
    assert shapes(model, operands, {"x": [*frames, 1, length]}) == [(*frames, 1, length // 2 + 1, 2)]


#: nodes that pick by i from the rows of x that the mask keeps, or by what overlaps no better row
PICKS = {
    "rows": "u = Identity(i) q = Gather<axis = 0>(p, u) y = Neg(q)",
    "places": "u = Unsqueeze(i, one) q = GatherND(p, u) y = Neg(q)",
    "elements": "e = Unsqueeze(i, one) u = Expand(e, wide) q = GatherElements<axis = 0>(p, u) y = Neg(q)",
    "boxes": """limit = Constant<value_floats = [0.5]>() most = Constant<value_ints = [5]>()
        ends = Constant<value_ints = [0, 1]>() b = Unsqueeze(p, zero) s = ReduceMax<axes = [1], keepdims = 0>(p)
        c = Unsqueeze(s, ends) n = NonMaxSuppression(b, c, most, limit) t = Constant<value_ints = [2]>()
        a = Gather<axis = 1>(n, t) u = Squeeze(a, one) q = Gather<axis = 0>(p, u) y = Neg(q)""",
}  # fmt: skip


def convert_picks(path: Path, picks: str) -> tuple[Path, bytes]:
    """A model of ONNX that picks from rows of which a run finds any number, and what it becomes."""
    constants = (
        "zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() wide = Constant<value_ints = [1, 4]>()"
    )
    nodes = f"{constants} p = Compress<axis = 0>(x, mask) {picks}"
    source = write_model(path / "m.onnx", 17, "y", nodes, "float[6, 4] x, bool[6] mask, int64[k] i")
    return source, read_bytes(nnrewrite.rewrite(source, to="tflite").encoded)


@pytest.mark.parametrize("kept", [[], [1, 4]])
@pytest.mark.parametrize("picks", PICKS.values(), ids=PICKS)
def test_what_is_picked_from_rows_that_a_run_may_not_find(
    tmp_path: Path, interpreter: Interpreter, picks: str, kept: list[int]
) -> None:
    source, made = convert_picks(tmp_path, picks)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    feeds = [x, np.isin(np.arange(6), kept), np.arange(-len(kept), 0)]
    [expected] = Runtime(source.read_bytes()).run(feeds)
    [[found]] = interpreter.run(made, [feeds])
    assert expected.size == len(kept) * x.shape[1]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("picks", "remainders"), [("rows", 1), ("boxes", 0)])
def test_boxes_that_are_found_are_numbered_from_the_first_on(
    tmp_path: Path, catalogue: Catalogue, picks: str, remainders: int
) -> None:
    _, made = convert_picks(tmp_path, PICKS[picks])
    graph = tflite_reader.read(made, catalogue).graph
    assert sum(node.op_type == "FLOOR_MOD" for node in graph) == remainders


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("count", [0, 2])
def test_regions_of_which_there_may_be_none(mode: str, count: int, interpreter: Interpreter) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 16]> net (float[1, 3, 8, 8] x, float[R, 4] r, int64[R] b) => (float y)
      {{ y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2, mode = "{mode}">(x, r, b) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    regions = np.array([[1, 1, 6, 6], [0, 2, 7, 7]], np.float32)[:count]
    feeds = [np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8) % 7, regions, np.zeros(count, np.int64)]
    expected = Runtime(model).run(feeds)[0]
    made = read_bytes(nnrewrite.rewrite(model, to="tflite").encoded)
    for kernels in (Kernels.DEFAULT, Kernels.OPTIMIZED):
        ((found, *_),) = interpreter.run(made, [feeds], kernels)
        assert found.shape == expected.shape == (count, 3, 2, 3)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("rows", ["2, 7", "a, 7", "2, a", "a, b"])
def test_a_slice_of_no_elements_beside_free_extents(rows: str) -> None:
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        main (float[{rows}, c] x) => (float[p, q, r] none, float[s, t, u] one)
        <int64[1] at = {{0}}, int64[1] axis = {{1}}, int64[1] end = {{1}}> {{
          none = Slice(x, at, at, axis)
          one = Slice(none, at, end, at)
        }}
    """).SerializeToString()
    assert compare_models(model, read_bytes(nnrewrite.rewrite(model, to="tflite").encoded)).passed

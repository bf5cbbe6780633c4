"""Parts of a value and products of one are joined however many there are, by rules about any number of nodes."""

from __future__ import annotations

import itertools
from collections import Counter

import nnrewrite
import numpy as np
import onnx
import pytest
from nnrewrite.verify import compare_models
from onnx import helper

FLOAT = onnx.TensorProto.FLOAT


def make(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], results: int) -> bytes:
    """A model of x: float[2, 12] with results y0, y1, ..."""
    given = [helper.make_tensor_value_info("x", FLOAT, [2, 12])]
    wanted = [helper.make_tensor_value_info(f"y{i}", FLOAT, None) for i in range(results)]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", given, wanted, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def check(source: bytes, expected: dict[str, int]) -> None:
    pytest.importorskip("onnxruntime")
    made = nnrewrite.convert(source)
    assert Counter(node.op_type for node in made.graph.node) == expected
    assert compare_models(source, made.SerializeToString()).passed


def weights(seed: int, *extents: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=extents).astype(np.float32)


@pytest.mark.parametrize("cuts", [[0, 5, 12], [0, 1, 3, 6, 8, 12], [0, 2, 4, 6, 8, 10, 12]])
@pytest.mark.parametrize("turned", [False, True])
def test_parts_that_make_up_a_value_are_split_off_at_once(cuts: list[int], turned: bool) -> None:
    nodes, constants = [], {"axis": np.array([1], np.int64)}
    ends = [*itertools.pairwise(cuts)]
    for i, (begin, end) in enumerate(reversed(ends) if turned else ends):
        constants |= {f"b{i}": np.array([begin], np.int64), f"e{i}": np.array([end], np.int64)}
        nodes.append(helper.make_node("Slice", ["x", f"b{i}", f"e{i}", "axis"], [f"p{i}"]))
        nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"y{i}"]))
    check(make(nodes, constants, len(ends)), {"Split": 1, "Tanh": len(ends)})


@pytest.mark.parametrize("parts", [[(0, 4), (4, 8)], [(0, 4), (5, 8), (8, 12)], [(0, 4), (4, 12), (8, 12)]])
def test_parts_that_do_not_are_slices(parts: list[tuple[int, int]]) -> None:
    nodes, constants = [], {"axis": np.array([1], np.int64)}
    for i, (begin, end) in enumerate(parts):
        constants |= {f"b{i}": np.array([begin], np.int64), f"e{i}": np.array([end], np.int64)}
        nodes.append(helper.make_node("Slice", ["x", f"b{i}", f"e{i}", "axis"], [f"p{i}"]))
        nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"y{i}"]))
    check(make(nodes, constants, len(parts)), {"Slice": len(parts), "Tanh": len(parts)})


@pytest.mark.parametrize("count", [3, 4, 6])
def test_products_of_one_value_are_one(count: int) -> None:
    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(count)]
    constants = {f"w{i}": weights(i, 12, 2 + i) for i in range(count)}
    check(make(nodes, constants, count), {"MatMul": 1, "Split": 1})


def test_two_products_of_one_value_stay_two() -> None:
    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(2)]
    check(make(nodes, {"w0": weights(0, 12, 2), "w1": weights(1, 12, 3)}, 2), {"MatMul": 2})

"""Parts of one value: they become one node where they make it up, and many of them take little time."""

from __future__ import annotations

import time
from collections import Counter

import nnrewrite
import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter
from nnrewrite.verify.verification import compare_models

#: the columns of each part
WIDTH = 2


def value(name: str, shape: list[int], array: np.ndarray | None = None) -> ir.Value:
    dtype = ir.DataType.FLOAT if array is None else ir.DataType.INT32
    tensor = None if array is None else ir.tensor(array, name=name)
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=tensor)


def parts(catalogue: Catalogue, count: int, gap: int = 0) -> bytes:
    """A matrix in parts of some columns, with a gap after the first, each of which is an output after Tanh."""
    constants = [value("steps", [2], np.array([1, 1], np.int32))]
    x = value("x", [3, WIDTH * count + gap])
    nodes, outputs = [], []
    for i in range(count):
        start = WIDTH * i + gap * (i > 0)
        begin = value(f"begin_{i}", [2], np.array([0, start], np.int32))
        end = value(f"end_{i}", [2], np.array([3, start + WIDTH], np.int32))
        part, y = value(f"part_{i}", [3, WIDTH]), value(f"y_{i}", [3, WIDTH])
        nodes.append(ir.Node("tflite", "STRIDED_SLICE", [x, begin, end, constants[0]], outputs=[part]))
        nodes.append(ir.Node("tflite", "TANH", [part], outputs=[y]))
        constants += [begin, end]
        outputs.append(y)
    graph = ir.Graph([x], outputs, nodes=nodes, initializers=constants, opset_imports={"tflite": 1}, name="main")
    return write(ir.Model(graph, ir_version=10), catalogue)


@pytest.mark.parametrize(
    ("count", "gap", "operators"),
    [(2, 0, {"Split": 1}), (3, 0, {"Split": 1}), (3, 1, {"Slice": 3}), (4, 0, {"Slice": 4})],
)
def test_two_or_three_parts_that_make_up_a_matrix_are_split_off_at_once(
    catalogue: Catalogue, interpreter: Interpreter, count: int, gap: int, operators: dict[str, int]
) -> None:
    source = parts(catalogue, count, gap)
    model = nnrewrite.convert(source)
    assert Counter(node.op_type for node in model.graph.node) == {**operators, "Tanh": count}
    assert compare_models(source, model.SerializeToString(), interpreter=interpreter).passed


def test_time_grows_about_as_the_number_of_parts_does(catalogue: Catalogue) -> None:
    def seconds(count: int) -> float:
        source = parts(catalogue, count)
        started = time.process_time()
        nnrewrite.convert(source)
        return time.process_time() - started

    seconds(2)
    assert min(seconds(48) for _ in range(2)) <= 8 * min(seconds(12) for _ in range(3))

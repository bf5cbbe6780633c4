"""Functions over values of a graph."""

from __future__ import annotations

import onnx_ir as ir
from nnrewrite.engine.expressions.functions.tensors import sources


def chain(length: int) -> tuple[ir.Value, ir.Value]:
    """The first and the last value of a row of nodes."""
    first = value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT))
    for _ in range(length):
        value = ir.Node("", "Relu", [value]).outputs[0]
        value.type = ir.TensorType(ir.DataType.FLOAT)
    return first, value


def test_a_value_is_computed_from_what_stands_before_operators_that_are_passed() -> None:
    first, last = chain(3)
    assert sources(last, ["Relu"]) == [first]
    assert sources(last, ["Neg"]) == [last]


def test_what_is_far_behind_a_value_is_not_looked_for() -> None:
    first, last = chain(1000)
    (found,) = sources(last, ["Relu"])
    assert found is not first and found.producer() is not None

"""Operators are written with the least version that has what a node asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.versions import find_version
from nnrewrite.engine.packs import loader

F32, I8, I16, I64 = ir.DataType.FLOAT, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT64


def version(
    operator: str,
    types: Sequence[ir.DataType],
    options: Mapping[str, Any] | None = None,
    rank: int = 2,
    scales: int = 0,
) -> int:
    """The version of a node whose operands have some types, each alike but for the second, which has some scales."""
    dialect = loader.load(("onnx2tflite",)).catalogue.find_dialect("tflite")
    operands = [
        ir.Value(name=f"x{place}", type=ir.TensorType(dtype), shape=ir.Shape([2] * rank))
        for place, dtype in enumerate(types)
    ]
    if scales:
        grid = Quantization(np.ones(scales, np.float32), np.zeros(scales, np.int64))
        operands[1].meta["quantization"] = grid
    made = [ir.Value(name="y", type=ir.TensorType(types[0]))]
    node = ir.Node(dialect.domain, operator, operands, ir.convenience.convert_attributes(options or {}), outputs=made)
    return find_version(dialect.operators[operator], node)


@pytest.mark.parametrize(
    ("expected", "operator", "types"),
    [
        (1, "ADD", [F32, F32]),
        (2, "ADD", [I8, I8]),
        (4, "ADD", [I64, I64]),
        (3, "CONV_2D", [I8, I8, I8]),
        (2, "CONV_2D", [F32, I8, F32]),
        (6, "FULLY_CONNECTED", [F32, F32]),
        (1, "FULLY_CONNECTED", [F32, F32, F32]),
        (2, "RANGE", [I64, I64, I64]),
        (2, "BROADCAST_TO", [F32, I64]),
        (3, "BROADCAST_TO", [I16, I64]),
    ],
)
def test_types_ask_for_versions(expected: int, operator: str, types: list[ir.DataType]) -> None:
    assert version(operator, types) == expected


def test_options_ranks_and_scales_ask_for_versions() -> None:
    assert version("RESIZE_BILINEAR", [F32, F32], {"half_pixel_centers": True}) == 3
    assert version("GATHER", [F32, I64], {"batch_dims": 1}) == 5
    assert version("TRANSPOSE", [F32, I64], rank=5) == 4
    assert version("CONV_2D", [F32, I8, F32], scales=3) == 5

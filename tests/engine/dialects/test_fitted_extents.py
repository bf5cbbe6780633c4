"""Extents behind operators whose operands have free ones: sums and products of these, or names that tell them apart."""

from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite.engine.dialects.fitted_extents import fit_extents
from nnrewrite.engine.dialects.inference import Extents, infer

#: inputs and initializers, a node, and the extents of its first result
CASES = {
    "places of the largest": ("float[n, m, 8] x", "int64[1] k = {3}", "y, i = TopK<axis = 1>(x, k)", ("n", 3, 8)),
    "copies": ("float[n, 6] x", "int64[2] k = {2, 1}", "y = Tile(x, k)", ("=2*n", 6)),
    "margins": ("float[n, m] x", "int64[4] k = {0, 1, 0, 2}", "y = Pad(x, k)", ("n", "=3+1*m")),
    "all but the first": (
        "float[n, 6] x",
        "int64[1] a = {0}, int64[1] b = {1}, int64[1] e = {9223372036854775807}",
        "y = Slice(x, b, e, a)",
        ("=-1+1*n", 6),
    ),
    "the first three, if there are so many": (
        "float[n, 6] x",
        "int64[1] a = {0}, int64[1] b = {3}",
        "y = Slice(x, a, b, a)",
        (None, 6),
    ),
    "the last of what may be none": (
        "float[unk__0, 6] x",
        "int64[1] a = {0}, int64[1] b = {-1}, int64[1] e = {9223372036854775807}",
        "y = Slice(x, b, e, a)",
        (None, 6),
    ),
    "windows": (
        "float[n, 3, h, w] x, float[5, 3, 3, 3] f",
        "",
        "y = Conv<pads = [1, 1, 0, 0]>(x, f)",
        ("n", 5, "=-1+1*h", "=-1+1*w"),
    ),
    "windows apart": (
        "float[n, 3, h, 8] x, float[5, 3, 3, 3] f",
        "",
        "y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, f)",
        ("n", 5, None, 4),
    ),
    "rows of products": ("float[n, m, h, 8] x", "", "y = Flatten<axis = 2>(x)", ("=1*m*n", "=8*h")),
    "what may be one or equal": ("float[n, 8] x, float[m, 8] z", "", "y = Add(x, z)", (None, 8)),
}


@pytest.mark.parametrize(("inputs", "constants", "node", "expected"), CASES.values(), ids=CASES)
def test_extents_are_sums_and_products_of_free_ones(inputs: str, constants: str, node: str, expected: Extents) -> None:
    text = f'<ir_version: 10, opset_import: ["": 21]> g ({inputs}) => (float y) <{constants}> {{ {node} }}'
    graph = ir.serde.deserialize_model(onnx.parser.parse_model(text)).graph
    [made] = graph
    assert fit_extents(made, 21, infer(made, 21))[0].shape == expected

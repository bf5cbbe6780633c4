"""StableHLO operators with graphs of their own that the interpreter has kernels for."""

from __future__ import annotations

import nnrewrite
import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from nnrewrite.backends import probe
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter

from .test_control import agree, joined

X = ("FLOAT32", [3])
ONE = ("FLOAT32", [])


def branch(catalogue: Catalogue, operator: str, number: float) -> ir.Model:
    return probe.make_operator_model(catalogue, operator, {"x": X, "n": np.full(3, number, np.float32)}, [X])


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_case_takes_the_branch_of_its_number_and_the_last_of_any_other(
    catalogue: Catalogue, interpreter: Interpreter, count: int
) -> None:
    branches = [branch(catalogue, name, 2 + i) for i, name in enumerate(["ADD", "MUL", "SUB", "POW"][:count])]
    main = probe.make_operator_model(
        catalogue, "STABLEHLO_CASE", {"i": ("INT32", []), "x": X}, [X], branch_subgraph_indices=range(1, count + 1)
    )
    samples = [[np.array(i, np.int32), np.float32([1, 2, 3])] for i in range(count)]
    assert agree(joined(catalogue, main, *branches), interpreter, samples)


def updating(catalogue: Catalogue, how: str) -> ir.Model:
    if how != "none":
        return probe.make_operator_model(catalogue, f"STABLEHLO_{how}", {"old": ONE, "new": ONE}, [ONE])
    model = probe.make_operator_model(catalogue, "STABLEHLO_ADD", {"old": ONE, "new": ONE}, [ONE])
    graph = model.graph
    for node in list(graph):
        graph.remove(node)
    graph.outputs[0] = graph.inputs[1]
    return model


#: what is scattered into [4, 5], where to, and the options
SCATTERS = [
    (
        [[0], [2], [2]],
        [3, 5],
        {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]},
    ),
    (
        [[0, 3], [3, 1]],
        [2, 2, 2],
        {"update_window_dims": [1, 2], "inserted_window_dims": [], "scatter_dims_to_operand_dims": [1, 0]},
    ),
    (
        [[1, 1], [3, 4], [1, 1]],
        [3],
        {"update_window_dims": [], "inserted_window_dims": [0, 1], "scatter_dims_to_operand_dims": [0, 1]},
    ),
]


def scatter(catalogue: Catalogue, how: str, case: int) -> bytes:
    at, extents, options = SCATTERS[case]
    operands = {"x": ("FLOAT32", [4, 5]), "at": np.array(at, np.int32), "u": ("FLOAT32", extents)}
    main = probe.make_operator_model(
        catalogue,
        "STABLEHLO_SCATTER",
        operands,
        [("FLOAT32", [4, 5])],
        index_vector_dim=1,
        update_computation_subgraph_index=1,
        **options,
    )
    return joined(catalogue, main, updating(catalogue, how))


@pytest.mark.parametrize("case", range(len(SCATTERS)))
@pytest.mark.parametrize("how", ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "none"])
def test_updates_of_one_place_are_combined_as_their_graph_says(
    catalogue: Catalogue, interpreter: Interpreter, how: str, case: int
) -> None:
    assert agree(scatter(catalogue, how, case), interpreter)


def test_an_update_by_another_operator_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(RewriteError, match="none of: sum, product, maximum, minimum, the new value"):
        nnrewrite.convert(scatter(catalogue, "SUBTRACT", 0))


def test_a_reduction_that_an_opset_lacks_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(RewriteError, match="from opset 18 on"):
        nnrewrite.convert(scatter(catalogue, "MAXIMUM", 0), opset=16)
    assert nnrewrite.convert(scatter(catalogue, "ADD", 0), opset=16)


#: window, strides, gaps, dilations, padding
WINDOWS = [
    ([2, 3], [1, 1], [1, 1], [1, 1], [0, 0, 0, 0]),
    ([2, 3], [2, 1], [1, 1], [1, 1], [1, 0, 0, 2]),
    ([2, 2], [1, 2], [1, 3], [2, 1], [1, 1, -1, 2]),
]


def window(catalogue: Catalogue, how: str, case: int) -> bytes:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    shape, strides, gaps, dilations, around = WINDOWS[case]
    wide = [
        (n - 1) * gap + 1 + sum(around[2 * i : 2 * i + 2]) for i, (n, gap) in enumerate(zip([4, 5], gaps, strict=True))
    ]
    spans = [(n - 1) * d + 1 for n, d in zip(shape, dilations, strict=True)]
    result = [(n - m) // s + 1 for n, m, s in zip(wide, spans, strides, strict=True)]
    main = probe.make_operator_model(
        catalogue,
        "STABLEHLO_REDUCE_WINDOW",
        {"x": ("FLOAT32", [4, 5]), "start": np.float32(0.5)},
        [("FLOAT32", result)],
        body_subgraph_index=1,
        **dict(zip(names, WINDOWS[case], strict=True)),
    )
    return joined(catalogue, main, updating(catalogue, how))


@pytest.mark.parametrize("case", range(len(WINDOWS)))
@pytest.mark.parametrize("how", ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"])
def test_windows_are_reduced_as_their_graph_says(
    catalogue: Catalogue, interpreter: Interpreter, how: str, case: int
) -> None:
    assert agree(window(catalogue, how, case), interpreter)


def test_windows_reduced_by_another_operator_are_refused(catalogue: Catalogue) -> None:
    with pytest.raises(RewriteError, match="none of: sum, product, minimum, maximum, and, or"):
        nnrewrite.convert(window(catalogue, "SUBTRACT", 0))


@pytest.mark.parametrize("direction", ["LT", "GE"])
@pytest.mark.parametrize("pairs", [False, True])
def test_elements_are_sorted_as_their_graph_says(catalogue: Catalogue, direction: str, pairs: bool) -> None:
    x = np.random.default_rng(0).permutation(24).reshape(2, 4, 3).astype(np.float32)
    places = np.broadcast_to(np.arange(4, dtype=np.int32)[:, None], x.shape)
    given = {"x": x, "places": places} if pairs else {"x": x}
    types = [("FLOAT32", [2, 4, 3]), ("INT32", [2, 4, 3])][: len(given)]
    options = {"dimension": 1, "comparator_subgraph_index": 1}
    main = probe.make_operator_model(
        catalogue, "STABLEHLO_SORT", dict(zip(given, types, strict=True)), types, **options
    )
    ends = {"a": ONE, "b": ONE} | ({"p": ("INT32", []), "q": ("INT32", [])} if pairs else {})
    order = f"STABLEHLO_COMPARISON_DIRECTION_{direction}"
    body = probe.make_operator_model(
        catalogue, "STABLEHLO_COMPARE", {"a": ONE, "b": ONE}, [("BOOL", [])], comparison_direction=order
    )
    for name in list(ends)[2:]:
        value = ir.Value(name=name, type=ir.TensorType(ir.DataType.INT32), shape=ir.Shape([]))
        body.graph.inputs.append(value)
    session = onnxruntime.InferenceSession(nnrewrite.convert(joined(catalogue, main, body)).SerializeToString())
    found = session.run(None, given)
    at = np.argsort(x if direction == "LT" else -x, axis=1, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(x, at, 1))
    assert not pairs or np.array_equal(found[1], at)

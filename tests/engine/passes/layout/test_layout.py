"""The layout pass: never wrong, and as cheap as any choice of layouts is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.checker
import onnx.helper
import onnx_ir as ir
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnrewrite.engine.base.garbage_collection import pause_collection
from nnrewrite.engine.base.names import Scope
from nnrewrite.engine.dialects.inference import read_extents
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.passes.layout import Interface, arrange
from nnrewrite.engine.passes.layout.cut import FIRST, SECOND, THIRD, Problem, Term, solve
from nnrewrite.engine.passes.layout.order import count_elements, is_still
from nnrewrite.engine.passes.layout.permute_weights import Tensors
from nnrewrite.engine.passes.layout.placement import Layout
from nnrewrite.engine.passes.layout.problem import Region, Regions

from .random_graphs import FIRST as TO_FIRST
from .random_graphs import KINDS, OPSET, Grower, grown
from .random_graphs import LAST as TO_LAST

pytestmark = pytest.mark.slow

ONNX = load().find_dialect("onnx")
Array = np.ndarray[Any, Any]

#: where nothing is quantized; a permutation that is kept out from between an operator and its scales may move more
FLOAT = [kind for kind in KINDS if kind != "quantized"]

CHECKS = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
FEWER = settings(CHECKS, max_examples=20)


def graph_of(model: onnx.ModelProto) -> ir.Graph:
    return ir.from_proto(model).graph


def saved(graph: ir.Graph) -> onnx.ModelProto:
    graph.sort()
    proto = ir.to_proto(ir.Model(graph, ir_version=10))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, dict(feeds))]


def permutations(graph: ir.Graph) -> list[ir.Node]:
    return [node for node in graph if node.op_type == "Transpose"]


def moved(graph: ir.Graph) -> int:
    """The elements that a graph's permutations move."""
    total = 0
    for node in permutations(graph):
        assert node.inputs[0] is not None
        shape, perm = read_extents(node.inputs[0]), node.attributes["perm"].as_ints()
        assert shape is not None
        total += 0 if is_still(shape, perm) else count_elements(shape)
    return total


# ---- what it computes stays


@pytest.mark.parametrize("dynamic", [False, True])
def test_outputs_stay_what_they_were(dynamic: bool) -> None:
    @CHECKS
    @given(st.data())
    def check(data: st.DataObject) -> None:
        try:
            grower = grown(data.draw, 1, 14, dynamic=dynamic)
            before = grower.model()
        except onnx.shape_inference.InferenceError:
            assert dynamic  # a Reshape to numbers that a symbolic extent does not admit
            return
        graph = graph_of(before)
        arrange(Scope(graph), ONNX, OPSET)
        after = saved(graph)
        for want, got in zip(run(before, grower.feeds()), run(after, grower.feeds()), strict=True):
            assert want.shape == got.shape
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    check()


@CHECKS
@given(st.data())
def test_it_never_moves_more_than_before(data: st.DataObject) -> None:
    graph = graph_of(grown(data.draw, 1, 14, FLOAT).model())
    before = moved(graph)
    arrange(Scope(graph), ONNX, OPSET)
    assert moved(graph) <= before


@CHECKS
@given(st.data())
def test_open_inputs_and_outputs_come_back_in_the_order_told(data: st.DataObject) -> None:
    grower = grown(data.draw, 1, 10)
    before = grower.model()
    graph = graph_of(before)
    names = tuple(value.name or "" for value in graph.outputs)
    changed = arrange(Scope(graph), ONNX, OPSET, Interface.parse("target"), names)
    after = saved(graph)

    def turned(name: str, array: Array, back: bool) -> Array:
        source, target = changed[name].split(":") if name in changed else ("", "")
        if back:
            source, target = target, source
        return np.transpose(array, [source.index(letter) for letter in target]) if source else array

    fed = {name: turned(name, array, False) for name, array in grower.feeds().items()}
    for name, want, got in zip(names, run(before, grower.feeds()), run(after, fed), strict=True):
        np.testing.assert_allclose(turned(name, got, True), want, rtol=1e-4, atol=1e-5)


def separated(graph: ir.Graph) -> list[str]:
    """Permutations right before a node that quantizes or right after one that dequantizes."""
    found = []
    for node in permutations(graph):
        producer = node.inputs[0].producer() if node.inputs[0] is not None else None
        users = [usage.node for usage in node.outputs[0].uses()]
        if producer is not None and producer.op_type == "DequantizeLinear":
            found.append(node.name or "")
        found += [user.name or "" for user in users if user.op_type == "QuantizeLinear"]
    return found


@CHECKS
@given(st.data())
def test_no_operator_is_separated_from_its_scales(data: st.DataObject) -> None:
    model = grown(data.draw, 2, 14, [*FLOAT, *["quantized", "implicit", "implicit"] * 4]).model()
    for layout in ("source", "target"):
        graph = graph_of(model)
        names = tuple(value.name or "" for value in graph.outputs)
        arrange(Scope(graph), ONNX, OPSET, Interface.parse(layout), names)
        assert not separated(graph)


def test_no_operator_of_a_quantized_network_is_separated_from_its_scales(models: list[Path]) -> None:
    named = [path for path in models if any(word in path.name for word in ("quant", "int8", "q.tflite"))]
    quantized = 0
    for path in named:
        if 20_000 < path.stat().st_size < 400_000:
            graph = graph_of(nnrewrite.convert(path))
            quantized += any(node.op_type == "QuantizeLinear" for node in graph)
            assert not separated(graph), path
    assert quantized >= 8


# ---- what it costs is the minimum


@st.composite
def problems(draw: Any, units: int = 12) -> Problem:
    count = draw(st.integers(1, units))
    unit = st.integers(0, count - 1)
    terms = []
    for _ in range(draw(st.integers(1, 16))):
        users = draw(st.sets(st.one_of(unit, st.sampled_from([FIRST, SECOND])), min_size=1, max_size=4))
        producer = draw(st.one_of(unit, st.sampled_from([FIRST, SECOND, THIRD])))
        terms.append(Term(producer, frozenset(users - {producer}), draw(st.integers(0, 9)), draw(st.integers(1, 3))))
    alone = draw(st.dictionaries(unit, st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=3))
    return Problem(count, terms, alone)


@settings(CHECKS, max_examples=80)
@given(problems())
def test_no_assignment_costs_less(problem: Problem) -> None:
    least = min(problem.compute_cost(choice) for choice in itertools.product([False, True], repeat=problem.units))
    assert problem.compute_cost(solve(problem)) == least


@pytest.mark.parametrize("more, second", [(1, [False, False]), (-1, [False, True])])
def test_one_element_decides_however_large_the_sizes_are(more: int, second: list[bool]) -> None:
    big = 2**70
    terms = [Term(FIRST, frozenset({0}), 3 * big, 1), Term(0, frozenset({1}), big + more, 1)]
    assert solve(Problem(2, [*terms, Term(1, frozenset({SECOND}), big, 1)], {})) == second


def decided(model: onnx.ModelProto) -> tuple[ir.Graph, Tensors, list[Region]]:
    graph = graph_of(model)
    tensors = Tensors(graph, ONNX, OPSET)
    return graph, tensors, list(Regions(tensors).grow(set()))


@FEWER
@given(st.data())
def test_the_cost_of_every_assignment_is_what_its_permutations_move(data: st.DataObject) -> None:
    """With the test above: no assignment of layouts to operators makes a graph that moves less."""
    model = grown(data.draw, 2, 9, [*FLOAT, "implicit", "implicit"]).model()
    _, _, found = decided(model)
    chosen = [region for region in found if 0 < len(region.units) <= 6][:1]
    position = found.index(chosen[0]) if chosen else 0
    difference = None
    for region in chosen:
        for choice in itertools.product([False, True], repeat=len(region.units)):
            graph, tensors, regions = decided(model)
            again = Regions(tensors)
            regions = list(again.grow(set()))
            problem, units = again.make_problem(regions[position])
            arrangements = {u: regions[position].units[u][second] for u, second in zip(units, choice, strict=True)}
            Layout(tensors, arrangements, Scope(graph)).apply()
            one = moved(graph) - problem.compute_cost(choice)[0]
            difference = one if difference is None else difference
            assert one == difference


# ---- what comes of networks


def convolutions(grower: Grower, value: str, count: int) -> str:
    """A chain in which every convolution stands between permutations, as rules leave it."""
    for _ in range(count):
        n, h, w, c = grower.shapes[value]
        (first,) = grower.node("Transpose", [value], (n, c, h, w), perm=TO_FIRST)
        weights = grower.constant(np.full((c, c, 1, 1), 0.5), np.float32)
        (y,) = grower.node("Conv", [first, weights], (n, c, h, w))
        (back,) = grower.node("Transpose", [y], (n, h, w, c), perm=TO_LAST)
        (value,) = grower.node("Relu", [back], (n, h, w, c))
    return value


@pytest.fixture
def grower() -> Grower:
    made = Grower(lambda strategy: 1)
    made.inputs, made.shapes = ["x0"], {"x0": (1, 4, 5, 3)}
    return made


def arranged(grower: Grower, layout: str = "source") -> ir.Graph:
    before = grower.model(1)
    graph = graph_of(before)
    names = tuple(value.name or "" for value in graph.outputs)
    changed = arrange(Scope(graph), ONNX, OPSET, Interface.parse(layout), names)
    if not changed:
        for want, got in zip(run(before, grower.feeds()), run(saved(graph), grower.feeds()), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return graph


def test_a_chain_of_convolutions_keeps_one_permutation_at_either_end(grower: Grower) -> None:
    convolutions(grower, "x0", 5)
    assert len(permutations(arranged(grower))) == 2


def test_places_in_a_table_of_one_axis_are_permuted_as_their_results(grower: Grower) -> None:
    value = convolutions(grower, "x0", 1)
    (places,) = grower.node("Cast", [value], grower.shapes[value], to=onnx.TensorProto.INT64)
    table = grower.constant([0.5, -1.0, 2.0, 0.25], np.float32)
    (value,) = grower.node("Gather", [table, places], grower.shapes[value], axis=0)
    convolutions(grower, value, 1)
    assert len(permutations(arranged(grower))) == 2


def test_nothing_is_permuted_where_the_interface_is_open(grower: Grower) -> None:
    convolutions(grower, "x0", 5)
    assert not permutations(arranged(grower, "target"))


def test_a_value_with_several_users_is_permuted_once(grower: Grower) -> None:
    for _ in range(3):
        convolutions(grower, "x0", 1)
    assert len([node for node in permutations(arranged(grower)) if node.inputs[0].name == "x0"]) == 1


def test_a_bias_of_lower_rank_is_moved_into_the_constant(grower: Grower) -> None:
    value = convolutions(grower, "x0", 1)
    (value,) = grower.node("Mul", [value, grower.constant([1.0, 2.0, 3.0], np.float32)], grower.shapes[value])
    convolutions(grower, value, 1)
    graph = arranged(grower)
    assert len(permutations(graph)) == 2
    (product,) = (node for node in graph if node.op_type == "Mul")
    assert [list(v.shape or ()) for v in product.inputs if v is not None][1] == [3, 1, 1]


def test_axes_of_extent_one_are_moved_by_a_reshape(grower: Grower) -> None:
    value = convolutions(grower, "x0", 1)
    (mean,) = grower.node("ReduceMean", [value, grower.constant([1, 2])], (1, 1, 1, 3), keepdims=1)
    convolutions(grower, mean, 1)
    graph = arranged(grower)
    assert [list(node.inputs[0].shape or ()) for node in permutations(graph)] == [[1, 4, 5, 3]]
    assert [node.op_type for node in graph].count("Reshape") == 1


def test_a_permutation_stands_outside_of_what_scales(grower: Grower) -> None:
    scale, zero = grower.constant(0.05, np.float32), grower.constant(128, np.uint8)
    value = convolutions(grower, "x0", 1)
    shape = grower.shapes[value]
    (q,) = grower.node("QuantizeLinear", [value, scale, zero], shape)
    (d,) = grower.node("DequantizeLinear", [q, scale, zero], shape)
    (flat,) = grower.node("Reshape", [d, grower.constant([1, 60])], (1, 60))
    grower.node("Relu", [flat], (1, 60))
    graph = arranged(grower)
    last = permutations(graph)[-1]
    assert last.inputs[0].producer().op_type == "QuantizeLinear"
    assert [use.node.op_type for use in last.outputs[0].uses()] == ["DequantizeLinear"]


def test_the_layout_of_one_tensor_can_be_given_without_any_convolution(grower: Grower) -> None:
    grower.node("Relu", ["x0"], grower.shapes["x0"])
    (output,) = (value.name for value in graph_of(grower.model(1)).outputs)
    graph = arranged(grower, "x0=NHWC:NCHW")
    assert list(graph.inputs[0].shape or ()) == [1, 3, 4, 5]
    assert list(graph.outputs[0].shape or ()) == [1, 4, 5, 3]
    assert len(permutations(graph)) == 1
    assert output


def through_weights(grower: Grower, quantized: bool) -> ir.Graph:
    """A convolution, flattened, shifted and multiplied; the Transpose before it is the only one that may be left."""
    value = convolutions(grower, "x0", 1)
    scales = [grower.constant(0.05, np.float32), grower.constant(128, np.uint8)]

    def stored(value: str) -> str:
        shape = grower.shapes[value]
        (codes,) = grower.node("QuantizeLinear", [value, *scales], shape) if quantized else (value,)
        return grower.node("DequantizeLinear", [codes, *scales], shape)[0] if quantized else value

    (flat,) = grower.node("Reshape", [stored(value), grower.constant([1, 60])], (1, 60))
    flat = stored(flat)
    (flat,) = grower.node("Sub", [flat, grower.constant(np.linspace(-1, 1, 60), np.float32)], (1, 60))
    weights = np.random.default_rng(1).uniform(-1, 1, (7, 60))
    (product,) = grower.node("Gemm", [flat, grower.constant(weights, np.float32)], (1, 7), transB=1)
    grower.node("Softmax", [product], (1, 7), axis=1)
    return arranged(grower)


@pytest.mark.parametrize("quantized", [False, True])
def test_the_weights_of_a_product_take_up_the_order_of_what_was_flattened(grower: Grower, quantized: bool) -> None:
    assert [node.inputs[0].name for node in permutations(through_weights(grower, quantized))] == ["x0"]


def test_the_weights_of_a_product_yield_the_order_that_a_convolution_wants(grower: Grower) -> None:
    grower.shapes = {"x0": (2, 5)}
    weights, bias = (np.random.default_rng(1).uniform(-1, 1, shape) for shape in ((24, 5), (24,)))
    operands = ["x0", grower.constant(weights, np.float32), grower.constant(bias, np.float32)]
    (flat,) = grower.node("Gemm", operands, (2, 24), transB=1)
    (flat,) = grower.node("Relu", [flat], (2, 24))
    (image,) = grower.node("Reshape", [flat, grower.constant([2, 2, 3, 4])], (2, 2, 3, 4))
    (first,) = grower.node("Transpose", [image], (2, 4, 2, 3), perm=TO_FIRST)
    grower.node("MaxPool", [first], (2, 4, 2, 3), kernel_shape=[1, 1])
    assert not permutations(arranged(grower))


def test_elements_that_an_output_shows_keep_their_order(grower: Grower) -> None:
    value = convolutions(grower, "x0", 1)
    (flat,) = grower.node("Reshape", [value, grower.constant([1, 60])], (1, 60))
    grower.node("Gemm", [flat, grower.constant(np.ones((60, 2)), np.float32)], (1, 2))
    grower.node("Relu", [flat], (1, 60))
    assert len(permutations(arranged(grower))) == 2


def test_axes_that_are_merged_and_parted_again_keep_their_layout(grower: Grower) -> None:
    """Attention over space: rows and columns as one axis."""
    value = convolutions(grower, "x0", 1)
    (rows,) = grower.node("Reshape", [value, grower.constant([1, 20, 3])], (1, 20, 3))
    (soft,) = grower.node("Softmax", [rows], (1, 20, 3), axis=1)
    (back,) = grower.node("Reshape", [soft, grower.constant([1, 4, 5, 3])], (1, 4, 5, 3))
    convolutions(grower, back, 1)
    assert len(permutations(arranged(grower))) == 2


def test_a_shuffle_of_channels_takes_one_permutation(grower: Grower) -> None:
    """The source's own permutation stands in another layout than it did, and nothing else is moved for it."""
    grower.shapes = {"x0": (1, 4, 5, 6)}
    value = convolutions(grower, "x0", 1)
    (parted,) = grower.node("Reshape", [value, grower.constant([1, 4, 5, 2, 3])], (1, 4, 5, 2, 3))
    (turned,) = grower.node("Transpose", [parted], (1, 4, 5, 3, 2), perm=(0, 1, 2, 4, 3))
    (merged,) = grower.node("Reshape", [turned, grower.constant([1, 4, 5, 6])], (1, 4, 5, 6))
    convolutions(grower, merged, 1)
    perms = [node.attributes["perm"].as_ints() for node in permutations(arranged(grower))]
    assert [list(perm) for perm in perms] == [list(TO_FIRST), [0, 2, 1, 3, 4], list(TO_LAST)]


def test_what_a_reduction_leaves_keeps_the_layout_of_what_it_reduced(grower: Grower) -> None:
    """Squeeze and excitation: a mean without its axes, a product, and back as a factor for each channel."""
    value = convolutions(grower, "x0", 1)
    (mean,) = grower.node("ReduceMean", [value, grower.constant([1, 2])], (1, 3), keepdims=0)
    (product,) = grower.node("Gemm", [mean, grower.constant(np.ones((3, 3)), np.float32)], (1, 3))
    (factor,) = grower.node("Reshape", [product, grower.constant([1, 1, 1, 3])], (1, 1, 1, 3))
    (scaled,) = grower.node("Mul", [value, factor], (1, 4, 5, 3))
    convolutions(grower, scaled, 1)
    assert len(permutations(arranged(grower))) == 2


@pytest.mark.parametrize("extents_", [(3,), (1, 3), (4, 1, 1), (5, 1)])
def test_a_computed_operand_of_lower_rank_is_extended(grower: Grower, extents_: tuple[int, ...]) -> None:
    grower.inputs.append("x1")
    grower.shapes["x1"] = extents_
    value = convolutions(grower, "x0", 1)
    (other,) = grower.node("Abs", ["x1"], extents_)
    (value,) = grower.node("Mul", [value, other], (1, 4, 5, 3))
    convolutions(grower, value, 1)
    assert len(permutations(arranged(grower))) == 2


def test_a_network_between_permutations_of_its_source_needs_none(grower: Grower) -> None:
    """As exporters write it whose own networks have channels first."""
    grower.shapes = {"x0": (1, 3, 4, 5)}
    (value,) = grower.node("Transpose", ["x0"], (1, 4, 5, 3), perm=TO_LAST)
    value = convolutions(grower, value, 2)
    grower.node("Transpose", [value], (1, 3, 4, 5), perm=TO_FIRST)
    assert not permutations(arranged(grower))


@pytest.mark.parametrize(("rank", "letters"), [(3, "NWC:NCW"), (5, "NDHWC:NCDHW")])
def test_ranks_three_and_five_have_layouts_too(grower: Grower, rank: int, letters: str) -> None:
    shape = (1, *range(2, rank + 1))
    first = (0, rank - 1, *range(1, rank - 1))
    last = (0, *range(2, rank), 1)
    grower.shapes = {"x0": shape}
    turned = tuple(shape[i] for i in first)
    value = "x0"
    for _ in range(2):
        (to,) = grower.node("Transpose", [value], turned, perm=first)
        weights = grower.constant(np.ones((turned[1], turned[1], *[1] * (rank - 2))), np.float32)
        (y,) = grower.node("Conv", [to, weights], turned)
        (back,) = grower.node("Transpose", [y], shape, perm=last)
        (value,) = grower.node("Softmax", [back], shape, axis=-1)
    assert len(permutations(arranged(grower))) == 2
    graph = graph_of(grower.model(1))
    names = tuple(value.name or "" for value in graph.outputs)
    changed = arrange(Scope(graph), ONNX, OPSET, Interface.parse("target"), names)
    assert set(changed.values()) == {letters}


# ---- time


def mesh(count: int) -> onnx.ModelProto:
    """Operators in one region, with a convolution to pull at every tenth and an end of the layout at every seventh."""
    nodes, names = [], ["x"]
    perm = {"perm": TO_FIRST}
    for i in range(count):
        operand = names[-1] if i % 3 else names[max(0, len(names) - 5)]
        nodes.append(onnx.helper.make_node("Add", [names[-1], operand], [f"v{i}"]))
        names.append(f"v{i}")
        if i % 10 == 0:
            nodes.append(onnx.helper.make_node("Transpose", [f"v{i}"], [f"t{i}"], **perm))
            nodes.append(onnx.helper.make_node("MaxPool", [f"t{i}"], [f"p{i}"], kernel_shape=[1, 1]))
        if i % 7 == 0:
            nodes.append(onnx.helper.make_node("Flatten", [f"v{i}"], [f"f{i}"]))
    ends = [node.output[0] for node in nodes if node.op_type in ("MaxPool", "Flatten")]
    graph = onnx.helper.make_graph(
        nodes,
        "mesh",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 3, 4])],
        [onnx.ValueInfoProto(name=name) for name in [*ends, names[-1]]],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.thorough
def test_time_grows_about_as_the_graph_does() -> None:
    def seconds(count: int, times: int) -> float:
        graphs = [graph_of(mesh(count)) for _ in range(times)]
        best = float("inf")
        for graph in graphs:
            with pause_collection():  # as in a conversion
                started = time.process_time()
                arrange(Scope(graph), ONNX, OPSET)
                best = min(best, time.process_time() - started)
        return best

    seconds(100, 1)
    assert seconds(20_000, 1) / seconds(1_000, 2) <= 40


# ---- graphs of nodes


def test_what_an_inner_graph_reads_and_yields_keeps_its_order(grower: Grower) -> None:
    value = convolutions(grower, "x0", 2)
    other = convolutions(grower, value, 1)
    inner = [onnx.helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, (1, 4, 5, 3))]
    add = onnx.helper.make_graph([onnx.helper.make_node("Add", [value, other], ["sum"])], "inner", [], inner)
    same = onnx.helper.make_graph([onnx.helper.make_node("Identity", [value], ["sum"])], "same", [], inner)
    flag = grower.constant(True, bool)
    grower.node("If", [flag], (1, 4, 5, 3), then_branch=add, else_branch=same)
    for condition in (True, False):
        grower.constants[flag] = np.array(condition)
        arranged(grower)

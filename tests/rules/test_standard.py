"""Operators of other domains as those of the standard: what ONNX Runtime computes of both, and the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import nnrewrite
import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as helper
import pytest
from nnrewrite import UnsupportedError
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime

pytestmark = pytest.mark.slow

Array = npt.NDArray[Any]
STACK = ("onnx2onnx", "standard")
EXTREMES = np.array([[-400.0, -0.1, 0.1], [400.0, 400.0, -400.0]], np.float32)
RUNTIME, LEARNING = "com.microsoft", "ai.onnx.ml"


def draw(*extents: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=extents).astype(np.float32)


def make(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 21,
    types: Mapping[str, int] | None = None,
) -> bytes:
    """A model of some nodes, whose inputs are real unless `types` says otherwise."""
    kinds = types or {}
    given = [helper.make_tensor_value_info(name, kinds.get(name, 1), shape) for name, shape in inputs.items()]
    wanted = [helper.make_tensor_value_info(name, kinds.get(name, 1), None) for name in outputs]
    graph = helper.make_graph(nodes, "model", given, wanted)
    graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in (constants or {}).items())
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(RUNTIME, 1), helper.make_opsetid(LEARNING, 3)]
    model: bytes = helper.make_model(graph, opset_imports=imports, ir_version=3 if opset < 9 else 9).SerializeToString()
    return model


def require_equal(model: bytes, *samples: Sequence[Array]) -> onnx.ModelProto:
    """Hold what becomes of a model, as ONNX and as TensorFlow Lite, against it; the former."""
    standard = nnrewrite.convert(model, rules=STACK)
    lite = nnrewrite.rewrite(model, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    for made in (standard.SerializeToString(), lite):
        verdict = compare_models(model, made, inputs=samples or None, precise=True)
        assert verdict.passed, verdict.differences
    return standard


def test_what_an_optimizer_has_joined_is_written_out() -> None:
    nodes = [
        helper.make_node("FusedMatMul", ["x", "w"], ["p"], domain=RUNTIME, transB=1, alpha=0.5),
        helper.make_node("BiasGelu", ["p", "b"], ["g"], domain=RUNTIME),
        helper.make_node("SkipLayerNormalization", ["g", "x", "gain", "b"], ["y", "", "", "sum"], domain=RUNTIME),
        helper.make_node("SimplifiedLayerNormalization", ["sum", "gain"], ["z"]),
    ]
    constants = {"w": draw(8, 8), "b": draw(8, seed=1), "gain": draw(8, seed=2)}
    made = require_equal(make(nodes, {"x": ["n", "m", 8]}, ["y", "z"], constants), [draw(2, 3, 8)], [draw(1, 5, 8)])
    assert {node.domain for node in made.graph.node} == {""}


def test_states_of_attention_go_on_from_one_call_to_the_next() -> None:
    state = ["batch", 1, "past", 16]
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "pk", "pv", "lengths", "longest", "cos", "sin"],
        ["y", "ak", "av"],
        domain=RUNTIME,
        num_heads=2,
        kv_num_heads=1,
        do_rotary=1,
    )
    inputs = {"q": ["batch", "new", 32], "k": ["batch", "new", 16], "v": ["batch", "new", 16], "pk": state, "pv": state}
    model = make(
        [node],
        {**inputs, "lengths": ["batch"], "longest": [1]},
        ["y", "ak", "av"],
        {"cos": draw(16, 8), "sin": draw(16, 8, seed=1)},
        types={"lengths": 6, "longest": 6},
    )

    def call(batch: int, past: int, new: int) -> list[Array]:
        rows = [draw(batch, new, 32), draw(batch, new, 16, seed=1), draw(batch, new, 16, seed=2)]
        states = [draw(batch, 1, past, 16, seed=3), draw(batch, 1, past, 16, seed=4)]
        count = past + new
        return [*rows, *states, np.full(batch, count - 1, np.int32), np.array([count], np.int32)]

    lite = nnrewrite.rewrite(model, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    with Interpreter() as interpreter:
        for feeds in (call(1, 0, 4), call(2, 4, 1), call(1, 5, 3)):
            (found,) = interpreter.run(lite, [feeds], Kernels.DEFAULT)
            for one, want in zip(found, Runtime(model).run(feeds), strict=True):
                np.testing.assert_allclose(one, want, atol=1e-5)


def test_weights_of_four_bits_stay_as_small_in_onnx() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (64, 4, 8)).astype(np.uint8)
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain=RUNTIME, K=64, N=64, bits=4, block_size=16)
    model = make([node], {"x": [2, 64]}, ["y"], {"w": codes, "s": np.abs(draw(256))})
    made = require_equal(model)
    (weights,) = (one for one in made.graph.initializer if one.dims == [64, 64])
    assert weights.data_type in (onnx.TensorProto.UINT4, onnx.TensorProto.INT4)
    assert [node.op_type for node in made.graph.node] == ["DequantizeLinear", "MatMul"]


def grow_trees(count: int, targets: int, seed: int) -> dict[str, list[Any]]:
    """Trees with a weight for each target in each leaf, as the attributes of an ensemble."""
    rng = np.random.default_rng(seed)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    made: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    made |= {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, node: int, depth: int) -> int:
        """Add a node and what is below it; the number of the next one."""
        leaf = depth == 0 or rng.random() < 0.2
        row = (tree, node, int(rng.integers(4)), float(rng.normal()), "LEAF" if leaf else "BRANCH_LEQ", 0, 0)
        place = len(made["nodes_nodeids"])
        for name, item in zip(names, row, strict=True):
            made[f"nodes_{name}"].append(item)
        if leaf:
            for target in range(targets):
                for name, item in zip(("treeids", "nodeids", "ids"), (tree, node, target), strict=True):
                    made[f"target_{name}"].append(item)
                made["target_weights"].append(float(rng.normal()))
            return node + 1
        made["nodes_truenodeids"][place] = node + 1
        other = made["nodes_falsenodeids"][place] = add(tree, node + 1, depth - 1)
        return add(tree, other, depth - 1)

    for tree in range(count):
        add(tree, 0, 6)
    return made


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_lead_to_the_same_leaves(how: str) -> None:
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain=LEARNING,
        n_targets=2,
        aggregate_function=how,
        base_values=[0.5, -0.25],
        **grow_trees(12, 2, 0),
    )
    require_equal(make([node], {"x": ["n", 4]}, ["y"]), [draw(50, 4)], [draw(1, 4, seed=1)])


@pytest.mark.parametrize("modes", [[0, 0, 0], [1, 3, 2]])
def test_trees_whose_leaves_stand_apart_lead_to_the_same(modes: Sequence[int]) -> None:
    numbers = {
        "nodes_splits": np.array([0.5, -0.25, 0.75], np.float32),
        "nodes_modes": np.array(modes, np.uint8),
        "leaf_weights": np.array([1.5, 2.0, -1.0, 4.0], np.float32),
    }
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain=LEARNING,
        n_targets=2,
        aggregate_function=1,
        nodes_featureids=[0, 1, 2],
        nodes_truenodeids=[1, 0, 2],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 1, 3],
        nodes_falseleafs=[0, 1, 1],
        leaf_targetids=[0, 1, 1, 0],
        tree_roots=[0],
        **{name: onnx.numpy_helper.from_array(array) for name, array in numbers.items()},
    )
    model = onnx.load_from_string(make([node], {"x": ["n", 3]}, ["y"]))
    model.opset_import[2].version = 5
    require_equal(model.SerializeToString(), [draw(20, 3)])


def test_classes_have_the_labels_of_the_most_votes() -> None:
    trees = grow_trees(9, 3, 1)
    of_classes = {name.replace("target_", "class_"): list for name, list in trees.items()}
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=LEARNING,
        classlabels_strings=["cat", "dog", "emu"],
        post_transform="SOFTMAX",
        **of_classes,
    )
    model = make([node], {"x": ["n", 4]}, ["label", "scores"], types={"label": onnx.TensorProto.STRING})
    require_equal(model, [draw(20, 4)])


def test_trees_that_are_too_large_for_a_table_are_refused_by_their_size() -> None:
    count = 70_000  # of one node and two leaves each
    numbers = {
        "nodes_splits": np.zeros(count, np.float32),
        "nodes_modes": np.zeros(count, np.uint8),
        "leaf_weights": np.ones(2 * count, np.float32),
    }
    leaves = range(2 * count)
    stumps = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        name="stumps",
        domain=LEARNING,
        n_targets=1,
        aggregate_function=1,
        nodes_featureids=[0] * count,
        nodes_truenodeids=leaves[::2],
        nodes_trueleafs=[1] * count,
        nodes_falsenodeids=leaves[1::2],
        nodes_falseleafs=[1] * count,
        leaf_targetids=[0] * (2 * count),
        tree_roots=range(count),
        **{name: onnx.numpy_helper.from_array(array) for name, array in numbers.items()},
    )
    model = onnx.load_from_string(make([stumps], {"x": ["n", 3]}, ["y"]))
    model.opset_import[2].version = 5
    with pytest.raises(UnsupportedError, match=r"(?s)TreeEnsemble x 1: stumps.*its trees have 210000 nodes, more than"):
        nnrewrite.rewrite(model.SerializeToString(), to="tflite")


@pytest.mark.thorough
def test_forests_with_too_many_weights_are_refused_by_their_number() -> None:
    one = {"nodes_modes": ["LEAF"]} | {
        f"nodes_{name}": [0] for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    }
    weights = [0.5] * 2_000_001  # told before anything is computed of what they belong to
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        name="forest",
        domain=LEARNING,
        classlabels_int64s=[0, 1],
        nodes_values=[0.0],
        class_treeids=[0],
        class_nodeids=[0],
        class_ids=[0],
        class_weights=weights,
        **one,
    )
    model = make([node], {"x": ["n", 3]}, ["label", "scores"], types={"label": onnx.TensorProto.INT64})
    with pytest.raises(
        UnsupportedError, match=r"(?s)TreeEnsembleClassifier x 1: forest.*have 2000001 weights, more than"
    ):
        nnrewrite.rewrite(model, to="tflite")


def test_operators_from_before_the_first_release_are_read() -> None:
    nodes = [
        helper.make_node("ImageScaler", ["x"], ["a"], scale=0.5, bias=[0.25, -0.5]),
        helper.make_node("Affine", ["a"], ["b"], alpha=2.0, beta=0.125),
        helper.make_node("ParametricSoftplus", ["b"], ["c"], alpha=0.5, beta=2.0),
        helper.make_node("ScaledTanh", ["c"], ["d"], alpha=1.5, beta=0.5),
        helper.make_node("Crop", ["d"], ["e"], border=[1, 0, 0, 2]),
        helper.make_node("Scale", ["e"], ["y"], scale=3.0),
    ]
    model = make(nodes, {"x": [1, 2, 4, 5]}, ["y"], opset=8)
    made = nnrewrite.rewrite(model, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    assert compare_models(model, made).passed


@pytest.mark.parametrize("options", [{}, {"across_channels": 1}, {"normalize_variance": 0}])
@pytest.mark.parametrize("to", ["onnx", "tflite"])
def test_means_and_variances_of_old_opsets_are_of_the_channels_that_they_name(options: dict[str, int], to: str) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **options)
    model = make([node], {"x": [2, 3, 4, 4]}, ["y"], opset=8)
    if to == "onnx":
        made = nnrewrite.convert(model, opset=13).SerializeToString()
    else:
        made = nnrewrite.rewrite(model, to=to).encoded.encode()  # type: ignore[attr-defined]
    assert compare_models(model, made).passed


def test_operators_that_runtimes_have_before_the_standard_are_those_of_the_standard() -> None:
    nodes = [
        helper.make_node("BiasGelu", ["x", "b"], ["g"], domain=RUNTIME),  # of which nothing says the type
        helper.make_node("LayerNormalization", ["g", "s", "b"], ["y"], axis=-1),
    ]
    model = make(nodes, {"x": ["n", 3, 6]}, ["y"], {"s": draw(6), "b": draw(6)}, opset=13)
    made = nnrewrite.rewrite(model, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    assert compare_models(model, made).passed


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_codes_of_four_bits_are_taken(kind: int, zeros: bool) -> None:
    options = {"block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    operands = ["codes", "x", "s", *(["zeros"] if zeros else [])]
    node = helper.make_node("GatherBlockQuantized", operands, ["y"], domain=RUNTIME, **options)
    model = onnx.load_from_string(make([node], {"x": [2, 3]}, ["y"], {"s": draw(5, 2)}, types={"x": 7}))
    codes = [(7 * place) % 8 for place in range(5 * 32)]
    model.graph.initializer.append(helper.make_tensor("codes", kind, [5, 32], codes))
    model.graph.initializer.append(helper.make_tensor("zeros", kind, [5, 2], [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]))
    require_equal(model.SerializeToString(), [np.array([[0, 4, 2], [3, 3, 1]])])


def test_embeddings_of_codes_are_normalized_as_numbers() -> None:
    rng = np.random.default_rng(3)
    shapes = {"words": (30, 8), "places": (6, 8), "segments": (2, 8), "gamma": (8,), "beta": (8,)}
    tables = {name: rng.integers(0, 256, shape).astype(np.uint8) for name, shape in shapes.items()}
    scales = {f"{name}_scale": np.float32(0.01 * (1 + place)) for place, name in enumerate(shapes)}
    zeros = {f"{name}_zero": np.uint8(120 + place) for place, name in enumerate(shapes)}
    operands = ["ids", "kinds", *shapes, "mask", *scales, *zeros]
    node = helper.make_node("QEmbedLayerNormalization", operands, ["y", "n"], domain=RUNTIME, epsilon=1e-5)
    given = dict.fromkeys(("ids", "kinds", "mask"), ("N", 4))
    constants = {name: np.asarray(value) for name, value in (tables | scales | zeros).items()}
    model = make([node], given, ["y", "n"], constants, types=dict.fromkeys((*given, "n"), 6))
    ids, kinds = rng.integers(0, 30, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    made = require_equal(model, (ids, kinds, mask))
    assert {"Gather", "LayerNormalization"} < {one.op_type for one in made.graph.node}


def test_what_no_rule_takes_keeps_the_name_that_files_have() -> None:
    node = helper.make_node("Attention", ["x", "w"], ["y"], domain=RUNTIME, num_heads=2, do_rotary=1)
    made = nnrewrite.convert(make([node], {"x": [1, 3, 8]}, ["y"], {"w": draw(8, 24)}), rules=STACK)
    assert [(node.domain, node.op_type) for node in made.graph.node] == [(RUNTIME, "Attention")]


def test_a_refusal_names_the_rule_that_would_have_written_it_out() -> None:
    node = helper.make_node("Attention", ["x", "w"], ["y"], domain=RUNTIME, num_heads=2, do_rotary=1)
    with pytest.raises(
        UnsupportedError, match=r"rule attention_of_one_product: option do_rotary is 1, the rule asks for 0"
    ):
        nnrewrite.rewrite(make([node], {"x": [1, 3, 8]}, ["y"], {"w": draw(8, 24)}), to="tflite")


def make_maps() -> bytes:
    """A model whose output is a list of maps, as exporters of scikit-learn make it by default."""
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=LEARNING, classlabels_int64s=[0, 1])
    model = onnx.load_from_string(make([node], {"x": ["n", 2]}, ["y"]))
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [])))
    model.graph.output[0].type.CopyFrom(kind)
    made: bytes = model.SerializeToString()
    return made


def test_maps_are_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedError, match="zipmap=False"):
        nnrewrite.rewrite(make_maps(), to="tflite")


def test_maps_are_compared_key_by_key() -> None:
    assert compare_models(make_maps(), make_maps()).passed
    other = onnx.load_from_string(make_maps())
    other.graph.node[0].attribute[0].ints[:] = [0, 2]
    assert "other keys" in compare_models(make_maps(), other.SerializeToString()).differences[0]


def test_coefficients_that_are_too_few_for_the_features_are_counted() -> None:
    more = {"coefficients": draw(12).tolist(), "intercepts": draw(3).tolist(), "classlabels_ints": [0, 1, 2]}
    node = helper.make_node("LinearClassifier", ["x"], ["label", "y"], domain=LEARNING, **more)
    with pytest.raises(UnsupportedError, match="x has 2 features, and 12 coefficients are not 3 for each of them"):
        nnrewrite.rewrite(make([node], {"x": [3, 2]}, ["y"]), to="tflite")


def test_maps_stay_where_onnx_is_written() -> None:
    made = nnrewrite.convert(make_maps())
    assert made.graph.output[0].type == onnx.load_from_string(make_maps()).graph.output[0].type
    (maps,) = Runtime(made.SerializeToString()).evaluate({"x": draw(1, 2)}).values()
    assert maps[0].keys() == {0, 1}


@pytest.mark.parametrize("of_words", [True, False])
def test_labels_are_those_of_classes_as_the_first_version_has_them(of_words: bool) -> None:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=LEARNING, classes_strings=["", "a", "b"])
    kinds = (onnx.TensorProto.STRING, onnx.TensorProto.INT64)
    given, wanted = kinds if of_words else kinds[::-1]
    model = onnx.ModelProto.FromString(make([node], {"x": [4]}, ["y"], types={"x": given, "y": wanted}))
    next(one for one in model.opset_import if one.domain == LEARNING).version = 1
    words, numbers = np.array([b"b", b"", b"z", b"a"], object), np.array([2, 0, 7, 1], np.int64)
    require_equal(model.SerializeToString(), [words if of_words else numbers])


@pytest.mark.parametrize("steps", [draw(256, 1), draw(128), draw(1)])
def test_weights_written_as_codes_times_their_steps_stay_codes(steps: Array) -> None:
    nodes = [
        helper.make_node("Cast", ["codes"], ["wide"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "steps"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    codes = np.random.default_rng(0).integers(-127, 128, (256, 128)).astype(np.int8)
    model = make(nodes, {"x": ["n", 256]}, ["y"], {"codes": codes, "steps": np.abs(steps) + 0.01})
    made = nnrewrite.rewrite(model, to="tflite").encoded.encode()  # type: ignore[attr-defined]
    assert codes.nbytes < len(made) < 3 * codes.nbytes
    assert compare_models(model, made).passed


@pytest.mark.parametrize(
    ("least", "most", "scale", "zero"),
    [
        (0.3, 300.0, [1.0, 0.01, 0.5], -128),
        (-300.0, -0.3, [1.0, 0.01, 0.5], 127),
        (-300.0, 127.25, [0.5, 0.5, 0.5], -128),
        (-0.25, 300.0, [0.5, 0.5, 0.5], -127),
    ],
)
def test_a_clip_stays_where_the_codes_of_one_channel_go_on_beyond_it(
    least: float, most: float, scale: Sequence[float], zero: int
) -> None:
    """The ends of the third and fourth lie between two codes and round to the even one, which is not the last."""
    nodes = [
        helper.make_node("Clip", ["x", "least", "most"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
    ]
    constants = {"s": np.float32(scale), "z": np.full(3, zero, np.int8), "least": np.float32(least)}
    model = make(nodes, {"x": [2, 3]}, ["y"], {**constants, "most": np.float32(most)})
    made = nnrewrite.convert(model, rules=STACK).SerializeToString()
    found, wanted = (Runtime(one).run([EXTREMES])[0] for one in (made, model))
    np.testing.assert_array_equal(found, wanted)  # compare_models would let them be a step apart

"""What ONNX Runtime joins as it loads a model, it joins in the optimized model as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnxruntime
import pytest

from .text_models import add_weights, write_model

MODELS = Path(__file__).parents[3] / "shared/onnx_models"

HALF = "h = Constant<value_float = 0.5>() o = Constant<value_float = 1.0>()"
GELU = {
    "by a factor": f"{HALF} r = Constant<value_float = 0.70710678>() a = Mul(v, r) b = Erf(a) e = Add(b, o)",
    "by a quotient": f"{HALF} r = Constant<value_float = 1.41421356>() a = Div(v, r) b = Erf(a) e = Add(b, o)",
}
ENDS = {"the half last": "m = Mul(v, e) u = Mul(m, h)", "the half inside": "m = Mul(e, h) u = Mul(v, m)"}
LAYERS = {
    "a convolution": "y = Conv(u, w)",
    "a product": "y = MatMul(u, k)",
    "a transposed convolution": "y = ConvTranspose(u, w)",
}
#: inputs that are codes, and inputs that are put on a grid
SIGNED = {
    "bytes": ("int8[1, 2, 4, 4] x", "d = DequantizeLinear(x, s, z)"),
    "codes": ("float[1, 2, 4, 4] x", "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"),
}
MOVES = {
    "transposed": "m = Transpose <perm = [0, 3, 1, 2]> (d)",
    "reshaped": "m = Reshape(d, k)",
    "pooled": "m = MaxPool <kernel_shape = [2, 2]> (d)",
    "cut": "m = Slice(d, a, e)",
    "with an axis more": "m = Unsqueeze(d, a)",
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("gelu", GELU)
def test_a_gelu_before_a_layer_is_one_operator_of_the_runtime(gelu: str, end: str, layer: str, tmp_path: Path) -> None:
    nodes = f"v = Conv(x, w) {GELU[gelu]} {ENDS[end]} {LAYERS[layer]}"
    path = write_model(tmp_path / "model.onnx", 17, "y", nodes, "float[1, 4, 5, 5] x")
    add_weights(path, {"w": (4, 4, 1, 1), "k": (5, 3)})
    nnrewrite.rewrite(path).save(tmp_path / "better.onnx")
    assert "Gelu" in list_joined(tmp_path / "better.onnx", tmp_path)


def test_signed_codes_that_are_turned_stay_between_quantized_operators(tmp_path: Path) -> None:
    """Attention as quantizers of ONNX Runtime write it: each operator and each Transpose between a pair of its own."""

    def quantized(name: str, made: str) -> str:
        return f"{name}r = {made} {name}q = QuantizeLinear({name}r, s, z) {name} = DequantizeLinear({name}q, s, z)"

    nodes = [
        "s = Constant<value_float = 0.05>() z = Constant<value = int8 {3}>()",
        quantized("a", "Identity(x)"),
        quantized("b", "Transpose<perm = [0, 2, 1]>(a)"),
        quantized("c", "MatMul(a, b)"),
        quantized("d", "Transpose<perm = [0, 2, 1]>(c)"),
        quantized("e", "MatMul(d, a)"),
        quantized("f", "Transpose<perm = [0, 2, 1]>(e)"),
        quantized("g", "MatMul(f, d)"),
        "y = Relu(g)",
    ]
    path = write_model(tmp_path / "model.onnx", 17, "y", " ".join(nodes), "float[1, 4, 8] x")
    nnrewrite.rewrite(path).save(tmp_path / "better.onnx")
    before, after = list_joined(path, tmp_path), list_joined(tmp_path / "better.onnx", tmp_path)
    assert after.count("QLinearMatMul") >= before.count("QLinearMatMul") > 0
    assert len(after) <= len(before)


def test_sums_before_normalizations_are_not_joined_with_them(tmp_path: Path) -> None:
    """The runtime's joined operator takes longer than both: the target of it says Sum for Add."""
    nodes = "v = MatMul(x, w) a = Add(v, x) y = LayerNormalization<axis = -1>(a, g, g)"
    path = write_model(tmp_path / "model.onnx", 17, "y", nodes, "float[1, 64, 32] x")
    add_weights(path, {"w": (32, 32), "g": (32,)})
    nnrewrite.rewrite(path, target="onnxruntime").save(tmp_path / "better.onnx")
    assert "SkipLayerNormalization" in list_joined(path, tmp_path)
    assert list_joined(tmp_path / "better.onnx", tmp_path) == ["MatMul", "Sum", "LayerNormalization"]
    nnrewrite.rewrite(tmp_path / "better.onnx").save(tmp_path / "again.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "again.onnx").graph.node][1] == "Add"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")) or [MODELS], ids=lambda path: path.stem)
def test_the_runtime_has_no_more_operators_for_the_optimized_model(path: Path, tmp_path: Path) -> None:
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    nnrewrite.rewrite(path).save(tmp_path / "better.onnx")
    try:
        before = list_joined(path, tmp_path)
    except Exception as error:
        pytest.skip(f"ONNX Runtime does not load the original: {error}")
    assert len(list_joined(tmp_path / "better.onnx", tmp_path)) <= len(before)


def list_joined(path: Path, folder: Path) -> list[str]:
    """The operators that ONNX Runtime makes of a model before it looks at layouts, those of inner graphs among them."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = f"{folder / 'joined.onnx'}"
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options)
    return [node.op_type for node in list_nodes(onnx.load(folder / "joined.onnx").graph)]


def list_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from list_nodes(inner)


@pytest.mark.parametrize("target", [None, "onnxruntime"])
@pytest.mark.parametrize("last", ["y = Exp(m)", "y = Identity(m)"], ids=["read", "yielded"])
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("kind", SIGNED)
def test_signed_codes_that_are_moved_before_they_are_computed_with_are_loaded_at_later_opsets(
    kind: str, move: str, last: str, target: str | None
) -> None:
    taken, first = SIGNED[kind]
    constants = "float s = {0.5}, int8 z = {3}, int64[4] k = {1, 8, 2, 2}, int64[1] a = {0}, int64[1] e = {1}"
    text = f"""<ir_version: 8, opset_import: ["": 13]> net ({taken}) => (float[] y) <{constants}>
        {{ {first} {MOVES[move]} {last} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    made = nnrewrite.convert(model.SerializeToString(), target=target, opset=21)
    numbers = np.random.default_rng(0).integers(-100, 100, (1, 2, 4, 4))
    x = numbers.astype(np.int8 if kind == "bytes" else np.float32)
    want, found = (
        onnxruntime.InferenceSession(one.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
        for one in (model, made)
    )
    np.testing.assert_array_equal(found[0], want[0])


@pytest.mark.parametrize("end", ["", "s = Constant<value_float = 1.0>() u = Mul(n, s) y = Add(u, t)"])
def test_a_normalization_without_factors_is_one_operator_of_the_runtime_before_opset_17(
    end: str, tmp_path: Path
) -> None:
    """ONNX Runtime finds it by a factor and a term for each channel: of these the optimizer had taken away ones."""
    last = "n" if end else "y"
    nodes = (
        "t = Constant<value_float = 0.0>() p = Constant<value_float = 2.0>() e = Constant<value_float = 0.00001>() "
        "m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) q = Pow(d, p) v = ReduceMean<axes = [-1]>(q) "
        f"a = Add(v, e) r = Sqrt(a) {last} = Div(d, r) {end}"
    )
    path = write_model(tmp_path / "model.onnx", 13, "y", nodes, "float[2, 4, 8] x")
    nnrewrite.rewrite(path, target="onnxruntime").save(tmp_path / "better.onnx")
    assert list_joined(tmp_path / "better.onnx", tmp_path) == ["LayerNormalization"]

"""The summary says why an opset is a later one than usual, and why a file is much larger than its source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import app
from nnrewrite.engine.base.quantization import Quantization

Single = Callable[..., bytes]


def summary(source: bytes, folder: Path, *options: str) -> str:
    path = folder / "model.tflite"
    path.write_bytes(source)
    result = CliRunner().invoke(app, [f"{path}", "-d", f"{folder}", *options])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_an_element_type_that_raises_the_opset_is_named(single: Single, tmp_path: Path) -> None:
    grid = Quantization(np.array([0.5], np.float32), np.array([0], np.int64))
    source = single("RELU", {"x": ("INT16", [2, 3], grid)}, [("INT16", [2, 3], grid)])
    assert "21: the first that holds quantized int16 bytes" in summary(source, tmp_path)
    assert nnrewrite.rewrite(source).report.opset_reason == "the first that holds quantized int16"
    with pytest.raises(nnrewrite.RewriteError, match=r"\(quantized int16\), opset 21 can"):
        nnrewrite.rewrite(source, opset=18)


def test_an_operator_that_raises_the_opset_is_named_with_its_rule(single: Single, tmp_path: Path) -> None:
    source = single("EQUAL", {"x": ("STRING", [2]), "y": ("STRING", [2])}, [("BOOL", [2])])
    text = summary(source, tmp_path)
    assert "21: EQUAL needs it: strings are compared from opset 19 on (rule comparison.EQUAL) bytes" in text


def test_a_usual_opset_needs_no_reason(single: Single, tmp_path: Path) -> None:
    source = single("RELU", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])])
    assert "opset 18 bytes" in summary(source, tmp_path)
    assert not nnrewrite.rewrite(source, opset=20).report.opset_reason


@pytest.mark.slow
def test_constants_that_take_more_room_are_named_with_their_types(single: Single, tmp_path: Path) -> None:
    halves = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float16)
    source = single("DEQUANTIZE", {"w": halves}, [("FLOAT32", [64, 128])])
    text = summary(source, tmp_path)
    assert "larger: constants take 32.8 kB of float32 for 16.4 kB of float16; --target onnxruntime-small leaves" in text
    assert "larger" not in summary(source, tmp_path, "--target", "onnxruntime-small")
    assert "--keep-float16 leaves those as they are" in summary(source, tmp_path, "--target", "portable")
    assert "larger" not in summary(source, tmp_path, "--keep-float16")
    assert nnrewrite.rewrite(source).report.constants == {"float16": (16_384, 0), "float32": (0, 32_768)}


def test_a_graph_that_takes_more_room_is_told_from_its_constants(single: Single, tmp_path: Path) -> None:
    source = single("ATAN2", {"y": ("FLOAT32", [2]), "x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    assert "nodes with their names, shapes and rules take" in summary(source, tmp_path)


def test_what_is_not_known_behind_a_refused_node_is_told_apart() -> None:
    text = """<ir_version: 8, opset_import: ["": 21, "com.example": 1]>
    net (float[2, 3] x, float[3, 4] w) => (float[2, 4] y, float[2, 3] z) {
      a = com.example.Foo(x)  b = MatMul(a, w)  y = Relu(b)  z = com.example.Bar(a)
    }"""
    with pytest.raises(nnrewrite.UnsupportedError) as caught:
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="tflite")
    first, *others = f"{caught.value}".splitlines()
    assert first == "2 operators cannot be converted (2 nodes):"
    assert [line for line in others if line.startswith("  Foo x 1:") or line.startswith("  Bar x 1:")]
    assert "MatMul" not in " ".join(others[:-1]) and "behind them read is not known: MatMul x 1" in others[-1]


def test_a_refused_node_without_a_name_is_called_by_its_result_and_long_lists_are_cut_off() -> None:
    words = [f"word {number}" for number in range(300)]
    options = {"classes_strings": words, "keys_strings": words, "values_int64s": list(range(300))}
    node = onnx.helper.make_node("LabelEncoder", ["x"], ["numbers"], domain="ai.onnx.ml", **options)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [2])
    y = onnx.helper.make_tensor_value_info("numbers", onnx.TensorProto.INT64, [2])
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    graph = onnx.helper.make_graph([node], "net", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
    with pytest.raises(nnrewrite.UnsupportedError, match="LabelEncoder x 1: numbers\n") as raised:
        nnrewrite.rewrite(model.SerializeToString(), to="tflite")
    assert len(str(raised.value)) < 1000


def test_a_function_over_sequences_that_a_model_is_given_is_refused_by_what_it_consists_of() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    net (seq(float[N]) x) => (seq(float[N]) y) {
      y = SequenceMap <body: graph = each (float[N] a) => (float[N] b) { b = Relu(a) }> (x)
    }"""
    with pytest.raises(nnrewrite.UnsupportedError, match="SequenceAt x 1"):
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="tflite")


def test_an_operator_that_a_rule_made_is_refused_by_the_name_of_what_it_made_it_of() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    net (float[4, 2] x) => (seq(float[2, 2]) y) <int64 n = {2}> { y = SplitToSequence <axis: int = 0> (x, n) }"""
    made = r"SplitToSequence x 1: y\n    no rule is about SequenceConstruct, which sequence_of_parts .* makes of it"
    with pytest.raises(nnrewrite.UnsupportedError, match=made):
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="tflite")


def test_an_operator_that_rules_have_another_name_for_is_refused_by_its_name_in_files() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    net (float[2, 3, 4] x, int64[2, 3] i, float[5, 2] c, float[5, 2] s) => (float[2, 3, 4] y) {
      y = com.microsoft.RotaryEmbedding <is_packed_batching: int = 1> (x, i, c, s)
    }"""
    with pytest.raises(nnrewrite.UnsupportedError, match=r"RotaryEmbedding of com.microsoft x 1: y\n"):
        nnrewrite.rewrite(onnx.parser.parse_model(text).SerializeToString(), to="tflite")

"""What ONNX files say besides their graph."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import onnx
import onnx.parser
from nnrewrite.fuzz.runtimes import read_bytes


def test_domains_of_which_nothing_is_used_are_not_imported(tmp_path: Path) -> None:
    """ONNX Runtime 1.16 refuses ai.onnx.ml of version 5, whether or not it is used."""
    text = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 5, "com.microsoft": 1]>
        net (float[2, 3] x) => (float[2, 3] y) {
            v = If (b) <then_branch = t () => (float[2, 3] g) { g = com.microsoft.Gelu(x) },
                else_branch = e () => (float[2, 3] h) { h = Tanh(x) }>
            y = Abs(v)
        }"""
    model = onnx.parser.parse_model(text.replace("float[2, 3] x)", "float[2, 3] x, bool[] b)"))
    source = tmp_path / "source.onnx"
    onnx.save(model, source)
    made = onnx.load_from_string(read_bytes(nnrewrite.rewrite(source).encoded))
    assert sorted(one.domain for one in made.opset_import) == ["", "com.microsoft"]


def test_nodes_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    """The standard admits them, and ONNX Runtime 1.32 refuses the model."""
    text = """<ir_version: 8, opset_import: ["": 17]>
        net (float[2, 3] x) => (float[2, 3] y) { [one] v = Exp (x) [one] w = Tanh (v) [one_1] y = Abs (w) }"""
    source = tmp_path / "source.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    made = onnx.load_from_string(read_bytes(nnrewrite.rewrite(source).encoded))
    assert [node.name for node in made.graph.node] == ["one", "one_2", "one_1"]

"""Models that can be called in several named ways."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.cli.convert import command
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends.tflite_reader import Signature
from nnrewrite.verify import Interpreter, compare_models

VECTOR = ("FLOAT32", [3])


def model(catalogue: Catalogue, *signatures: Signature) -> bytes:
    """Two graphs: one adds 1, one doubles."""
    first = probe.make_operator_model(catalogue, "ADD", {"x:0": VECTOR, "one": np.ones(3, np.float32)}, [VECTOR])
    second = probe.make_operator_model(catalogue, "MUL", {"x:0": VECTOR, "two": np.full(3, 2, np.float32)}, [VECTOR])
    first.meta["subgraphs"] = [first.graph, second.graph]
    first.meta["signatures"] = signatures
    return write(first, catalogue)


ADD = Signature("add", 0, {"number": "x:0"}, {"sum": "output_0"})
DOUBLE = Signature("serving_default", 1, {"number": "x:0"}, {"number": "output_0"})


def names(converted: onnx.ModelProto) -> tuple[list[str], list[str]]:
    return [value.name for value in converted.graph.input], [value.name for value in converted.graph.output]


def test_inputs_and_outputs_are_called_as_the_signature_calls_them(catalogue: Catalogue) -> None:
    converted = nnrewrite.convert(model(catalogue, ADD, DOUBLE), signature="add")
    assert names(converted) == (["number"], ["sum"])
    told = {entry.key: entry.value for entry in converted.metadata_props}
    assert told["nnrewrite.name.number"] == "x:0" and told["nnrewrite.name.sum"] == "output_0"


def test_serving_default_is_meant_where_none_is_named(catalogue: Catalogue) -> None:
    converted = nnrewrite.convert(model(catalogue, ADD, DOUBLE))
    assert [node.op_type for node in converted.graph.node] == ["Mul"]
    # One name cannot stand for an input and an output: the second keeps the source's.
    assert names(converted) == (["number"], ["output_0"])


def test_the_only_signature_is_meant_where_none_is_named(catalogue: Catalogue) -> None:
    assert names(nnrewrite.convert(model(catalogue, ADD))) == (["number"], ["sum"])


def test_the_first_graph_is_meant_where_nothing_tells_and_a_remark_says_so(catalogue: Catalogue) -> None:
    other = Signature("double", 1, {}, {})
    conversion = rewrite(model(catalogue, ADD, other))
    assert names(conversion.model) == (["x:0"], ["output_0"])
    assert any("add, double" in remark for remark in conversion.report.remarks)


def test_a_value_that_comes_to_be_an_output_takes_its_name_without_a_node_for_that() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> m (float[1, 6, 6, 3] x, float[8, 3, 3, 3] w) => (float[1, 4, 4, 8] y)'
        "{ a = Transpose<perm = [0, 3, 1, 2]>(x) b = Conv(a, w) c = Transpose<perm = [0, 2, 3, 1]>(b) y = Relu(c) }"
    )
    made = nnrewrite.convert(model.SerializeToString())
    assert [node.op_type for node in made.graph.node] == ["Transpose", "Conv", "Relu", "Transpose"]
    assert [one.name for one in made.graph.output] == ["y"]


def test_an_inner_value_makes_way_for_the_name_of_an_input(catalogue: Catalogue) -> None:
    source = probe.make_operator_model(catalogue, "ADD", {"x:0": VECTOR, "number": np.ones(3, np.float32)}, [VECTOR])
    source.meta["signatures"] = (ADD,)
    converted = nnrewrite.convert(write(source, catalogue))
    assert names(converted) == (["number"], ["sum"])
    assert [tensor.name for tensor in converted.graph.initializer] == ["number_inner"]


@pytest.mark.parametrize(
    ("inputs", "called"),
    [({"other": "x"}, ["x", "other"]), ({"other": "x", "output_0": "other"}, ["other", "other_1"])],
)
def test_no_two_inputs_and_outputs_are_called_alike(
    catalogue: Catalogue, inputs: dict[str, str], called: list[str]
) -> None:
    source = probe.make_operator_model(catalogue, "SUB", {"x": VECTOR, "other": VECTOR}, [VECTOR])
    source.meta["signatures"] = (Signature("sub", 0, inputs, {}),)
    converted = nnrewrite.convert(write(source, catalogue))
    assert names(converted) == (called, ["output_0"])
    assert list(converted.graph.node[0].input) == called


def test_a_signature_that_is_not_there_is_told_with_those_that_are(catalogue: Catalogue) -> None:
    with pytest.raises(CallError, match="no signature subtract, its signatures are add, serving_default"):
        nnrewrite.convert(model(catalogue, ADD, DOUBLE), signature="subtract")


@pytest.mark.slow
def test_all_signatures_go_to_files_of_their_own_and_are_verified(
    catalogue: Catalogue, tmp_path: Path, interpreter: Interpreter
) -> None:
    path = tmp_path / "calls.tflite"
    path.write_bytes(model(catalogue, ADD, DOUBLE))
    result = CliRunner().invoke(command, ["--signature", "all", "--verify", "-d", str(tmp_path), str(path)])
    assert result.exit_code == 0, result.output
    files = sorted(file.name for file in tmp_path.glob("*.onnx"))
    assert files == ["calls.add.onnx", "calls.serving_default.onnx"]
    # The one is not the other.
    doubled = (tmp_path / files[1]).read_bytes()
    assert compare_models(path, doubled, interpreter=interpreter, signature="serving_default").passed
    assert not compare_models(path, doubled, interpreter=interpreter).passed


def test_state_is_kept_nowhere_on_request(catalogue: Catalogue) -> None:
    source = probe.make_operator_model(catalogue, "ADD", {"x": VECTOR, "memory": VECTOR}, [VECTOR])
    kept = source.graph.inputs.pop()
    kept.meta["variable"] = True
    data = write(source, catalogue)
    assert names(nnrewrite.convert(data, state="internal")) == (["x"], ["output_0"])
    assert isinstance(ir.from_proto(nnrewrite.convert(data)), ir.Model)

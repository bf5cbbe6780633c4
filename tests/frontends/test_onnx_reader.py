"""ONNX files as graphs: what is read, what is not believed, and what is refused in one line."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import InternalError, ModelError, RewriteError
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.onnx_reader import read, recognize
from nnrewrite.frontends.protobuf_outline import WireError, outline_model
from nnrewrite.fuzz.damage import damage_messages
from nnrewrite.verify import compare_models
from onnx import TensorProto, helper, numpy_helper

CATALOGUE = load()
WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


def product(rows: int | str = 1, opset: int = 18, **about: object) -> onnx.ModelProto:
    """A product with weights, and an Identity behind it."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Identity", ["y"], ["z"])]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [rows, 64])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **about)


def test_a_model_that_shape_inference_refuses_and_runtimes_take_is_taken() -> None:
    # The body that onnx 1.23 has for this operator is not one that its own inference takes.
    text = """<ir_version: 7, opset_import: ["": 13]> net (float[3, 3, 3, 1] x) => (float[3, 3, 3, 1] y)
      { a = Identity(x)  y = MeanVarianceNormalization(a) }"""
    source = onnx.parser.parse_model(text).SerializeToString()
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.checker.check_model(source, full_check=True)
    assert [node.op_type for node in rewrite(source).model.graph.node] == ["MeanVarianceNormalization"]


def test_domains_that_are_not_imported_are_as_the_runtime_takes_them() -> None:
    nodes = [helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft")]
    nodes += [helper.make_node("Scaler", ["g"], ["z"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])]
    model = product()
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    assert compare_models(
        model.SerializeToString(), rewrite(model.SerializeToString()).model.SerializeToString()
    ).passed


def test_large_constants_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(product().SerializeToString())
    found = read(path, CATALOGUE).graph.initializers["w"].const_value
    assert found is not None
    np.testing.assert_array_equal(found.numpy(), WEIGHTS)
    assert not found.numpy().flags.owndata and not found.numpy().flags.writeable


def test_a_constant_that_says_that_it_is_in_the_model_is_read_there(tmp_path: Path) -> None:
    # As the onnx package leaves models whose external data it has loaded.
    model = product()
    model.graph.initializer[0].data_location = TensorProto.DEFAULT
    model.graph.initializer[0].external_data.add(key="location", value="elsewhere")
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    found = read(path, CATALOGUE).graph.initializers["w"].const_value
    assert found is not None
    np.testing.assert_array_equal(found.numpy(), WEIGHTS)


def test_an_outline_leaves_out_large_tensors_and_nothing_else() -> None:
    model = product()
    small = outline_model(memoryview(model.SerializeToString()))
    assert len(small) < 1000 < WEIGHTS.nbytes
    found = onnx.ModelProto.FromString(small)
    assert [node.op_type for node in found.graph.node] == ["MatMul", "Identity"]
    assert {entry.key for entry in found.graph.initializer[0].external_data} == {"location", "offset", "length"}


@pytest.mark.slow
@given(data=st.binary(max_size=200), place=st.integers(0, 150))
@settings(max_examples=80, deadline=None)
def test_bytes_that_are_no_model_are_refused_in_one_line(data: bytes, place: int) -> None:
    whole = product().SerializeToString()
    try:
        rewrite(whole[:place] + data + whole[place + len(data) :])
    except RewriteError as error:
        assert "internal error" not in f"{error}"


def test_a_message_that_ends_too_early_is_told() -> None:
    with pytest.raises(WireError, match="are left"):
        outline_model(memoryview(b"\x3a\xff\x01abc"))


def test_the_first_bytes_tell_onnx_from_tensorflow_lite() -> None:
    assert recognize(product().SerializeToString()[:64])
    assert not recognize(b"\x1c\x00\x00\x00TFL3\x00\x00")


def test_declared_shapes_of_inner_values_and_outputs_are_not_believed() -> None:
    model = product()
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [7, 7]))
    graph = read(model.SerializeToString(), CATALOGUE).graph
    assert [list(node.outputs[0].shape or ()) for node in graph] == [[1, 64], [1, 64]]


def test_an_output_is_declared_as_it_is_where_the_model_contradicts_itself() -> None:
    model = product()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["rows"]))
    shape = rewrite(model.SerializeToString()).model.graph.output[0].type.tensor_type.shape
    assert [one.dim_value for one in shape.dim] == [1, 64]


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("(float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }", "inconsistent type"),
        ("(float[2, 3] x, float[4, 5] z) => (float[2, 5] y) { y = MatMul(x, z) }", "Incompatible dimensions"),
        ("(bool[2] x) => (bool[2] y) { y = Relu(x) }", "unsupported type"),
        ("(float[2] x) => (float[2] y) { y = Relu<alpha = 1.0>(x) }", "Unrecognized attribute"),
    ],
)
def test_a_node_that_its_operator_does_not_admit_is_refused(text: str, wrong: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> net {text}')
    with pytest.raises(ModelError, match=f"does not fit its operator at opset 17: .*{wrong}"):
        rewrite(model.SerializeToString(), to="onnx")


def test_a_branch_that_is_never_taken_may_not_fit() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> net (bool c, float[2] x, int64[2] z) => (float[2] y) {
      y = If (c) <then_branch = a () => (float[2] p) { p = Relu(x) },
                  else_branch = b () => (float[2] q) { q = Add(x, z) }>
    }"""
    assert rewrite(onnx.parser.parse_model(text).SerializeToString(), to="onnx").model.graph.node[0].op_type == "If"


def yield_outer(loose: bool) -> bytes:
    """A branch within a branch, each of whose bodies yields a value of the graph around it, or a copy where that is to
    be what the standard admits."""
    x, a = ("x) {}", "a) {}") if loose else ("x2) { x2 = Identity(x) }", "a2) { a2 = Identity(a) }")
    inner = f"q = If(c) <then_branch = t () => (float[2] {x}, else_branch = e () => (float[2] n) {{ n = Neg(x) }}>"
    then, other = f"u () => (float[2] q) {{ {inner} }}", f"v () => (float[2] {a}"
    head = '<ir_version: 8, opset_import: ["": 17]> net (bool c, bool d, float[2] x) => (float[2] y)'
    body = f"a = Exp(x) y = If(d) <then_branch = {then}, else_branch = {other}>"
    return bytes(onnx.parser.parse_model(f"{head} {{ {body} }}").SerializeToString())


@pytest.mark.slow
@pytest.mark.parametrize("to", ["onnx", "tflite", "torch"])
def test_a_body_may_yield_a_value_of_the_graph_around_it(to: str, tmp_path: Path) -> None:
    made = rewrite(yield_outer(loose=True), to=to)
    made.save(tmp_path / f"made.{to}")
    if to == "torch":
        rewrite(yield_outer(loose=False), to=to).save(tmp_path / "same")
        assert (tmp_path / "made.torch/model.py").read_text() == (tmp_path / "same/model.py").read_text()
    else:
        assert compare_models(yield_outer(loose=False), tmp_path / f"made.{to}", samples=8).passed


def test_extents_below_zero_are_free() -> None:
    model = product(-1)
    assert [type(one) for one in read(model.SerializeToString(), CATALOGUE).graph.inputs[0].shape or ()][1:] == [int]
    assert len(rewrite(model.SerializeToString()).model.graph.node) == 1


def test_results_alike_in_elements_may_differ_in_extents() -> None:
    # Both are told the same of the extents to reshape to: how many there are.
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one", "zero"], ["rows"]),
        helper.make_node("Concat", ["rows", "eight", "free"], ["a"], axis=0),
        helper.make_node("Concat", ["rows", "four", "free"], ["b"], axis=0),
        helper.make_node("Reshape", ["x", "a"], ["y"]),
        helper.make_node("Reshape", ["x", "b"], ["z"]),
    ]
    numbers = {"zero": 0, "one": 1, "eight": 8, "four": 4, "free": -1}
    model = product("rows")
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(numpy_helper.from_array(np.array([n], np.int64), k) for k, n in numbers.items())
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["rows", 4, 16]))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 8, 8]))
    found = rewrite(model.SerializeToString()).model.graph
    told = {one.name: numpy_helper.to_array(one).tolist() for one in found.initializer}
    assert {node.output[0]: told[node.input[1]] for node in found.node} == {"z": [0, 4, 16], "y": [0, 8, 8]}


def test_an_output_that_is_listed_twice_keeps_its_name() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (float[2] x) => (float[2] y, float[2] z, float[2] y)
      { y = Relu(x)  z = Identity(y) }"""
    source = onnx.parser.parse_model(text).SerializeToString()
    made = rewrite(source).model.SerializeToString()
    (want, found), x = (onnxruntime.InferenceSession(one) for one in (source, made)), np.float32([1, -1])
    assert [one.name for one in found.get_outputs()] == ["y", "z", "y"]
    np.testing.assert_array_equal(found.run(None, {"x": x}), want.run(None, {"x": x}))


def test_interface_opset_version_and_metadata_stay() -> None:
    model = product("rows", opset=15, doc_string="about the model")
    helper.set_model_props(model, {"labels": "cat,dog"})
    found = rewrite(model.SerializeToString()).model
    assert found.graph.input == model.graph.input and found.graph.output == model.graph.output
    assert found.opset_import == model.opset_import and found.ir_version == model.ir_version
    assert found.metadata_props == model.metadata_props and found.doc_string == model.doc_string


def test_constants_of_old_models_are_constants_though_they_are_inputs() -> None:
    model = product(opset=13)
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [64, 64]))
    graph = read(model.SerializeToString(), CATALOGUE).graph
    assert [value.name for value in graph.inputs] == ["x"] and not graph.initializers["w"].is_graph_input()
    written = rewrite(model.SerializeToString()).model
    assert written.ir_version == 3 and [value.name for value in written.graph.input] == ["x", "w"]


def test_defaults_of_inputs_stay_defaults() -> None:
    model = product()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [64, 64]))
    written = rewrite(model.SerializeToString()).model
    assert [value.name for value in written.graph.input] == ["x", "w"]
    assert [value.name for value in written.graph.initializer] == ["w"]


def external(path: Path, location: str, offset: int = 0, length: int | None = None) -> None:
    """Write a model whose weights are said to be in another file."""
    model = product()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": f"{offset}", "length": f"{length}"}.items():
        if value != "None":
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())


def test_external_data_in_the_folder_of_the_model_is_read(tmp_path: Path) -> None:
    external(tmp_path / "net.onnx", "weights/w.bin", offset=8)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/w.bin").write_bytes(bytes(8) + WEIGHTS.tobytes())
    found = rewrite(tmp_path / "net.onnx").model
    np.testing.assert_array_equal(numpy_helper.to_array(found.graph.initializer[0]), WEIGHTS)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("../w.bin", "leads out of the model's folder"),
        ("/etc/passwd", "no path in the model's folder"),
        ("link.bin", "leads out of the model's folder"),
        ("missing.bin", "no such file"),
        ("w" * 300, "no such file"),
        ("", "no path"),
    ],
)
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str, said: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    external(folder / "net.onnx", location)
    with pytest.raises(ModelError, match=said) as told:
        read(folder / "net.onnx", CATALOGUE)
    assert "\n" not in f"{told.value}"


@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 40), (1 << 40, 16384), (-4, 16384), (16000, None)])
def test_external_data_beyond_the_end_of_its_file_is_refused(tmp_path: Path, offset: int, length: int | None) -> None:
    external(tmp_path / "net.onnx", "w.bin", offset, length)
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(ModelError):
        read(tmp_path / "net.onnx", CATALOGUE)


def test_a_constant_without_elements_may_lie_in_an_empty_file(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> net (float[2] x) => (float[2] y)
      { y = Concat<axis = 0>(x, w) }""")
    tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[0])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").touch()
    found = read(tmp_path / "net.onnx", CATALOGUE).graph.initializers["w"].const_value
    assert found is not None and found.numpy().shape == (0,)


@pytest.mark.parametrize(
    "content",
    [
        {"string_data": [b"a"]},
        {"raw_data": b"ab"},
        {
            "data_location": TensorProto.EXTERNAL,
            "external_data": [onnx.StringStringEntryProto(key="location", value="w.bin")],
        },
    ],
)
def test_a_constant_of_other_strings_than_its_shape_says_is_refused(tmp_path: Path, content: Any) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> net (string[2] x) => (string[4] y)
      { y = Concat<axis = 0>(x, w) }""")
    model.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.STRING, dims=[2], **content))
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").write_bytes(b"ab")
    with pytest.raises(ModelError, match=r"malformed: w of shape \[2\] has not that many strings"):
        read(tmp_path / "net.onnx", CATALOGUE)


def test_external_data_of_bytes_has_no_folder(tmp_path: Path) -> None:
    external(tmp_path / "net.onnx", "w.bin")
    with pytest.raises(ModelError, match="give its path"):
        read((tmp_path / "net.onnx").read_bytes(), CATALOGUE)


def test_what_is_in_a_graph_twice_or_from_nowhere_is_told() -> None:
    twice = product()
    twice.graph.node.append(helper.make_node("Relu", ["x"], ["y"]))
    nowhere = product()
    nowhere.graph.output[0].name = "elsewhere"
    for model in (twice, nowhere):
        with pytest.raises(ModelError):
            read(model.SerializeToString(), CATALOGUE)


def test_cycles_are_refused() -> None:
    model = product()
    model.graph.node[0].input[0] = "z"
    with pytest.raises(RewriteError) as told:
        rewrite(model.SerializeToString())
    assert "internal error" not in f"{told.value}"


def test_operators_of_other_domains_stay() -> None:
    model = product()
    model.graph.node[1].domain, model.graph.node[1].op_type = "com.example", "Twist"
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    written = rewrite(model.SerializeToString()).model
    assert [(node.domain, node.op_type) for node in written.graph.node][-1] == ("com.example", "Twist")
    assert {one.domain: one.version for one in written.opset_import}["com.example"] == 3


def test_weights_that_an_exporter_lists_as_inputs_out_of_habit_are_constants() -> None:
    model = product()
    for number in range(8):
        model.graph.initializer.append(numpy_helper.from_array(WEIGHTS[:1], f"w{number}"))
        model.graph.node.insert(0, helper.make_node("Identity", [f"w{number}"], [f"unused{number}"]))
    model.graph.input.extend(
        helper.make_tensor_value_info(one.name, TensorProto.FLOAT, one.dims) for one in model.graph.initializer
    )
    assert [value.name for value in read(model.SerializeToString(), CATALOGUE).graph.inputs] == ["x"]


def test_results_that_are_sequences_stay() -> None:
    model = product()
    model.graph.node[1].CopyFrom(helper.make_node("SequenceConstruct", ["y", "y"], ["z"]))
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("z", TensorProto.FLOAT, None))
    assert rewrite(model.SerializeToString()).model.graph.output == model.graph.output


def test_functions_of_a_model_stand_where_they_are_called() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "own": 1]> net (float[n, 3] x) => (float[n, 3] y)
      { t = own.scaled<k: float = 3.0>(x)  y = own.scaled<k: float = 1.0>(t) }
      <domain: "own", opset_import: ["": 17, "own": 1]> scaled<k: float = 2.0> (a) => (b)
      { c = Constant<value_float: float = @k>()  d = own.inner(a)  b = Mul(d, c) }
      <domain: "own", opset_import: ["": 17, "own": 1]> inner (a) => (b) { b = Erf(a) }"""
    made = rewrite(onnx.parser.parse_model(text).SerializeToString()).model
    assert [node.op_type for node in made.graph.node] == ["Erf", "Mul", "Erf"]
    assert not made.functions


@pytest.mark.parametrize("indices", [[0, 5, 11], [[0, 0], [1, 1], [2, 3]]])
def test_sparse_constants_have_all_their_elements(indices: list[int]) -> None:
    places = numpy_helper.from_array(np.array(indices, np.int64), "places")
    values = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    model = product()
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [64, 64]))
    model.graph.sparse_initializer[0].dims[:] = [3, 4]
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    found = read(model.SerializeToString(), CATALOGUE).graph.initializers["w"].const_value
    assert found is not None
    np.testing.assert_array_equal(found.numpy(), [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 3]])


def test_a_sparse_constant_with_elements_outside_of_it_is_malformed() -> None:
    model = product()
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(
        onnx.SparseTensorProto(values=values, indices=numpy_helper.from_array(np.array([12])), dims=[3, 4])
    )
    with pytest.raises(ModelError, match="sparse constant w has elements outside of"):
        read(model.SerializeToString(), CATALOGUE)


@pytest.mark.slow
def test_sparse_constants_that_take_too_much_together_are_refused() -> None:
    model = product()
    for place in range(9):
        values = helper.make_tensor(f"s{place}", TensorProto.INT8, [1], [1])
        indices = numpy_helper.from_array(np.array([place]))
        model.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=[1 << 25]))
    with pytest.raises(ModelError, match=r"sparse constant s8 of shape \[33554432\] takes more bytes than the 0 that"):
        read(model.SerializeToString(), CATALOGUE)


def test_numbers_that_no_extent_and_no_tensor_has_are_refused() -> None:
    below = product()
    below.graph.initializer[0].dims[0] = -64
    longer = product()
    longer.graph.initializer[0].data_type = TensorProto.INT4
    kind = product()
    kind.graph.initializer[0].data_type = 77
    twice = product()
    twice.graph.node.append(helper.make_node("Abs", ["x"], [twice.graph.node[0].output[0]]))
    within = helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="own")], [])
    calls = product()
    calls.functions.append(within)
    for model, said in (
        (kind, "77 is not a valid DataType"),
        (twice, "is redeclared in the current graph scope"),
        (calls, "functions must not be recursive"),
        (below, "w has the shape [-64, 64]"),
        (longer, "w: shape [64, 64] of INT4 takes 2048 bytes, its buffer has 16384"),
    ):
        with pytest.raises(ModelError, match="malformed: ") as caught:
            read(model.SerializeToString(), CATALOGUE)
        assert said in f"{caught.value}"


def test_calls_of_functions_have_the_defaults_of_these() -> None:
    """Also within functions and branches, and nothing that a call says is replaced."""
    text = """
        <ir_version: 9, opset_import: ["": 18, "own": 1]>
        net (float[3] x, bool c) => (float[3] y, float[3] z) {
            u = own.G(x)
            v = own.F <alpha = 0.5> (u)
            y = If (c) <
                then_branch = yes () => (float[3] a) { a = own.F(v) },
                else_branch = no () => (float[3] b) { b = Neg(v) }
            >
            z = own.F(y)
        }
        <opset_import: ["": 18], domain: "own">
        F <alpha: float = 0.125> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }
        <opset_import: ["": 18, "own": 1], domain: "own">
        G (x) => (y) { y = own.F(x) }
    """
    found = read(onnx.parser.parse_model(text).SerializeToString(), CATALOGUE)
    slopes = [node.attributes.get_float("alpha") for node in found.graph.all_nodes() if node.op_type == "LeakyRelu"]
    assert slopes == [0.125, 0.5, 0.125, 0.125]


def test_what_a_call_leaves_out_is_left_out_where_it_is_handed_on() -> None:
    text = """
        <ir_version: 9, opset_import: ["": 18, "own": 1]>
        net (float[3] x) => (float[3] y, float[3] z) {
            y = own.H(x)
            z = own.H <alpha = 0.5> (x)
        }
        <opset_import: ["": 18, "own": 1], domain: "own">
        H <alpha> (x) => (y) { y = own.G <beta: float = @alpha> (x) }
        <opset_import: ["": 18, "own": 1], domain: "own">
        G <beta> (x) => (y) { y = own.F <alpha: float = @beta> (x) }
        <opset_import: ["": 18], domain: "own">
        F <alpha: float = 0.125> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }
    """
    found = read(onnx.parser.parse_model(text).SerializeToString(), CATALOGUE)
    assert [node.attributes.get_float("alpha") for node in found.graph] == [0.125, 0.5]


def _read_text(opsets: str, declared: str, body: str) -> None:
    text = f"<ir_version: 8, opset_import: [{opsets}]> net (float[3] x) => ({declared} y) {{ {body} }}"
    read(onnx.parser.parse_model(text).SerializeToString(), CATALOGUE)


def test_an_operator_that_the_standard_lacks_is_refused() -> None:
    with pytest.raises(
        ModelError, match="malformed: node Nonsense is of the operator Nonsense, which opset 18 does not have"
    ):
        _read_text('"": 18', "float[3]", "y = Nonsense(x)")
    with pytest.raises(ModelError, match="operator Gelu, which opset 19 does not have"):
        _read_text('"": 19', "float[3]", "y = Gelu(x)")


def test_operators_of_runtimes_in_the_domain_of_the_standard_are_read() -> None:
    _read_text('"": 11', "float[3]", "y = LayerNormalization(x, x)")  # of the standard from opset 17 on
    _read_text('"": 18, "com.microsoft": 1', "float[3]", "y = Nonsense(x)")  # which is looked for there too


def test_functions_of_another_opset_stand_where_they_are_called_if_their_operators_are_the_same() -> None:
    text = """<ir_version: 8, opset_import: ["": 18, "local": 1]>
      net (float[3] x) => (float[3] y) { y = local.twice(x) }
      <domain: "local", opset_import: ["": 16]> twice (a) => (b) { b = Add(a, a) }"""
    model = read(onnx.parser.parse_model(text).SerializeToString(), CATALOGUE)
    assert [node.op_type for node in model.graph] == ["Add"]


def _call(body: str, opset: int) -> bytes:
    """A model of opset 18 that calls a function of another."""
    text = f"""<ir_version: 8, opset_import: ["": 18, "local": 1]>
      net (float[2, 3] x) => (float[M, N] y) {{ y = local.f(x) }}
      <domain: "local", opset_import: ["": {opset}]> f (a) => (b) {{ b = {body} }}"""
    return onnx.parser.parse_model(text).SerializeToString()


def test_functions_of_another_opset_stand_where_they_are_called_if_their_nodes_mean_the_same() -> None:
    for body, opset in (("LeakyRelu(a)", 15), ("Softmax<axis = 0>(a)", 20), ("ReduceMax(a)", 13)):
        assert len(read(_call(body, opset), CATALOGUE).graph) == 1
    for body, opset in (("Squeeze<axes = [0]>(a)", 11), ("Softmax<axis = 1>(a)", 11), ("ReduceMax<axes = [0]>(a)", 13)):
        with pytest.raises(ModelError, match=f"function f of local is of opset {opset}, and its [A-Z][A-Za-z]+ is not"):
            read(_call(body, opset), CATALOGUE)


def test_an_output_declared_of_another_type_than_it_is_is_refused() -> None:
    with pytest.raises(ModelError, match="malformed: output y is declared FLOAT, and is INT64"):
        _read_text('"": 18', "float[1]", "y = Shape(x)")


def test_an_order_of_other_axes_than_there_are_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (float[N, 3] x) => (float[N, 3] y)
      { a = Transpose<perm = [0, 2, 1]>(x)  b = Relu(a)  y = Transpose<perm = [1, 0]>(b) }"""
    with pytest.raises(RewriteError, match=r"\[0, 2, 1\] is no order of the 2 axes of x|perm"):
        rewrite(onnx.parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_axes_of_old_models_may_be_counted_from_the_end(opset: int) -> None:
    given = "float[1, 3, 4] x, float[1, 3, 4] z"
    text = f"""<ir_version: 6, opset_import: ["": {opset}]> net ({given}) => (float y)
      {{ a = Unsqueeze<axes = [-3]>(x)  b = Unsqueeze<axes = [-3]>(z)  c = Concat<axis = -3>(a, b)
        y = Relu(c) }}"""
    data = onnx.parser.parse_model(text).SerializeToString()
    model = rewrite(data).graph
    assert [one.shape for one in model.outputs] == [[1, 2, 3, 4]]
    lite = rewrite(data, to="tflite").graph
    assert [one.shape for one in lite.outputs] == [[1, 2, 3, 4]]


@pytest.mark.parametrize("opset", [7, 10])
@pytest.mark.parametrize("axis", [1, -2])
def test_an_operator_of_one_axis_is_read_in_old_models(opset: int, axis: int) -> None:
    text = f"""<ir_version: 4, opset_import: ["": {opset}]> net (float[2, 3, 4] x) => (int64[2, 4] y)
      {{ y = ArgMax<axis = {axis}, keepdims = 0>(x) }}"""
    model = rewrite(onnx.parser.parse_model(text).SerializeToString()).graph
    assert [one.shape for one in model.outputs] == [[2, 4]]


@pytest.mark.slow
def test_damaged_models_are_rewritten_or_refused_in_one_line() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> net (float[2, 3, 8, 8] x, bool c) => (float[N, M, K] y)
      <int64[3] s = {2, 4, -1}> {
        a = Conv<kernel_shape = [3, 3]>(x, w)  r = Relu(a)  t = Transpose<perm = [0, 2, 3, 1]>(r)
        z = If(c) <then_branch = g () => (float[2, 6, 6, 4] p) { p = Sigmoid(t) },
                   else_branch = h () => (float[2, 6, 6, 4] q) { q = Tanh(t) }>
        y = Reshape(z, s) }"""
    model = onnx.parser.parse_model(text)
    filters = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(filters, "w"))
    data, chance, ends = model.SerializeToString(), random.Random(5), Counter[str]()
    for _ in range(150):
        try:
            rewrite(damage_messages(data, chance))
            ends["rewritten"] += 1
        except RewriteError as error:
            assert not isinstance(error, InternalError), error
            ends["refused"] += 1
    assert min(ends["rewritten"], ends["refused"]) > 10


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("int64[1] x", "c = ConstantOfShape(s) y = Add(c, k)"),
        ("float[16777216] x", "c = Cast<to = 7>(x) y = Add(c, k)"),
        ("int64[1] x", "c = Expand(x, s) y = Mul(c, c)"),
        ("int64[1] x", "o = ConstantOfShape(s) h = Shape(o) c = ConstantOfShape(h) y = Cast<to = 7>(c)"),
    ],
)
def test_elements_of_long_lists_are_not_followed(inputs: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    infer, followed = onnx.shape_inference.infer_shapes, []

    def record(model: onnx.ModelProto, data_prop: bool = False) -> onnx.ModelProto:
        followed.append(data_prop)
        return onnx.ModelProto() if data_prop else infer(model)  # which would take gigabytes

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", record)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> net ({inputs}) => (y) <int64[1] s={{16777216}}, int64[1] k={{3}}>
        {{ {body} }}"""
    )
    read(model.SerializeToString(), CATALOGUE)
    assert followed == [False]

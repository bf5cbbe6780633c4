"""Exported PyTorch programs become models that compute what torch computed; whatever else torch writes is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nnrewrite.engine.base.errors import ModelError, UnsupportedError
from nnrewrite.engine.packs import loader
from nnrewrite.frontends import pt2_reader
from nnrewrite.frontends.pickled_tensors import read_tensors
from nnrewrite.frontends.pt2_extents import read_extent
from nnrewrite.frontends.pt2_names import find_functional, list_functional_names, make_operator_name, split_target

FOLDER = Path(__file__).parent / "pt2"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt2"))


def recorded(name: str) -> tuple[list[Any], list[Any]]:
    """The inputs of a program, and what torch computed of them."""
    arrays = np.load(FOLDER / f"{name}.npz")
    inputs = [arrays[key] for key in sorted(arrays.files) if key.startswith("input")]
    return inputs, [arrays[key] for key in sorted(arrays.files) if key.startswith("output")]


def run(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {one.name: array for one, array in zip(model.graph.input, inputs, strict=False)})


def read(name: str) -> ir.Model:
    return pt2_reader.read(FOLDER / f"{name}.pt2", loader.load(("aten2onnx",)).catalogue)


def altered(name: str, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The bytes of a program in which members are others, or missing."""
    stream = io.BytesIO()
    with zipfile.ZipFile(FOLDER / f"{name}.pt2") as old, zipfile.ZipFile(stream, "w") as new:
        for member in old.namelist():
            content = change(member, old.read(member))
            if content is not None:
                new.writestr(member, content)
    return stream.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_program_computes_what_torch_computed(name: str) -> None:
    inputs, expected = recorded(name)
    results = run(nnrewrite.convert(FOLDER / f"{name}.pt2"), inputs)
    assert len(results) >= len(expected)
    for found, wanted in zip(results, expected, strict=False):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_codes_of_computed_scales_are_products_with_the_reciprocal() -> None:
    nodes = nnrewrite.convert(FOLDER / "codes.pt2").graph.node
    by_result = {node.output[0]: node for node in nodes}
    computed = [node for node in nodes if node.op_type == "QuantizeLinear" and node.input[0] in by_result]
    assert [by_result[node.input[0]].op_type for node in computed] == ["Mul"]


def test_the_bytes_of_a_program_convert_as_its_file_does() -> None:
    path = FOLDER / "attention.pt2"
    assert nnrewrite.convert(path.read_bytes()) == nnrewrite.convert(path)


def test_the_bytes_of_a_program_are_known_whatever_it_is_called() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(FOLDER / "views.pt2") as old, zipfile.ZipFile(stream, "w") as new:
        for member in old.namelist():
            new.writestr(f"{'a_name_of_a_model_that_is_long' * 8}/{member.partition('/')[2]}", old.read(member))
    assert len(nnrewrite.convert(stream.getvalue()).graph.node) == len(
        nnrewrite.convert(FOLDER / "views.pt2").graph.node
    )


def test_a_dimension_exported_as_free_takes_any_extent() -> None:
    (x, mask), _ = recorded("attention")
    model = nnrewrite.convert(FOLDER / "attention.pt2")
    twice = run(model, [np.concatenate([x, x]), np.concatenate([mask, mask])])[0]
    np.testing.assert_allclose(twice[:2], twice[2:], rtol=1e-5)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, "dynamic"])
def test_a_program_exported_for_two_samples_takes_more(batch: int | str) -> None:
    inputs, expected = recorded("image")
    results = run(nnrewrite.convert(FOLDER / "image.pt2", batch=batch), [np.concatenate([x, x]) for x in inputs])
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, np.concatenate([wanted, wanted]), rtol=1e-4, atol=1e-5)


def test_a_program_that_goes_along_its_samples_is_refused_another_batch() -> None:
    with pytest.raises(nnrewrite.RewriteError, match=r"aten.gru.input@main:4 forbids .*: it works along the samples"):
        nnrewrite.convert(FOLDER / "recurrent.pt2", batch=4)


def test_a_buffer_that_is_written_to_is_an_input_and_an_output() -> None:
    (x,), _ = recorded("views")
    model = nnrewrite.convert(FOLDER / "views.pt2")
    assert [one.name for one in model.graph.input][1:] == ["count"]
    assert [one.name for one in model.graph.output][-1] == "count_out"
    np.testing.assert_array_equal(run(model, [x])[-1], np.ones(3))
    np.testing.assert_array_equal(run(model, [x, np.full(3, 4, np.float32)])[-1], np.full(3, 5))


@pytest.mark.slow
def test_a_buffer_that_is_written_to_is_a_variable_of_tensorflow_lite() -> None:
    found = nnrewrite.rewrite(FOLDER / "views.pt2", to="tflite")
    assert len(found.graph.inputs) == 1 and len(found.graph.outputs) == 3
    assert {"CALL_ONCE", "READ_VARIABLE", "ASSIGN_VARIABLE"} <= {*found.report.target_operators}


def test_a_part_has_the_state_that_it_needs() -> None:
    names = [one.name for one in nnrewrite.convert(FOLDER / "views.pt2").graph.output]
    part = nnrewrite.convert(FOLDER / "views.pt2", outputs=(names[0],))
    assert [one.name for one in part.graph.input] == ["x"] and [one.name for one in part.graph.output] == names[:1]
    kept = nnrewrite.convert(FOLDER / "views.pt2", outputs=("add_",))
    assert [one.name for one in kept.graph.input] == ["x", "count"]
    assert [one.name for one in kept.graph.output] == ["add_", "count_out"]


def test_state_that_stays_inside_is_no_input() -> None:
    model = nnrewrite.convert(FOLDER / "views.pt2", state="internal")
    assert len(model.graph.input) == 1


@pytest.mark.slow
def test_tied_weights_are_one_constant() -> None:
    graph = read("views").graph
    linear = [node for node in graph if node.op_type == "LINEAR"]
    assert linear[0].inputs[1] is linear[1].inputs[1]


def test_a_strided_weight_has_the_elements_that_torch_sees() -> None:
    graph = read("views").graph
    (turned,) = [value for value in graph.initializers.values() if value.name == "turned"]
    assert turned.const_value is not None and list(turned.const_value.shape) == [3, 4]


def test_nodes_are_called_like_the_modules_they_come_from() -> None:
    names = {node.name for node in read("attention").graph}
    assert any(name is not None and name.startswith("inner/query/") for name in names)


def test_graphs_of_nodes_follow_the_main_graph() -> None:
    model = read("loops")
    assert model.meta["subgraphs"][0] is model.graph
    assert len(model.meta["subgraphs"]) == 7


def test_schema_of_another_major_version_is_refused() -> None:
    def change(member: str, content: bytes) -> bytes:
        if not member.endswith("models/model.json"):
            return content
        return json.dumps({**json.loads(content), "schema_version": {"major": 9, "minor": 1}}).encode()

    with pytest.raises(ModelError, match=r"schema version 9\.1"):
        nnrewrite.convert(altered("views", change))


@pytest.mark.parametrize("missing", ["model_weights_config.json", "models/model.json", "weight_0"])
def test_an_archive_that_lacks_a_member_is_refused(missing: str) -> None:
    with pytest.raises(ModelError, match=r"there is no|no exported program"):
        nnrewrite.convert(altered("views", lambda member, content: None if member.endswith(missing) else content))


def test_a_weight_shorter_than_its_shape_is_refused() -> None:
    with pytest.raises(ModelError, match="ends behind"):
        nnrewrite.convert(altered("views", lambda member, content: content[:4] if "/weight_0" in member else content))


def test_a_weight_whose_elements_lie_upon_each_other_without_bound_is_refused() -> None:
    def change(member: str, content: bytes) -> bytes:
        if "/weight_0" in member:
            return bytes(200_000)
        if not member.endswith("model_weights_config.json"):
            return content
        table = json.loads(content)
        meta = table["config"]["tied"]["tensor_meta"]
        meta["sizes"], meta["strides"] = [{"as_int": 25_000}] * 2, [{"as_int": 1}] * 2
        return json.dumps(table).encode()

    with pytest.raises(ModelError, match=r"tied.* would unpack to 625000000 elements of 50000"):
        nnrewrite.convert(altered("views", change))


def test_a_pickled_weight_is_not_run() -> None:
    def change(member: str, content: bytes) -> bytes:
        return content.replace(b'"use_pickle": false', b'"use_pickle": true')

    with pytest.raises(ModelError, match=r"pickled.*unwrap_tensor_subclass"):
        nnrewrite.convert(altered("views", change))


@pytest.mark.parametrize(
    ("name", "weights"), [("views_2_6", "serialized_state_dict.pt"), ("views_2_8", "weights/model.pt")]
)
def test_a_pickle_of_weights_is_read_and_never_run(name: str, weights: str, tmp_path: Path) -> None:
    """What torch before 2.9 wrote names functions that rebuild tensors; in what others write they may be any."""
    path, ran = tmp_path / "model.pt2", tmp_path / "ran"

    def change(member: str, content: bytes) -> bytes:
        if not member.endswith(weights):
            return content
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
            for inner in old.namelist():
                call = b"\x80\x02cos\nmkdir\nX" + len(os.fsencode(ran)).to_bytes(4, "little") + os.fsencode(ran)
                new.writestr(inner, call + b"\x85R." if inner.endswith("data.pkl") else old.read(inner))
        return stream.getvalue()

    path.write_bytes(altered(name, change))
    with pytest.raises(ModelError, match="its tensors are not in a dictionary"):
        nnrewrite.convert(path)
    assert not ran.exists()


@given(st.binary(max_size=24), st.integers(0, 1 << 12))
def test_a_damaged_pickle_of_weights_is_read_or_refused(bits: bytes, place: int) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(FOLDER / "views_2_6.pt2") as file:
        saved = zipfile.ZipFile(io.BytesIO(file.read("serialized_state_dict.pt")))
    with zipfile.ZipFile(stream, "w") as new:
        for member in saved.namelist():
            content = saved.read(member)
            if member.endswith("data.pkl"):
                start = place % len(content)
                content = content[:start] + bits + content[start + len(bits) :]
            new.writestr(member, content)
    with contextlib.suppress(ModelError):
        read_tensors(memoryview(stream.getvalue()), "model")


@pytest.mark.parametrize("words", [b"aten.linear", b"torch.ops.aten.relu_"])
def test_an_operator_without_a_rule_is_refused_by_name(words: bytes) -> None:
    def change(member: str, content: bytes) -> bytes:
        return content.replace(words, words[: words.rindex(b".") + 1] + b"unheard_of")

    content = altered("views", change)
    for rules in (("aten2onnx",), ("aten2onnx", "onnx2tflite")):
        with pytest.raises(nnrewrite.UnsupportedError, match="UNHEARD_OF") as caught:
            nnrewrite.rewrite(content, rules=rules)
        assert not caught.value.advice
    with pytest.raises(nnrewrite.UnsupportedError, match="UNHEARD_OF"):
        nnrewrite.convert(content)


def test_a_checkpoint_is_refused_with_the_lines_that_export_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_bytes(pickle.dumps({"weight": [1.0]}))
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        archive.writestr("script/data.pkl", b"")
        archive.writestr("script/code/__torch__.py", "")
    for name in ("model.pth", "script.pt"):
        with pytest.raises(ModelError, match=r"torch\.export\.save"):
            nnrewrite.convert(tmp_path / name)


@pytest.mark.parametrize(
    "junk", [b"{}", b"[1]", b"null", b'{"schema_version": {"major": 8, "minor": 0}}', b"no json", b"[" * 100_000]
)
def test_a_program_that_is_malformed_is_refused_in_one_line(junk: bytes) -> None:
    content = altered("views", lambda member, old: junk if member.endswith("models/model.json") else old)
    with pytest.raises(ModelError) as caught:
        nnrewrite.convert(content)
    assert "\n" not in f"{caught.value}" and "Type" not in f"{caught.value}"


@pytest.mark.parametrize("number", [b"99999999999999999999", b"-9223372036854775809", b"1e400", b"Infinity"])
def test_numbers_that_torch_does_not_write_are_refused(number: bytes) -> None:
    def change(member: str, content: bytes) -> bytes:
        return re.sub(rb'"as_int": \d+', b'"as_int": ' + number, content) if member.endswith("model.json") else content

    with pytest.raises(ModelError, match="malformed") as told:
        nnrewrite.convert(altered("attention", change))
    assert "\n" not in f"{told.value}"


def test_a_number_in_the_place_of_a_list_is_refused() -> None:
    def change(member: str, content: bytes) -> bytes:
        return re.sub(rb'"as_ints": \[.*?\]', b'"as_int": 1', content) if member.endswith("model.json") else content

    with pytest.raises(ModelError, match=r"malformed program: ValueError the option .* is given no list"):
        nnrewrite.convert(altered("image", change))


def test_scales_that_are_not_one_for_each_channel_are_refused() -> None:
    def change(member: str, content: bytes) -> bytes:
        if not member.endswith("config.json"):
            return content
        table = json.loads(content)
        for one in table["config"].values():
            meta = one["tensor_meta"]
            meta["sizes"] = [{"as_int": 2}] if len(meta["sizes"]) == 1 else meta["sizes"]
        return json.dumps(table).encode()

    with pytest.raises(UnsupportedError, match="there is not one scale for each place along axis 0"):
        nnrewrite.convert(altered("codes", change))


def test_a_file_that_was_cut_off_is_said_to_be_truncated() -> None:
    with pytest.raises(ModelError, match="truncated"):
        nnrewrite.convert((FOLDER / "views.pt2").read_bytes()[:-100])


@pytest.mark.slow
def test_a_member_that_would_unpack_without_bound_is_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/models/model.json", b" " * (1 << 28))
    with pytest.raises(ModelError, match="unpack"):
        nnrewrite.convert(stream.getvalue())


def test_names_of_operators_are_those_of_torch_in_capitals() -> None:
    assert make_operator_name("aten", "add", "Tensor") == "ADD_TENSOR"
    assert make_operator_name("aten", "_softmax", "default") == "SOFTMAX_"
    assert make_operator_name("aten", "__and__", "Tensor") == "AND_TENSOR"
    assert make_operator_name("quantized_decomposed", "quantize_per_tensor", "default").startswith(
        "QUANTIZED_DECOMPOSED_"
    )
    assert [find_functional(name) for name in ("add_", "add", "__iand__", "__and__")] == [
        "add",
        "add",
        "__and__",
        "__and__",
    ]
    assert list_functional_names("aten", "floor_divide_", "Tensor")[1] == "FLOOR_DIVIDE"
    assert list_functional_names("aten", "pow_", "Tensor")[2] == "POW_TENSOR_TENSOR"
    assert list_functional_names("aten", "pow", "Tensor") == ["POW_TENSOR"]
    assert list_functional_names("aten", "normal_", "default")[3] == "NORMAL_FUNCTIONAL"
    assert list_functional_names("aten", "add", "out") == ["ADD", "ADD_TENSOR"]
    assert list_functional_names("aten", "clamp", "Tensor_out") == ["CLAMP_TENSOR"]
    assert list_functional_names("aten", "frexp", "Tensor_out", ["self", "mantissa", "exponent"]) == [
        "FREXP_TENSOR_OUT"
    ]
    assert split_target("torch.ops.aten.add.Tensor") == ("aten", "add", "Tensor")
    assert split_target("torch.ops.higher_order.cond") == ("higher_order", "cond", "default")
    assert split_target("_operator.mul") == ("_operator", "mul", "default")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Symbol('s77', positive=True, integer=True)", "s77"),
        ("Mul(Integer(2), Symbol('s0', integer=True))", "2*s0"),
        ("Add(Symbol('a'), Mul(Integer(-1), Symbol('b')))", "a+((-1)*b)"),
        ("Integer(4)", 4),
        ("__import__('os').system('true')", None),
        ("(" * 500, None),
    ],
)
def test_symbolic_sizes_are_read_and_never_run(text: str, wanted: Any) -> None:
    assert read_extent({"as_expr": {"expr_str": text}}) == wanted

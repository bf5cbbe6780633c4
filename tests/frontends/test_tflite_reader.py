"""The reader represents a file faithfully, whatever the file says in its own way."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from flatbuffers import flexbuffers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnrewrite.backends.flatbuffer_writer import Union, encode
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.errors import ModelError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends import bundle, flexbuffer_reader
from nnrewrite.frontends.constant import ConstantError, Level, Sparsity, densify
from nnrewrite.frontends.flatbuffer_reader import make_schema
from nnrewrite.frontends.tflite_reader import Signature, read

Make = Callable[..., bytes]
FLOAT = 0
FLOAT16 = 1
INT8 = 9


@pytest.fixture
def built(catalogue: Catalogue) -> Callable[..., ir.Model]:
    """Read a model of one subgraph that is given as tables, so that it may say what no writer of ours says."""

    def build(
        tensors: list[dict[str, Any]],
        operators: list[dict[str, Any]],
        inputs: list[int],
        outputs: list[int],
        codes: tuple[dict[str, Any], ...] = ({"builtin_code": 101},),
        buffers: tuple[dict[str, Any], ...] = ({},),
    ) -> ir.Model:
        subgraph = {"tensors": tensors, "operators": operators, "inputs": inputs, "outputs": outputs}
        record = {"version": 3, "operator_codes": codes, "subgraphs": [subgraph], "buffers": buffers}
        parts = encode(make_schema(catalogue.find_dialect("tflite")), "Model", record, "TFL3")
        return read(b"".join(parts), catalogue)

    return build


def tensor(name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"shape": [2], "type": FLOAT, "name": name, **fields}


def operator(inputs: list[int], outputs: list[int], **fields: Any) -> dict[str, Any]:
    return {"opcode_index": 0, "inputs": inputs, "outputs": outputs, **fields}


# ---- operators -------------------------------------------------------------------------------------------------------


def test_an_operator_becomes_a_node_with_its_options(catalogue: Catalogue, single: Make) -> None:
    data = single(
        "CONV_2D",
        {"x": ("FLOAT32", [1, 4, 4, 3]), "w": np.ones((2, 1, 1, 3), np.float32), "b": None},
        [("FLOAT32", [1, 4, 2, 2])],
        padding="VALID",
        stride_w=2,
        fused_activation_function="RELU",
    )
    model = read(data, catalogue)
    (node,) = model.graph
    assert (node.domain, node.op_type, node.name) == ("tflite", "CONV_2D", "CONV_2D_0")
    assert [value and value.name for value in node.inputs] == ["x", "w", None]
    assert {name: a.value for name, a in node.attributes.items()} == {
        "padding": "VALID",
        "stride_w": 2,
        "fused_activation_function": "RELU",
    }
    assert node.metadata_props["nnrewrite.source"] == "CONV_2D@0:0"
    assert model.graph.inputs[0].shape == ir.Shape([1, 4, 4, 3])
    assert model.graph.inputs[0].dtype == ir.DataType.FLOAT


def test_an_unknown_enumerant_keeps_its_number(built: Callable[..., ir.Model]) -> None:
    options = Union("Pool2DOptions", {"padding": 9})
    model = built(
        [tensor("x"), tensor("y")], [operator([0], [1], builtin_options=options)], [0], [1], ({"builtin_code": 1},)
    )
    assert model.graph[0].attributes["padding"].value == "Padding(9)"


def test_an_unknown_operator_keeps_its_number(built: Callable[..., ir.Model]) -> None:
    model = built([tensor("x"), tensor("y")], [operator([0], [1])], [0], [1], ({"builtin_code": 4711},))
    assert (model.graph[0].domain, model.graph[0].op_type) == ("tflite", "BUILTIN_4711")


def test_the_code_of_older_files_counts_too(built: Callable[..., ir.Model]) -> None:
    codes = ({"deprecated_builtin_code": 101, "version": 2},)
    (node,) = built([tensor("x"), tensor("y")], [operator([0], [1])], [0], [1], codes).graph
    assert (node.op_type, node.version) == ("ABS", 2)


def test_options_of_another_operator_are_no_options(built: Callable[..., ir.Model]) -> None:
    options = Union("Pool2DOptions", {"padding": 1})
    model = built(
        [tensor("x"), tensor("y")], [operator([0], [1], builtin_options=options)], [0], [1], ({"builtin_code": 3},)
    )
    assert not model.graph[0].attributes


def test_options_of_a_custom_operator_become_attributes(catalogue: Catalogue, single: Make) -> None:
    data = single("Mine", {"x": ("FLOAT32", [1])}, [("FLOAT32", [1])], sizes=[1, -2], mode="fast", rate=0.5, deep=True)
    (node,) = read(data, catalogue).graph
    assert (node.domain, node.op_type) == ("tflite.custom", "Mine")
    assert {name: a.value for name, a in node.attributes.items()} == {
        "sizes": (1, -2),
        "mode": "fast",
        "rate": 0.5,
        "deep": 1,
    }


def test_options_of_a_custom_operator_that_are_no_map_are_kept(built: Callable[..., ir.Model]) -> None:
    raw = b"\1\2\3whatever"
    codes = ({"builtin_code": 32, "custom_code": "Mine"},)
    (node,) = built([tensor("x"), tensor("y")], [operator([0], [1], custom_options=raw)], [0], [1], codes).graph
    assert not node.attributes
    assert node.meta["custom_options"] == raw


def test_scratch_tensors_and_mutating_inputs_are_kept(built: Callable[..., ir.Model]) -> None:
    scratch = tensor("scratch", type=INT8, quantization={"scale": [0.5], "zero_point": [1]})
    state = tensor("state", is_variable=True)
    (node,) = built(
        [tensor("x"), state, tensor("y"), scratch],
        [operator([0, 1], [2], intermediates=[3], mutating_variable_inputs=[False, True])],
        [0],
        [2],
    ).graph
    assert node.inputs[1] is not None and node.inputs[1].meta["variable"]
    assert node.meta["mutating_variable_inputs"] == (False, True)
    (kept,) = node.meta["intermediates"]
    assert kept.meta["quantization"].scale.tolist() == [0.5]


# ---- values ----------------------------------------------------------------------------------------------------------


def test_constants_are_views_of_the_file(catalogue: Catalogue, single: Make, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(single("ADD", {"x": ("FLOAT32", [2]), "y": np.array([1, 2], np.float32)}, [("FLOAT32", [2])]))
    content = read(path, catalogue).graph.initializers["y"].const_value
    assert content is not None
    array = content.numpy()
    assert array.tolist() == [1, 2]
    assert not array.flags.owndata and not array.flags.writeable


def test_names_are_never_empty_and_never_twice(built: Callable[..., ir.Model]) -> None:
    tensors = [tensor("same"), tensor(), tensor("same"), tensor("same_0"), tensor("same")]
    operators = [operator([0], [1]), operator([1], [2]), operator([2], [3]), operator([3], [4])]
    graph = built(tensors, operators, [0], [4]).graph
    names = [graph.inputs[0].name, *(node.outputs[0].name for node in graph)]
    assert names == ["same", "tensor_1", "same_2", "same_0", "same_4"]


def test_inputs_and_outputs_keep_their_names_before_others(built: Callable[..., ir.Model]) -> None:
    graph = built([tensor("y"), tensor("y"), tensor("x")], [operator([2], [0]), operator([0], [1])], [2], [1]).graph
    assert [value.name for value in graph.outputs] == ["y"]
    assert graph[0].outputs[0].name == "y_0"


def test_outputs_may_repeat_be_inputs_or_constants(built: Callable[..., ir.Model]) -> None:
    data = np.array([1, 2], np.float32).tobytes()
    tensors = [tensor("x"), tensor("y"), tensor("c", buffer=1)]
    graph = built(tensors, [operator([0], [1])], [0], [1, 1, 0, 2], buffers=({}, {"data": data})).graph
    assert [value.name for value in graph.outputs] == ["y", "y", "x", "c"]
    assert graph.outputs[3].const_value is not None


def test_a_tensor_written_twice_is_two_values(built: Callable[..., ir.Model]) -> None:
    operators = [operator([0], [1]), operator([1], [2]), operator([2], [1]), operator([1], [3])]
    graph = built([tensor("x"), tensor("t"), tensor("u"), tensor("y")], operators, [0], [3, 1]).graph
    first, _, second, last = list(graph)
    assert first.outputs[0] is not second.outputs[0]
    assert last.inputs[0] is second.outputs[0] is graph.outputs[1]
    assert second.outputs[0].name == "t"


def test_unknown_dimensions_are_named_after_the_input(catalogue: Catalogue, single: Make) -> None:
    data = single("ABS", {"x": ("FLOAT32", [None, 3])}, [("FLOAT32", [None, 3])])
    graph = read(data, catalogue).graph
    assert str(graph.inputs[0].shape) == "[x_d0,3]"
    assert graph.inputs[0].meta["static_shape"] == (1, 3)
    assert str(graph.outputs[0].shape) == "[None,3]"


@pytest.mark.parametrize(("operator", "extents"), [("ABS", "[None,3]"), ("SOFTMAX", "[1,3]")])
def test_extents_of_what_works_element_by_element_are_free_where_those_of_its_operand_are(
    catalogue: Catalogue, single: Make, operator: str, extents: str
) -> None:
    data = single(operator, {"x": ("FLOAT32", [None, 3])}, [("FLOAT32", [1, 3])])
    assert str(read(data, catalogue).graph.outputs[0].shape) == extents


def test_a_number_of_images_that_is_stated_of_free_ones_is_not_believed(catalogue: Catalogue, single: Make) -> None:
    operands = {"x": ("FLOAT32", [None, 4, 4, 1]), "size": np.array([8, 8], np.int32)}
    data = single("RESIZE_BILINEAR", operands, [("FLOAT32", [2, 8, 8, 1])])
    assert read(data, catalogue).graph.outputs[0].shape is None
    data = single("RESIZE_BILINEAR", operands, [("FLOAT32", [None, 8, 8, 1])])
    assert str(read(data, catalogue).graph.outputs[0].shape) == "[None,8,8,1]"


def test_diagonal_matrices_have_an_axis_more_whatever_is_stated(catalogue: Catalogue, single: Make) -> None:
    data = single("MATRIX_DIAG", {"x": ("FLOAT32", [2, 3, 3])}, [("FLOAT32", [2, 3, 3])])
    assert read(data, catalogue).graph.outputs[0].shape is None


def test_no_shape_and_no_rank_is_an_unknown_rank(built: Callable[..., ir.Model]) -> None:
    tensors = [tensor("x", shape=None), tensor("y", shape=None), tensor("z", shape=None, has_rank=True)]
    graph = built(tensors, [operator([0], [1]), operator([1], [2])], [0], [2]).graph
    assert graph.inputs[0].shape is None
    assert graph[0].outputs[0].shape is None
    assert graph[1].outputs[0].shape == ir.Shape([])


def test_empty_tensors_need_no_buffer(built: Callable[..., ir.Model]) -> None:
    graph = built([tensor("none", shape=[0]), tensor("y", shape=[0])], [operator([0], [1])], [], [1]).graph
    content = graph.initializers["none"].const_value
    assert content is not None and content.numpy().shape == (0,)


def test_packed_integers_are_not_unpacked(built: Callable[..., ir.Model]) -> None:
    tensors = [tensor("w", type=17, shape=[3], buffer=1), tensor("y")]
    graph = built(tensors, [operator([0], [1])], [], [1], buffers=({}, {"data": b"\x21\x0f"})).graph
    content = graph.initializers["w"].const_value
    assert isinstance(content, ir.PackedTensor)
    assert content.numpy().astype(int).tolist() == [1, 2, -1]


def test_element_types_that_onnx_lacks_are_kept_by_name(built: Callable[..., ir.Model]) -> None:
    (node,) = built([tensor("handle", type=13)], [operator([], [0])], [], [0]).graph
    assert node.outputs[0].type is None
    assert node.outputs[0].meta["type"] == "RESOURCE"


def test_a_list_of_tensors_is_a_tensor_of_its_items(built: Callable[..., ir.Model]) -> None:
    items = [{"shape": [0, 4, -1], "type": INT8, "has_rank": True}]
    tensors = [
        tensor("known", type=14, variant_tensors=items),
        tensor("unranked", type=14, variant_tensors=[{"shape": [], "type": FLOAT}]),
        tensor("mixed", type=14, variant_tensors=items * 2),
    ]
    graph = built(tensors, [operator([], [0]), operator([], [1]), operator([], [2])], [], [0]).graph
    known, unranked, mixed = (one.outputs[0] for one in graph)
    assert known.dtype == ir.DataType.INT8 and known.shape == ir.Shape([None, None, 4, None])
    assert unranked.dtype == ir.DataType.FLOAT and unranked.shape is None
    assert mixed.type is None and mixed.meta["type"] == "VARIANT"


@pytest.mark.parametrize(
    ("record", "shape", "want"),
    [
        ({"scale": [0.5], "zero_point": [3]}, [2], ([0.5], [3], 0)),
        ({"scale": [0.5]}, [2], ([0.5], [0], 0)),
        ({"scale": [1, 2], "zero_point": [0, 0], "quantized_dimension": 1}, [1, 2], ([1, 2], [0, 0], 1)),
        ({"scale": [1, 2], "zero_point": [7], "quantized_dimension": 1}, [1, 2], ([1, 2], [7, 7], 1)),
        ({"scale": [1, 2], "zero_point": [0, 0], "quantized_dimension": 3}, [2], ([1, 2], [0, 0], 0)),
    ],
)
def test_quantization_is_read(
    built: Callable[..., ir.Model], record: dict[str, Any], shape: list[int], want: tuple[list[float], list[int], int]
) -> None:
    x = tensor("x", type=INT8, shape=shape, quantization=record)
    found = built([x], [], [0], [0]).graph.inputs[0].meta["quantization"]
    assert (found.scale.tolist(), found.zero_point.tolist(), found.axis) == want


@pytest.mark.parametrize("named", [0, 1])
def test_scales_of_blocks_are_read_from_their_tensors(named: int, built: Callable[..., ir.Model]) -> None:
    details = Union("BlockwiseQuantization", {"scales": 1, "zero_points": 0, "block_size": 2})
    record = {"details": details, "quantized_dimension": named}
    scales = tensor("scales", type=FLOAT16, shape=[1, 2], buffer=1)
    buffers = ({}, {"data": np.float16([1, 2]).tobytes()})
    x = tensor("x", type=INT8, shape=[1, 4], quantization=record)
    found = built([x, scales], [], [0], [0], buffers=buffers).graph.inputs[0].meta["quantization"]
    assert (found.scale.tolist(), found.axis, found.block_size) == ([[1, 2]], 1, 2)
    assert found.scale.dtype == np.float16


def test_signatures_and_metadata_are_kept(catalogue: Catalogue, single: Make) -> None:
    model = read(single("ABS", {"x": ("FLOAT32", [1])}, [("FLOAT32", [1])]), catalogue)
    signature = Signature("serve", 0, {"image": "x"}, {"result": "output_0"})
    model.meta["signatures"] = (signature,)
    model.meta["metadata"] = {"min_runtime_version": b"1.5.0"}
    model.meta["description"] = "made by hand"
    again = read(write(model, catalogue), catalogue)
    assert again.meta["signatures"] == (signature,)
    assert again.meta["metadata"] == {"min_runtime_version": b"1.5.0"}
    assert again.meta["description"] == "made by hand"


# ---- sparse constants ------------------------------------------------------------------------------------------------


def rows(array: np.ndarray) -> Sparsity:
    """Compressed sparse rows of a matrix."""
    filled = [np.flatnonzero(row) for row in array]
    segments = np.cumsum([0, *map(len, filled)])
    levels = (Level(len(array)), Level(0, segments, np.concatenate(filled)))
    return Sparsity((0, 1), (), levels, array[array != 0])


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=4))
def test_compressed_rows_are_expanded(content: list[list[int]]) -> None:
    array = np.array(content)
    np.testing.assert_array_equal(densify(rows(array), array.shape, 100), array)


def test_compressed_blocks_are_expanded() -> None:
    # 4 x 4 in blocks of 2 x 2, of which the ones at (0, 1) and (1, 0) are there.
    levels = (Level(2), Level(0, np.array([0, 1, 2]), np.array([1, 0])), Level(2), Level(2))
    dense = densify(Sparsity((0, 1, 2, 3), (0, 1), levels, np.arange(1, 9)), (4, 4), 100)
    assert dense.tolist() == [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]


@pytest.mark.parametrize(
    "sparsity",
    [
        Sparsity((0, 0), (), (Level(2), Level(2)), np.zeros(4)),
        Sparsity((0, 1), (), (Level(2), Level(2)), np.zeros(3)),
        Sparsity((0, 1), (), (Level(2), Level(3)), np.zeros(6)),
        Sparsity((0, 1), (), (Level(2), Level(0, np.array([0, 1]), np.array([0]))), np.zeros(1)),
        Sparsity((0, 1), (), (Level(2), Level(0, np.array([0, 1, 2]), np.array([0, 9]))), np.zeros(2)),
        Sparsity((0, 1), (), (Level(1 << 30), Level(1 << 30)), np.zeros(1)),
    ],
)
def test_sparsity_that_contradicts_itself_is_refused(sparsity: Sparsity) -> None:
    with pytest.raises(ConstantError):
        densify(sparsity, (2, 2), 100)


# ---- FlexBuffers -----------------------------------------------------------------------------------------------------

plain = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e38, 1e38),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300),
)
flat = st.one_of(st.lists(st.integers(-9, 300), max_size=5), st.lists(st.text(max_size=3), max_size=5))
keys = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=5)


@pytest.mark.slow
@given(st.dictionaries(keys, plain | flat, max_size=6))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_flexbuffers_maps_are_read(content: dict[str, Any]) -> None:
    assert flexbuffer_reader.read_options(memoryview(bytes(flexbuffers.Dumps(content)))) == content


@given(st.binary(max_size=60))
def test_any_bytes_are_a_map_or_none(content: bytes) -> None:
    with contextlib.suppress(flexbuffer_reader.FlexBufferError):
        assert isinstance(flexbuffer_reader.read_options(memoryview(content)), dict)


def test_a_float_of_two_bytes_is_read() -> None:
    # {"a": 1.5}: key, keys (one, one byte wide), then the map two bytes wide.
    content = b"a\0" + b"\1\3" + b"\1\0\1\0\1\0" + b"\0\x3e" + b"\x0d" + b"\3" + b"\x25\1"
    assert flexbuffer_reader.read_options(memoryview(content)) == {"a": 1.5}


# ---- bundles ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def task(single: Make, tmp_path: Path) -> Path:
    """A bundle with stray bytes in front, models stored and compressed, and a bundle inside."""
    model = single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    inner, outer = tmp_path / "inner.task", tmp_path / "outer.task"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("nested.tflite", model)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("folder/stored.tflite", model)
        archive.writestr("deflated.tflite", model, zipfile.ZIP_DEFLATED)
        archive.writestr("NO_ENDING", model)
        archive.writestr("labels.txt", "cat")
        archive.write(inner, "inner.task")
    outer.write_bytes(b"stray bytes" + outer.read_bytes())
    return outer


def test_models_of_a_bundle_are_found(task: Path, catalogue: Catalogue) -> None:
    assert bundle.is_bundle(task)
    names = bundle.list_members(task)
    assert names == ["folder/stored.tflite", "deflated.tflite", "NO_ENDING", "inner.task/nested.tflite"]
    for name in names:
        assert read(bundle.open_member(task, name), catalogue, f"{task}:{name}").graph[0].op_type == "ABS"


def test_a_model_is_no_bundle_even_with_an_archive_behind_it(single: Make, tmp_path: Path) -> None:
    path = tmp_path / "labelled.tflite"
    path.write_bytes(single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "cat")
    assert not bundle.is_bundle(path)
    assert bundle.list_members(path) == []


def test_a_missing_member_is_named_with_those_there_are(task: Path) -> None:
    with pytest.raises(ModelError, match=r'there is no model "other" in this bundle, only "folder/stored\.tflite", '):
        bundle.open_member(task, "other")


# ---- real models -----------------------------------------------------------------------------------------------------


def test_real_models_are_read_or_refused_for_a_reason(models: list[Path], catalogue: Catalogue) -> None:
    refused = []
    for path in models:
        try:
            model = read(path, catalogue)
        except ModelError as error:
            refused.append(str(error))
            continue
        for graph in model.meta["subgraphs"]:
            for node in graph:
                spec = catalogue.find_spec(node)
                assert spec is not None or node.domain.endswith(".custom") or node.op_type.startswith("BUILTIN_")
                if spec is not None:
                    least, most = spec.count_operands()
                    assert least <= len(node.inputs) <= (most if most is not None else len(node.inputs)), node
    assert len(refused) <= len(models) // 20, "\n".join(refused)


def test_ops_yaml_agrees_with_itself() -> None:
    dialect = load().find_dialect("tflite")
    known = make_schema(dialect)
    builtin = [spec for spec in dialect.operators.values() if spec.domain == dialect.domain and not spec.when]
    assert len([spec for spec in builtin if "form" not in spec.traits]) == 210
    assert sorted(spec.code for spec in builtin if spec.code is not None) == list(range(210))
    scalars = {"bool", "string", "bytes", "subgraph", "float", "double"}
    for table, fields in known.tables.items():
        slots = [field.slot for field in fields.values()]
        assert len(set(slots)) == len(slots), table
        for field in fields.values():
            homes = (dialect.enums, known.tables, known.unions, scalars)
            assert any(field.type in home for home in homes) or field.code is not None, (table, field.name)
    for spec in dialect.operators.values():
        assert spec.table is None or known.find_union(spec.table) is not None, spec.name

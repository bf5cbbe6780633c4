"""Models written part by part: the same model as in one piece, in one file or in two, and nothing kept in memory."""

from __future__ import annotations

import mmap
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir
import pytest
from nnrewrite import rewrite
from nnrewrite.backends import probe, stream, tflite_writer
from nnrewrite.backends.stream import Encoded
from nnrewrite.engine.base.errors import DestinationError
from nnrewrite.engine.dialects.operators import Catalogue
from onnx_ir import serde

RNG = np.random.default_rng(0)
LARGE = stream.LARGE

TENSORS = {
    "float": ir.Tensor(RNG.random((3, LARGE), np.float32)),
    "transposed": ir.Tensor(RNG.random((700, 50, 61), np.float32).transpose(2, 0, 1)),
    "half": ir.Tensor(RNG.random((LARGE,)).astype(np.float16)),
    "bytes": ir.Tensor(RNG.integers(0, 255, (LARGE, 2)).astype(np.uint8)),
    "flags": ir.Tensor(RNG.random(LARGE) < 0.5),
    "packed": ir.PackedTensor(np.arange(LARGE + 1).astype(np.uint8), ir.DataType.INT4, shape=(2 * LARGE + 1,)),
    "nibbles": ir.Tensor(RNG.integers(-8, 7, 2 * LARGE + 1).astype(ir.DataType.INT4.numpy()), ir.DataType.INT4),
    "brain": ir.Tensor(RNG.random(LARGE).astype(ir.DataType.BFLOAT16.numpy()), ir.DataType.BFLOAT16),
    "lazy": ir.LazyTensor(
        lambda: ir.Tensor(np.arange(LARGE)), dtype=ir.DataType.INT64, shape=ir.Shape((LARGE,))
    ),
    "small": ir.Tensor(np.arange(7, dtype=np.int64)),
    "scalar": ir.Tensor(np.array(2.5, np.float32)),
    "words": ir.StringTensor([b"a" * LARGE, b"b"], shape=ir.Shape((2,))),
}  # fmt: skip


def holding(tensors: dict[str, ir.TensorProtocol]) -> ir.Model:
    """A model that yields each of some constants."""
    values = []
    for name, tensor in tensors.items():
        known = ir.TensorType(tensor.dtype)
        values.append(ir.Value(name=name, shape=ir.Shape(tensor.shape.numpy()), type=known, const_value=tensor))
    nodes = [ir.Node("", "Identity", [value], num_outputs=1) for value in values]
    for node, value in zip(nodes, values, strict=True):
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = f"{value.name}_out", value.type, value.shape
    graph = ir.Graph(
        [], [node.outputs[0] for node in nodes], nodes=nodes, initializers=values, opset_imports={"": 21}, name="g"
    )
    return ir.Model(graph, ir_version=10, producer_name="nnrewrite", metadata_props={"key": "value"})


def described(model: onnx.ModelProto) -> tuple[object, ...]:
    """What a model says, whatever the order of its constants."""
    constants = {
        tensor.name: (tensor.data_type, list(tensor.dims), onnx.numpy_helper.to_array(tensor).tobytes())
        for tensor in model.graph.initializer
        if tensor.data_type != onnx.TensorProto.STRING
    }
    words = {tensor.name: list(tensor.string_data) for tensor in model.graph.initializer}
    head = onnx.ModelProto()
    head.CopyFrom(model)
    head.ClearField("graph")
    body = model.graph
    return head.SerializeToString(), list(body.node), list(body.output), list(body.input), constants, words


def test_one_message_says_what_the_model_says_whatever_the_type_of_its_constants() -> None:
    model = holding(TENSORS)
    written = b"".join(Encoded.encode(model).list_parts())
    assert described(onnx.ModelProto.FromString(written)) == described(serde.serialize_model(model))
    onnx.checker.check_model(written, full_check=True)


def test_the_length_is_known_before_anything_is_written() -> None:
    encoded = Encoded.encode(holding(TENSORS))
    assert encoded.size == sum(map(len, encoded.list_parts()))
    assert encoded.make_proto().SerializeToString() and encoded.make_proto() is encoded.make_proto()
    assert described(encoded.make_proto()) == described(onnx.ModelProto.FromString(b"".join(encoded.list_parts())))


def test_constants_beside_the_model_are_read_back_from_the_second_file(tmp_path: Path) -> None:
    model = holding(TENSORS)
    head, parts = Encoded.encode(model).separate_weights("m.onnx.data")
    (tmp_path / "m.onnx").write_bytes(head)
    with (tmp_path / "m.onnx.data").open("wb") as file:
        stream.write(file, parts)
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    assert described(onnx.load(tmp_path / "m.onnx")) == described(serde.serialize_model(model))
    offsets = [
        int(entry.value)
        for tensor in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
        for entry in tensor.external_data
        if entry.key == "offset"
    ]
    assert len(offsets) == 9 and all(offset % mmap.PAGESIZE == 0 for offset in offsets)


def test_the_outline_is_checked_without_the_weights() -> None:
    encoded = Encoded.encode(holding(TENSORS))
    assert len(encoded.make_outline()) < 4 * LARGE
    onnx.checker.check_model(encoded.make_outline(), full_check=True)


def test_what_exceeds_a_message_is_refused_and_fits_into_two_files() -> None:
    huge = ir.LazyTensor(
        lambda: pytest.fail("the bytes are not wanted"), dtype=ir.DataType.FLOAT, shape=ir.Shape((1 << 29,))
    )
    encoded = Encoded.encode(holding({"huge": huge}))
    for wanted in (encoded.make_proto, lambda: next(encoded.list_parts())):
        with pytest.raises(stream.TooLargeError, match="exceeds the 2 GB"):
            wanted()
    onnx.checker.check_model(encoded.make_outline(), full_check=True)
    assert len(encoded.separate_weights("x.data")[0]) < 1000


def test_memory_into_which_a_mapped_file_was_read_is_given_back(tmp_path: Path) -> None:
    size = 1 << 25
    (tmp_path / "weights").write_bytes(bytes(size))
    with (tmp_path / "weights").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(memoryview(mapped), np.float32, offset=4096).reshape(-1, 1024).T
    before = resident()
    assert not array.any()
    assert resident() - before > size // 2
    stream.release(array)
    assert resident() - before < size // 2
    assert not array.any()


def resident() -> int:
    """How many bytes of the process are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.fixture(scope="module")
def perceptron(catalogue: Catalogue) -> bytes:
    """A layer with weights of more than a page, in an order that the target turns."""
    weights = RNG.standard_normal((8, 3, 3, 64)).astype(np.float32)
    return probe.write_operator_model(
        catalogue,
        "CONV_2D",
        {"x": ("FLOAT32", (1, 6, 6, 64)), "w": weights, "b": np.ones(8, np.float32)},
        [("FLOAT32", (1, 6, 6, 8))],
        padding="SAME", stride_h=1, stride_w=1,
    )  # fmt: skip


def test_weights_that_are_widened_are_computed_when_they_are_written(catalogue: Catalogue) -> None:
    half = RNG.standard_normal((8, 3, 3, 512)).astype(np.float16)
    convolution, float_ = catalogue.find_dialect("tflite"), ir.TensorType(ir.DataType.FLOAT)
    spec = convolution.operators["CONV_2D"]
    stored = ir.Value(name="w16", type=ir.TensorType(ir.DataType.FLOAT16), shape=ir.Shape(half.shape))
    stored.const_value = ir.Tensor(half)
    w, x, y = (ir.Value(name=name, type=float_) for name in "wxy")
    w.shape, x.shape, y.shape = (ir.Shape(n) for n in (half.shape, (1, 6, 6, 512), (1, 6, 6, 8)))
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    attributes = [
        a for n, v in options.items() if (a := probe.make_attribute(spec.options[n], v, convolution)) is not None
    ]
    widen = ir.Node(spec.domain, "DEQUANTIZE", [stored], outputs=[w])
    node = ir.Node(spec.domain, spec.name, [x, w], attributes, outputs=[y])
    graph = ir.Graph([x], [y], nodes=[widen, node], initializers=[stored], name="main")
    conversion = rewrite(tflite_writer.write(ir.Model(graph, ir_version=10), catalogue))
    (weight,) = conversion.encoded.weights
    assert isinstance(weight.tensor, ir.LazyTensor) and not weight.tensor.cache
    (tensor,) = conversion.model.graph.initializer
    expected = half.astype(np.float32).transpose(0, 3, 1, 2)
    assert np.array_equal(onnx.numpy_helper.to_array(tensor), expected)


def test_a_conversion_is_saved_in_one_file_or_in_two_that_run_alike(perceptron: bytes, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    conversion = rewrite(perceptron)
    one, two = tmp_path / "one.onnx", tmp_path / "two.onnx"
    assert conversion.save(one) == one.stat().st_size
    data = tmp_path / "two.onnx.data"
    assert conversion.save(two, external_data=True) == two.stat().st_size + data.stat().st_size
    assert data.stat().st_size >= 8 * 3 * 3 * 64 * 4
    x = RNG.random((1, 6, 6, 64), np.float32)
    found = [runtime.InferenceSession(path).run(None, {"x": x})[0] for path in (one, two)]
    assert np.array_equal(*found) and found[0].std() > 0.1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.onnx", "two.onnx", "two.onnx.data"]


def test_nothing_is_left_of_two_files_when_one_cannot_be_written(
    perceptron: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    conversion = rewrite(perceptron)
    monkeypatch.setattr(stream, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        conversion.save(tmp_path / "two.onnx", external_data=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.environ.get("NNREWRITE_LARGE"), reason="writes 5 GB; is run where NNREWRITE_LARGE=1")
def test_a_model_above_two_gigabytes_is_written_read_and_run(catalogue: Catalogue, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    size, layers = 9000, 7
    pool = RNG.standard_normal((size, size), np.float32) / np.float32(np.sqrt(size))
    spec = catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"]
    float_ = ir.TensorType(ir.DataType.FLOAT)
    x = last = ir.Value(name="x", type=float_, shape=ir.Shape((1, size)))
    nodes, weights = [], []
    for i in range(layers):
        weights.append(ir.Value(name=f"w{i}", type=float_, shape=ir.Shape(pool.shape), const_value=ir.Tensor(pool)))
        result = ir.Value(name=f"y{i}", type=float_, shape=ir.Shape((1, size)))
        nodes.append(ir.Node(spec.domain, spec.name, [last, weights[-1]], outputs=[result]))
        last = result
    graph = ir.Graph([x], [last], nodes=nodes, initializers=weights, name="main")
    source, target = tmp_path / "large.tflite", tmp_path / "large.onnx"
    with source.open("wb") as file:
        stream.write(file, tflite_writer.write_parts(ir.Model(graph, ir_version=10), catalogue))
    conversion = rewrite(source)
    assert conversion.encoded.size > stream.LIMIT
    conversion.save(target)
    onnx.checker.check_model(str(target))
    fed = RNG.standard_normal((1, size)).astype(np.float32)
    expected = fed
    for _ in range(layers):
        expected = expected @ pool.T
    (found,) = runtime.InferenceSession(target).run(None, {"x": fed})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * float(np.abs(expected).max()))


def test_data_of_the_model_that_was_there_goes_with_it_and_other_files_stay(perceptron: bytes, tmp_path: Path) -> None:
    model, data = tmp_path / "m.onnx", tmp_path / "m.onnx.data"
    conversion = rewrite(perceptron)
    conversion.save(model)
    data.write_bytes(b"not of this model")
    conversion.save(model)
    assert data.read_bytes() == b"not of this model"
    conversion.save(model, external_data=True)
    assert data.read_bytes() != b"not of this model"
    conversion.save(model)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    data.write_bytes(b"beside no model")
    model.write_bytes(b"no model")
    conversion.save(model)
    assert data.exists()


@pytest.mark.parametrize("external_data", [False, True])
def test_weights_of_a_source_that_stays_are_neither_removed_nor_replaced(
    perceptron: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external_data: bool
) -> None:
    rewrite(perceptron).save(tmp_path / "x.onnx", external_data=True)
    shutil.copy(tmp_path / "x.onnx", tmp_path / "y.onnx")
    os.link(tmp_path / "x.onnx", tmp_path / "z.onnx")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    conversions = [rewrite("y.onnx"), rewrite("z.onnx")]
    monkeypatch.chdir("/")
    for conversion in conversions:
        with pytest.raises(DestinationError, match=r"x\.onnx: .*x\.onnx\.data would be replaced, weights of a model"):
            conversion.save(tmp_path / "x.onnx", external_data=external_data)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def read_constants(path: Path) -> dict[str, np.ndarray]:
    return {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}


def test_a_source_is_replaced_itself_and_its_weights_go_with_it(perceptron: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    rewrite(perceptron).save(path, external_data=True)
    expected = read_constants(path)
    rewrite(path).save(path, external_data=True)
    rewrite(path).save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["x.onnx"]
    found = read_constants(path)
    assert all(np.array_equal(found[name], expected[name]) for name in found | expected)


def test_bodies_of_nodes_have_types_of_inner_values_where_the_source_has_some() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> net (bool c, float[2] x) => (float[2] y) {
      y = If <then_branch = g () => (float[2] t) { s = Neg(x) t = Exp(s) },
              else_branch = h () => (float[2] t) { t = Exp(x) }>(c)
    }"""
    made = rewrite(onnx.parser.parse_model(text).SerializeToString()).model
    bodies = [attribute.g for attribute in made.graph.node[0].attribute]
    assert bodies and not any(len(body.value_info) for body in bodies)

"""Whatever the bytes, reading ends soon: with a model that is well-formed, or with one line that says what is wrong."""

from __future__ import annotations

import gzip
import os
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import ModelError, RewriteError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.frontends import bundle
from nnrewrite.frontends.tflite_reader import read
from nnrewrite.fuzz.damage import damage_bytes

SEED = 20240607
CUSTOM = "tflite.custom"
ROUNDS = 12_000

Make = Callable[..., bytes]


# ---- what is well-formed ---------------------------------------------------------------------------------------------


def check(model: ir.Model) -> None:
    """Check that every value read has a source, but for the room that custom operators work in, and that constants hold
    what their shape says."""
    for graph in model.meta["subgraphs"]:
        known = {*graph.inputs, *graph.initializers.values()}
        for node in graph:
            for value in node.inputs:
                room = node.domain == CUSTOM and value is not None and value.producer() is None
                assert value is None or value in known or value.meta.get("variable") or room, node
            assert not known.intersection(node.outputs)
            known.update(node.outputs)
        assert all(value in known or value.meta.get("variable") for value in graph.outputs)
        names = [value.name for value in known]
        assert all(names) and len(set(names)) == len(names)
        for value in graph.initializers.values():
            assert value.const_value is not None and value.shape == value.const_value.shape
            if not isinstance(value.const_value, ir.PackedTensor):
                assert value.const_value.numpy().shape == tuple(value.shape)


def survives(data: bytes, catalogue: Catalogue) -> bool:
    """Whether the bytes are a model; fails the test when reading ends in any other way than it may."""
    try:
        model = read(data, catalogue, "broken.tflite")
    except ModelError as error:
        assert str(error).startswith("broken.tflite: ") and len(str(error).splitlines()) == 1
        return False
    check(model)
    return True


# ---- damaged models --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def victims(catalogue: Catalogue, single: Make) -> list[bytes]:
    """Models to damage: some of every kind made here, and small real ones where there are any."""
    per_axis = Quantization(np.array([0.5, 0.25], np.float32), np.zeros(2, np.int64), 0)
    blocks = Quantization(np.ones((2, 2), np.float16), np.zeros((2, 2), np.int8), 0, 2)
    filters, weights = np.ones((2, 1, 1, 3), np.float32), np.ones((2, 4), np.int8)
    words = ir.StringTensor([b"a", b"bc"], shape=ir.Shape([2]))
    image, result = ("FLOAT32", [1, None, None, 3]), ("FLOAT32", [1, None, None, 2])
    made = [
        single("CONV_2D", {"x": image, "w": filters, "b": None}, [result], padding="SAME", stride_w=1, stride_h=2),
        single("FULLY_CONNECTED", {"x": ("INT8", [1, 4]), "w": (weights, per_axis)}, [("INT8", [1, 2])]),
        single("FULLY_CONNECTED", {"x": ("FLOAT32", [1, 4]), "w": (weights, blocks)}, [("FLOAT32", [1, 2])]),
        single("GATHER", {"params": words, "indices": ("INT32", [1])}, [("STRING", [1])]),
        single("Mine", {"x": ("FLOAT32", [1])}, [("FLOAT32", [1])], size=[1, 2], mode="fast", rate=0.5),
    ]
    made.append(write(read(made[0], catalogue), catalogue, inline=0))
    folder = Path(os.environ.get("NNREWRITE_MODELS") or OPS.parent.parent / "shared" / "models")
    real = [path.read_bytes() for path in sorted(folder.rglob("*.tflite")) if path.stat().st_size < 100_000]
    return made + real[:: max(1, len(real) // 24)]


@pytest.mark.slow
def test_damaged_models_are_read_or_refused_in_one_line(victims: list[bytes], catalogue: Catalogue) -> None:
    chance = random.Random(SEED)
    read_after_all = sum(survives(damage_bytes(chance.choice(victims), chance), catalogue) for _ in range(ROUNDS))
    assert 0 < read_after_all < ROUNDS


def test_every_cut_tail_is_refused_or_read(single: Make, catalogue: Catalogue) -> None:
    data = single("ADD", {"x": ("FLOAT32", [2]), "y": np.ones(2, np.float32)}, [("FLOAT32", [2])])
    assert survives(data, catalogue)
    assert not any(survives(data[:length], catalogue) for length in range(len(data) - 8))


def test_damaged_bundles_are_read_or_refused_in_one_line(
    victims: list[bytes], catalogue: Catalogue, tmp_path: Path, task: bytes
) -> None:
    chance = random.Random(SEED)
    path = tmp_path / "broken.task"
    for _ in range(300):
        path.write_bytes(damage_bytes(task, chance))
        try:
            for member in bundle.list_members(path):
                read(bundle.open_member(path, member), catalogue, str(path))
        except ModelError as error:
            assert str(error).startswith(str(path)) and len(str(error).splitlines()) == 1


@pytest.fixture
def task(single: Make, tmp_path: Path) -> bytes:
    model = single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    path = tmp_path / "whole.task"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("stored.tflite", model)
        archive.writestr("deflated.tflite", model, zipfile.ZIP_DEFLATED)
    return path.read_bytes()


# ---- files that are no models ----------------------------------------------------------------------------------------


NO_MODELS = {
    "empty.tflite": (b"", "the file is empty"),
    "short.tflite": (b"TFL3", "too short for a model: 4 bytes"),
    "noise.tflite": (
        b"\1\2\3\4\5\6\7\0",
        "not a TensorFlow Lite model: bytes 4..8 are b'\\x05\\x06\\x07\\x00', not TFL3",
    ),
    "text.tflite": (
        b"hello, world",
        "not a TensorFlow Lite model: bytes 4..8 are b'o, w', not TFL3: this is text, and models are binary files",
    ),
    "zip.tflite": (
        b"PK\3\4abcd",
        "not a TensorFlow Lite model: bytes 4..8 are b'abcd', not TFL3: this is a zip archive",
    ),
    "root.tflite": (b"\xff\xff\0\0TFL3", "truncated: Model should be at byte 65535, the file has 8"),
}


def files(folder: Path) -> Iterator[tuple[Path, str]]:
    yield folder / "missing.tflite", "No such file or directory"
    yield folder, "Is a directory"
    for name, (content, message) in NO_MODELS.items():
        (folder / name).write_bytes(content)
        yield folder / name, message


def test_a_file_that_is_no_model_is_named_with_the_reason(catalogue: Catalogue, tmp_path: Path) -> None:
    for path, message in files(tmp_path):
        with pytest.raises(ModelError) as caught:
            read(path, catalogue)
        assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("ending", [".tflite", ".onnx", ".pt2", ".task", ""])
def test_a_pipe_is_no_model_and_nobody_waits_for_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    with pytest.raises(ModelError, match=f"{path}: not a regular file, which models are read from"):
        nnrewrite.rewrite(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"model", mtime=0), "this is a file compressed by gzip, which has to be unpacked first"),
        (b"\x89HDF\r\n\x1a\n", "this is an HDF5 file, as Keras saves models: TensorFlow's own .*"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "this is a pointer of Git LFS to a file, not the file"),
        (b"<!DOCTYPE html>", "this is text, as a page that was downloaded in the place of a file"),
        ('{"irVersion": "8", "producer": "\u00fc"}'.encode(), "this is text, and models are binary files"),
        (b"PK\3\4\5\6\7\0", "this is a zip archive"),
        (b"PK\3\4".ljust(30, b"\0") + b"metadata.json", "this is an archive, as Keras saves models: .*"),
        (b"\x24\0\0\0ORTM\0\0", "this is a model in ONNX Runtime's own format: give the .onnx file .*"),
    ],
)
@pytest.mark.parametrize("ending", [".tflite", ".onnx", ".pt2", ""])
def test_what_a_file_is_instead_of_a_model_is_told(tmp_path: Path, content: bytes, kind: str, ending: str) -> None:
    path = tmp_path / f"net{ending}"
    path.write_bytes(content)
    if ending == ".pt2" and content.startswith(b"PK"):
        kind = "malformed archive: .*|truncated or damaged: the archive has no directory at its end"
    with pytest.raises(ModelError, match=f"(model: .*|PyTorch|net.pt2): ({kind})$"):
        nnrewrite.rewrite(path)


def test_a_model_by_the_ending_of_another_format_is_told(tmp_path: Path, single: Make) -> None:
    lite, program = tmp_path / "net.onnx", tmp_path / "net.tflite"
    lite.write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    program.write_bytes(nnrewrite.convert(lite.read_bytes()).SerializeToString())
    with pytest.raises(
        ModelError, match=r"not an ONNX model: .*: this is a TensorFlow Lite model: give it a name that ends in"
    ):
        nnrewrite.rewrite(lite)
    with pytest.raises(
        ModelError, match=r"not a TensorFlow Lite model: .*: this is an ONNX model: give it a name that ends in"
    ):
        nnrewrite.rewrite(program)
    exported = lite.rename(tmp_path / "net.pt2")
    with pytest.raises(
        ModelError, match=r"no exported program of PyTorch: this is a TensorFlow Lite model: give it a name"
    ):
        nnrewrite.rewrite(exported)
    with zipfile.ZipFile(exported, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
    with pytest.raises(
        ModelError, match=r"not an ONNX model: .*: this is a PyTorch model: give it a name that ends in .pt2"
    ):
        nnrewrite.rewrite(exported.rename(lite))


def test_a_model_that_is_cut_off_is_not_said_to_be_of_its_own_format(tmp_path: Path) -> None:
    graph = onnx.GraphProto(name="net")
    for about in ({}, {"model_version": 3}, {"domain": "x"}):
        content = onnx.ModelProto(ir_version=8, graph=graph, **about).SerializeToString()
        (tmp_path / "net.onnx").write_bytes(content[:-3])
        with pytest.raises(ModelError, match=r"not an ONNX model: .* are left$"):
            nnrewrite.rewrite(tmp_path / "net.onnx")
        (tmp_path / "net.tflite").write_bytes(content)
        with pytest.raises(ModelError, match=r": this is an ONNX model: give it a name that ends in .onnx$"):
            nnrewrite.rewrite(tmp_path / "net.tflite")


# ---- models that say what cannot be ----------------------------------------------------------------------------------


def refused(model: ir.Model | bytes, catalogue: Catalogue) -> str:
    data = model if isinstance(model, bytes) else write(model, catalogue)
    with pytest.raises(ModelError) as caught:
        read(data, catalogue, "m.tflite")
    return str(caught.value)


def values(*names: str) -> list[ir.Value]:
    return [ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2])) for name in names]


def model_of(inputs: list[ir.Value], outputs: list[ir.Value], *nodes: ir.Node) -> ir.Model:
    return ir.Model(ir.Graph(inputs, outputs, nodes=nodes, name="main"), ir_version=10)


def test_reading_what_nothing_produces_is_refused(catalogue: Catalogue) -> None:
    x, y = values("x", "y")
    model = model_of([], [y], ir.Node("tflite", "ABS", [x], outputs=[y]))
    assert refused(model, catalogue) == 'm.tflite: operator 0 reads tensor 0 ("x"), which nothing produces'


def test_a_cycle_is_refused(catalogue: Catalogue) -> None:
    x, y = values("x", "y")
    model = model_of([], [y], ir.Node("tflite", "ABS", [x], outputs=[y]), ir.Node("tflite", "NEG", [y], outputs=[x]))
    assert refused(model, catalogue) == 'm.tflite: operator 0 reads tensor 0 ("x"), which a later operator produces'


def test_an_unproduced_output_is_refused(catalogue: Catalogue) -> None:
    (x,) = values("x")
    message = 'm.tflite: an output of subgraph 0 reads tensor 0 ("x"), which nothing produces'
    assert refused(model_of([], [x]), catalogue) == message


def test_a_constant_of_the_wrong_size_is_refused(catalogue: Catalogue, single: Make) -> None:
    data = single("ADD", {"x": ("FLOAT32", [2]), "y": np.ones(3, np.float32)}, [("FLOAT32", [2])])
    data = data.replace(struct.pack("<II", 1, 3), struct.pack("<II", 1, 1 << 30), 1)
    message = 'm.tflite: tensor 1 ("y"): shape [1073741824] of FLOAT takes 4294967296 bytes, its buffer has 12'
    assert refused(data, catalogue) == message


def test_data_behind_the_tables_that_is_cut_off_is_refused(catalogue: Catalogue, single: Make) -> None:
    inline = single("ADD", {"x": ("FLOAT32", [2]), "y": np.ones(2, np.float32)}, [("FLOAT32", [2])])
    data = write(read(inline, catalogue), catalogue, inline=0)
    size = len(data)
    message = f"m.tflite: truncated: tensor 1 wants bytes {size - 8}..{size}, the file has {size - 4}"
    assert refused(data[:-4], catalogue) == message


def test_scales_that_do_not_fit_the_shape_are_refused(catalogue: Catalogue, single: Make) -> None:
    wrong = Quantization(np.ones(3, np.float32), np.zeros(3, np.int64), 1)
    data = single("ABS", {"x": ("INT8", [2, 2], wrong)}, [("INT8", [2, 2])])
    message = 'm.tflite: tensor 0 ("x") of shape [2, 2] has 3 scales along axis 1'
    assert refused(data, catalogue) == message


def test_another_version_of_the_format_is_refused(catalogue: Catalogue, single: Make) -> None:
    data = bytearray(single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    root = struct.unpack_from("<I", data)[0]
    place = root + struct.unpack_from("<H", data, root - struct.unpack_from("<i", data, root)[0] + 4)[0]
    assert struct.unpack_from("<I", data, place)[0] == 3
    struct.pack_into("<I", data, place, 2)
    assert refused(bytes(data), catalogue) == "m.tflite: schema version 2 is not 3, the only supported one"


def test_line_breaks_in_names_do_not_break_the_line(catalogue: Catalogue) -> None:
    x, y = values("x\n\x1b[31m\u2028", "y")
    message = refused(model_of([], [y], ir.Node("tflite", "ABS", [x], outputs=[y])), catalogue)
    assert message == 'm.tflite: operator 0 reads tensor 0 ("x\\n\\u001b[31m\\u2028"), which nothing produces'


def vector_of_one(target: int, start: int, many: int) -> bytes:
    """A vector at byte `start`, all of whose offsets lead to the same table."""
    return struct.pack(f"<{many + 1}I", many, *(target - (start + 4 + 4 * i) for i in range(many)))


@pytest.mark.slow
def test_a_small_file_cannot_ask_for_much_memory(catalogue: Catalogue) -> None:
    """Ten thousand subgraphs that are all the same one, which has ten thousand operators that are all the same."""
    many = 10_000
    subgraph = 36 + 4 * many + 12
    operator = subgraph + 8 + 4 + 4 * many + 4
    data = b"".join((
        struct.pack("<I4s", 20, b"TFL3"),
        struct.pack("<5H2x", 10, 12, 4, 0, 8) + struct.pack("<iII", 12, 3, 4),
        vector_of_one(subgraph, 32, many),
        struct.pack("<6H", 12, 8, 0, 0, 0, 4) + struct.pack("<iI", 12, 4),
        vector_of_one(operator, subgraph + 8, many),
        struct.pack("<HHi", 4, 4, 4),
    ))  # fmt: skip
    tracemalloc.start()
    message = refused(data, catalogue)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message == f"m.tflite: malformed: the file of {len(data)} bytes refers to the same data again and again"
    assert peak < 300 * len(data)


@pytest.mark.slow
def test_a_deep_model_is_read_without_recursion(catalogue: Catalogue) -> None:
    (x,) = values("x")
    nodes, last = [], x
    for number in range(5_000):  # five times as deep as Python calls itself
        (result,) = values(f"y_{number}")
        nodes.append(ir.Node("tflite", "ABS", [last], outputs=[result]))
        last = result
    model = read(write(model_of([x], [last], *nodes), catalogue), catalogue)
    assert len(model.graph) == 5_000


def test_probes_say_which_options_there_are(catalogue: Catalogue) -> None:
    with pytest.raises(ModelError, match="GATHER has no option axes, only axis, batch_dims"):
        probe.write_operator_model(catalogue, "GATHER", {}, [], axes=1)


# ---- numbers out of all proportion


def test_a_constant_too_large_to_keep_is_not_computed(catalogue: Catalogue) -> None:
    ends = {name: np.array(value, np.int32) for name, value in {"start": 0, "limit": 2**31 - 1, "delta": 1}.items()}
    model = nnrewrite.convert(probe.write_operator_model(catalogue, "RANGE", ends, [("INT32", [2**31 - 1])]))
    assert [node.op_type for node in model.graph.node] == ["Range"]
    assert model.ByteSize() < 10_000


def test_an_extent_below_zero_is_refused(catalogue: Catalogue) -> None:
    pads = np.array([[-9, 0]], np.int32)
    with pytest.raises(RewriteError, match="yields an extent below zero"):
        nnrewrite.convert(
            probe.write_operator_model(catalogue, "PAD", {"x": ("FLOAT32", [4]), "pads": pads}, [("FLOAT32", [1])])
        )

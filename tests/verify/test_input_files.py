"""Files of inputs: what is wrong with one is told in a line."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from nnrewrite.cli.commands.verify import read_inputs
from nnrewrite.engine.base.errors import CallError, VerificationError
from nnrewrite.verify import compare_models
from nnrewrite.verify.reference import Reference


def copy(kind: str, extents: str) -> bytes:
    """A model that yields its input."""
    text = f'<ir_version: 8, opset_import: ["": 18]> g ({kind}[{extents}] x) => ({kind}[{extents}] y)'
    return bytes(onnx.parser.parse_model(f"{text} {{ y = Identity(x) }}").SerializeToString())


def read(folder: Path, member: bytes, kind: str = "float", name: str = "x.npy") -> list[list[Any]]:
    """What is read of a file of one member for a model with one input of two elements."""
    with zipfile.ZipFile(folder / "z.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, member)
    (folder / "m.onnx").write_bytes(copy(kind, "2"))
    return read_inputs(folder / "z.npz", Reference(), folder / "m.onnx")


def save(array: Any) -> bytes:
    """The bytes of a file of one array."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("array", "kind", "words"),
    [
        (np.zeros((0, 2), np.float32), "float", "has no sample: the first axis of x is empty"),
        (np.array(["a", "b"]), "float", ": x holds <U1, the model's float32"),
        (np.zeros(2, np.float32), "string", ": x holds float32, the model's strings"),
    ],
)
def test_arrays_of_no_samples_or_of_another_kind_are_refused(tmp_path: Path, array: Any, kind: str, words: str) -> None:
    with pytest.raises(VerificationError, match=f"z.npz ?{words}$"):
        read(tmp_path, save(array), kind)


@pytest.mark.parametrize("name", ["x", "x.npy"])
def test_a_member_that_is_no_array_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(VerificationError, match=r"z\.npz: x is no array$"):
        read(tmp_path, b"text", name=name)


def test_a_damaged_member_is_refused_in_one_line(tmp_path: Path) -> None:
    read(tmp_path, save(np.zeros(2, np.float32)))
    data = bytearray((tmp_path / "z.npz").read_bytes())
    data[40:60] = b"\xff" * 20
    (tmp_path / "z.npz").write_bytes(data)
    with pytest.raises(VerificationError, match=r"^[^\n]*z\.npz cannot be read: [^\n]+$"):
        read_inputs(tmp_path / "z.npz", Reference(), tmp_path / "m.onnx")


@pytest.mark.parametrize("array", [np.array(["é", "b"]), np.array(["é".encode(), b"b"])])
def test_strings_are_read_as_every_runtime_takes_them(tmp_path: Path, array: Any) -> None:
    [[found]] = read(tmp_path, save(array), "string")
    assert found.dtype == object and found.tolist() == ["é".encode(), b"b"]


def test_a_comparison_without_samples_is_no_verdict() -> None:
    with pytest.raises(VerificationError, match="there are no inputs"):
        compare_models(copy("float", "2"), copy("float", "2"), inputs=[])


@pytest.mark.parametrize("inputs", [3, [[]], [np.zeros(2, np.float32)], [{"x": np.zeros(2, np.float32)}]])
def test_inputs_of_another_form_are_told_with_the_one_they_have(inputs: Any) -> None:
    with pytest.raises(CallError, match="a list of samples, each of them a list of 1 array, in the model's order: x"):
        compare_models(copy("float", "2"), copy("float", "2"), inputs=inputs)

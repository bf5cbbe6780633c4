"""Kinds of files and folders that are taken for models by mistake, known by what they begin with or have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .readers import READERS

_KERAS = "TensorFlow's own converter makes a .tflite file of it first"
#: what files of a kind have at which byte, and what they are
_MARKS: Sequence[tuple[int, bytes, str]] = (
    (30, b"metadata.json", f"this is an archive, as Keras saves models: {_KERAS}"),  # the first name in a zip archive
    (0, b"PK", "this is a zip archive"),
    (0, b"\x1f\x8b", "this is a file compressed by gzip, which has to be unpacked first"),
    (0, b"\x89HDF", f"this is an HDF5 file, as Keras saves models: {_KERAS}"),
    (0, b"version https://git-lfs", "this is a pointer of Git LFS to a file, not the file"),
    (0, b"<", "this is text, as a page that was downloaded in the place of a file"),
    (4, b"ORTM", "this is a model in ONNX Runtime's own format: give the .onnx file that it was made from"),
)
#: the file that TensorFlow saves the graph of a model in
_SAVED_MODEL = "saved_model.pb"
#: so many bytes of text tell that a file is text
_HEAD = 512


def explain_kind(data: memoryview, dialect: str) -> str:
    """What a file is that was mistaken for a model of a dialect's format, as the end of a message.

    Empty where its kind is unknown, and where it begins as the format does: then it is damaged, not mistaken.
    """
    head = bytes(data[:_HEAD])
    reader = next((one for one in READERS if one.recognize(head)), None)  # which imports the readers: an error may wait
    if reader is not None:
        article = "an" if reader.name[0] in "AEIO" else "a"
        said = f": this is {article} {reader.name} model: give it a name that ends in {reader.suffixes[0]}"
        return "" if reader.dialect == dialect else said
    for place, mark, kind in _MARKS:
        if head.startswith(mark, place):
            return f": {kind}"
    return ": this is text, and models are binary files" if _is_text(head) else ""


def explain_folder(folder: Path) -> str:
    """What a folder without models is, as the end of a sentence; empty where nothing is known of it."""
    if (folder / _SAVED_MODEL).is_file():
        return ": it is a SavedModel of TensorFlow, whose own converter makes a .tflite file of it first"
    return ""


def _is_text(head: bytes) -> bool:
    text = head.decode(errors="replace").rstrip("\ufffd")  # a letter may be cut off
    return bool(text) and all(letter.isprintable() or letter.isspace() for letter in text)

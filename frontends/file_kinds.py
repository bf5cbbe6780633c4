"""Kinds of files that are taken for models by mistake, known by how they begin."""

from __future__ import annotations

from collections.abc import Sequence

#: how files of a kind begin, and what they are
_BEGINNINGS: Sequence[tuple[bytes, str]] = (
    (b"PK", "this is a zip archive"),
    (b"\x1f\x8b", "this is a file compressed by gzip, which has to be unpacked first"),
    (b"\x89HDF", "this is an HDF5 file, as Keras saves models"),
    (b"version https://git-lfs", "this is a pointer of Git LFS to a file, not the file"),
    (b"<", "this is text, as a page that was downloaded in the place of a file"),
)
#: so many bytes of text tell that a file is text
_HEAD = 512
#: what follows upon the version in the first bytes of an ONNX model: the tag of another field
_FIELDS = b"\x12\x1a\x22\x2a\x32\x3a\x42\x72"


def explain_kind(data: memoryview) -> str:
    """What a file is that is no model of the format it was taken for, as the end of a sentence; empty for others."""
    head = bytes(data[:_HEAD])
    if head[4:8] == b"TFL3":
        return ": this is a TensorFlow Lite model, whose name ends in .tflite"
    if len(head) > 2 and head[0] == 8 and 2 < head[1] < 32 and head[2] in _FIELDS:
        return ": this is an ONNX model, whose name ends in .onnx"
    for beginning, kind in _BEGINNINGS:
        if head.startswith(beginning):
            return f": {kind}"
    return ": this is text, and models are binary files" if _is_text(head) else ""


def _is_text(head: bytes) -> bool:
    text = head.decode(errors="replace").rstrip("\ufffd")  # a letter may be cut off
    return bool(text) and all(letter.isprintable() or letter.isspace() for letter in text)

"""Kinds of files that are taken for models by mistake, known by how they begin."""

from __future__ import annotations

from collections.abc import Sequence

from .readers import READERS

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


def explain_kind(data: memoryview, dialect: str) -> str:
    """What a file is that is no model of the format it was taken for, that of a dialect, as the end of a sentence;
    empty for others, and for one that begins as the format does."""
    head = bytes(data[:_HEAD])
    reader = next((one for one in READERS if one.recognize(head)), None)  # which imports the readers: an error may wait
    if reader is not None:
        article = "an" if reader.name[0] in "AEIO" else "a"
        said = f": this is {article} {reader.name} model, whose name ends in {reader.suffixes[0]}"
        return "" if reader.dialect == dialect else said
    for beginning, kind in _BEGINNINGS:
        if head.startswith(beginning):
            return f": {kind}"
    return ": this is text, and models are binary files" if _is_text(head) else ""


def _is_text(head: bytes) -> bool:
    text = head.decode(errors="replace").rstrip("\ufffd")  # a letter may be cut off
    return bool(text) and all(letter.isprintable() or letter.isspace() for letter in text)

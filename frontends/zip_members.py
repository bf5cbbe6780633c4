"""Members of zip archives in memory: views of them where they are stored as they are, and none without bounds."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

from ..engine.base.errors import ModelError, join_lines, quote_name

#: what tells the header of a member
HEADER = b"PK\x03\x04"
#: a compressed member may be so many times larger than it is in the archive, beyond some megabytes
RATIO, _ALLOWANCE = 256, 1 << 26
#: all that the standard library raises on bytes that are no archive
MALFORMED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
)


def read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, data: memoryview, file: str) -> memoryview:
    """The bytes of a member of an archive that is `data`: a view where it is stored as it is.

    Raises ModelError, in the name of the file, for one that is encrypted, cut off, or would take unbounded memory.
    """
    said = f"{file}: {quote_name(entry.filename)}"
    if entry.flag_bits & 1:
        raise ModelError(f"{said} is encrypted")
    if entry.compress_type != zipfile.ZIP_STORED:
        if entry.file_size > RATIO * entry.compress_size + _ALLOWANCE:
            raise ModelError(f"{said} would unpack to {entry.file_size} bytes")
        try:
            return memoryview(archive.read(entry))
        except MALFORMED as error:
            raise ModelError(f"{file}: malformed archive: {join_lines(error)}") from error
    start = entry.header_offset
    header = bytes(data[start : start + 30]) if start >= 0 else b""
    if len(header) < 30 or header[:4] != HEADER:
        raise ModelError(f"{file}: malformed archive: {quote_name(entry.filename)} is not where the directory says")
    start += 30 + sum(struct.unpack_from("<HH", header, 26))
    end = start + entry.file_size
    if end > len(data):
        raise ModelError(f"{file}: truncated: {quote_name(entry.filename)} ends at byte {end} of {len(data)}")
    return data[start:end]

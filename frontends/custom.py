"""Options of custom operators that are a C struct, as MediaPipe's are: the values one after the other."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from ..engine.dialects.operators import OperatorSpec
from . import option

_FORMATS = {"int32": "i", "float": "f", "bool": "?"}


def is_struct_stored(spec: OperatorSpec | None) -> bool:
    """Whether ops.yaml says that an operator keeps its options in a struct."""
    return spec is not None and spec.facts.stored == "struct"


def read_options(data: memoryview, spec: OperatorSpec | None) -> dict[str, Any]:
    """The options of a custom operator by name; `spec` is None for one that ops.yaml does not have.

    A struct is aligned as C aligns it; options that its bytes end before are left out. Other forms are those of
    `option.read_custom_options`.
    """
    if spec is None or not is_struct_stored(spec):
        return option.read_custom_options(data)
    found: dict[str, Any] = {}
    formats = "@"
    for name, known in spec.options.items():
        formats += _FORMATS[known.type]
        if struct.calcsize(formats) > len(data):
            break
        found[name] = struct.unpack_from(formats, data)[-1]
    return found


def pack_options(values: Mapping[str, Any], spec: OperatorSpec) -> bytes:
    """Write options as the struct that `read_options` reads."""
    formats = "".join(_FORMATS[known.type] for known in spec.options.values())
    return struct.pack(f"@{formats}", *(values.get(name, known.default) for name, known in spec.options.items()))

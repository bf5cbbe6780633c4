"""The element types that ONNX Runtime has kernels for, as the section `kernels` of ops.yaml: run this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx.defs

from ..engine.functions import DTYPES

_SHORT = {dtype.name.lower(): name for name, dtype in DTYPES.items()}
#: types that ONNX Runtime's CPU kernels do not lack: it converts half precision by itself
_GIVEN = {"f16"}
#: what the runtime says for no last version
_OPEN = 2**31 - 1
#: types that no rule widens, so that their lack is no news
_IGNORED = {"i2", "u2", "i4", "u4", "c64", "c128"}


def kernels(first: int, last: int) -> dict[str, dict[int, dict[str, str]]]:
    """For operators with fewer kernels than their schema has types: version, type variable, types with a kernel."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    registered: dict[str, list[Any]] = {}
    for kernel in runtime.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain == "":
            registered.setdefault(kernel.op_name, []).append(kernel)
    found: dict[str, dict[int, dict[str, str]]] = {}
    for name in sorted(registered):
        before: dict[str, str] = {}
        for version in sorted(_versions(name, first, last)):
            row = dict(_row(name, version, registered[name]))
            if row != before:
                found.setdefault(name, {})[version] = row
            before = row
    return found


def _versions(name: str, first: int, last: int) -> set[int]:
    return {
        onnx.defs.get_schema(name, opset, "").since_version
        for opset in range(first, last + 1)
        if onnx.defs.has(name, opset, "")
    }


def _row(name: str, version: int, registered: list[Any]) -> Iterator[tuple[str, str]]:
    schema = onnx.defs.get_schema(name, version, "")
    usable = [k.type_constraints for k in registered if _serves(k.version_range, version)]
    for constraint in schema.type_constraints:
        variable = constraint.type_param_str
        allowed = _names(constraint.allowed_type_strs)
        if not usable or any(variable not in types for types in usable):
            continue
        have = set().union(*(_names(types[variable]) for types in usable)) | (allowed & _GIVEN)
        if allowed - have - _IGNORED:
            yield variable, " ".join(t for t in DTYPES if t in have)


def _serves(versions: tuple[int, int], version: int) -> bool:
    """Whether the runtime takes a kernel for a version of the operator: without an end it serves its first alone."""
    first, last = versions
    return version == first or (first < version <= last and last != _OPEN)


def _names(types: Any) -> set[str]:
    return {_SHORT[text] for t in types if (text := t.removeprefix("tensor(").removesuffix(")")) in _SHORT}


if __name__ == "__main__":
    for operator, rows in kernels(13, 25).items():
        text = str({version: dict(row) for version, row in rows.items()})
        print(f"    {operator}: {text.replace(chr(39), '')}")

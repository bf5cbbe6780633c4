"""The element types that ONNX Runtime has kernels for, held against what ops.yaml says of them.

Run as a module it prints the sections `kernels` and `more_kernels` of ops.yaml anew, for the versions that these were
taken from and the installed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version as installed
from typing import Any, TypeAlias

import onnx.defs

from ..engine.dialects.operators import Dialect
from ..engine.dialects.ops_files import load
from ..engine.expressions.functions import DTYPES, NARROW_FLOATS

#: by operator, version and type variable, the types with a kernel; a variable that is not named may be of any type
Rows: TypeAlias = Mapping[str, Mapping[int, Mapping[str, str]]]

#: the opsets that rules write
FIRST, LAST = 13, 25

_SHORT = {dtype.name.lower(): name for name, dtype in DTYPES.items()}
#: types that ONNX Runtime's CPU kernels do not lack: it converts half precision by itself
_GIVEN = {"f16"}
#: what the runtime says for no last version
_OPEN = 2**31 - 1
#: types that no rule widens, so that their lack is no news
_IGNORED = {"i2", "u2", "i4", "u4", "c64", "c128", *NARROW_FLOATS}


def list_kernels() -> Rows:
    """For operators with fewer kernels than their schema has types: version, type variable, types with a kernel."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    registered: dict[str, list[Any]] = {}
    for kernel in runtime.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain == "":
            registered.setdefault(kernel.op_name, []).append(kernel)
    return _list_rows(registered, lambda name, version: dict(_list_row(name, version, registered[name])))


def intersect(some: Rows, others: Rows) -> Rows:
    """The types that both say to have a kernel."""

    def intersect_row(name: str, version: int) -> dict[str, str]:
        types = {key: (a & b, given) for key, a, b, given in _pair_types(some, others, name, version)}
        return {key: _format_types(both) for key, (both, given) in types.items() if given - both - _IGNORED}

    return _list_rows(some.keys() | others.keys(), intersect_row)


def subtract(some: Rows, others: Rows) -> Rows:
    """The types that the first say to have a kernel and the others do not."""

    def subtract_row(name: str, version: int) -> dict[str, str]:
        types = {key: a - b - _IGNORED for key, a, b, _ in _pair_types(some, others, name, version)}
        return {key: _format_types(left) for key, left in types.items() if left}

    return _list_rows(some.keys() | others.keys(), subtract_row)


def _list_rows(names: Iterable[str], row: Callable[[str, int], dict[str, str]]) -> Rows:
    """What is so of each version of operators, left out where it is as of the version before."""
    found: dict[str, dict[int, dict[str, str]]] = {}
    for name in sorted(names):
        before: dict[str, str] = {}
        for version in sorted(_list_versions(name)):
            now = row(name, version)
            if now != before:
                found.setdefault(name, {})[version] = now
            before = now
    return found


def _pair_types(
    some: Rows, others: Rows, name: str, version: int
) -> Iterator[tuple[str, set[str], set[str], set[str]]]:
    """Of each type variable of an operator the types that some and others say to have a kernel, and all there are."""
    for constraint in onnx.defs.get_schema(name, version, "").type_constraints:
        key, given = constraint.type_param_str, _list_names(constraint.allowed_type_strs)
        a, b = (_find_types(rows.get(name, {}), version, key, given) for rows in (some, others))
        yield key, a, b, given


def _find_types(rows: Mapping[int, Mapping[str, str]], version: int, variable: str, given: set[str]) -> set[str]:
    since = max((one for one in rows if one <= version), default=None)
    text = None if since is None else rows[since].get(variable)
    return given if text is None else set(text.split())


def _format_types(types: set[str]) -> str:
    return " ".join(one for one in DTYPES if one in types)


def _list_versions(name: str) -> set[int]:
    return {
        onnx.defs.get_schema(name, opset, "").since_version
        for opset in range(FIRST, LAST + 1)
        if onnx.defs.has(name, opset, "")
    }


def _list_row(name: str, version: int, registered: list[Any]) -> Iterator[tuple[str, str]]:
    schema = onnx.defs.get_schema(name, version, "")
    usable = [k.type_constraints for k in registered if _can_serve(k.version_range, version)]
    for constraint in schema.type_constraints:
        variable = constraint.type_param_str
        allowed = _list_names(constraint.allowed_type_strs)
        if not usable or any(variable not in types for types in usable):
            continue
        have = set().union(*(_list_names(types[variable]) for types in usable)) | (allowed & _GIVEN)
        if allowed - have - _IGNORED:
            yield variable, _format_types(have)


def _can_serve(versions: tuple[int, int], version: int) -> bool:
    """Whether the runtime takes a kernel for a version of the operator: without an end it serves its first alone."""
    first, last = versions
    return version == first or (first < version <= last and last != _OPEN)


def _list_names(types: Any) -> set[str]:
    return {_SHORT[text] for t in types if (text := t.removeprefix("tensor(").removesuffix(")")) in _SHORT}


def _print_sections(dialect: Dialect) -> None:
    """Print both sections of ops.yaml anew."""
    now = list_kernels()
    both = intersect(dialect.facts.kernels, now)
    print("  kernels:")
    for operator, rows in both.items():
        print(f"    {operator}: {_format_flow(rows)}")
    print(f"  more_kernels:\n    {installed('onnxruntime')}: {_format_flow(subtract(now, both))}")


def _format_flow(rows: Mapping[Any, Any]) -> str:
    return str(rows).replace("'", "")


if __name__ == "__main__":
    _print_sections(load().find_dialect("onnx"))

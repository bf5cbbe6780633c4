"""Element types that the target's kernels lack, and the wider types that nodes of such types compute in."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ..base.quantization import CODES, KEY
from ..expressions.functions import SHORT, EvaluationError, bits, highest, is_float, is_integer, lowest
from .onnx_schemas import Signature, pair_types
from .operators import Dialect, OperatorSpec, describe_operator

#: what a type is widened to: the first of these that has a kernel and holds every number of the type
_LADDER = ("u8", "i16", "i32", "i64", "f32", "f64")
#: where none holds every number, the nearest there is
_NEAREST = {"i64": "f64", "u64": "f64", "f64": "f32"}
#: how many bits of an integer a floating-point type holds
_MANTISSA = {"f32": 24, "f64": 53}

#: what stands for all element types in ops.yaml
ANY = "any"


Kinds = Mapping[str, frozenset[str]]


def find_widenings(dialect: Dialect, spec: OperatorSpec, operands: Sequence[ir.Value | None]) -> dict[str, str]:
    """The type variables of an operator that stand for a type without a kernel, and the type to compute in.

    `kernels` of the dialect in ops.yaml says which types have one; where it is silent, the schema of the spec does.
    Codes are numbers to operators of schemas; other dialects type kernels of codes apart. Raises EvaluationError of
    these where there is no kernel, and no wider type has one.
    """
    if not dialect.schemas and any(value is not None and KEY in value.meta for value in operands):
        return {}
    if spec.name == dialect.find_role("convert").name:  # by which others become wider
        return {}
    found = spec.schema
    if found is None:
        if not spec.facts.types:
            return {}
        found = describe_operator(spec)
        allowed = _list_plain_types(spec.facts.types, spec.facts.quantization == CODES)
    else:
        allowed = _list_kernel_types(dialect, spec.name, found)
    wider: dict[str, str] = {}
    for dtype, variable in pair_types([None if value is None else value.dtype for value in operands], found.operands):
        own = None if dtype is None else SHORT.get(dtype)
        if own is not None and variable in allowed and own not in allowed[variable]:
            instead = find_wider_type(own, allowed[variable], dialect.facts.nearest)
            if instead is not None:
                wider[variable] = instead
            elif not dialect.schemas:
                raise EvaluationError(f"{spec.name} has no kernel for {own}")
    return wider


def _list_kernel_types(dialect: Dialect, operator: str, found: Signature) -> Kinds:
    """The element types that the type variables of a signature may stand for, of those that have kernels."""
    allowed = {name: types for name, types in found.kinds.items() if "(" not in name}  # variables, not types
    kernels = dialect.facts.kernels.get(operator, {})
    since = max((version for version in kernels if version <= found.since), default=None)
    for variable, types in (kernels[since] if since is not None else {}).items():
        allowed[variable] &= frozenset(types.split())
    return allowed


@functools.cache
def _list_plain_types(types: tuple[str, ...], moves: bool) -> Kinds:
    """The element types that kernels have for numbers which are no codes, by the operands that ops.yaml types alike.

    What `moves` codes moves numbers of their type.
    """
    kinds = {text: frozenset(word.removeprefix("q") if moves else word for word in text.split()) for text in types}
    return {text: names for text, names in kinds.items() if ANY not in names}


def find_wider_type(name: str, allowed: frozenset[str], nearest: Mapping[str, str] | None = None) -> str | None:
    """The type to compute in where a type has no kernel; None where there is none.

    Integers computed in a wider type and converted back keep the low bits, as narrow arithmetic does.
    """
    exact = next((wide for wide in _LADDER if wide in allowed and _can_hold(wide, name)), None)
    if exact is not None:
        return exact
    instead = (nearest or _NEAREST).get(name)
    return instead if instead is None or instead in allowed else find_wider_type(instead, allowed, nearest)


def _can_hold(wide: str, name: str) -> bool:
    if name == "bool":
        return True
    if is_float(name):
        return bool(is_float(wide) and bits(wide) > bits(name))
    if not is_integer(name):
        return False
    if is_float(wide):
        return bool(bits(name) <= _MANTISSA[wide])
    return bool(lowest(wide) <= lowest(name) and highest(wide) >= highest(name))

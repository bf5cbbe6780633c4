"""ONNX schemas as plain data."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import onnx.defs
import onnx_ir as ir

from ..base.startup import dataclass
from ..expressions.functions import DTYPES, SHORT

_T = TypeVar("_T")

#: the first opset of the standard at which axes may be counted from the end wherever there are any
NEGATIVE_AXES = 11
_VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


@dataclass(frozen=True, slots=True)
class Parameter:
    """One operand or result: the type variable (or type) it stands under, and the element types that it may have.

    Values of differing types, as a loop carries them, stand under none: the variable is empty.
    """

    name: str
    variable: str
    variadic: bool
    types: tuple[ir.DataType, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The operands and results of an operator as its schema stood since version `since`.

    `kinds` are the element types, by their short names, that each type variable (or type) may stand for.
    """

    operands: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    since: int
    kinds: Mapping[str, frozenset[str]]

    def find_operand(self, position: int) -> Parameter | None:
        """The operand at a position, which the last one takes too where it stands for several."""
        if position < len(self.operands):
            return self.operands[position]
        return self.operands[-1] if self.operands and self.operands[-1].variadic else None


def find_schema(name: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The ONNX schema of an operator at an opset, None where it does not exist there."""
    try:
        found = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None
    return None if found.deprecated else found


@functools.cache
def find_schema_to_infer(name: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The schema that infers the results of an operator at an opset, None where it does not exist there.

    Inference of opsets before `NEGATIVE_AXES` passes over axes that are counted from the end, which runtimes take:
    where that opset has the operator with the same operands, results and attributes, its inference is asked.
    """
    found = find_schema(name, opset, domain)
    if found is None or domain or opset >= NEGATIVE_AXES:
        return found
    later = find_schema(name, NEGATIVE_AXES)
    same = later is not None and all(
        [one.name for one in getattr(found, part)] == [one.name for one in getattr(later, part)]
        for part in ("inputs", "outputs")
    )
    return later if same and later is not None and found.attributes.keys() == later.attributes.keys() else found


@functools.cache
def find_last_version(name: str, domain: str) -> int:
    """The last version of a domain at which an operator has a schema that is not deprecated; 0 where there is none."""
    version = onnx.defs.onnx_opset_version()
    while version:
        try:
            found = onnx.defs.get_schema(name, version, domain)
        except onnx.defs.SchemaError:
            return 0
        if not found.deprecated:
            return int(found.since_version)
        version = found.since_version - 1
    return 0


def find_version_with(name: str, domain: str, attributes: Collection[str]) -> int:
    """The newest version of a domain at which an operator has all these attributes; 0 where it never had."""
    version = find_last_version(name, domain)
    while version:
        found = find_schema(name, version, domain)
        if found is None:
            return 0
        if found.attributes.keys() >= set(attributes):
            return int(found.since_version)
        version = found.since_version - 1
    return 0


def list_names(name: str) -> set[str]:
    """The operands, results and options that the standard operator `name` has or had; none where there is no such."""
    found: set[str] = set()
    for one in _list_versions().get(name, ()):
        found |= {*(each.name for each in (*one.inputs, *one.outputs)), *one.attributes}
    return found


@functools.cache
def _list_versions() -> Mapping[str, Sequence[onnx.defs.OpSchema]]:
    """All versions of each standard operator."""
    found: dict[str, list[onnx.defs.OpSchema]] = {}
    for one in onnx.defs.get_all_schemas_with_history():
        if not one.domain:
            found.setdefault(one.name, []).append(one)
    return found


def read_signature(found: onnx.defs.OpSchema) -> Signature:
    """What an operator takes and yields as a schema says."""
    kinds = {c.type_param_str: tuple(_read_types(c.allowed_type_strs)) for c in found.type_constraints}

    def read_parameters(formal: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(
                p.name,
                p.type_str if p.option != _VARIADIC or p.is_homogeneous else "",
                p.option == _VARIADIC,
                kinds.get(p.type_str) or tuple(_read_types([p.type_str])),
            )
            for p in formal
        )

    taken, yielded = read_parameters(found.inputs), read_parameters(found.outputs)
    kinds |= {one.variable: one.types for one in (*taken, *yielded) if one.variable}
    return Signature(taken, yielded, found.since_version, {name: name_types(types) for name, types in kinds.items()})


@functools.cache
def make_signature(names: tuple[str, ...], variadic: bool, types: tuple[str, ...]) -> Signature:
    """What an operator without a schema takes, as ops.yaml says: operands of the same types are of one type."""
    last = len(names) - 1
    return Signature(
        tuple(
            Parameter(name, text, variadic and place == last, _list_types(text))
            for place, (name, text) in enumerate(zip(names, types, strict=False))
        ),
        (),
        0,
        {},
    )


def name_types(types: Sequence[ir.DataType]) -> frozenset[str]:
    """The short names of element types, of those that rules know."""
    return frozenset(SHORT[dtype] for dtype in types if dtype in SHORT)


def _list_types(text: str) -> tuple[ir.DataType, ...]:
    """The types that ops.yaml lists; of integers that say where or how much, the format has 32 bits by custom."""
    found = [DTYPES[name] for word in text.split() if (name := word.removeprefix("q")) in DTYPES]
    indices = {ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64}
    return tuple([ir.DataType.INT32] if ir.DataType.INT32 in found and indices.issuperset(found) else found)


def pair_types(values: Sequence[_T], parameters: Sequence[Parameter]) -> Iterator[tuple[_T, str]]:
    """Values, or what is known of them, with the type variable that each stands under."""
    for position, value in enumerate(values):
        parameter = parameters[min(position, len(parameters) - 1)]
        yield value, parameter.variable if position < len(parameters) or parameter.variadic else ""


def _read_types(texts: Sequence[str]) -> Iterator[ir.DataType]:
    for text in texts:
        found = ir.DataType.__members__.get(text.removeprefix("tensor(").removesuffix(")").upper())
        if found is not None:
            yield found

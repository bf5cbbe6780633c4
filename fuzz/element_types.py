"""Element types that ops.yaml admits for the operands and results of an operator, by their short names."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx.defs
import onnx_ir as ir

from ..engine.dialects.onnx_schemas import find_schema
from ..engine.dialects.operators import OperatorSpec
from ..engine.expressions.functions import DTYPES, NARROW_FLOATS
from ..verify.frames import Array
from .choices import Choices

#: what `any` stands for
_ANY = ("f32", "i32", "i64", "i8", "u8", "i16", "bool", "qi8", "qu8", "qi16")
#: in so many of a hundred draws operands have another type than the test says
_OTHER = 35
#: in so many of a hundred draws, and in which fixed case, real numbers stand where a test says codes
_BARE, _BARE_TURN = 8, 8
#: types of results where neither operands nor ops.yaml say one
USUAL = (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL)
_INDEX = frozenset({"i16", "i32", "i64"})
#: quantized types that values are drawn of; narrower ones are packed and hold weights only
_QUANTIZED = frozenset({"qi8", "qu8", "qi16"})
#: types that values are drawn of, whose elements take whole bytes and have numpy's own arithmetic
_DRAWN = DTYPES.keys() - {"i4", "u4", "bf16", *NARROW_FLOATS}


@dataclass(frozen=True, slots=True)
class Admitted:
    """The types of each operand, the last list standing for all operands after it, and of each result.

    A type that is quantized has a `q` before its name. An empty list says nothing. `sums` are the positions of operands
    that are sums of products.
    """

    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[ir.DataType, ...], ...]
    variadic: bool
    sums: frozenset[int] = frozenset()

    def sum_like(self, position: int) -> bool:
        """Whether an operand is added to products of others, and stored wider than they are where those are codes."""
        return position in self.sums

    def list_types(self, position: int) -> tuple[str, ...]:
        if self.variadic and self.operands:
            return self.operands[min(position, len(self.operands) - 1)]
        return self.operands[position] if position < len(self.operands) else ()

    def is_index(self, position: int) -> bool:
        """Whether an operand says where or how much: it is an integer and never anything else."""
        types = self.list_types(position)
        return bool(types) and _INDEX.issuperset(types)

    def is_barred(self, position: int, name: str) -> bool:
        """Whether the types of an operand are listed and a name is not among them."""
        types = self.list_types(position)
        return bool(types) and types != _ANY and not {name, f"q{name}"} & set(types)

    def find_closest(self, position: int, wanted: str, declared: str) -> str:
        """The type of an operand beside others of the type wanted: that, a narrower quantized one, or as declared."""
        types = self.list_types(position)
        if wanted in types:
            return wanted
        if wanted.startswith("q") and "qi8" in types:
            return "qi8"
        return declared


def read_admitted(spec: OperatorSpec) -> Admitted:
    """Read the types of an operator's entry in ops.yaml."""
    variadic = any(operand.variadic for operand in spec.operands)
    faulty = frozenset(spec.facts.fuzz.faulty)
    products = spec.facts.products
    sums = frozenset(place for place, operand in enumerate(spec.operands) if operand.name in products)
    return _read_admitted(spec.facts.types, spec.facts.yields, variadic, faulty, sums)


@functools.cache
def _read_admitted(
    operands: tuple[str, ...], results: tuple[str, ...], variadic: bool, faulty: frozenset[str], sums: frozenset[int]
) -> Admitted:
    return Admitted(
        tuple(tuple(name for name in _add_codes(_list_names(text)) if name not in faulty) for text in operands),
        tuple(tuple(DTYPES[name.removeprefix("q")] for name in _list_names(text)) for text in results),
        variadic,
        sums,
    )


def read_schema(spec: OperatorSpec, opset: int) -> Admitted:
    """Read the types of an ONNX operator's operands in its schema."""
    return _read_schema(spec.name, opset, spec.domain, frozenset(spec.facts.fuzz.faulty)) or read_admitted(spec)


@functools.cache
def _read_schema(name: str, opset: int, domain: str, faulty: frozenset[str]) -> Admitted | None:
    found = find_schema(name, opset, domain)
    if found is None:
        return None
    types = {f"tensor({dtype.name.lower()})": name for name, dtype in DTYPES.items() if name in _DRAWN - faulty}
    operands = tuple(tuple(name for said, name in types.items() if said in one.types) for one in found.inputs)
    variadic = any(one.option == onnx.defs.OpSchema.FormalParameterOption.Variadic for one in found.inputs)
    return Admitted(operands, (), variadic)


def list_schema_types(
    spec: OperatorSpec, position: int, opset: int, given: Sequence[tuple[int, ir.DataType]] = ()
) -> list[str]:
    """The integer types that the schema of an ONNX operator admits for an operand, the widest in front.

    Of operands that are `given`, by their positions, those that it wants to be alike say which one.
    """
    found = find_schema(spec.name, opset, spec.domain)
    if found is None or not found.inputs:
        return []
    last = len(found.inputs) - 1
    own = found.inputs[min(position, last)]
    free = own.option == onnx.defs.OpSchema.FormalParameterOption.Variadic and not own.is_homogeneous
    like = [dtype for place, dtype in given if found.inputs[min(place, last)].type_str == own.type_str]
    alike = set() if free else set(like)
    names = [name for name in ("i64", "i32", "i8", "u8", "i16", "u16") if not alike or DTYPES[name] in alike]
    return [name for name in names if f"tensor({DTYPES[name].name.lower()})" in own.types]


def can_hold(name: str, numbers: Array) -> bool:
    """Whether all of some numbers are in the range of an integer type."""
    limits = np.iinfo(DTYPES[name].numpy())
    return not numbers.size or bool(limits.min <= numbers.min() and numbers.max() <= limits.max)


def vary_types(kinds: Admitted, positions: Sequence[int], declared: str) -> list[str]:
    """Other types that operands declared alike may all have; quantized ones where the first may be quantized, and no
    others where it is declared so."""
    first = [
        name
        for name in kinds.list_types(positions[0])
        if name != declared and name.startswith(declared[: declared.startswith("q")])
    ]
    rest = [kinds.list_types(position) for position in positions[1:]]
    found = []
    for name in first:
        if name.startswith("q"):
            fits = declared == "f32" or not declared.startswith("f")
            fits = fits and all(_QUANTIZED & set(types) or not types for types in rest)
        else:
            fits = all(name in types for types in rest)
        if fits:
            found.append(name)
    return found


def pick_type(choices: Choices, kinds: Admitted, position: int, declared: str, others: Sequence[str]) -> str:
    """The type of operands that are declared alike: that, or one of the others.

    Of the fixed cases each second one has another, quantized ones in front.
    """
    turn = None if choices.turn is None else choices.turn % 2 == 1
    if others and (kinds.is_barred(position, declared) or choices.draw_chance(_OTHER, turn)):
        return choices.pick(
            sorted(others, key=lambda name: not name.startswith("q")),
            None if choices.turn is None or not turn else choices.turn // 2,
        )
    codes = f"q{declared}"  # integers that the operator takes as codes alone
    return codes if declared not in kinds.list_types(position) and codes in others else declared


def is_bare(choices: Choices, kinds: Admitted, declared: Sequence[tuple[int, str]]) -> bool:
    """Whether codes are to be real numbers, in a few draws and one of the fixed cases: guards may ask for codes alone.

    `declared` are the positions of operands with their types; all that are codes must be admitted as real numbers.
    """
    codes = [position for position, name in declared if name.startswith("q")]
    if not codes or not all("f32" in kinds.list_types(position) for position in codes):
        return False
    return choices.draw_chance(_BARE, None if choices.turn is None else choices.turn == _BARE_TURN)


def fit_types(
    numbers: Array,
    spec: OperatorSpec,
    position: int,
    kinds: Admitted,
    given: Sequence[tuple[int, ir.DataType]],
    opset: int | None,
) -> list[str]:
    """The types that an operand can have whose elements are said; with `opset`, as the operator's schema has it there,
    given the types of the operands before it."""
    types = [name for name in kinds.list_types(position) if not name.startswith("q")] or ["i32"]
    if numbers.dtype.kind == "f" and numbers.size:  # an empty list says no type
        like = [name for _, dtype in given for name in ("f16", "f64") if opset is not None and DTYPES[name] == dtype]
        found = [name for name in types if name.startswith("f")] or _list_narrow_floats(spec, position, opset)
        return like[:1] or found or ["f32"]
    if numbers.dtype.kind in "bS":
        return ["bool" if numbers.dtype.kind == "b" else "string"]
    if opset is not None:
        return [name for name in list_schema_types(spec, position, opset, given) if can_hold(name, numbers)][:1]
    return [name for name in ("i32", "i64", "i16") if name in types] or types


def _list_narrow_floats(spec: OperatorSpec, position: int, opset: int | None) -> list[str]:
    """The floating-point types of 8 and 4 bits that the schema of an ONNX operator admits for an operand."""
    found = None if opset is None else find_schema(spec.name, opset, spec.domain)
    if found is None or position >= len(found.inputs):
        return []
    said = found.inputs[position].types
    return [name for name in NARROW_FLOATS if f"tensor({DTYPES[name].name.lower()})" in said]


def cast_number(
    value: float, spec: OperatorSpec, position: int, given: Sequence[tuple[int, ir.DataType]], opset: int | None
) -> Array:
    """A number as an operand, of the type of those `given` before it where it may be; `opset` as in `fit_types`."""
    types = [dtype.numpy() for _, dtype in given if dtype.is_integer()]
    admitted = list_schema_types(spec, position, opset, given) if opset is not None and type(value) is int else []
    types += [dtype.numpy() for _, dtype in given if dtype.is_floating_point()]
    if isinstance(value, bool) or not admitted or any(dtype.kind in "iu" for dtype in types):
        return np.array(value, None if isinstance(value, bool) else types[0] if types else np.float32)
    return np.array([value], DTYPES[admitted[0]].numpy())  # one that says where is a list


def _add_codes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Integer types also as what real numbers are stored in, which kernels of integers do not look at."""
    return (*names, *(f"q{name}" for name in names if f"q{name}" in _QUANTIZED and f"q{name}" not in names))


def _list_names(text: str) -> tuple[str, ...]:
    """The names in one entry, without those that nothing is drawn of."""
    names = _ANY if text == "any" else tuple(text.split())
    return tuple(name for name in names if name in _QUANTIZED or name in _DRAWN)

"""FlatBuffers read by slots, types and defaults that are data: no generated code, no offset trusted."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..engine.base.errors import ModelError
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Dialect
from .file_kinds import explain_kind

Record = dict[str, Any]

#: struct codes of the scalar types; a subgraph is stored as its index
SCALARS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float": "f",
    "double": "d",
    "subgraph": "i",
}

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table: its slot, its type by name, and how that is stored.

    `code` is the struct code of a scalar or of a vector's elements, None for what is reached by an offset.
    """

    name: str
    slot: int
    type: str
    code: str | None
    vector: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables and unions of a dialect, ready for reading and writing."""

    tables: Mapping[str, Mapping[str, Field]]
    unions: Mapping[str, Mapping[int, str]]

    def find_union(self, table: str) -> tuple[str, int] | None:
        """The union a table is a member of, and its number there."""
        return _list_members(self).get(table)

    def __hash__(self) -> int:
        return id(self)


class Reference(NamedTuple):
    """A table of a union, not read yet: the table's name and its place in the file."""

    table: str
    at: int


class _Plan(NamedTuple):
    """How to read all tables that share one vtable: one unpacking, then the offsets.

    A reference is the name of a field, where its offset is, the width and struct code of the elements it leads to
    (width 0 for what is no vector of scalars), and the field.
    """

    unpacker: struct.Struct
    names: tuple[str, ...]
    references: tuple[tuple[str, int, int, Any, Field], ...]
    absent: Record


@functools.cache
def make_schema(dialect: Dialect) -> Schema:
    """The tables of a dialect of ops.yaml, with its enumerations as the numbers they are stored as."""
    storage = dialect.facts.storage
    tables = {
        table: {name: _make_field(name, row, dialect, storage) for name, row in rows.items()}
        for table, rows in dialect.facts.tables.items()
    }
    unions = {
        union: {number: table for table, number in members.items()} for union, members in dialect.facts.unions.items()
    }
    return Schema(tables, unions)


def _list_members(known: Schema) -> dict[str, tuple[str, int]]:
    return {table: (union, number) for union, tables in known.unions.items() for number, table in tables.items()}


def _find_element_code(field: Field) -> tuple[int, str]:
    """Width and struct code of the elements of a vector of scalars, no code for plain bytes; width 0 for all else."""
    if field.type == "bytes" and not field.vector:
        return 1, ""
    if field.code is None:
        return 0, ""
    return struct.calcsize(f"<{field.code}"), field.code


@functools.lru_cache(maxsize=1024)  # files written alike have the same vtables, and a small one little else
def _make_plan(known: Schema, table: str, extent: int, entries: bytes) -> _Plan:
    """Turn the entries of a vtable into one struct over the inline part of its tables, which takes `extent` bytes.

    Raises ValueError where fields overlap or are outside of it.
    """
    slots = memoryview(entries).cast("H")
    present: list[tuple[int, str, str, Field | None]] = []
    absent: Record = {}
    for field in known.tables[table].values():
        if field.type in known.unions and 0 < field.slot <= len(slots) and slots[field.slot - 1]:
            present.append((slots[field.slot - 1], "B", f"{field.name}_type", None))
        offset = slots[field.slot] if field.slot < len(slots) else 0
        if not offset:
            absent[field.name] = field.default
        elif field.vector or field.code is None:
            present.append((offset, "I", field.name, field))
        else:
            present.append((offset, field.code, field.name, None))
    present.sort(key=lambda entry: entry[0])
    layout, end = ["<"], 0
    for offset, code, name, _ in present:
        if offset < end:
            raise ValueError(f"field {name} of {table} overlaps another one")
        layout.append(f"{offset - end}x{code}")
        end = offset + struct.calcsize(f"<{code}")
    if end > extent:
        raise ValueError(f"the fields of {table} take {end} bytes, its vtable says {extent}")
    references = tuple(
        (field.name, offset, *_find_element_code(field), field) for offset, _, _, field in present if field is not None
    )
    return _Plan(struct.Struct("".join(layout)), tuple(name for _, _, name, _ in present), references, absent)


def _make_field(name: str, row: Sequence[Any], dialect: Dialect, storage: Mapping[str, str]) -> Field:
    slot, kind, *default = row
    vector = kind.startswith("[")
    base = kind.strip("[]")
    code: str | None
    value: Any
    if base in dialect.enums:
        code = SCALARS[storage.get(base, "int8")]
        value = dialect.enums[base][default[0]] if default else 0
    else:
        code = SCALARS.get(base)
        value = default[0] if default else {"bool": False, "float": 0.0, "double": 0.0}.get(base, 0)
    return Field(name, slot, base, code, vector, None if vector or code is None else value)


class FlatBuffer:
    """A file of nested tables, each read as a dictionary of its fields.

    Scalars are Python numbers, strings are str, vectors of scalars are typed memoryviews of the file, vectors of
    strings and tables are lists, unions are a Reference or None; an absent string or vector is None. The work done is
    bounded by the size of the file, whatever its offsets say. Every method raises ModelError on a malformed file.
    """

    def __init__(self, data: memoryview, name: str, known: Schema) -> None:
        self.data = data
        self.name = name
        self.schema = known
        self.size = len(data)
        self._plans: dict[tuple[str, int], _Plan] = {}
        # A table and the offset to it take eight bytes and cost five; the rest leaves room for what is shared.
        self._budget = 2 * self.size + 1024

    def make_error(self, message: str) -> ModelError:
        """Word an error about this file."""
        return ModelError(f"{self.name}: {message}")

    def charge(self, amount: int) -> None:
        """Account for work; raises ModelError when a file asks for more than its size can justify."""
        self._budget -= amount
        if self._budget < 0:
            raise self.make_error(f"malformed: the file of {self.size} bytes refers to the same data again and again")

    def read_span(self, what: str, start: int, count: int, width: int = 1) -> memoryview:
        """`count` items of `width` bytes each from byte `start` of the file; raises ModelError past its end."""
        end = start + count * width
        if start < 0 or end > self.size:
            raise self.make_error(f"truncated: {what} wants bytes {start}..{end}, the file has {self.size}")
        return self.data[start:end]

    def read_root(self, table: str, identifier: str) -> Record:
        """Read the root table; raises ModelError where the four letters that tell the format are not there."""
        if self.size < 8:
            raise self.make_error(f"too short for a model: {self.size} bytes")
        found = bytes(self.data[4:8])
        if found != identifier.encode():
            kind = explain_kind(self.data, "tflite")
            raise self.make_error(f"not a TensorFlow Lite model: bytes 4..8 are {found!r}, not {identifier}{kind}")
        return self.read_table(table, _U32.unpack_from(self.data, 0)[0])

    def read_table(self, table: str, at: int) -> Record:
        """Read all fields of a table, defaults where the file says nothing."""
        plan = self._locate(table, at)
        return {**plan.absent, **self._read_fields(table, at, plan)}

    def read_present(self, table: str, at: int) -> Record:
        """Read the fields of a table that the file has."""
        return self._read_fields(table, at, self._locate(table, at))

    def _locate(self, table: str, at: int) -> _Plan:
        self._budget -= 4
        if self._budget < 0:
            self.charge(0)
        if not 0 <= at <= self.size - 4:
            raise self.make_error(f"truncated: {table} should be at byte {at}, the file has {self.size}")
        vtable = at - _I32.unpack_from(self.data, at)[0]
        plan = self._plans.get((table, vtable))
        if plan is None:
            plan = self._plans[table, vtable] = self._plan_table(table, vtable)
        if at + plan.unpacker.size > self.size:
            raise self.make_error(f"truncated: {table} at byte {at} is cut off, the file has {self.size}")
        return plan

    def _read_fields(self, table: str, at: int, plan: _Plan) -> Record:
        record: Record = dict(zip(plan.names, plan.unpacker.unpack_from(self.data, at), strict=True))
        for name, offset, width, code, field in plan.references:
            target = at + offset + record[name]
            if not width:
                record[name] = self._follow(table, field, record, target)
                continue
            start = target + 4
            end = start + width * self._count(table, field, target)
            if end > self.size:
                self.read_span(f"{table}.{name}", start, end - start)
            content = self.data[start:end]
            record[name] = content.cast(code) if code else content
        return record

    def _count(self, table: str, field: Field, at: int) -> int:
        """The number of elements of the vector at byte `at`."""
        if at > self.size - 4:
            raise self.make_error(f"truncated: {table}.{field.name} should be at byte {at}, the file has {self.size}")
        count: int = _U32.unpack_from(self.data, at)[0]
        return count

    def _plan_table(self, table: str, vtable: int) -> _Plan:
        """Turn a vtable into one struct over the inline part of its tables."""
        if not 0 <= vtable <= self.size - 4:
            raise self.make_error(f"malformed: the vtable of {table} is at byte {vtable} of {self.size}")
        length, extent = struct.unpack_from("<HH", self.data, vtable)
        entries = self.read_span(f"the vtable of {table}", vtable, max(length, 4))[4 : length & ~1]
        try:
            return _make_plan(self.schema, table, extent, bytes(entries))
        except ValueError as error:
            raise self.make_error(f"malformed: {error}") from None

    def _follow(self, table: str, field: Field, record: Record, target: int) -> Any:
        """Read what is at byte `target`: a table, a union, a string, or a vector of tables or strings."""
        if field.type in self.schema.unions:
            member = self.schema.unions[field.type].get(record.get(f"{field.name}_type", 0))
            return None if member is None else Reference(member, target)
        if not field.vector and field.type in self.schema.tables:
            return self.read_table(field.type, target)
        what = f"{table}.{field.name}"
        if not field.vector:
            return self._read_string(what, target)
        start = target + 4
        offsets = self.read_span(what, start, self._count(table, field, target), 4).cast("I")
        self.charge(len(offsets))
        places = [start + 4 * i + offset for i, offset in enumerate(offsets)]
        if field.type == "string":
            return [self._read_string(what, place) for place in places]
        return [self.read_table(field.type, place) for place in places]

    def _read_string(self, what: str, at: int) -> str:
        length: int = _U32.unpack(self.read_span(what, at, 4))[0]
        self.charge(length // 4)
        # Names in the wild are not always UTF-8; every byte has to survive in some readable form.
        return str(self.read_span(what, at + 4, length), "utf-8", "backslashreplace")

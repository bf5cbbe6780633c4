"""FlatBuffers written by slots and types that are data, front to back."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engine.base.startup import dataclass
from ..frontends.flatbuffer_reader import Field, Schema

Record = Mapping[str, Any]
Buffer = bytes | bytearray | memoryview

#: alignment of vectors of plain bytes, which hold tensors (`force_align: 16` in the schema)
_DATA_ALIGNMENT = 16


class Union(NamedTuple):
    """The value of a union: which table, and its fields."""

    table: str
    record: Record


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """Bytes to be put behind the tables; stands for the place in the file where they will be."""

    data: npt.NDArray[np.uint8]


def encode(schema: Schema, table: str, record: Record, identifier: str) -> Iterator[Buffer]:
    """Write a root table, in parts. Fields that a record does not have, or has as None, are left out.

    Values are as frontends.flatbuffer reads them, but unions are a Union, vectors any sequence, and a scalar may be
    Outside.
    """
    encoder = _Encoder(schema)
    encoder.out += b"\0\0\0\0" + identifier.encode()
    encoder.patch(0, encoder.write_table(table, record))
    return encoder.list_parts()


class _Slot(NamedTuple):
    """A field as it is going to be stored: slot, struct code (I for an offset), value."""

    slot: int
    code: str
    value: Any
    field: Field | None


class _Encoder:
    """A file being written. Whatever a table refers to is put behind it, as offsets are positive."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.out = bytearray()
        self.vtables: dict[bytes, int] = {}
        self.outside: list[tuple[int, Outside]] = []

    def list_parts(self) -> Iterator[Buffer]:
        """The tables, and then what lies outside them, which is copied nowhere."""
        end = len(self.out)
        gaps = []
        for place, outside in self.outside:
            gaps.append(-end % _DATA_ALIGNMENT)
            struct.pack_into("<Q", self.out, place, end + gaps[-1])
            end += gaps[-1] + outside.data.nbytes
        yield self.out
        for gap, (_, outside) in zip(gaps, self.outside, strict=True):
            yield bytes(gap)
            yield outside.data.data

    def align(self, to: int, header: int = 0) -> None:
        """Pad so that what follows `header` more bytes is at a multiple of `to`."""
        self.out += bytes(-(len(self.out) + header) % to)

    def patch(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.out, place, target - place)

    def write_table(self, table: str, record: Record) -> int:
        """Write a table and all it refers to; its place in the file."""
        slots = self._list_slots(table, record)
        slots.sort(key=lambda slot: -struct.calcsize(f"<{slot.code}"))
        offsets, end = {}, 4
        for slot in slots:
            width = struct.calcsize(f"<{slot.code}")
            end += -end % width
            offsets[slot.slot] = end
            end += width
        count = max(offsets, default=-1) + 1
        vtable = struct.pack(f"<HH{count}H", 4 + 2 * count, end, *(offsets.get(i, 0) for i in range(count)))
        if vtable not in self.vtables:
            self.align(2)
            self.vtables[vtable] = len(self.out)
            self.out += vtable
        self.align(8)
        start = len(self.out)
        self.out += bytes(end)
        struct.pack_into("<i", self.out, start, start - self.vtables[vtable])
        for slot in slots:
            place = start + offsets[slot.slot]
            if slot.field is not None:
                self.patch(place, self._write_target(slot.field, slot.value))
            elif isinstance(slot.value, Outside):
                self.outside.append((place, slot.value))
            else:
                struct.pack_into(f"<{slot.code}", self.out, place, slot.value)
        return start

    def _list_slots(self, table: str, record: Record) -> list[_Slot]:
        fields = self.schema.tables[table]
        slots = []
        for name, value in record.items():
            field = fields[name]
            if value is None:
                continue
            if isinstance(value, Union):
                members = self.schema.unions[field.type].items()
                number = next(number for number, member in members if member == value.table)
                slots.append(_Slot(field.slot - 1, "B", number, None))
            reference = field.vector or field.code is None
            slots.append(_Slot(field.slot, "I" if reference else str(field.code), value, field if reference else None))
        return slots

    def _write_target(self, field: Field, value: Any) -> int:
        """Write what is reached by an offset; its place in the file."""
        if isinstance(value, Union):
            return self.write_table(value.table, value.record)
        if not field.vector and field.type in self.schema.tables:
            return self.write_table(field.type, value)
        if not field.vector and field.type == "bytes":
            return self._write_bytes(memoryview(value).cast("B"), _DATA_ALIGNMENT, None)
        if not field.vector:
            return self._write_string(value)
        if field.code is not None:
            width = struct.calcsize(f"<{field.code}")
            packed = struct.pack(f"<{len(value)}{field.code}", *value)
            return self._write_bytes(memoryview(packed), max(width, 4), len(value))
        self.align(4)
        start = len(self.out)
        self.out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for i, item in enumerate(value):
            target = self._write_string(item) if field.type == "string" else self.write_table(field.type, item)
            self.patch(start + 4 + 4 * i, target)
        return start

    def _write_bytes(self, content: memoryview, alignment: int, count: int | None) -> int:
        self.align(alignment, 4)
        start = len(self.out)
        self.out += struct.pack("<I", len(content) if count is None else count)
        self.out += content
        return start

    def _write_string(self, text: str) -> int:
        start = self._write_bytes(memoryview(text.encode()), 4, None)
        self.out += b"\0"
        return start

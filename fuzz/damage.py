"""Damaged copies of model files: some of their bytes changed, or what their tables or messages say."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ..backends.flatbuffer_writer import Union, encode
from ..engine.base.errors import ModelError
from ..engine.dialects.operators import Dialect
from ..frontends.flatbuffer_reader import Field, FlatBuffer, Record, Reference, Schema, make_schema

#: numbers that hurt where an offset, a count or an index is meant
NASTY = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x10000, 0x40000000)
#: how many places are changed in one copy
_PLACES = (1, 1, 1, 2, 3)
#: the elements of a vector of numbers that are looked at: weights are not what hurts
_LONG = 1 << 12

Damage = Callable[[bytes, random.Random], bytes]


def damage_bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip bits and replace numbers at a few places, mostly where the tables are; now and then cut the tail."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        place = chance.randrange(len(result) - 4)
        if chance.random() < 0.5:
            near = chance.randrange(min(len(result) - 4, 4000))
            place = chance.choice((near, len(result) - 4 - near))
        kind = chance.randrange(3)
        if kind == 0:
            result[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            result[place] = chance.choice((0, 1, 127, 128, 255))
        else:
            struct.pack_into("<I", result, place, chance.choice((*NASTY, len(result), chance.randrange(len(result)))))
    return bytes(result[: chance.randrange(len(result))] if chance.random() < 0.15 else result)


def swap_ranges(data: bytes, chance: random.Random) -> bytes:
    """Exchange two ranges of equal length."""
    result = bytearray(data)
    length = min(chance.choice((4, 8, 16, 64, 512)), len(result) // 4)
    first = chance.randrange(len(result) // 2 - length)
    second = chance.randrange(len(result) // 2, len(result) - length)
    result[first : first + length], result[second : second + length] = (
        result[second : second + length],
        result[first : first + length],
    )
    return bytes(result)


def damage_tables(data: bytes, chance: random.Random, dialect: Dialect) -> bytes:
    """Change what a few tables say - indices, extents, types, options, which tables there are - in a whole file.

    Raises ModelError where the file cannot be read.
    """
    known = make_schema(dialect)
    root = _open(FlatBuffer(memoryview(data), "model", known), Reference("Model", *struct.unpack_from("<I", data)))
    tables: dict[str, list[Record]] = {}
    for name, record in _iterate_tables(known, root):
        if record:
            tables.setdefault(name, []).append(record)
    for _ in range(chance.choice(_PLACES)):
        name = chance.choice(sorted(tables))
        record = chance.choice(tables[name])
        field = chance.choice([one for one in known.tables[name].values() if one.name in record])
        record[field.name] = _change_value(field, record[field.name], chance)
    return b"".join(encode(known, "Model", root.record, dialect.facts.identifier or ""))


def damage_messages(data: bytes, chance: random.Random) -> bytes:
    """Change what a few messages of an ONNX model say - names, extents, types, attributes, which messages there are.

    Raises ModelError where the file cannot be read.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"not an ONNX model: {error}") from error
    for _ in range(chance.choice(_PLACES)):
        _damage_field(*chance.choice([*_iterate_fields(model)]), chance)
    return bytes(model.SerializeToString())


def _iterate_fields(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """The fields that say something in a message and in those within it, but for the bytes of tensors."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_BYTES:
            continue
        yield message, field
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from _iterate_fields(inner)


def _damage_field(message: Message, field: FieldDescriptor, chance: random.Random) -> None:
    if not field.is_repeated:
        if field.message_type is not None or chance.random() < 0.2:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, _replace_value(field, getattr(message, field.name), chance))
        return
    items = getattr(message, field.name)
    place = chance.randrange(min(len(items), _LONG))
    if chance.random() < 0.3 or (field.message_type is not None and chance.random() < 0.5):
        del items[place]
    elif field.message_type is not None:
        items.add().CopyFrom(items[place])
    else:
        items[place] = _replace_value(field, items[place], chance)


def _replace_value(field: FieldDescriptor, value: Any, chance: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return chance.choice(("", value * 2, value[: len(value) // 2]))
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return _change_number("f", value, chance)
        case FieldDescriptor.CPPTYPE_INT64:
            return _change_number("q", value, chance)
    return chance.choice([one.number for one in field.enum_type.values]) if field.enum_type else chance.randrange(32)


def list_kinds(dialect: Dialect) -> dict[str, Damage]:
    """The ways to damage a file, by name."""
    return {
        "bytes": damage_bytes,
        "ranges": swap_ranges,
        "tables": functools.partial(damage_tables, dialect=dialect),
    }


def _open(file: FlatBuffer, reference: Reference) -> Union:
    """A table with all that it leads to, as the writer takes it."""
    fields = file.schema.tables[reference.table]
    record = {name: value for name, value in file.read_table(*reference).items() if name in fields}
    return Union(reference.table, {name: _nest(file, fields[name], value) for name, value in record.items()})


def _nest(file: FlatBuffer, field: Field, value: Any) -> Any:
    if isinstance(value, Reference):
        return _open(file, value)
    if isinstance(value, list):
        return [_nest(file, field, one) for one in value]
    if not isinstance(value, dict):
        return value
    fields = file.schema.tables[field.type]
    return {name: _nest(file, fields[name], inner) for name, inner in value.items() if name in fields}


def _iterate_tables(known: Schema, union: Union) -> Iterator[tuple[str, Record]]:
    """A table and all that it leads to, by name."""
    record: Any = union.record
    yield union.table, record
    for field in known.tables[union.table].values():
        value = record.get(field.name)
        inner = value if isinstance(value, list) else [value]
        for one in inner:
            if isinstance(one, Union):
                yield from _iterate_tables(known, one)
            elif isinstance(one, dict):
                yield from _iterate_tables(known, Union(field.type, one))


def _change_value(field: Field, value: Any, chance: random.Random) -> Any:
    """Another value of a field: of the same type, so that it can be written."""
    if not field.vector and field.code is not None:
        return _change_number(field.code, value, chance)
    if isinstance(value, str):
        return chance.choice(("", value * 2, value[: len(value) // 2]))
    if not value or chance.random() < 0.1:
        return None if value or field.code is None else [_change_number(field.code, 0, chance)]
    if field.code is None and not isinstance(value, list):
        if isinstance(value, memoryview):  # bytes
            return value[: chance.randrange(len(value))]
        return None
    items = list(value[:_LONG])
    place = chance.randrange(len(items))
    match chance.choice(("drop", "repeat", "swap", "change", "change", "change")):
        case "drop":
            del items[place]
        case "repeat":
            items.insert(place, items[place])
        case "swap":
            other = chance.randrange(len(items))
            items[place], items[other] = items[other], items[place]
        case _ if field.code is not None:
            items[place] = _change_number(field.code, items[place], chance)
    return items


def _change_number(code: str, value: Any, chance: random.Random) -> Any:
    """Another number that a struct code holds, most often one that hurts or one near."""
    if code == "?":
        return not value
    if code in "fd":
        return chance.choice((0.0, -1.0, 1e30, 1e-40, float("inf"), float("nan"), -value, value * 2))
    bits = 8 * struct.calcsize(f"<{code}")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if code.islower() else (0, (1 << bits) - 1)
    found: int = chance.choice((0, 1, -1, 2, low, high, value + 1, value - 1, chance.randrange(64)))
    return min(max(found, low), high)


__all__ = ["NASTY", "Damage", "damage_bytes", "damage_messages", "damage_tables", "list_kinds", "swap_ranges"]

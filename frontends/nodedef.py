"""Nodes of TensorFlow, which its own operators are kept as where TensorFlow Lite has none ("Flex" operators).

The bytes are a `NodeDef` message of tensorflow/core/framework/node_def.proto, with values of attr_value.proto; only the
fields that an option can be made of are described here, and protobuf steps over the others.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

_PACKAGE = "nnrewrite.tensorflow"
_FIELD = descriptor_pb2.FieldDescriptorProto
_LEAVES = {"bytes": _FIELD.TYPE_BYTES, "int": _FIELD.TYPE_INT64, "float": _FIELD.TYPE_FLOAT, "bool": _FIELD.TYPE_BOOL}

#: message -> field -> its number, its type (a message where it begins with a capital), whether it is repeated
_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    "Dim": {"size": (1, "int", False)},
    "Extents": {"dim": (2, "Dim", True), "unknown_rank": (3, "bool", False)},
    "List": {"s": (2, "bytes", True), "i": (3, "int", True), "f": (4, "float", True), "b": (5, "bool", True)},
    "Value": {
        "list": (1, "List", False),
        "s": (2, "bytes", False),
        "i": (3, "int", False),
        "f": (4, "float", False),
        "b": (5, "bool", False),
        "shape": (7, "Extents", False),
    },
    "Entry": {"key": (1, "bytes", False), "value": (2, "Value", False)},
    "Node": {"op": (2, "bytes", False), "attr": (5, "Entry", True)},
}


class NodeDefError(ValueError):
    """Bytes that are not a NodeDef message."""


def read_attributes(data: bytes) -> dict[str, Any]:
    """Read the attributes of a node: int, float, str, and lists of these; a shape is a list of ints, -1 where unknown.

    Types of elements and attributes whose names begin with an underscore are left out: the values have the former, and
    the latter are notes of TensorFlow's own. Raises NodeDefError for bytes that are no node.
    """
    node = _make_message_class()()
    try:
        node.ParseFromString(data)
        found = {entry.key.decode(): _read_value(entry.value) for entry in node.attr}
    except (DecodeError, UnicodeDecodeError) as error:
        raise NodeDefError(f"not a NodeDef: {error}") from error
    return {name: value for name, value in sorted(found.items()) if value is not None and not name.startswith("_")}


def _read_value(value: Any) -> Any:
    for name in ("s", "i", "f", "b"):
        if value.HasField(name):
            return _convert_value(getattr(value, name))
    if value.HasField("shape"):
        return None if value.shape.unknown_rank else [dim.size for dim in value.shape.dim]
    if value.HasField("list"):
        return next(([_convert_value(item) for item in getattr(value.list, name)] for name in ("s", "i", "f", "b")
                     if getattr(value.list, name)), None)  # fmt: skip
    return None


def _convert_value(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _make_message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
            made = message.field.add(name=field, number=number, label=label)
            if kind in _LEAVES:
                made.type = _LEAVES[kind]
            else:
                made.type, made.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Node"))

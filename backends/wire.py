"""Graphs in protobuf's wire format, as onnx.proto defines the messages: a field's number, its length, its bytes.

A Python object for each message takes several times as long as all the rest of writing a graph. What a graph has few of
(attributes, types, tensors) is encoded by the onnx package, once for equal ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import onnx
import onnx_ir as ir
from google.protobuf.message import Message
from onnx_ir import serde

from ..engine.base.constants import DECLARED
from ..engine.dialects.inference import read_extents
from ..frontends.protobuf_outline import encode_varint

#: the lengths that take one byte
_SIZES = [bytes((size,)) for size in range(128)]


def encode_tag(message: type[Message], field: str) -> bytes:
    """What a field that has a length begins with: its number, and 2 for its wire type."""
    return encode_varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)


_OPERAND, _RESULT, _LABEL, _OPERATOR, _ATTRIBUTE, _DOMAIN, _METADATA = (
    encode_tag(onnx.NodeProto, field)
    for field in ("input", "output", "name", "op_type", "attribute", "domain", "metadata_props")
)
_NODE, _NAME, _INITIALIZER, _INPUT, _OUTPUT, _INFO = (
    encode_tag(onnx.GraphProto, field) for field in ("node", "name", "initializer", "input", "output", "value_info")
)
_KEY, _VALUE = (encode_tag(onnx.StringStringEntryProto, field) for field in ("key", "value"))
_CALLED, _TYPE = (encode_tag(onnx.ValueInfoProto, field) for field in ("name", "type"))


class Encoder:
    """Encodes one graph; equal attributes, types and entries of metadata once."""

    def __init__(self) -> None:
        self._attributes: dict[Hashable, bytes] = {}
        self._types: dict[Hashable, bytes] = {}
        self._shapes: list[ir.Shape | None] = []
        self._described = True

    def encode_graph(
        self,
        graph: ir.Graph,
        initializers: Iterable[bytes],
        defaults: Iterable[ir.Value] = (),
        described: bool = True,
    ) -> bytes:
        """A graph, with those initializers alone whose messages are given; `defaults` are inputs behind its own.

        `described` says that types and shapes of values between the nodes are written as well, here and in graphs of
        nodes.
        """
        self._described = described
        parts = [_encode_field(_NODE, self.encode_node(one)) for one in graph]
        parts.append(_encode_text(_NAME, graph.name or "graph"))  # it must have one
        parts += [_encode_field(_INITIALIZER, tensor) for tensor in initializers]
        parts += [_encode_field(_INPUT, self.encode_value(one)) for one in (*graph.inputs, *defaults)]
        parts += [_encode_field(_OUTPUT, self.encode_value(one)) for one in graph.outputs]
        ends = frozenset(graph.outputs)
        inner = (one for node in graph for one in node.outputs) if described else ()
        known = (one for one in inner if one.type is not None and one.name)
        parts += [_encode_field(_INFO, self.encode_value(one)) for one in known if one not in ends]
        return b"".join(parts)

    def encode_node(self, node: ir.Node) -> bytes:
        """A node, with the names of its operands and results and with its metadata."""
        parts = [_encode_text(_OPERAND, None if one is None else one.name) for one in node.inputs]
        names = [one.name for one in node.outputs]
        while names and not names[-1]:
            names.pop()
        parts += [_encode_text(_RESULT, name) for name in names]
        parts.append(_encode_text(_LABEL, node.name))
        parts.append(_encode_text(_OPERATOR, node.op_type))
        if node.attributes:
            parts += [
                _encode_field(_ATTRIBUTE, self._encode_attribute(attribute)) for attribute in node.attributes.values()
            ]
        if node.domain:
            parts.append(_encode_text(_DOMAIN, node.domain))
        parts += [
            _encode_field(_METADATA, _encode_text(_KEY, key) + _encode_text(_VALUE, text))
            for key, text in node.metadata_props.items()
        ]
        return b"".join(parts)

    def encode_value(self, value: ir.Value) -> bytes:
        """What is known of a value's type and shape."""
        kind, shape = value.type, value.shape
        if kind is None and DECLARED in value.meta:
            return _encode_text(_CALLED, value.name) + _encode_field(_TYPE, value.meta[DECLARED])
        if type(kind) is not ir.TensorType:
            return bytes(serde.serialize_value(value).SerializeToString())
        # A shape that never changes is known by itself, and kept so that no other takes its place.
        key = kind.dtype, None if shape is None else id(shape) if shape.frozen else read_extents(value)
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = _encode_field(_TYPE, serde.serialize_value(value).type.SerializeToString())
            self._shapes.append(shape)
        return _encode_text(_CALLED, value.name) + known

    def _encode_attribute(self, attribute: ir.Attr) -> bytes:
        held = attribute.value
        if not isinstance(held, int | float | str | tuple):
            proto = serde.serialize_attribute(attribute)
            if not self._described:
                _leave_out_descriptions(proto)
            return bytes(proto.SerializeToString())
        # By their text, as -0.0 equals 0.0 and is another number.
        key = attribute.name, attribute.type, held if isinstance(held, int | str) else repr(held)
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = bytes(serde.serialize_attribute(attribute).SerializeToString())
        return known


def _leave_out_descriptions(attribute: onnx.AttributeProto) -> None:
    for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
        del graph.value_info[:]
        for inner in (one for node in graph.node for one in node.attribute):
            _leave_out_descriptions(inner)


def _encode_field(tag: bytes, content: bytes) -> bytes:
    size = len(content)
    return tag + (_SIZES[size] if size < 128 else encode_varint(size)) + content


def _encode_text(tag: bytes, text: str | None) -> bytes:
    content = text.encode() if text else b""
    size = len(content)
    return tag + (_SIZES[size] if size < 128 else encode_varint(size)) + content

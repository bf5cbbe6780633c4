"""Types and shapes of what a node yields, from the operator's own schema."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.shape_inference
import onnx_ir as ir
from onnx_ir import serde

from .constants import stored
from .operators import schema

#: constants longer than this are weights and say nothing about shapes
_SHAPE_DATA = 1024

Extents = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Inferred:
    """An element type and a shape, each None where it is not known."""

    dtype: ir.DataType | None
    shape: Extents | None


class InferenceError(Exception):
    """A node that its operator's schema does not admit, in the words of onnx.shape_inference."""


def infer(node: ir.Node, opset: int) -> list[Inferred]:
    """Infer the results of one node of an ONNX domain at an opset, one entry a result.

    Raises InferenceError where the node is ill-formed. Source: onnx.shape_inference.infer_node_outputs.
    """
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    for attribute in node.attributes.values():
        serde.serialize_attribute_into(proto.attribute.add(), attribute)
    types: list[bytes] = []
    data: list[bytes] = []
    for position, value in enumerate(node.inputs):
        proto.input.append("" if value is None else f"i{position}")
        types.append(b"" if value is None else _type(value).SerializeToString())
        data.append(b"" if value is None else _data(value))
    proto.output.extend(f"o{position}" for position in range(len(node.outputs)))
    return _infer(proto.SerializeToString(), opset, tuple(types), tuple(data))


@functools.lru_cache(maxsize=4096)
def _infer(node: bytes, opset: int, types: tuple[bytes, ...], data: tuple[bytes, ...]) -> list[Inferred]:
    # Networks repeat themselves, so equal nodes over equal shapes are inferred once.
    proto = onnx.NodeProto.FromString(node)
    found = schema(proto.op_type, opset, proto.domain)
    if found is None:
        return [Inferred(None, None) for _ in proto.output]
    known_types = {name: onnx.TypeProto.FromString(t) for name, t in zip(proto.input, types, strict=True) if t}
    if any(name and (name not in known_types or not known_types[name].tensor_type.elem_type) for name in proto.input):
        return [Inferred(None, None) for _ in proto.output]  # nothing is known of an operand, so nothing of the node
    known_data = {name: onnx.TensorProto.FromString(d) for name, d in zip(proto.input, data, strict=True) if d}
    imports = [onnx.OperatorSetIdProto(domain=proto.domain, version=opset)]
    try:
        outputs = onnx.shape_inference.infer_node_outputs(found, proto, known_types, known_data, opset_imports=imports)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        raise InferenceError(" ".join(str(error).split())) from error
    return [_inferred(outputs.get(name)) for name in proto.output]


def _inferred(proto: onnx.TypeProto | None) -> Inferred:
    if proto is None or not proto.HasField("tensor_type"):
        return Inferred(None, None)
    tensor = proto.tensor_type
    dtype = ir.DataType(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return Inferred(dtype, None)
    extents = (d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    return Inferred(dtype, tuple(extents))


def _type(value: ir.Value) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if value.dtype is not None:
        proto.tensor_type.elem_type = int(value.dtype)
    if value.shape is not None:
        shape = proto.tensor_type.shape
        shape.SetInParent()
        for extent in value.shape:
            dimension = shape.dim.add()
            if isinstance(extent, int):
                dimension.dim_value = extent
            elif extent.value is not None:
                dimension.dim_param = extent.value
    return proto


def _data(value: ir.Value) -> bytes:
    tensor = value.const_value
    if tensor is None or tensor.size > _SHAPE_DATA or tensor.dtype == ir.DataType.STRING:
        return b""
    array = stored(value)
    return b"" if array is None else bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def merge(first: Extents | None, second: Extents | None) -> Extents | None:
    """What two descriptions of one shape say together; raises InferenceError where they contradict each other.

    A number wins over a name and a name over nothing.
    """
    if first is None or second is None:
        return first if second is None else second
    if len(first) != len(second):
        raise InferenceError(f"rank {len(second)} where the source says {len(first)}")
    merged: list[int | str | None] = []
    for axis, (a, b) in enumerate(itertools.zip_longest(first, second)):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise InferenceError(f"extent {b} on axis {axis} where the source says {a}")
        merged.append(a if isinstance(a, int) else b if isinstance(b, int) else b if a is None else a)
    return tuple(merged)


def extents(value: ir.Value) -> Extents | None:
    """The shape of a value as numbers, names, and None for extents that are neither."""
    if value.shape is None:
        return None
    return tuple(d if isinstance(d, int) else d.value for d in value.shape)

"""Inference of types and shapes of a node's results, from its operator's schema."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.shape_inference
import onnx_ir as ir
from onnx_ir import serde

from ..base.constants import read_initializer
from ..base.errors import join_lines
from ..base.startup import dataclass
from .onnx_schemas import find_schema_to_infer, find_version_with

#: constants longer than this are weights and say nothing about shapes
SHAPE_DATA = 1024

Extents = tuple[int | str | None, ...]

#: what inference is told of an operand: element type, shape, and the elements and their type where they are few
Operand = tuple[int | None, Extents | None, bytes, "np.dtype[Any] | None"]

#: what inference lets through of what goes wrong in it
_RAISED = (RuntimeError, ValueError, IndexError, MemoryError)
#: types of shapes, axes and counts, and those of all numbers: bytes and real numbers seldom say anything of shapes
_COUNTS = {ir.DataType.INT32, ir.DataType.INT64}
NUMBER_TYPES = set(ir.DataType) - {ir.DataType.STRING, ir.DataType.UNDEFINED}
#: attributes that are not told apart by their value
UNCOUNTED = {
    ir.AttributeType[f"{kind}{several}"]
    for kind in ("TENSOR", "GRAPH", "SPARSE_TENSOR", "TYPE_PROTO")
    for several in ("", "S")
}


@dataclass(frozen=True, slots=True)
class Inferred:
    """An element type and a shape, each None where it is not known."""

    dtype: ir.DataType | None
    shape: Extents | None


class Question(NamedTuple):
    """What inference is told of a node: equal questions have equal answers."""

    domain: str
    operator: str
    version: int
    attributes: tuple[tuple[str, ir.AttributeType, Any], ...]
    operands: tuple[Operand | None, ...]
    results: int


class InferenceError(Exception):
    """A node that its operator's schema does not admit, in the words of onnx.shape_inference."""


def infer(node: ir.Node, opset: int, elements: bool = True) -> list[Inferred]:
    """Infer the results of one node of an ONNX domain at an opset, one entry a result; by types and shapes alone where
    the `elements` of constants are not to be told.

    Raises InferenceError where the node is ill-formed. Source: onnx.shape_inference.infer_node_outputs.
    """
    question = describe_node(node, opset, _COUNTS if elements else ())
    derive = infer_described if any(kind in UNCOUNTED for _, kind, _ in question.attributes) else _infer
    found = derive(question)
    if elements and any(one.shape is None or None in one.shape for one in found):
        # a few operators leave open what other numbers tell
        whole = describe_operands(node, NUMBER_TYPES)
        if question.operands != whole:
            found = derive(question._replace(operands=whole))
    return list(found)


def find_version(node: ir.Node, opset: int) -> int:
    """The opset from which on the results of a node are inferred as at another; 0 where it has no schema there."""
    if node.domain:  # which has versions of its own
        opset = find_version_with(node.op_type, node.domain, [*node.attributes]) or opset
    found = find_schema_to_infer(node.op_type, opset, node.domain)
    return 0 if found is None else int(found.since_version)


def require_within(node: ir.Node, ranges: Mapping[str, Sequence[int]]) -> None:
    """Raise InferenceError where an integer attribute lies outside of its range, least and greatest number.

    Beyond the ranges that ops.yaml has, onnx.shape_inference reads what is not its own, and the process ends.
    """
    for name, (low, high) in ranges.items():
        found = node.attributes.get(name)
        if found is not None and not low <= found.as_int() <= high:
            raise InferenceError(f"{name} is {found.as_int()}, which is none of {low} to {high}")


@functools.lru_cache(maxsize=4096)
def _infer(question: Question) -> tuple[Inferred, ...]:
    # Networks repeat themselves, so equal nodes over equal shapes are inferred once.
    domain, operator, version, attributes, operands, results = question
    found = find_schema_to_infer(operator, version, domain) if version else None
    if found is None or any(one is not None and one[0] is None for one in operands):
        return (Inferred(None, None),) * results  # nothing is known of an operand, so nothing of the node
    proto = onnx.NodeProto(op_type=operator, domain=domain)
    add_attributes(proto, [ir.Attr(name, kind, value) for name, kind, value in attributes])
    given = {name for name, _, _ in attributes}
    # The inference of STFT takes an option that is left out for another than the default that its schema says.
    defaults = (one.default_value for name, one in found.attributes.items() if name not in given)
    proto.attribute.extend(default for default in defaults if default.type)
    proto.input.extend("" if one is None else f"i{position}" for position, one in enumerate(operands))
    proto.output.extend(f"o{position}" for position in range(results))
    types = {name: make_type(*one[:2]) for name, one in zip(proto.input, operands, strict=True) if one is not None}
    data = {
        name: _make_data(one)
        for name, one in zip(proto.input, operands, strict=True)
        if one is not None and one[3] is not None
    }
    imports = [onnx.OperatorSetIdProto(domain=domain, version=version)]
    try:
        outputs = onnx.shape_inference.infer_node_outputs(found, proto, types, data, opset_imports=imports)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, *_RAISED) as error:
        raise InferenceError(join_lines(error)) from error
    return tuple([_read_type(outputs.get(name)) for name in proto.output])


#: the same without keeping what was found, for questions that are asked once
infer_described = _infer.__wrapped__


def describe_node(node: ir.Node, opset: int, told: Container[ir.DataType]) -> Question:
    """What inference at an opset is told of a node, with the elements of operands of the types `told`."""
    attributes = tuple([(a.name, a.type, a.value) for a in node.attributes.data.values()])
    operands = describe_operands(node, told)
    return Question(node.domain, node.op_type, find_version(node, opset), attributes, operands, len(node.outputs))


def describe_operands(node: ir.Node, told: Container[ir.DataType]) -> tuple[Operand | None, ...]:
    """What inference is told of the operands of a node, with the elements of those of the types `told`."""
    return tuple([None if value is None else _describe_operand(value, told) for value in node.inputs])


def add_attributes(proto: onnx.NodeProto, attributes: Iterable[ir.Attr]) -> None:
    """Give a node of a model its attributes."""
    for attribute in attributes:
        serde.serialize_attribute_into(proto.attribute.add(), attribute)


def _read_type(proto: onnx.TypeProto | None) -> Inferred:
    if proto is None or not proto.HasField("tensor_type"):
        return Inferred(None, None)
    tensor = proto.tensor_type
    dtype = ir.DataType(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return Inferred(dtype, None)
    extents = (d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    found = tuple(extents)
    if any(isinstance(extent, int) and extent < 0 for extent in found):
        # Said of a pad that removes more than there is; told of such an operand, the inference of Slice aborts.
        raise InferenceError(f"yields an extent below zero, {list(found)}")
    return Inferred(dtype, found)


def _describe_operand(value: ir.Value, told: Container[ir.DataType]) -> Operand:
    """What inference is told of an operand, its elements only where they are of some types."""
    dtype, shape, tensor = value.dtype, read_extents(value), value.const_value
    kind = None if dtype is None else int(dtype)
    if tensor is None or tensor.dtype not in told or tensor.size > SHAPE_DATA:
        return kind, shape, b"", None
    array = read_initializer(value)
    return (kind, shape, b"", None) if array is None else (kind, array.shape, array.tobytes(), array.dtype)


def make_type(dtype: int | None, extents: Extents | None) -> onnx.TypeProto:
    """The type of a tensor as ONNX's own message has it, 0 for an element type that is not known."""
    proto = onnx.TypeProto()
    proto.tensor_type.elem_type = int(dtype or 0)
    if extents is not None:
        shape = proto.tensor_type.shape
        shape.SetInParent()
        for extent in extents:
            dimension = shape.dim.add()
            if isinstance(extent, int):
                dimension.dim_value = extent
            elif extent is not None:
                dimension.dim_param = extent
    return proto


def _make_data(operand: Operand) -> onnx.TensorProto:
    _, shape, elements, dtype = operand
    array = np.frombuffer(elements, dtype).reshape([extent for extent in shape or () if isinstance(extent, int)])
    return onnx.numpy_helper.from_array(array)


def describe(node: ir.Node, results: Iterable[tuple[ir.DataType | None, ir.Shape | None]]) -> None:
    """Let the results of a node have element types and shapes, where these are known."""
    for output, (dtype, shape) in zip(node.outputs, results, strict=False):
        if dtype is not None:
            output.type = ir.TensorType(dtype)
        if shape is not None:
            output.shape = shape


def make_shape(extents: Extents) -> ir.Shape:
    """A shape that many values can have, as it never changes."""
    return ir.Shape(extents, frozen=True)


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


def intersect(one: Extents, other: Extents) -> Extents:
    """The extents that two shapes of one rank have in common, None for each that differs."""
    return tuple([a if a == b else None for a, b in zip(one, other, strict=True)])


def update_extents(known: Extents | None, found: Extents) -> Extents:
    """What was known of a shape together with what has been inferred, which holds where they contradict each other."""
    try:
        return merge(known, found) or found
    except InferenceError:
        return found


def read_extents(value: ir.Value) -> Extents | None:
    """The shape of a value as numbers, names, and None for extents that are neither."""
    shape = value.shape
    if shape is None:
        return None
    dims = shape.dims
    for d in dims:
        if type(d) is not int:
            return tuple([d if isinstance(d, int) else d.value for d in dims])
    return dims  # type: ignore[return-value]

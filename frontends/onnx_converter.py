"""Models of early opsets, brought to a later one by onnx's own converter."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx.checker
import onnx.shape_inference
from google.protobuf.message import DecodeError
from onnx import version_converter

from ..engine.dialects.operators import Dialect
from .onnx_functions import is_same_at
from .onnx_graphs import FIRST, OVERRIDABLE, fix_defaults, list_nodes, read_proto

#: the attributes by which operators said, before opset 7, along which axis their second operand is repeated
_REPEATED, _AXIS = "broadcast", "axis"
#: what the first opset has besides, of operands that a runtime might write to
_CONSUMED = "consumed_inputs"
#: what recurrent operators had besides: whether they yield a result, which those have that name it
_YIELDED = "output_sequence"
#: the domain in which nodes wait that are what they are in later opsets: the converter knows no way for some of them
_DONE = "nnrewrite.done"
_FAILURES = (
    version_converter.ConvertError,
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)


class ConversionError(Exception):
    """A model that cannot be brought to another opset, in the words of onnx's converter."""


def convert_to_first(source: str | bytes, dialect: Dialect) -> bytes | None:
    """A model (path or bytes) older than the first opset that rules know, converted to that one; None for newer ones.

    Raises ConversionError for what is no model, and where onnx's converter cannot convert it.
    """
    try:
        model = read_proto(source)
    except DecodeError as error:
        raise ConversionError(f"{error}") from error
    if all(one.domain not in ("", "ai.onnx") or one.version >= FIRST for one in model.opset_import):
        return None
    return bytes(convert(model, FIRST, dialect).SerializeToString())


def convert(model: onnx.ModelProto, opset: int, dialect: Dialect) -> onnx.ModelProto:
    """The same model at a later opset. Types of inputs and outputs stay as they are declared.

    Raises ConversionError where the converter has no way.
    """
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    if model.ir_version < OVERRIDABLE:
        fix_defaults(fixed.graph)
        fixed.ir_version = OVERRIDABLE
    for value in fixed.graph.input:
        for extent in value.type.tensor_type.shape.dim:
            extent.dim_value = extent.dim_value or 1  # the converter takes none that is free
    try:
        _write_axes(fixed, _infer_ranks(fixed), dialect)
        fixed.opset_import.add(domain=_DONE, version=1)
        try:
            made = version_converter.convert_version(fixed, opset)
        except _FAILURES:
            _mark_unchanged(fixed, opset, dialect)
            made = version_converter.convert_version(fixed, opset)
    except _FAILURES as error:
        raise ConversionError(f"{error}") from error
    for node in made.graph.node:
        if node.domain == _DONE:
            node.domain = ""
    kept = [one for one in made.opset_import if one.domain != _DONE]
    del made.opset_import[:]
    made.opset_import.extend(kept)
    types = {value.name: value.type for value in (*model.graph.input, *model.graph.output)}
    for value in (*made.graph.input, *made.graph.output):
        value.type.CopyFrom(types[value.name])
    return made


def _mark_unchanged(model: onnx.ModelProto, opset: int, dialect: Dialect) -> None:
    """Mark nodes as done that mean the same at a later opset; types that were told by name are told by number.

    The converter knows no way for some of them, as for recurrent operators.
    """
    given = max(one.version for one in model.opset_import if not one.domain)
    for node in list_nodes(model.graph):
        kept = [one for one in node.attribute if one.name not in (_CONSUMED, _YIELDED)]
        plain = onnx.NodeProto(op_type=node.op_type, input=node.input, output=node.output, attribute=kept)
        if node.domain or not is_same_at(plain, given, opset, dialect):
            continue
        forms = onnx.defs.get_schema(node.op_type, opset).attributes
        for one in kept:
            if one.type == onnx.AttributeProto.STRING and forms[one.name].type == onnx.defs.OpSchema.AttrType.INT:
                number = onnx.TensorProto.DataType.Value(one.s.decode())
                one.CopyFrom(onnx.helper.make_attribute(one.name, number))
        del node.attribute[:]
        node.attribute.extend(kept)
        node.domain = _DONE


def _infer_ranks(model: onnx.ModelProto) -> Mapping[str, int]:
    """How many axes each value has, as far as that is known.

    Many early operators tell nothing: their later forms are asked too, where what was repeated is as long as the rest.
    """
    later = onnx.ModelProto()
    later.CopyFrom(model)
    for entry in later.opset_import:
        given = entry.version
        if entry.domain:
            continue
        entry.version = FIRST
        for node in later.graph.node:
            if _is_repeated(node, given) and len(node.input) > 1:
                node.input[1] = node.input[0]
    try:
        told = _read_ranks(later)
    except _FAILURES:  # operators that have changed otherwise may not fit
        told = {}
    return told | _read_ranks(model)


def _read_ranks(model: onnx.ModelProto) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    described = (*graph.input, *graph.value_info, *graph.output)
    ranks = {
        one.name: len(one.type.tensor_type.shape.dim) for one in described if one.type.tensor_type.HasField("shape")
    }
    return ranks | {tensor.name: len(tensor.dims) for tensor in graph.initializer}


def _write_axes(model: onnx.ModelProto, ranks: Mapping[str, int], dialect: Dialect) -> None:
    """Give what is repeated along other axes than the last all of its axes, as later opsets have them; what is not
    constant by the operator that adds axes. Nodes that said so are done.

    The converter does so itself for constants, with as many axes behind as the first operand has more, whatever the
    axis is.
    """
    graph, opset = model.graph, max(one.version for one in model.opset_import if not one.domain)
    extend = dialect.find_role("extend").name
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {
        node.output[0]: one.t for node in graph.node if not node.input for one in node.attribute if one.t.dims
    }
    for place, node in reversed([*enumerate(graph.node)]):
        given = {one.name: one.i for one in node.attribute if one.type == onnx.AttributeProto.INT}
        axis = _find_axis(node, given, ranks, dialect)
        if _is_repeated(node, opset):
            kept = [one for one in node.attribute if one.name not in (_REPEATED, _AXIS, _CONSUMED)]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.domain = _DONE
        if axis is None:
            continue
        first, second = node.input
        rank, constant = ranks.get(first), constants.get(second)
        own = ranks.get(second) if constant is None else len(constant.dims)
        if rank is None or own is None:
            what = f"operand {second} of {node.name or node.op_type} is repeated along axis {axis}"
            raise ValueError(f"{what}, and nothing says along how many axes")
        more = rank - axis % rank - own
        if constant is not None:
            wide = graph.initializer.add()
            wide.CopyFrom(constant)
            wide.name = node.input[1] = f"{node.output[0]}/{second}"
            wide.dims.extend([1] * more)
        elif more:
            node.input[1] = f"{node.output[0]}/{second}"
            view = onnx.helper.make_node(extend, [second], [node.input[1]], axes=[*range(own, own + more)])
            graph.node.insert(place, view)


def _is_repeated(node: onnx.NodeProto, opset: int) -> bool:
    """Whether a node is of an operator that says whether its second operand is repeated."""
    try:
        return not node.domain and _REPEATED in onnx.defs.get_schema(node.op_type, opset).attributes
    except onnx.defs.SchemaError:
        return False


def _find_axis(
    node: onnx.NodeProto, given: Mapping[str, int], ranks: Mapping[str, int], dialect: Dialect
) -> int | None:
    """The axis from which on the second operand of a node is repeated; none where it is along the last ones."""
    if given.get(_REPEATED):
        return given.get(_AXIS)
    spec = dialect.operators.get(node.op_type)
    axis = None if spec is None or node.domain else spec.facts.once_along
    if axis is None or len(node.input) < 2 or ranks.get(node.input[1]) != 1 or ranks.get(node.input[0], 0) <= axis:
        return None
    return axis

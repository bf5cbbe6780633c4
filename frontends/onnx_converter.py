"""Models of early opsets, brought to a later one by onnx's own converter."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx.checker
import onnx.shape_inference
from onnx import version_converter

from ..engine.dialects.operators import Dialect
from .onnx_graphs import OVERRIDABLE, fix_defaults

#: the attributes by which operators said, before opset 7, along which axis their second operand is repeated
_REPEATED, _AXIS = "broadcast", "axis"
_FAILURES = (
    version_converter.ConvertError,
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)


class ConversionError(Exception):
    """A model that cannot be brought to another opset, in the words of onnx's converter."""


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
        _write_axes(fixed.graph, _infer_ranks(fixed), dialect.find_role("extend").name)
        made = version_converter.convert_version(fixed, opset)
    except _FAILURES as error:
        raise ConversionError(f"{error}") from error
    types = {value.name: value.type for value in (*model.graph.input, *model.graph.output)}
    for value in (*made.graph.input, *made.graph.output):
        value.type.CopyFrom(types[value.name])
    return made


def _infer_ranks(model: onnx.ModelProto) -> Mapping[str, int]:
    """How many axes each value has, as far as that is known."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    described = (*graph.input, *graph.value_info, *graph.output)
    ranks = {
        one.name: len(one.type.tensor_type.shape.dim) for one in described if one.type.tensor_type.HasField("shape")
    }
    return ranks | {tensor.name: len(tensor.dims) for tensor in graph.initializer}


def _write_axes(graph: onnx.GraphProto, ranks: Mapping[str, int], extend: str) -> None:
    """Give what is repeated along other axes than the last all of its axes, as later opsets have them; what is not
    constant by the operator `extend`.

    The converter does so itself for constants, with as many axes behind as the first operand has more, whatever the
    axis is.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {
        node.output[0]: one.t for node in graph.node if not node.input for one in node.attribute if one.t.dims
    }
    for place, node in reversed([*enumerate(graph.node)]):
        given = {one.name: one.i for one in node.attribute if one.type == onnx.AttributeProto.INT}
        if not given.get(_REPEATED) or _AXIS not in given:
            continue
        first, second = node.input
        rank, constant = ranks.get(first), constants.get(second)
        own = ranks.get(second) if constant is None else len(constant.dims)
        if rank is None or own is None:
            what = f"operand {second} of {node.name or node.op_type} is repeated along axis {given[_AXIS]}"
            raise ValueError(f"{what}, and nothing says along how many axes")
        more = rank - given[_AXIS] % rank - own
        if constant is not None:
            wide = graph.initializer.add()
            wide.CopyFrom(constant)
            wide.name = node.input[1] = f"{node.output[0]}/{second}"
            wide.dims.extend([1] * more)
        elif more:
            node.input[1] = f"{node.output[0]}/{second}"
            view = onnx.helper.make_node(extend, [second], [node.input[1]], axes=[*range(own, own + more)])
            graph.node.insert(place, view)
        kept = [one for one in node.attribute if one.name not in (_REPEATED, _AXIS)]
        del node.attribute[:]
        node.attribute.extend(kept)

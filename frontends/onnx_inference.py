"""Shapes of an ONNX model as its inputs make them, by onnx.shape_inference, and what of these is not believed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx
import onnx.shape_inference
import onnx_ir as ir

from ..engine.dialects.extents import list_scale_factors
from ..engine.dialects.onnx_schemas import NEGATIVE_AXES
from ..engine.dialects.operators import Dialect, OperatorSpec
from ..engine.dialects.symbols import UNNAMED
from .onnx_graphs import OVERRIDABLE, are_lists_short


def name_extents(graph: onnx.GraphProto) -> None:
    """Give each unknown extent of an input a name, by which it is known again in what it leads to."""
    for given_input in graph.input:
        for axis, one in enumerate(given_input.type.tensor_type.shape.dim):
            if one.dim_value < 0:
                one.Clear()  # as some exporters write an extent that is free
            elif one.dim_param.startswith(UNNAMED):  # as tf2onnx calls extents of inputs, which are known to be there
                one.dim_param = f"extent_{one.dim_param.removeprefix(UNNAMED)}"
            if not one.HasField("dim_value") and not one.dim_param:
                one.dim_param = f"{given_input.name}.{axis}"


def infer_shapes(proto: onnx.ModelProto, dialect: Dialect) -> onnx.ModelProto:
    """The model with types and shapes of all values as its inputs make them, whatever it says of them itself."""
    bare = onnx.ModelProto()
    bare.CopyFrom(proto)
    bare.ir_version = max(proto.ir_version, OVERRIDABLE)
    del bare.graph.value_info[:]
    inputs = {value.name: value for value in bare.graph.input}
    for output in bare.graph.output:
        output.ClearField("type")
        if output.name in inputs:  # which is one value
            output.type.CopyFrom(inputs[output.name].type)
    inferred = onnx.shape_inference.infer_shapes(bare)
    if are_lists_short(inferred.graph, dialect):
        inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    inferred.ir_version = proto.ir_version
    return inferred


def list_told_names(graph: onnx.GraphProto) -> dict[str, list[str | None]]:
    """The extents of inputs by whose names a file says how large values between nodes are."""
    given = {one.dim_param for value in graph.input for one in value.type.tensor_type.shape.dim if one.dim_param}
    told = {
        value.name: [one.dim_param if one.dim_param in given else None for one in value.type.tensor_type.shape.dim]
        for value in (graph.value_info if given else ())
    }
    return {name: extents for name, extents in told.items() if any(extents)}


def forget_shapes(nodes: Iterable[ir.Node], dialect: Dialect, opset: int) -> None:
    """Leave shapes open that onnx.shape_inference has otherwise than runtimes, and those that follow from them."""
    wrong: set[ir.Value | None] = set()
    for node in nodes:
        spec = dialect.find_operator(node.op_type, opset)
        if (spec is not None and _is_misread(node, spec, opset)) or not wrong.isdisjoint(node.inputs):
            wrong.update(node.outputs)
            for output in node.outputs:
                output.shape = None


def _is_misread(node: ir.Node, spec: OperatorSpec, opset: int) -> bool:
    """Whether onnx.shape_inference infers another shape for a node than runtimes compute.

    It ignores axes counted from the end at opsets that have none, and multiplies extents by factors in double
    precision.
    """
    if any(factor != int(factor) for factor in list_scale_factors(node, spec)):
        return True
    listing = (spec.facts.inserts, spec.facts.removes)
    names = [name for name in listing if name is not None and name in node.attributes]
    return opset < NEGATIVE_AXES and any(axis < 0 for name in names for axis in _list_axes(node.attributes[name]))


def _list_axes(said: ir.Attr) -> Sequence[int]:
    """The axes that an attribute says, which some operators have one of."""
    return [said.as_int()] if said.type is ir.AttributeType.INT else said.as_ints()


def forget_names(node: ir.Node) -> None:
    """Leave extents open that inference has named for all tensors of a sequence: each has its own."""
    for output in node.outputs:
        if output.shape is not None:
            output.shape = ir.Shape([one if isinstance(one, int) else None for one in output.shape])

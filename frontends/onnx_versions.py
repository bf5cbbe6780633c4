"""ONNX models in the form of another opset, by the converter of the onnx package."""

from __future__ import annotations

import onnx
import onnx.shape_inference
import onnx.version_converter
import onnx_ir as ir
from onnx_ir import serde

from ..engine.base.errors import ModelError
from .onnx_graphs import list_nodes

#: constants of more elements say nothing about the form of a node, and stay out of the converter
_SMALL = 1 << 10


def convert_opset(model: ir.Model, opset: int) -> ir.Model:
    """A model in another opset; constants stay where they are. Raises ModelError where the converter refuses it."""
    kept = {
        name: value.const_value
        for name, value in model.graph.initializers.items()
        if value.const_value is not None and value.const_value.size > _SMALL
    }
    inputs = [value.name for value in model.graph.inputs]
    about = {value.name: node.metadata_props for node in model.graph.all_nodes() for value in node.outputs}
    for name in kept:
        value = model.graph.initializers[name]
        del model.graph.initializers[name]
        value.const_value = None
        model.graph.inputs.append(value)
    proto = serde.serialize_model(model)
    proto.ir_version = max(proto.ir_version, 4)
    foreign = _register_foreign(proto)
    try:
        proto = onnx.version_converter.convert_version(proto, opset)
        del proto.graph.value_info[:]
        found = serde.deserialize_model(onnx.shape_inference.infer_shapes(proto))
    except (RuntimeError, ValueError, onnx.shape_inference.InferenceError) as error:
        own = model.opset_imports.get("")
        reason = " ".join(f"{error}".split()).rpartition("failed: ")[2][:200]  # without the place in the converter
        raise ModelError(
            f"the model is of opset {own}, and onnx cannot make it one of opset {opset}: {reason}"
        ) from error
    finally:
        for name, domain in foreign:
            onnx.defs.deregister_schema(name, 1, domain)
    for value in list(found.graph.inputs):
        if value.name not in inputs and value.name in kept:
            found.graph.inputs.remove(value)
            value.const_value = kept[value.name]
            found.graph.register_initializer(value)
    found.meta.update(model.meta)
    for node in found.graph.all_nodes():  # what the converter does not hand on
        node.metadata_props.update(next((about[one.name] for one in node.outputs if one.name in about), {}))
    from onnx_ir.passes.common import LiftConstantsToInitializersPass

    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(found)
    found.graph.sort()
    return found


def _register_foreign(proto: onnx.ModelProto) -> list[tuple[str, str]]:
    """Let onnx know operators that it has no schemas of, with any operands: its converter refuses others."""
    kinds = {(node.op_type, node.domain) for node in list_nodes(proto.graph)}
    unknown = sorted(one for one in kinds if not onnx.defs.has(*one))
    for name, domain in unknown:
        any_number = onnx.defs.OpSchema.FormalParameterOption.Variadic
        types = [
            f"tensor({kind})" for kind in ("float", "float16", "double", "int8", "uint8", "int32", "int64", "bool")
        ]
        operands = onnx.defs.OpSchema.FormalParameter("xs", "T", param_option=any_number, is_homogeneous=False)
        results = onnx.defs.OpSchema.FormalParameter("ys", "T", param_option=any_number, is_homogeneous=False)
        constraint = ("T", types, "")
        schema = onnx.defs.OpSchema(
            name, domain, 1, inputs=[operands], outputs=[results], type_constraints=[constraint], attributes=[]
        )
        onnx.defs.register_schema(schema)
    return unknown

"""ONNX files as graphs of the dialect `onnx`; constants stay in the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx_ir import serde
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from ..engine.base.constants import DECLARED
from ..engine.base.errors import ModelError, join_lines
from ..engine.base.garbage_collection import pause_collection
from ..engine.dialects.onnx_schemas import find_schema
from ..engine.dialects.operators import Catalogue, Dialect, leave_out_empty, map_called
from .external_data import TensorFiles
from .file_kinds import explain_kind
from .mapping import load
from .onnx_functions import inline_functions
from .onnx_graphs import (
    FIRST,
    OVERRIDABLE,
    are_maps,
    copy_outer_results,
    fix_defaults,
    forget_maps,
    import_domains,
    list_defaults,
    list_nodes,
)
from .onnx_inference import forget_names, forget_shapes, infer_shapes, list_told_names, name_extents
from .onnx_sparse import densify
from .protobuf_outline import WireError, outline_model

#: what the standard's own domain is called; both names mean it
_STANDARD = ("", "ai.onnx")
#: what follows upon the version in the first bytes of a model: the tag of another field
_FIELDS = b"\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca"
#: where so many constants, and all there are, are inputs as well, an exporter has kept the habit of older versions, and
#: nobody means to override weights
_HABIT = 8
#: what the libraries that read models raise for those with mistakes
_MALFORMED = (
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    serde.SerdeError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    RuntimeError,
)


def read(
    source: str | os.PathLike[str] | bytes | memoryview, catalogue: Catalogue, name: str | None = None
) -> ir.Model:
    """Read an ONNX model, from a file or from bytes, as a graph of the dialect `onnx`.

    Large constants are views of the mapped files; functions of the model stand where they are called. `name` is what
    errors call the source. `meta` of the model has `subgraphs` (none), `signatures` (none), `description`, `metadata`,
    `interface`: the outputs as the file declares them, values that are in no graph, and `described`: whether it
    declares values between nodes. What the file says of the types and shapes of other values is not believed: they are
    inferred from the inputs.

    Raises ModelError when there is no such file, or it is not a well-formed model.
    """
    if isinstance(source, bytes | memoryview):
        data, name, folder = memoryview(source).cast("B"), name or "model", None
    else:
        data, name, folder = load(source), name or os.fspath(source), Path(source).parent
    with pause_collection():
        proto = _parse(data, name)
        if 0 < (opset := _find_opset(proto)) < FIRST:
            data = _convert_to_first(data, name, opset, catalogue.find_dialect("onnx"))
            proto = _parse(data, name)
        import_domains(proto, _STANDARD)
        try:
            files = TensorFiles(name, data, folder)
            densify(proto.graph, files)
            dialect = catalogue.find_dialect("onnx")
            model = _infer(inline_functions(proto, dialect), name, dialect)
            _check_nodes(model, name, dialect)
            names = map_called(dialect)
            for node in model.graph.all_nodes():
                node.op_type = names.get((node.domain, node.op_type), node.op_type)
            interface = [_read_output(info) for info in proto.graph.output]
            _check_interface(model, interface, name)
            _read_constants(model, files)
            leave_out_empty(model.graph.all_nodes(), dialect, model.opset_imports.get("", FIRST))
            forget_shapes(model.graph.all_nodes(), dialect, opset)
        except _MALFORMED as error:
            raise ModelError(f"{name}: malformed: {_explain_error(error)}") from error
    model.meta["subgraphs"] = ()
    model.meta["signatures"] = ()
    model.meta["description"] = model.doc_string or ""
    model.meta["metadata"] = {}
    model.meta["described"] = bool(proto.graph.value_info)
    model.meta["told"] = list_told_names(proto.graph)
    model.meta["interface"] = interface
    return model


def recognize(head: bytes) -> bool:
    """Whether a file begins as ONNX models do: with the version of the format and another field, or with the producer's
    name."""
    if len(head) < 3 or head[4:8] == b"TFL3":
        return False
    return head[0] == 0x12 or (head[0] == 0x08 and 0 < head[1] < 0x80 and head[2] in _FIELDS)


def _find_opset(proto: onnx.ModelProto) -> int:
    """The opset of the standard that a model imports; 0 where it imports none."""
    return next((one.version for one in proto.opset_import if one.domain in _STANDARD), 0)


def _convert_to_first(data: memoryview, name: str, opset: int, dialect: Dialect) -> memoryview:
    """A model of an opset before the first that rules know, brought there; raises ModelError where that has no way."""
    from .onnx_converter import ConversionError, convert_to_first  # few models are so old

    try:
        return memoryview(convert_to_first(bytes(data), dialect) or data)
    except ConversionError as error:
        why = f"which cannot be brought to opset {FIRST}: {_explain_error(error)}"
        raise ModelError(f"{name}: the model is of opset {opset}, {why}") from error


def _parse(data: memoryview, name: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(outline_model(data))
    except (WireError, DecodeError) as error:
        kind = explain_kind(data, "onnx")
        raise ModelError(f"{name}: not an ONNX model: {_explain_error(error)}{kind}") from error
    if not proto.ir_version or not proto.HasField("graph"):
        raise ModelError(f"{name}: not an ONNX model: it has no {'graph' if proto.ir_version else 'version'}")
    _check_proto(proto, name)
    return proto


def _check_proto(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelError for what libraries do not look at: names that are no text, extents below zero, attributes of no
    type."""
    about = [one.domain for one in proto.opset_import] + [proto.doc_string]
    about += [text for one in proto.metadata_props for text in (one.key, one.value)]
    for function in proto.functions:
        about += [function.name, function.domain, *function.input, *function.output, *function.attribute]
        about += _list_texts(onnx.GraphProto(node=function.node))
    if not all(isinstance(text, str) for text in (*about, *_list_texts(proto.graph))):
        raise ModelError(f"{name}: malformed: a name is no text in UTF-8")
    for tensor in _list_tensors(proto.graph):
        if any(extent < 0 for extent in tensor.dims):  # which onnx.shape_inference would believe
            raise ModelError(f"{name}: malformed: {tensor.name or 'a constant'} has the shape {[*tensor.dims]}")
    for node in list_nodes(proto.graph):
        for attribute in node.attribute:
            if not attribute.type and not attribute.ref_attr_name:
                said = node.name or node.op_type
                raise ModelError(f"{name}: malformed: attribute {attribute.name} of node {said} is of no type")


def _infer(proto: onnx.ModelProto, name: str, dialect: Dialect) -> ir.Model:
    """The model with types and shapes as its inputs make them; raises ModelError for a graph that is none."""
    graph = proto.graph
    listed = len(list_defaults(graph))
    if proto.ir_version < OVERRIDABLE or (listed == len(graph.initializer) and listed >= _HABIT):
        fix_defaults(graph)
    copy_outer_results(graph, dialect)
    name_extents(graph)
    inferred = infer_shapes(proto, dialect)
    forget_maps(inferred.graph)
    model = serde.deserialize_model(inferred)
    for output, declared in zip(model.graph.outputs, proto.graph.output, strict=True):
        if are_maps(declared.type):
            output.meta[DECLARED] = declared.type.SerializeToString()
    _check_sources(model, name)
    for node in model.graph.all_nodes():
        if node.domain in _STANDARD:
            node.domain = ""
        if any(one is not None and isinstance(one.type, ir.SequenceType) for one in (*node.inputs, *node.outputs)):
            forget_names(node)
    model.graph.sort()
    return model


def _check_sources(model: ir.Model, name: str) -> None:
    """Raise ModelError for an output, or what a node reads, that nothing yields."""
    known = {value.name for value in model.graph.inputs} | set(model.graph.initializers)
    known |= {value.name for node in model.graph for value in node.outputs}
    for value in model.graph.outputs:
        if value.name not in known:
            raise ModelError(f"{name}: malformed: output {value.name} comes from nowhere")
    for node in model.graph.all_nodes():
        for operand in node.inputs:
            if operand is not None and operand.graph is None and operand.producer() is None:
                reader = node.name or node.op_type
                raise ModelError(f"{name}: malformed: node {reader} reads {operand.name}, which comes from nowhere")


def _read_output(info: onnx.ValueInfoProto) -> ir.Value:
    """An output as it is declared, by its name alone where its type is of maps."""
    return ir.Value(name=info.name) if are_maps(info.type) else serde.deserialize_value_info_proto(info, None)


def _check_interface(model: ir.Model, interface: Sequence[ir.Value], name: str) -> None:
    """Raise ModelError where an output is declared of another type than what computes it."""
    for declared, value in zip(interface, model.graph.outputs, strict=True):
        said = declared.dtype
        if said is not None and value.dtype is not None and said != value.dtype:
            raise ModelError(
                f"{name}: malformed: output {value.name} is declared {said.name}, and is {value.dtype.name}"
            )


def _find_last_former(dialect: Dialect, operator: str) -> int:
    """The last opset at which an operator meant something else that rules know; 0 where there is none."""
    spec = dialect.operators.get(operator)
    return 0 if spec is None else max(spec.facts.older, default=0)


def _check_nodes(model: ir.Model, name: str, dialect: Dialect) -> None:
    """Raise ModelError where an operator is none, or a node has too few operands or an attribute of another type.

    Operators of the standard's domain that only runtimes have are known by the opset they begin at, those that the
    standard took back by the opset up to which they meant something else. What it lacks is left alone where another
    domain is imported, which may have it.
    """
    declared: dict[tuple[str, str], tuple[int, Mapping[str, Any]]] = {}
    imported = {"" if domain in _STANDARD else domain: opset for domain, opset in model.opset_imports.items()}
    for node in model.graph.all_nodes():
        operator = "" if node.domain in _STANDARD else node.domain, node.op_type
        if operator not in declared:
            found = find_schema(operator[1], imported.get(operator[0], 1), operator[0])
            opset = imported.get("", 1)
            # Where another domain is imported, runtimes look for it there.
            if (
                found is None
                and [*imported] == [""] == [operator[0]]
                and opset < dialect.facts.extensions.get(node.op_type, opset + 1)
                and opset > _find_last_former(dialect, node.op_type)
            ):
                raise ModelError(
                    f"{name}: malformed: node {node.name or node.op_type} is of the operator {node.op_type}, which"
                    f" opset {opset} does not have"
                )
            kinds = {} if found is None else {key: one.type for key, one in found.attributes.items()}
            declared[operator] = 0 if found is None else found.min_input, kinds
        least, types = declared[operator]
        said = f"{name}: malformed: node {node.name or node.op_type}"
        if len(node.inputs) < least:
            raise ModelError(f"{said} has {len(node.inputs)} operands, {node.op_type} takes {least} at least")
        for attribute in node.attributes.values():
            wanted = types.get(attribute.name)
            if wanted is not None and wanted.value != attribute.type:
                raise ModelError(
                    f"{said} has the attribute {attribute.name} of type {attribute.type.name}, {node.op_type} takes"
                    f" {wanted.name}"
                )


def _list_texts(graph: onnx.GraphProto) -> list[str]:
    """The names in a graph; those that are no text the protobuf library hands on as bytes."""
    texts = [graph.name, *(one.name for one in graph.initializer)]
    for value in (*graph.input, *graph.output):
        texts += [value.name, *(one.dim_param for one in value.type.tensor_type.shape.dim)]
    for node in graph.node:
        texts += [node.name, node.op_type, node.domain, node.doc_string, node.overload, *node.input, *node.output]
        texts += [text for one in node.metadata_props for text in (one.key, one.value)]
        for attribute in node.attribute:
            texts.append(attribute.name)
            for inner in (attribute.g, *attribute.graphs):
                texts += _list_texts(inner)
    return texts


def _list_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The constants of a graph and of those inside its nodes."""
    yield from graph.initializer
    for node in list_nodes(graph):
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from inner.initializer


def _read_constants(model: ir.Model, files: TensorFiles) -> None:
    """Let the constants of a model be views of its files, those of its nodes among its initializers."""
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    for graph in _iterate_graphs(model):
        for value in graph.initializers.values():
            if value.const_value is None:
                raise ModelError(f"{files.name}: malformed: constant {value.name} has no elements")
            value.const_value = files.read_constant(value.const_value)
            value.shape = ir.Shape(value.const_value.shape.numpy())
            value.type = ir.TensorType(value.const_value.dtype)
    for node in model.graph.all_nodes():
        for attribute in list(node.attributes.values()):
            if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                node.attributes[attribute.name] = ir.AttrTensor(attribute.name, files.read_constant(attribute.value))


def _iterate_graphs(model: ir.Model) -> Iterator[ir.Graph]:
    yield model.graph
    yield from model.graph.subgraphs()
    for function in model.functions.values():
        yield from function.subgraphs()


def _explain_error(error: BaseException) -> str:
    first = isinstance(error, serde.SerdeError)  # which tells where, and what it came from what
    while first and (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return join_lines(error)[:300] or type(error).__name__

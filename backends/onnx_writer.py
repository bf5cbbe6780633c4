"""Graphs of the ONNX dialect as ONNX models."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import onnx.checker
import onnx.shape_inference
import onnx_ir as ir

from ..engine.base.errors import RewriteError, join_lines
from ..engine.dialects.onnx_schemas import find_schema, find_version_with
from ..engine.dialects.operators import Dialect
from ..engine.passes.output_names import name_outputs
from ..engine.rewrite.profile import time_part
from .stream import CONSTANTS, Encoded
from .writers import Output

#: the ONNX intermediate representation that first carried an opset; runtimes refuse models that claim a newer one
_IR_VERSIONS = {1: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 15: 8, 19: 9, 21: 10, 23: 11, 24: 12, 25: 13}


def encode(output: Output) -> Encoded:
    """Encode a graph as a model, and check the model; one made of an ONNX model keeps what that says of itself.

    Raises RewriteError when onnx.checker with full shape inference does not accept it.
    """
    graph, dialect, origin = output.graph, output.dialect, output.origin
    name_outputs(graph, dict(enumerate(output.names)), dialect)
    imports = {} if origin is None else dict(origin.graph.opset_imports)
    graph.opset_imports.clear()
    graph.opset_imports.update({**imports, dialect.domain: output.opset})
    _restore_file_names(graph, dialect, imports)
    _make_node_names_unique(graph)
    if origin is None or not origin.functions:  # which import domains of their own
        _leave_out_unused(graph, dialect)
    version = max(v for first, v in _IR_VERSIONS.items() if first <= output.opset)
    written = imports.get(dialect.domain, output.opset)
    if origin is not None:  # a runtime of an older opset reads no newer format
        kept = origin.ir_version
        version = kept if written == output.opset else max(kept, version) if written < output.opset else version
        version = version if version == kept else max(version, CONSTANTS)
    model = ir.Model(
        graph,
        ir_version=version,
        producer_name="nnrewrite",
        doc_string=None if origin is None else origin.doc_string,
        functions=() if origin is None else list(origin.functions.values()),
        metadata_props={**({} if origin is None else origin.metadata_props), **output.metadata},
    )
    if origin is not None:
        _restore_interface(graph, origin)
    with time_part("encoding"):
        encoded = Encoded.encode(model, origin is None or bool(origin.meta.get("described", True)))
    with time_part("checking"):
        known = all(type(v.type) is ir.TensorType and v.shape is not None for v in (*graph.inputs, *graph.outputs))
        # An operator that a runtime takes for one of the standard stays; the checker would refuse it.
        unknown = (n for n in graph.all_nodes() if not n.domain and find_schema(n.op_type, output.opset, "") is None)
        if not any(origin is not None or n.op_type in dialect.facts.extensions for n in unknown):
            check(encoded.make_outline(), known and origin is None, origin is not None)
    return encoded


def _restore_file_names(graph: ir.Graph, dialect: Dialect, imports: Mapping[str, int]) -> None:
    """Give nodes of other domains the names that files have for them; the graph imports these domains as the source
    does, or else at a version at which operators have the attributes that their nodes have."""
    for node in graph.all_nodes():
        if node.domain == dialect.domain:
            continue
        spec = dialect.find_operator(node.op_type)
        described = spec is not None and spec.schema is not None
        found = find_version_with(node.op_type, node.domain, node.attributes.keys()) if described else 0
        wanted = max(found, node.version or 1, graph.opset_imports.get(node.domain, 1))
        graph.opset_imports[node.domain] = imports.get(node.domain, wanted)
        if spec is not None and spec.facts.called is not None:
            node.op_type = spec.facts.called


def _make_node_names_unique(graph: ir.Graph) -> None:
    """Number nodes of one graph that have the same name: ONNX Runtime refuses them, though the standard does not."""
    known = {(node.graph, node.name) for node in graph.all_nodes()}
    seen: set[tuple[object, str]] = set()
    for node in graph.all_nodes():
        if node.name and (node.graph, node.name) in seen:
            names = (f"{node.name}_{number}" for number in itertools.count(1))
            node.name = next(name for name in names if (node.graph, name) not in known)
            known.add((node.graph, node.name))
        seen.add((node.graph, node.name or ""))


def _leave_out_unused(graph: ir.Graph, dialect: Dialect) -> None:
    """Import no domain of which nothing is used: older runtimes refuse versions of it that they do not know."""
    used = {dialect.domain, *(node.domain for node in graph.all_nodes())}
    for domain in [one for one in graph.opset_imports if one not in used]:
        del graph.opset_imports[domain]


def _restore_interface(graph: ir.Graph, origin: ir.Model) -> None:
    """Let outputs be declared as they were, names of free sizes included, unless the graph contradicts that."""
    known = {declared.name: declared for declared in origin.meta["interface"]}
    for value in graph.outputs:
        declared = known.get(value.name, value)
        if declared.type is not None and (value.dtype is None or value.dtype == declared.dtype):
            value.type = declared.type
        if _can_agree(value.shape, declared.shape):
            value.shape = declared.shape


def _can_agree(found: ir.Shape | None, declared: ir.Shape | None) -> bool:
    """Whether two shapes may be those of one value."""
    if found is None or declared is None:
        return True
    pairs = zip(found, declared, strict=False)
    return len(found) == len(declared) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in pairs
    )


def check(model: bytes, known: bool = False, given: bool = False) -> None:
    """Run onnx.checker with full shape inference on a serialized model; raises RewriteError with its words.

    `known` says that all inputs and outputs have shapes, so that nobody needs to look. A model that was `given` as ONNX
    may be one that the inference of shapes refuses and runtimes take: that is no reason to refuse it.
    """
    checked: onnx.ModelProto | bytes = model
    if not known:
        # The checker insists on shapes of inputs and outputs, which ONNX itself does without where no rank is known.
        proto = onnx.ModelProto.FromString(model)
        ends = [v for v in (*proto.graph.input, *proto.graph.output) if v.type.HasField("tensor_type")]
        unknown = [v for v in ends if not v.type.tensor_type.HasField("shape")]
        for value in unknown:
            value.type.tensor_type.shape.SetInParent()
        known, checked = not unknown, proto if unknown else model
    try:
        onnx.checker.check_model(checked, full_check=known)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        if given and isinstance(error, onnx.shape_inference.InferenceError):
            return
        raise RewriteError(f"the model built is not valid ONNX: {join_lines(error)}") from error

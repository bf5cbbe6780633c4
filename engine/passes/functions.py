"""Pass `functions`: operators that no rule is about become what their schemas say that they are made of.

Many operators of ONNX are functions: the schema has their body, in operators that are more primitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx
import onnx.defs
import onnx_ir as ir
from onnx_ir import serde

from ..base.errors import RewriteError
from ..base.quantization import EXTENTS
from ..base.startup import dataclass
from ..dialects.folding import fold, fold_extents
from ..dialects.inference import InferenceError, add_attributes, infer, make_shape, make_type, read_extents
from ..dialects.onnx_schemas import find_schema
from ..dialects.operators import OperatorSpec
from ..rewrite.subgraphs import count_slices, find_bodies, read_axes, stack_types
from ..rewrite.traversal import walk_nodes
from .base import Module, Visit
from .newest_forms import update_nodes

#: how deep functions may be made of functions
DEPTH = 8


@dataclass(frozen=True, slots=True)
class Functions:
    """Put the bodies of functions in the place of nodes that no rule is about; with `left`, of all that are left at
    first, as rules did not take them."""

    given: int
    left: bool = False
    name, visits = "functions", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Expand the nodes of one graph; raises RewriteError where functions nest too deep."""
        if not module.source.schemas:
            return
        settled: set[ir.Node] = set()
        for depth in range(DEPTH):
            evaluate_nodes(module, settled)
            chosen = [node for node in module.graph if self._must_expand(module, node, first=not depth)]
            expanded = [expand(module, node, self.given) for node in chosen]
            if not any(expanded):
                break
        else:
            raise RewriteError(f"functions of {module.graph.name} are made of functions more than {DEPTH} times")

    def _must_expand(self, module: Module, node: ir.Node, first: bool) -> bool:
        if node.domain == module.target.domain:
            return False
        if self.left and first:
            return True
        return not module.rules.is_about(node.domain, node.op_type)


def evaluate_nodes(module: Module, settled: set[ir.Node], newest: int | None = None) -> None:
    """Let nodes of the source have types and shapes, and put constants in the place of those that yield such.

    They have the forms of the opset `newest`, as a rule of that of the rules.
    """
    opset, dialect = newest or module.opset, module.source
    for node in list(module.graph):
        if node.domain != dialect.domain or node in settled:
            continue
        settled.add(node)
        spec = dialect.find_operator(node.op_type, opset)
        if spec is None:
            continue
        if graphs := find_bodies(node):
            _evaluate_bodies(module, node, graphs, spec, settled, newest)
            continue
        try:
            inferred = infer(node, opset)
        except InferenceError:
            continue
        for output, one in zip(node.outputs, inferred, strict=True):
            if output.dtype is None and one.dtype is not None:
                output.type = ir.TensorType(one.dtype)
            if one.shape is not None and (output.shape is None or None in one.shape or None not in one.shape):
                known = read_extents(output)
                if known is None or sum(isinstance(n, int) for n in one.shape) >= sum(
                    isinstance(n, int) for n in known
                ):
                    output.shape = make_shape(one.shape)
        folded = fold(node, spec, opset, inferred)
        if folded is None and spec.facts.quantization == EXTENTS:
            folded = fold_extents(node, spec, opset, inferred)
        if folded is None or (any(output.is_graph_output() for output in node.outputs) and module.depth):
            continue
        for output, elements in zip(node.outputs, folded, strict=True):
            value = module.names.make_computed_constant(elements, output.name or node.op_type, node.inputs)
            module.names.register(value)
            ir.convenience.replace_all_uses_with(output, value, replace_graph_outputs=True)
        module.graph.remove(node, safe=True)


def _evaluate_bodies(
    module: Module, node: ir.Node, graphs: list[ir.Graph], spec: OperatorSpec, settled: set[ir.Node], newest: int | None
) -> None:
    """Let the inputs of a node's graphs be like its operands, and its results like what the graphs yield."""
    slices = count_slices(node, spec)
    first = len(node.inputs) - (slices or 0)
    axes = read_axes(node, spec.facts.slice_axes, slices or 0)
    for graph in graphs:
        for place, (operand, given) in enumerate(zip(node.inputs, graph.inputs, strict=False)):
            if operand is None or (place < first and place < len(_list_kinds(spec))):
                continue
            given.type = operand.type or given.type
            shape = read_extents(operand)
            if shape is not None and place >= first:
                axis = axes[place - first] % len(shape)
                given.shape = make_shape(shape[:axis] + shape[axis + 1 :])
            elif shape is not None and not _list_kinds(spec):
                given.shape = make_shape(shape)
        evaluate_nodes(module.enter_body(graph), settled, newest)
    if slices is not None:
        stack_types(node, spec)
    elif not spec.facts.parameters:
        for place, output in enumerate(node.outputs):
            shapes = [read_extents(graph.outputs[place]) for graph in graphs]
            output.type = output.type or graphs[0].outputs[place].type
            if output.shape is None and None not in shapes and len({len(one or ()) for one in shapes}) == 1:
                pairs = zip(*[one or () for one in shapes], strict=True)
                output.shape = make_shape(tuple(one[0] if len(set(one)) == 1 else None for one in pairs))
    else:
        stack_types(node, spec)
        count = len(_list_kinds(spec))
        for place, (operand, output) in enumerate(zip(node.inputs[count:], node.outputs, strict=False)):
            shape = None if operand is None else read_extents(operand)
            # What a loop carries has one shape where it begins with that which it is declared to have, and yields it.
            ends = [
                (read_extents(graph.inputs[count + place]), read_extents(graph.outputs[1 + place])) for graph in graphs
            ]
            if shape is not None and None not in shape and all(one == other == shape for one, other in ends):
                output.shape = output.shape or make_shape(shape)


def _list_kinds(spec: OperatorSpec) -> Sequence[str]:
    """The types of the first inputs of an operator's graph that are not those of its operands."""
    return next(iter(spec.facts.parameters.values()), ())


def expand(module: Module, node: ir.Node, given: int, newest: int | None = None) -> list[ir.Node]:
    """Replace a node by the body of its ONNX function, and return the body's nodes; none where it has no function.

    The body uses operators as of opset `newest`, by default the one that is written.
    """
    found = _find_function(node, newest or module.opset, given)
    if found is None:
        return []
    body, version = found
    inner = _deserialize(body, node, module)
    for formal, actual in zip(body.input, node.inputs, strict=False):
        if actual is None:
            continue
        stand_in = next((value for value in inner.inputs if value.name == formal), None)
        if stand_in is not None:
            ir.convenience.replace_all_uses_with(stand_in, actual, replace_graph_outputs=True)
    nodes = list(inner)
    known = {value.name: value for value in inner.outputs}
    results = [known.get(name) for name in body.output]
    inner.outputs.clear()
    inner.remove(nodes)
    for made in walk_nodes(nodes):
        made.name = None
        for output in made.outputs:
            output.name = module.names.make_name(f"{node.outputs[0].name}/{output.name or made.op_type}")
        made.metadata_props.update(node.metadata_props)
    module.graph.insert_before(node, nodes)
    for output, result in zip(node.outputs, results, strict=False):
        if result is None:
            continue
        if result.type is None:
            result.type = output.type
        if result.shape is None:
            result.shape = output.shape
        if output.is_graph_output() and result.producer() is not None and not result.is_graph_output():
            result.name, output.name = output.name, None
        ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=True)
    module.graph.remove(node, safe=True)
    update_nodes(list(walk_nodes(nodes)), module, version, newest)
    return nodes


def _find_function(node: ir.Node, opset: int, given: int) -> tuple[onnx.FunctionProto, int] | None:
    found: Any = find_schema(node.op_type, opset, node.domain) or find_schema(node.op_type, given, node.domain)
    if found is None:
        return None
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    add_attributes(proto, node.attributes.values())
    proto.input.extend("" if value is None else f"i{place}" for place, value in enumerate(node.inputs))
    proto.output.extend(
        f"o{place}" if output.uses() or output.is_graph_output() else "" for place, output in enumerate(node.outputs)
    )
    version = opset if find_schema(node.op_type, opset, node.domain) is not None else given
    if found.has_context_dependent_function:
        if any(value is not None and value.dtype is None for value in node.inputs):
            return None
        types = [b"" if value is None else _make_type(value).SerializeToString() for value in node.inputs]
        versions = [v for v in found.context_dependent_function_opset_versions if v <= version]
        if not versions:
            return None
        data = found.get_context_dependent_function_with_opset_version(max(versions), proto.SerializeToString(), types)
        body = onnx.FunctionProto.FromString(data) if data else None
    elif found.has_function:
        body = found.function_body
    else:
        return None
    if body is None or not body.node:
        return None
    # Its nodes are of the standard, whatever domain the function itself is of.
    own = next((entry.version for entry in body.opset_import if not entry.domain), version)
    return _resolve(body, node, found), own


def _make_type(value: ir.Value) -> onnx.TypeProto:
    if value.type is None or isinstance(value.type, ir.TensorType):
        shape = read_extents(value)
        known = None if shape is None else tuple(extent if isinstance(extent, int) else None for extent in shape)
        return make_type(value.dtype, known)
    proto = onnx.TypeProto()
    serde.serialize_type_into(proto, value.type)
    return proto


def _resolve(body: onnx.FunctionProto, node: ir.Node, found: onnx.defs.OpSchema) -> onnx.FunctionProto:
    """The function with the attributes of a node in the places that refer to them, or their defaults."""
    copy = onnx.FunctionProto()
    copy.CopyFrom(body)
    given = {name: serde.serialize_attribute(attribute) for name, attribute in node.attributes.items()}
    for name, formal in found.attributes.items():
        if name not in given and formal.default_value.type:
            given[name] = formal.default_value
    for default in body.attribute_proto:
        given.setdefault(default.name, default)
    _resolve_nodes(copy.node, given)
    return copy


def _resolve_nodes(nodes: Iterable[onnx.NodeProto], given: dict[str, onnx.AttributeProto]) -> None:
    for made in nodes:
        kept = []
        for attribute in made.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in given:
                    actual = onnx.AttributeProto()
                    actual.CopyFrom(given[attribute.ref_attr_name])
                    actual.name = attribute.name
                    kept.append(actual)
                continue
            if attribute.HasField("g"):
                _resolve_nodes(attribute.g.node, given)
            kept.append(attribute)
        del made.attribute[:]
        made.attribute.extend(kept)


def _deserialize(body: onnx.FunctionProto, node: ir.Node, module: Module) -> ir.Graph:
    absent = {
        formal for place, formal in enumerate(body.input) if place >= len(node.inputs) or node.inputs[place] is None
    }
    graph = onnx.GraphProto(name=body.name)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in body.input if name not in absent)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in body.output)
    graph.node.extend(body.node)
    _leave_out(graph.node, absent)
    made = {name for inner in graph.node for name in inner.output}
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in body.output if name in made or name in body.input)
    return serde.deserialize_graph(graph)


def _leave_out(nodes: Iterable[onnx.NodeProto], absent: set[str]) -> None:
    for made in nodes:
        names = ["" if name in absent else name for name in made.input]
        del made.input[:]
        made.input.extend(names)
        for attribute in made.attribute:
            if attribute.HasField("g"):
                _leave_out(attribute.g.node, absent)

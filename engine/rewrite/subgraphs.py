"""Subgraphs of nodes: bodies and branches, which rules call like functions and copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from ..base.errors import ModelError
from ..base.startup import dataclass
from ..dialects.operators import Dialect, OperatorSpec, Option, get_option
from ..expressions.functions import DTYPES

if TYPE_CHECKING:
    from ..base.names import Scope

#: how deep graphs of nodes may nest, and how deep they may call each other where they stand beside each other
NESTED, CALLED = 32, 128
#: the types of options that name graphs of the model
_ONE, _SEVERAL = "subgraph", "[subgraph]"
_GRAPH = ir.AttributeType.GRAPH


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A graph of the source model that an option of a node names."""

    graph: ir.Graph

    def copy_nodes(self, operands: Sequence[ir.Value | None], scope: Scope) -> tuple[list[ir.Node], list[ir.Value]]:
        """Copies of the graph's nodes that read `operands` in place of its inputs, and the values of its outputs.

        Constants are shared by all copies, and belong to the graph that `scope` is about.
        """
        found: dict[ir.Value, ir.Value | None] = dict(zip(self.graph.inputs, operands, strict=True))
        for constant in self.graph.initializers.values():
            found[constant] = scope.adopt(constant)
        nodes = _copy_all(self.graph, found, scope)
        results = [found.get(output, output) for output in self.graph.outputs]
        return nodes, [result for result in results if result is not None]


def _copy_all(graph: ir.Graph, found: dict[ir.Value, ir.Value | None], scope: Scope) -> list[ir.Node]:
    """Copies of the nodes of a graph, for values of which others are `found`; their results are added to these."""
    nodes = []
    for node in graph:
        if node.graph is None:
            continue  # a rule has taken it and it is not swept away yet
        inputs = [None if value is None else found.get(value, value) for value in node.inputs]
        attributes = [copy_attribute(attribute, found, scope) for attribute in node.attributes.values()]
        nodes.append(copied := copy(node, inputs, scope, attributes))
        found.update(zip(node.outputs, copied.outputs, strict=True))
    return nodes


def copy_attribute(attribute: ir.Attr, found: Mapping[ir.Value, ir.Value | None], scope: Scope) -> ir.Attr:
    """An attribute, and a graph as a copy of its own: the node that has it now may be given up with all in it."""
    if attribute.type is not _GRAPH:
        return attribute
    graph, known = attribute.as_graph(), dict(found)
    inputs = [
        ir.Value(name=scope.make_name(one.name or "input"), type=one.type, shape=one.shape) for one in graph.inputs
    ]
    constants = [
        ir.Value(
            name=scope.make_name(one.name or "constant"), type=one.type, shape=one.shape, const_value=one.const_value
        )
        for one in graph.initializers.values()
    ]
    for old, new in (
        *zip(graph.inputs, inputs, strict=True),
        *zip(graph.initializers.values(), constants, strict=True),
    ):
        new.meta.update(old.meta)
        known[old] = new
    nodes = _copy_all(graph, known, scope)
    results = [known.get(output, output) or output for output in graph.outputs]
    return ir.AttrGraph(attribute.name, ir.Graph(inputs, results, nodes=nodes, initializers=constants, name=graph.name))


def copy(node: ir.Node, inputs: Sequence[ir.Value | None], scope: Scope, attributes: Iterable[ir.Attr]) -> ir.Node:
    """A node that computes of other values what a node does; it and its results are named afresh, as there may be
    several copies in one graph."""
    made = copy_unnamed(node, inputs, attributes)
    for old, new in zip(node.outputs, made.outputs, strict=True):
        new.name = scope.make_name(old.name or node.op_type)
    if node.name and made.outputs and node.name == node.outputs[0].name:
        made.name = None
        scope.name_node(made, node.name)
    elif node.name:
        made.name = scope.make_name(node.name)
    return made


def copy_unnamed(node: ir.Node, inputs: Sequence[ir.Value | None], attributes: Iterable[ir.Attr]) -> ir.Node:
    """A node that computes of other values what a node does, with all that is known of the results but their names."""
    made = ir.Node(
        node.domain,
        node.op_type,
        inputs,
        attributes,
        num_outputs=len(node.outputs),
        version=node.version,
        name=node.name,
    )
    made.meta.update(node.meta)
    made.metadata_props.update(node.metadata_props)
    for old, new in zip(node.outputs, made.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
        new.meta.update(old.meta)
    return made


def make_copy(spec: OperatorSpec, value: ir.Value) -> ir.Node:
    """A node of the operator with the role `copy` over a value."""
    made = ir.Node(spec.domain, spec.name, [value], num_outputs=1)
    made.outputs[0].type, made.outputs[0].shape = value.type, value.shape
    return made


def bind_option(option: Option, value: Any, subgraphs: Sequence[ir.Graph]) -> Any:
    """What a variable stands for that binds an option: a graph where the option is the number of one."""
    if type(value) is ir.Graph:
        return Body(value)
    if option.type == _ONE:
        return Body(subgraphs[value]) if isinstance(value, int) and 0 <= value < len(subgraphs) else None
    if option.type == _SEVERAL:
        return [Body(subgraphs[index]) for index in value if 0 <= index < len(subgraphs)]
    return value


def list_called(
    graph: Iterable[ir.Node], dialect: Dialect, subgraphs: Sequence[ir.Graph], deep: bool = True
) -> list[ir.Graph]:
    """The graphs that the nodes of a graph name, if `deep` those that their nodes name in turn too, each once."""
    found: dict[ir.Graph, None] = {}
    naming: dict[str, list[Option]] = {}  # the options of an operator that name graphs
    work = [graph]
    while work:
        for body in _list_named(work.pop(), dialect, subgraphs, naming):
            if body is not graph and body not in found:
                found[body] = None
                work += [body] if deep else []
    return list(found)


def _list_named(
    nodes: Iterable[ir.Node], dialect: Dialect, subgraphs: Sequence[ir.Graph], naming: dict[str, list[Option]]
) -> Iterator[ir.Graph]:
    """The graphs that nodes name, in their order; `naming` keeps which options of an operator do."""
    for node in nodes:
        if node.op_type not in naming:
            spec = dialect.operators.get(node.op_type)
            options = spec.options.values() if spec is not None else ()
            naming[node.op_type] = [option for option in options if _ONE in option.type]
        for option in naming[node.op_type]:
            value = bind_option(option, get_option(node, option), subgraphs)
            for body in value if isinstance(value, list) else [value]:
                if isinstance(body, Body):
                    yield body.graph


def check_calls(graphs: Sequence[ir.Graph], dialect: Dialect, subgraphs: Sequence[ir.Graph]) -> None:
    """Raise ModelError where one of some graphs comes to call itself, which would have no end, or all call each other
    too deep."""
    calls = {graph: set(_list_named(graph, dialect, subgraphs, {})) for graph in graphs}
    callers: dict[ir.Graph, list[ir.Graph]] = {}
    for graph, named in calls.items():
        for body in named:
            callers.setdefault(body, []).append(graph)
    depth = dict.fromkeys(calls, 0)
    ends = [graph for graph, named in calls.items() if not named]
    while ends:
        body = ends.pop()
        del calls[body]
        for graph in callers.get(body, ()):
            depth[graph] = max(depth[graph], depth[body] + 1)
            calls[graph].discard(body)
            if not calls[graph]:
                ends.append(graph)
    if calls:
        raise ModelError(f"graph {min(graph.name or '' for graph in calls)} calls itself, which never ends")
    if max(depth.values()) > CALLED:
        raise ModelError(f"its graphs call each other {max(depth.values())} deep, more than {CALLED}")


def find_bodies(node: ir.Node) -> list[ir.Graph]:
    """The graphs among a node's attributes."""
    attributes = node.attributes.data.values()
    return [attribute.as_graph() for attribute in attributes if attribute.type is ir.AttributeType.GRAPH]


def count_yielded(spec: OperatorSpec, attributes: Iterable[ir.Attr]) -> int:
    """How many results an operator has that yields what its graph does; 0 for one that does not."""
    graphs = [
        attribute.as_graph()
        for attribute in attributes
        if attribute.type == ir.AttributeType.GRAPH and attribute.name not in spec.facts.decides
    ]
    return len(graphs[0].outputs) if graphs and not spec.facts.parameters else 0


def stack_types(node: ir.Node, spec: OperatorSpec) -> None:
    """Give the results of a node the types of what its graphs yield.

    Of the last operands of some operators the graphs read slices, and what they yield for each is stacked along a new
    axis of that extent; then shapes are known too. The results of others are the last of what their graphs yield, but
    for those of the options that `decides` names.
    """
    slices, decides = count_slices(node, spec), spec.facts.decides
    if slices is None:
        graphs = [a.as_graph() for name, a in node.attributes.items() if name not in decides and a.type is _GRAPH]
        for body in graphs:
            for result, inner in zip(reversed(node.outputs), reversed(body.outputs), strict=False):
                result.type = result.type or inner.type
        return
    carried = len(node.inputs) - slices
    source = node.inputs[-1]
    (*_, sliced) = read_axes(node, spec.facts.slice_axes, slices) or [0]
    extent = None if source is None or source.shape is None else source.shape[sliced]
    axes = read_axes(node, spec.facts.stack_axes, len(node.outputs) - carried)
    for body in find_bodies(node):
        for place, (result, inner) in enumerate(zip(node.outputs, body.outputs, strict=True)):
            result.type = inner.type
            if inner.shape is None:
                continue
            shape = [*inner.shape]
            if place >= carried:
                shape.insert(axes[place - carried] % (len(shape) + 1), extent)
            result.shape = ir.Shape(shape)


def count_slices(node: ir.Node, spec: OperatorSpec) -> int | None:
    """How many of a node's last operands its graphs read slice by slice; None for an operator that does not say so."""
    counted = node.attributes.get(spec.facts.slices or "")
    return None if counted is None else counted.as_int()


def make_parameter(name: str, operand: Any, kind: str | None) -> ir.Value:
    """An input of a graph: like the operand that it stands for, or a scalar of the type that a graph must have there.

    An operand that is a number of a rule is a scalar in single precision.
    """
    if isinstance(operand, ir.Value) and kind is None:
        return ir.Value(name=name, type=operand.type, shape=operand.shape)
    known = ir.DataType.from_numpy(operand.dtype) if isinstance(operand, np.ndarray) and kind is None else None
    shape = operand.shape if known is not None else ()
    return ir.Value(name=name, type=ir.TensorType(known or DTYPES[kind or "f32"]), shape=ir.Shape(shape))


def make_slice(value: ir.Value, axis: int) -> ir.Value:
    """A value like a slice of another along an axis."""
    extents = None if value.shape is None else [*value.shape[:axis], *value.shape[axis:][1:]]
    return ir.Value(type=value.type, shape=None if extents is None else ir.Shape(extents))


def read_axes(node: ir.Node, option: str | None, count: int) -> list[int]:
    """The axes that an option of a node lists; as many zeros as it would have to list where it is not given."""
    given = node.attributes.get(option or "")
    return [0] * count if given is None else [*given.as_ints()]


def detach(node: ir.Node) -> None:
    """Let a node that is given up read nothing, nor any node of its graphs."""
    node.resize_inputs(0)
    for body in find_bodies(node):
        for inner in body:
            detach(inner)


def detach_bodies(node: ir.Node, takers: Iterable[ir.Node]) -> None:
    """Let a node give up the graphs that others have taken from it."""
    taken = [body for taker in takers for body in find_bodies(taker)]
    for attribute in list(node.attributes.values()):
        if taken and attribute.type is ir.AttributeType.GRAPH and attribute.as_graph() in taken:
            del node.attributes[attribute.name]


def generalize(value: ir.Value, other: ir.Value) -> None:
    """Forget the extents of a graph's input that are not those of the body called with it: they may change."""
    if value.shape is None or other.shape is None or len(value.shape) != len(other.shape):
        value.shape = None if value.shape is None else other.shape
        return
    pairs = zip(value.shape, other.shape, strict=True)
    value.shape = ir.Shape([a if isinstance(a, int) and a == b else None for a, b in pairs])

"""Pass `common-subexpressions`: merges nodes with equal operators, operands and attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import TRAINED, read_initializer
from ..base.quantization import read_quantization
from ..base.startup import dataclass
from ..dialects.operators import Dialect, OperatorSpec
from ..rewrite.stages import RECOVER
from .base import Module, Visit

#: attributes of these types are compared by what they hold; nodes with others are left alone
_PLAIN = frozenset(getattr(ir.AttributeType, name) for name in ("INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS"))


#: constants of at most so many elements are compared as a whole; of larger ones first a row, so that few are read
_COMPARED = 1 << 16
#: so many elements of a row tell most large constants apart
_ROW = 1024


@dataclass(frozen=True, slots=True)
class CommonSubexpressions:
    """Merge nodes that compute the same of the same operands: users of a later one read the earlier one.

    Nodes that ops.yaml calls not pure, and those with graphs or tensors in attributes, stay. With `constants`, those
    with equal elements are one as well, so that what is computed of them is the same.
    """

    constants: bool = False
    visits: Visit = Visit.MAIN
    name = "common-subexpressions"

    def run(self, module: Module) -> None:
        """Let equal nodes be one in a graph that rules have changed, or in which they look for larger layers."""
        if not (module.outcome.fired or RECOVER in module.rules.list_stages()):
            return
        if self.constants:
            merge_constants(module.graph)
        merge_nodes(module.graph, module.target, module.opset, inner=module.depth > 0)


def merge_constants(graph: ir.Graph) -> None:
    """Let the users of a constant use an earlier one with equal elements, weights of several names left apart: they
    are equal before they are trained."""
    known: dict[Hashable, ir.Value] = {}
    large: dict[Hashable, list[ir.Value]] = {}
    for value in [*graph.initializers.values()]:
        tensor = value.const_value
        if tensor is None or value.is_graph_input() or value.is_graph_output() or tensor.dtype == ir.DataType.STRING:
            continue
        if tensor.size > _COMPARED:
            large.setdefault(_describe(value, tensor), []).append(value)
            continue
        key = *_describe(value, tensor), tensor.tobytes()
        _merge(value, known.setdefault(key, value), graph)
    for alike in large.values():
        if len(alike) > 1:
            _merge_large(alike, graph)


def _describe(value: ir.Value, tensor: ir.TensorProtocol) -> tuple[Hashable, ...]:
    """What constants of equal elements may differ in: codes stand for numbers by a grid."""
    return value.meta.get(TRAINED), tensor.dtype, tuple(tensor.shape), read_quantization(value)


def _merge_large(values: Sequence[ir.Value], graph: ir.Graph) -> None:
    """Merge equal ones of large constants of one type and shape: those whose first rows are equal are read."""
    rows: dict[bytes, list[ir.Value]] = {}
    for value in values:
        elements = read_initializer(value)
        if elements is None:
            continue
        rows.setdefault(elements[(0,) * (elements.ndim - 1)][:_ROW].tobytes(), []).append(value)
    for alike in rows.values():
        whole: dict[bytes, ir.Value] = {}
        for value in alike if len(alike) > 1 else ():
            elements = read_initializer(value)
            if elements is not None:
                digest = hashlib.sha256(np.ascontiguousarray(elements).view(np.uint8).data).digest()
                _merge(value, whole.setdefault(digest, value), graph)


def _merge(value: ir.Value, kept: ir.Value, graph: ir.Graph) -> None:
    if kept is not value:
        ir.convenience.replace_all_uses_with(value, kept)
        if value.name is not None:
            del graph.initializers[value.name]  # nothing sweeps after this


def merge_nodes(graph: ir.Graph, dialect: Dialect, opset: int | None = None, inner: bool = False) -> None:
    """Let the users of a node use an earlier one that computes the same of the same.

    What a node leaves out is the default of the `opset`, the newest one without it.

    In an `inner` graph, the body of a node, what computes a result stays: each result is a value of its own there.
    """
    first: dict[Hashable, ir.Node] = {}
    known: dict[Hashable, ir.Node] = {}
    for node in graph:
        # Nearly all nodes differ in these, so that attributes are seldom looked at.
        results = tuple((one.dtype, read_quantization(one)) for one in node.outputs)
        key = node.op_type, node.domain, results, node.inputs
        alike = first.setdefault(key, node)
        if alike is node:
            continue
        spec = dialect.find_operator(node.op_type, opset) if node.domain == dialect.domain else None
        known.setdefault((key, _list_attributes(alike, spec)), alike)
        earlier = known.setdefault((key, _list_attributes(node, spec)), node)
        stays = inner and any(one.is_graph_output() for one in node.outputs)
        if earlier is node or stays or not _is_shareable(node, dialect):
            continue
        for output, kept in zip(node.outputs, earlier.outputs, strict=True):
            ir.convenience.replace_all_uses_with(output, kept, replace_graph_outputs=True)
        graph.remove(node, safe=True)


def _is_shareable(node: ir.Node, dialect: Dialect) -> bool:
    spec = dialect.operators.get(node.op_type) if node.domain == dialect.domain else None
    pure = spec is None or spec.facts.pure
    return pure and all(
        attribute.type in _PLAIN or (attribute.type == ir.AttributeType.TENSOR and _is_small(attribute.value))
        for attribute in node.attributes.values()
    )


def _is_small(tensor: ir.TensorProtocol) -> bool:
    return tensor.size <= _COMPARED and tensor.dtype != ir.DataType.STRING


def _list_attributes(node: ir.Node, spec: OperatorSpec | None) -> frozenset[Hashable]:
    """The attributes of a node that are not at their defaults."""
    known = {} if spec is None else spec.options
    return frozenset(
        (name, attribute.type, _read_content(attribute))
        for name, attribute in node.attributes.items()
        if name not in known or attribute.value != known[name].default
    )


def _read_content(attribute: ir.Attr) -> Hashable:
    """What an attribute holds; of what is not compared, which it is."""
    if attribute.type in _PLAIN:
        return tuple(attribute.value) if isinstance(attribute.value, list) else attribute.value
    if attribute.type != ir.AttributeType.TENSOR or not _is_small(attribute.value):
        return id(attribute.value)
    tensor: ir.TensorProtocol = attribute.value  # as_tensor asks for the thirty members of a protocol each time
    return tensor.dtype, tuple(tensor.shape), tensor.tobytes()

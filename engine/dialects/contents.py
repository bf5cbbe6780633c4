"""What is known of integers before a run: the elements of values that are computed from extents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.shape_inference
import onnx_ir as ir

from ..base.constants import FILL, FOLLOWED, find_fill, find_known_elements, read_initializer
from . import symbols
from .folding import evaluate
from .inference import UNCOUNTED, Extents, Inferred, add_attributes, read_extents
from .numpy_evaluation import compute_results, pick_extents
from .operators import Dialect, OperatorSpec
from .symbols import Symbol

#: the first opset whose operators onnx.shape_inference follows extents through
_FOLLOWING = 18
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)

Elements = np.ndarray[Any, Any]

_ARITHMETIC: dict[str, Callable[[Symbol, Symbol], Symbol | None]] = {
    "+": symbols.add,
    "-": symbols.subtract,
    "*": symbols.multiply,
    "/": symbols.divide,
}
#: which signs of a difference make a comparison true
_RELATIONS = {"==": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}


def compute_elements(
    node: ir.Node, spec: OperatorSpec, opset: int, inferred: Sequence[Inferred]
) -> list[Elements | None] | None:
    """What is known of the elements of results, as ops.yaml says what the operator makes them of; None for nothing."""
    first = node.inputs[0] if node.inputs else None
    facts = spec.facts
    if first is None or not any(one.dtype in (*_INTEGERS, ir.DataType.BOOL) for one in inferred):
        return None
    if facts.tells is not None:
        return _read_extents(node, spec, read_extents(first))
    if facts.rearranges:
        return _rearrange(node, spec, opset, inferred)
    compute = _ARITHMETIC.get(spec.infix or "") or _find_relation(facts.relation)
    if compute is None or len(node.inputs) != 2:
        return None
    left, right = map(find_known_elements, node.inputs)
    if left is None or right is None or (facts.relation is None and inferred[0].dtype not in _INTEGERS):
        return None
    try:
        pairs = np.broadcast(left, right)
    except ValueError:
        return None
    if pairs.size > FOLLOWED:
        return None
    found = np.empty(pairs.shape, object)
    found.ravel()[:] = [None if a is None or b is None else compute(a, b) for a, b in pairs]
    return [found]


def note_fill(node: ir.Node, spec: OperatorSpec) -> None:
    """Let results of which all elements are equal have the number that these are, as their own types hold it."""
    if spec.facts.fills is None and not spec.facts.rearranges:
        return
    fill = compute_fill(node, spec)
    for output in node.outputs if fill is not None else ():
        if output.dtype is not None and output.dtype != ir.DataType.STRING:
            output.meta[FILL] = np.asarray(fill).astype(output.dtype.numpy()).item()


def compute_fill(node: ir.Node, spec: OperatorSpec) -> Any:
    """The number that all elements of the result of a node equal; None where they may differ."""
    if spec.facts.fills is not None:
        attribute = node.attributes.get(spec.facts.fills)
        return 0 if attribute is None else attribute.value.numpy().reshape(-1)[0].item()
    names = [operand.name for operand in spec.operands]
    moved = [
        value
        for place, value in enumerate(node.inputs)
        if names and names[min(place, len(names) - 1)] in spec.facts.rearranges and value is not None
    ]
    found = {find_fill(value) for value in moved}
    return found.pop() if len(found) == 1 else None


def _find_relation(relation: str | None) -> Callable[[Symbol, Symbol], Any] | None:
    if relation is None:
        return None
    holds = _RELATIONS[relation]

    def compare(a: Symbol, b: Symbol) -> bool | None:
        found = symbols.compare(a, b)
        return None if found is None else found in holds

    return compare


def _read_extents(node: ir.Node, spec: OperatorSpec, shape: Extents | None) -> list[Elements | None] | None:
    """The extents of an operand, those that the node picks, or how many elements they make."""
    if shape is None:
        return None
    if spec.facts.tells == "count":
        count: Symbol | None = 1
        for extent in shape:
            count = None if count is None or extent is None else symbols.multiply(count, extent)
        return [np.array(count, object)]
    picked = pick_extents(node, spec, shape)
    found = np.empty(len(picked), object)
    found[:] = picked
    return [found]


def _pick(places: np.ndarray[Any, Any], table: Sequence[Any]) -> Elements:
    found = np.empty(places.shape, object)
    found.ravel()[:] = [table[int(place)] for place in places.ravel()]
    return found


def _rearrange(
    node: ir.Node, spec: OperatorSpec, opset: int, inferred: Sequence[Inferred]
) -> list[Elements | None] | None:
    """The elements of results that only rearrange those of operands, found by computing the node on their indices."""
    if any(_count(one) > FOLLOWED or one.dtype not in _INTEGERS for one in inferred):
        return None
    table: list[Any] = []
    operands: list[np.ndarray[Any, Any] | None] = []
    names = [operand.name for operand in spec.operands]
    for position, value in enumerate(node.inputs):
        moves = names[min(position, len(names) - 1)] in spec.facts.rearranges
        known = find_known_elements(value)
        if known is None and moves and len(node.inputs) > 1:  # of what is joined, a part may be known
            known = _make_unknown_elements(value)
        if value is not None and known is None:
            return None
        if value is None or known is None:
            operands.append(None)
        elif moves:
            tokens = np.arange(len(table), len(table) + known.size).reshape(known.shape)
            operands.append(tokens.astype((value.dtype or ir.DataType.INT64).numpy()))
            table += known.ravel().tolist()
        else:
            array = read_initializer(value)
            if array is None:
                if None in known.ravel().tolist() or any(isinstance(one, str) for one in known.ravel()):
                    return None
                array = known.astype((value.dtype or ir.DataType.INT64).numpy())
            operands.append(array)
    if all(one is None for one in table):
        return None
    results = compute_results(node, spec, operands, inferred) or evaluate(node, operands, opset)
    return None if results is None else [_pick(result, table) for result in results]


def _make_unknown_elements(value: ir.Value | None) -> Elements | None:
    """As many unknown elements as a value has; None where these are many, or nothing tells their number."""
    shape = None if value is None or value.const_value is not None else read_extents(value)
    if value is None or shape is None or _count(Inferred(value.dtype, shape)) > FOLLOWED:
        return None
    return np.full(shape, None, object)


def _count(result: Inferred) -> float:
    if result.shape is None or not all(isinstance(extent, int) for extent in result.shape):
        return math.inf
    return math.prod(extent for extent in result.shape if isinstance(extent, int))


def infer_with_elements(node: ir.Node, opset: int, dialect: Dialect) -> list[Inferred] | None:
    """The types and shapes of results where elements of operands are known in part; None where that tells nothing.

    onnx.shape_inference follows extents through operands where these are computed from shapes, so an operand of which
    some elements are names is one that is put together from the shape of a tensor.
    """
    known = [find_known_elements(value) for value in node.inputs]
    partial = [
        found is not None and found.ndim == 1 and value is not None and value.const_value is None
        for value, found in zip(node.inputs, known, strict=True)
    ]
    if not any(partial) or any(attribute.type in UNCOUNTED for attribute in node.attributes.values()):
        return None
    model = _make_partial_model(node, known, partial, opset, dialect)
    if model is None:
        return None
    try:
        done = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return None
    return [_read(output.type) for output in done.graph.output]


def _make_partial_model(
    node: ir.Node, known: Sequence[Any], partial: Sequence[bool], opset: int, dialect: Dialect
) -> onnx.ModelProto | None:
    """A model of one node that reads what is known of its operands; None where of one not even the type is."""
    graph = onnx.GraphProto(name="partial")
    made = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    add_attributes(made, node.attributes.values())
    for position, (value, found) in enumerate(zip(node.inputs, known, strict=True)):
        name = "" if value is None else f"i{position}"
        made.input.append(name)
        if value is None:
            continue
        if partial[position] and found is not None:
            _spell(graph, dialect, name, found.tolist())
        elif value.const_value is not None and value.const_value.size <= FOLLOWED:
            array = read_initializer(value)
            if array is None:
                return None
            graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        elif value.dtype is None:
            return None
        else:
            shape = read_extents(value)
            graph.input.append(onnx.helper.make_tensor_value_info(name, int(value.dtype), shape))
    made.output.extend(f"o{position}" for position in range(len(node.outputs)))
    graph.node.append(made)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in made.output)
    # What follows extents has been added to operators that did not change otherwise.
    imports = [onnx.OperatorSetIdProto(domain=node.domain, version=max(opset, _FOLLOWING))]
    return onnx.ModelProto(ir_version=10, graph=graph, opset_import=imports)


def _spell(graph: onnx.GraphProto, dialect: Dialect, name: str, found: Sequence[Any]) -> None:
    """Nodes that put an operand together: extents of a tensor made up for it, and numbers that no extent has."""
    shape, join = dialect.find_role("shape"), dialect.find_role("join")
    parts = []
    for place, one in enumerate(found):
        part = f"{name}_{place}"
        parts.append(part)
        if isinstance(one, (int, np.integer)) and one < 0:
            graph.initializer.append(onnx.numpy_helper.from_array(np.array([one], np.int64), part))
        else:
            tensor = f"{part}_tensor"
            graph.input.append(onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.INT8, [one]))
            graph.node.append(onnx.NodeProto(op_type=shape.name, domain=shape.domain, input=[tensor], output=[part]))
    joined = onnx.NodeProto(op_type=join.name, domain=join.domain, input=parts, output=[name])
    joined.attribute.append(onnx.helper.make_attribute("axis", 0))
    graph.node.append(joined)


def _read(proto: onnx.TypeProto) -> Inferred:
    tensor = proto.tensor_type
    dtype = ir.DataType(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return Inferred(dtype, None)
    found: list[int | str | None] = []
    for dim in tensor.shape.dim:
        # A name that inference makes up is one of its own, and no other value's.
        text = dim.dim_param if not dim.dim_param.startswith(symbols.UNNAMED) else None
        found.append(dim.dim_value if dim.HasField("dim_value") else text or None)
    return Inferred(dtype, tuple(found))

"""Constant folding: nodes over constants, computed at conversion time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import Elements, find_trained, permute_elements, read_initializer, widen_elements
from .inference import InferenceError, Inferred, add_attributes, merge
from .numpy_evaluation import compute_results
from .operators import OperatorSpec
from .permutations import read_permutation

#: results larger than this are kept only where the operands are about as large
GROWTH = 1 << 16
#: the part of that from which on results whose elements are all equal stay the node that makes them: it is as good
FILLED = 1 << 2


def fold(
    node: ir.Node, spec: OperatorSpec, opset: int, inferred: Sequence[Inferred], growth: int = GROWTH
) -> Sequence[Elements] | None:
    """Compute the results of a node whose operands are all constant, or whose results have no elements.

    None where it has to stay a node.

    `inferred` is what is known of the results: those that are too large to keep, above `growth` bytes and twice what
    the operands take, are not computed at all.

    Operators that only rearrange their operand yield views, those that widen it what is computed later. All others are
    computed by what ops.yaml says of them, or else by onnx.reference.
    """
    if not (spec.facts.pure and spec.facts.fold):
        return None
    if not node.inputs and spec.operands:
        return None
    if inferred and all(map(_is_empty, inferred)):
        # Runtimes have no kernels for many of these, and there is nothing to compute.
        return [
            np.zeros([n for n in one.shape or () if isinstance(n, int)], one.dtype.numpy())
            for one in inferred
            if one.dtype
        ]
    if find_trained(node.inputs) is not None and not _is_rearrangement(node, spec, inferred):
        return None
    typing = _find_typing(node, spec)
    if any(value is not None and value.const_value is None and value is not typing for value in node.inputs):
        return None
    if (
        spec.role in ("permute", "convert")
        and len(node.inputs) == 1
        and (found := _move_elements(node, spec)) is not None
    ):
        return [found]
    operands = [None if value is None else _read_operand(value, typing) for value in node.inputs]
    if any(value is not None and operand is None for value, operand in zip(node.inputs, operands, strict=True)):
        return None
    most = max(growth, 2 * sum(operand.nbytes for operand in operands if operand is not None))
    if sum(map(count_bytes, inferred)) > (most if spec.facts.fills is None else growth // FILLED):
        return None
    results = compute_results(node, spec, operands, inferred) or evaluate(node, operands, opset)
    if results is None or sum(result.nbytes for result in results) > most:
        return None
    return results if all(map(_is_like, results, inferred)) else None


def _is_like(result: np.ndarray[Any, Any], known: Inferred) -> bool:
    """Whether a result has the type and the extents that are known of it; the reference has mistakes in a few."""
    try:
        merge(known.shape, result.shape)
    except InferenceError:
        return False
    return known.dtype is None or known.dtype.numpy() == result.dtype


def _is_rearrangement(node: ir.Node, spec: OperatorSpec, inferred: Sequence[Inferred]) -> bool:
    """Whether a node yields the elements of its first operand in another order, none of them twice."""
    tensor = None if node.inputs[0] is None else node.inputs[0].const_value
    if tensor is None or len(spec.facts.rearranges) != 1 or spec.facts.frame:
        return False
    tables = [
        value
        for name, value in zip((o.name for o in spec.operands), node.inputs, strict=False)
        if value is not None and name in spec.facts.replaces.values()
    ]
    single = all(value.const_value is not None and value.const_value.size == 1 for value in tables)
    return single and sum(map(count_bytes, inferred)) <= max(tensor.nbytes, tensor.size * 4)


def _find_typing(node: ir.Node, spec: OperatorSpec) -> ir.Value | None:
    """The operand of which a node reads the type alone, where that type is known."""
    names = (operand.name for operand in spec.operands)
    found = next((value for name, value in zip(names, node.inputs, strict=False) if name == spec.facts.typed_by), None)
    known = found is not None and found.dtype is not None and found.dtype.numpy().kind in "biuf"
    return found if known and found is not node.inputs[0] else None


def _read_operand(value: ir.Value, typing: ir.Value | None) -> np.ndarray[Any, Any] | None:
    if value is typing and value.const_value is None and value.dtype is not None:
        return np.zeros(0, value.dtype.numpy())
    return read_initializer(value)


def fold_extents(
    node: ir.Node, spec: OperatorSpec, opset: int, inferred: Sequence[Inferred]
) -> Sequence[Elements] | None:
    """Compute the results of a node that reads the extents of its operand alone; None where they are not all known.

    What is not known does not matter where two numbers in its place lead to the same.
    """
    shape = None if node.inputs[0] is None else node.inputs[0].shape
    if shape is None:
        return None
    guesses = [np.broadcast_to(np.False_, [n if isinstance(n, int) else guess for n in shape]) for guess in (2, 3)]
    one, other = (compute_results(node, spec, [array], inferred) or evaluate(node, [array], opset) for array in guesses)
    if one is None or other is None or not all(map(np.array_equal, one, other)):
        return None
    return one


def _is_empty(result: Inferred) -> bool:
    """Whether a result has no elements, whatever the operands hold."""
    shape = result.shape or ()
    return 0 in shape and all(type(n) is int for n in shape) and result.dtype not in (None, ir.DataType.STRING)


def count_bytes(result: Inferred) -> float:
    """The least that a result takes, where that can be told."""
    if result.dtype is None or result.dtype == ir.DataType.STRING or result.shape is None:
        return 0
    return result.dtype.itemsize * math.prod(extent for extent in result.shape if isinstance(extent, int))


def _move_elements(node: ir.Node, spec: OperatorSpec) -> Elements | None:
    """What a node yields that permutes a constant or converts it to a wider type."""
    value = node.inputs[0]
    tensor = None if value is None or value.is_graph_input() else value.const_value
    if value is None or tensor is None:
        return None
    if spec.role == "permute":
        perm = read_permutation(node, spec, len(tensor.shape))
        return None if perm is None else permute_elements(value, perm)
    return widen_elements(tensor, ir.DataType(node.attributes["to"].as_int()))


def evaluate(
    node: ir.Node, operands: Sequence[np.ndarray[Any, Any] | None], opset: int
) -> list[np.ndarray[Any, Any]] | None:
    """Compute a node by onnx.reference; None where it cannot."""
    import onnx.reference  # few conversions compute more than a permutation

    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    add_attributes(proto, node.attributes.values())
    proto.input.extend("" if operand is None else f"i{i}" for i, operand in enumerate(operands))
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    graph = onnx.GraphProto(name="constant", node=[proto])
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in proto.input if name)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output)
    imports = [onnx.OperatorSetIdProto(domain=node.domain, version=opset)]
    model = onnx.ModelProto(ir_version=10, graph=graph, opset_import=imports)
    feeds = {f"i{i}": operand for i, operand in enumerate(operands) if operand is not None}
    try:
        with np.errstate(all="ignore"):
            results = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        # The reference evaluator lacks some operators and types; the runtime then computes the node.
        return None
    if any(isinstance(result, list) for result in results):  # a sequence of tensors is no constant
        return None
    return [np.asarray(result) for result in results]

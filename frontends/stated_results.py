"""What files state wrongly of results: torch 2.9 gives states of recurrent layers an axis too many, TensorFlow 1.13 an
axis to indices along one, and TensorFlow 1.15 the operand's type to places."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..engine.base.constants import read_constant
from ..engine.dialects.operators import Dialect, OperatorSpec, get_option
from ..engine.expressions.functions import DTYPES


def forget_wrong_extents(graph: ir.Graph, dialect: Dialect) -> None:
    """Take the extents from results whose rank is not what the dialect says or whose samples are not those of their
    operand, and from all that is computed of them."""
    doubted: set[int] = set()
    for node in graph:
        spec = dialect.operators.get(node.op_type)
        if any(id(value) in doubted for value in node.inputs):
            wrong = list(node.outputs)
        else:
            wrong = [value for value in node.outputs if spec is not None and _is_wrong(node, value, spec)]
        for value in wrong:
            value.shape = None
            doubted.add(id(value))


def set_types(graph: ir.Graph, dialect: Dialect) -> None:
    """Give results the element types that the dialect says kernels yield, where these are the same for all operands."""
    for node in graph:
        spec = dialect.operators.get(node.op_type)
        if spec is None or len(spec.facts.yields) < len(node.outputs):
            continue
        for value, said in zip(node.outputs, spec.facts.yields, strict=False):
            dtype = DTYPES.get(said)
            if dtype is not None and value.type is not None and value.dtype != dtype:
                value.type = ir.TensorType(dtype)


def _is_wrong(node: ir.Node, value: ir.Value, spec: OperatorSpec) -> bool:
    """Whether a result is stated to have another rank than it has of the operand's rank, or samples of a fixed number
    where those of its operand are free."""
    if value.shape is None:
        return False
    rank = _find_rank(node, value, spec)
    return (rank is not None and value.shape.rank() != rank) or _has_wrong_samples(node, value, spec)


def _has_wrong_samples(node: ir.Node, value: ir.Value, spec: OperatorSpec) -> bool:
    """Whether images are stated to be of a fixed number where those are free that they are computed of."""
    first = node.inputs[0] if node.inputs else None
    shapes = [one.shape for one in (first, value) if one is not None and one.shape is not None]
    if spec.facts.layout != "implicit" or len(shapes) != 2 or not all(shape.rank() for shape in shapes):
        return False
    read, stated = shapes
    return len(read) == len(stated) and not isinstance(read[0], int) and isinstance(stated[0], int)


def _find_rank(node: ir.Node, value: ir.Value, spec: OperatorSpec) -> int | None:
    """The rank of a result: that of an operand, or as many axes less as are removed of the first; None if unknown."""
    if spec.facts.ranks and len(node.outputs) == len(spec.results):
        name = spec.facts.ranks.get(spec.results[value.index() or 0].name)
        place = spec.find_operand(name) if name is not None else None
        like = node.inputs[place] if place is not None and place < len(node.inputs) else None
        return None if like is None or like.shape is None else like.shape.rank()
    keeps, first = spec.facts.keeps, node.inputs[0] if node.inputs else None
    if first is None or first.shape is None or len(node.outputs) != 1:
        return None
    if spec.facts.deepens:
        return first.shape.rank() + spec.facts.deepens
    if spec.facts.removes is None:
        return None
    if keeps is not None and get_option(node, spec.options[keeps]):
        return None
    axes = _read_axes(node, spec, spec.facts.removes)
    rank = first.shape.rank()
    return rank - len({axis % rank for axis in axes}) if axes and rank else None


def _read_axes(node: ir.Node, spec: OperatorSpec, name: str) -> list[int]:
    """The axes that an attribute or a constant operand lists; none where they are not known."""
    listed: object = None
    if name in spec.options:
        listed = get_option(node, spec.options[name])
    elif (place := spec.find_operand(name)) is not None and place < len(node.inputs):
        operand = node.inputs[place]
        listed = None if operand is None else read_constant(operand)
    array = np.ravel(np.asarray([] if listed is None else listed))
    return [int(axis) for axis in array] if array.dtype.kind in "iu" else []

"""What moves elements moves codes: where numbers are put on a grid and read off it is carried past it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.quantization import (
    CODES,
    DEQUANTIZE_BY,
    KEY,
    MATCHED,
    Quantization,
    dequantize,
    note_numbers,
    read_node_grid,
)
from .coded_graph import CodedGraph, are_alike, find_producer, is_allowed, is_real
from .grids import PADS, note_grid, round_to_grid


def lift(view: CodedGraph) -> None:
    """Let operators that only move codes move real numbers, where all that reads their codes reads these."""
    for node in reversed(list(view.graph)):
        spec = view.find_spec(node)
        if spec is None or spec.facts.quantization != CODES or len(node.outputs) != 1:
            continue
        codes = node.outputs[0]
        readers = [use.node for use in codes.uses()]
        if not readers or codes.is_graph_output() or any(view.find_role(one) != DEQUANTIZE_BY for one in readers):
            continue
        if not are_alike([read_node_grid(one) for one in readers]) or read_node_grid(readers[0]).per_axis:
            continue
        if not is_allowed(spec, 0, ir.DataType.FLOAT):
            continue
        for position, value in enumerate(node.inputs):
            if value is not None and value.dtype == codes.dtype:
                made = view.make_form(view.dequantize, value, readers[0], ir.DataType.FLOAT)
                view.graph.insert_before(node, made)
                node.replace_input_with(position, made.outputs[0])
        codes.type = ir.TensorType(ir.DataType.FLOAT)
        for one in readers:
            ir.convenience.replace_all_uses_with(one.outputs[0], codes, replace_graph_outputs=True)
            view.graph.remove(one, safe=True)


def hoist(view: CodedGraph) -> None:
    """Move quantize nodes before the operators that only move elements, where these alone read them."""
    for node in reversed(list(view.graph)):
        spec = view.find_spec(node)
        real = [p for p, value in enumerate(node.inputs) if is_real(value)]
        if spec is None or spec.facts.quantization != CODES or len(real) != 1 or len(node.outputs) != 1:
            continue
        value, asked = node.inputs[real[0]], view.find_grid(node.outputs[0])
        maker = find_producer(value)
        if value is None or maker is None or asked is None or view.is_dequantize(maker) or value.is_graph_output():
            continue
        if len(value.uses()) != 1 or not is_allowed(spec, real[0], asked[1]) or view.has_activation(node, spec):
            continue
        forms = [use.node for use in node.outputs[0].uses()]
        made = view.make_form(view.quantize, value, forms[0], asked[1])
        view.graph.insert_before(node, made)
        node.replace_input_with(real[0], made.outputs[0])
        node.outputs[0].type = ir.TensorType(asked[1])
        for form in forms:
            view.replace(form, node.outputs[0])


def sink_dequantize(view: CodedGraph, node: ir.Node) -> bool:
    """Move a dequantize node behind an operator that only moves elements."""
    spec = view.find_spec(node)
    if spec is None or view.has_activation(node, spec):
        return False
    pads = PADS in spec.traits
    if spec.facts.quantization not in (CODES, MATCHED) and not pads:
        return False
    real = [p for p, value in enumerate(node.inputs) if is_real(value)]
    first = next(filter(view.is_dequantize, [find_producer(node.inputs[p]) for p in real]), None)
    if first is None or first.inputs[0] is None or not all(map(is_real, node.outputs)):
        return False
    known, dtype = read_node_grid(first), first.inputs[0].dtype
    if dtype is None or not all(is_allowed(spec, p, dtype) for p in real):
        return False
    if read_initializer(first.inputs[0]) is not None and _move_constant(view, node, first, known):
        return True
    codes = [_find_codes(view, node.inputs[p], known, dtype, pads) for p in real]
    if known.per_axis or any(one is None for one in codes):
        return False
    for position, value in zip(real, codes, strict=True):
        node.replace_input_with(position, value)
    for result in node.outputs:
        uses, outputs = list(result.uses()), result.is_graph_output()
        made = view.make_form(view.dequantize, result, first, ir.DataType.FLOAT)
        for user, position in uses:
            user.replace_input_with(position, made.outputs[0])
        if outputs:
            made.outputs[0].name, result.name = result.name, view.scope.make_name(f"{result.name}/codes")
            for position, value in enumerate(view.graph.outputs):
                if value is result:
                    view.graph.outputs[position] = made.outputs[0]
        result.type, result.meta[KEY] = ir.TensorType(dtype), known
        view.graph.insert_after(node, made)
    return True


def _find_codes(
    view: CodedGraph, value: ir.Value | None, known: Quantization, dtype: ir.DataType, pads: bool
) -> ir.Value | None:
    """The codes that real numbers were read off a grid, or for a pad those of a number that lies on the grid."""
    form = find_producer(value)
    if form is not None and view.is_dequantize(form):
        codes = form.inputs[0]
        alike = read_node_grid(form) == known and codes is not None and codes.dtype == dtype
        return note_grid(codes, known, view.dialect, view.scope) if alike and codes is not None else None
    numbers = None if value is None or not pads else read_initializer(value)
    if value is None or numbers is None:
        return None
    codes_of = round_to_grid(numbers, known, dtype)
    if not np.isneginf(numbers).all() and not np.allclose(dequantize(codes_of, known), numbers, rtol=1e-5):
        return None
    return view.make_constant(codes_of, value, known)


def _move_constant(view: CodedGraph, node: ir.Node, form: ir.Node, known: Quantization) -> bool:
    """Move the codes of a constant, once; whether that is known. Where an axis goes, numbers along it tell."""
    codes = None if form.inputs[0] is None else read_initializer(form.inputs[0])
    others = [value for value in node.inputs if value is not None and value.producer() is not form]
    if codes is None or view.settle is None or len(node.outputs) != 1 or any(map(is_real, others)):
        return False
    moved = _compute(view, node, form, codes)
    if moved is None:
        return False
    axis, extents = known.axis, [-1 if axis == known.axis else 1 for axis in range(codes.ndim)]
    if known.per_axis:
        along = np.broadcast_to(np.arange(known.scale.size, dtype=np.int32).reshape(extents), codes.shape)
        places = _compute(view, node, form, np.ascontiguousarray(along))
        axis = -1 if places is None else _find_axis(places, known.scale.size)
        if axis < 0:
            return False
    constant = view.make_constant(moved, node.outputs[0], None)
    made = view.make_form(view.dequantize, constant, form, ir.DataType.FLOAT)
    made.attributes["axis"] = ir.AttrInt64("axis", axis)
    note_numbers(made)
    view.graph.insert_before(node, made)
    ir.convenience.replace_all_uses_with(node.outputs[0], made.outputs[0], replace_graph_outputs=True)
    return True


def _compute(
    view: CodedGraph, node: ir.Node, form: ir.Node, elements: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """What a node yields of constants, with others in the place of those that a form reads."""
    tensor = ir.Tensor(elements)
    given = ir.Value(name="given", shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
    inputs = [given if value is form.outputs[0] else value for value in node.inputs]
    copy = ir.Node(node.domain, node.op_type, inputs, node.attributes.values(), num_outputs=1)
    found = None if view.settle is None else view.settle(copy)
    copy.resize_inputs(0)
    return None if not found else found[0].numpy() if isinstance(found[0], ir.LazyTensor) else found[0]


def _find_axis(places: np.ndarray[Any, Any], count: int) -> int:
    """The axis along which numbers are those from 0 to a count, the same everywhere else; -1 where there is none."""
    for axis, extent in enumerate(places.shape):
        along = np.arange(count).reshape([-1 if i == axis else 1 for i in range(places.ndim)])
        if extent == count and (places == along).all():
            return axis
    return -1

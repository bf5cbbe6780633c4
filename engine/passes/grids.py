"""Numbers put on grids of codes, and grids written down in the types of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.names import Scope
from ..base.quantization import (
    CODES,
    DEQUANTIZE_BY,
    KEY,
    MATCHED,
    QUANTIZE_BY,
    Quantization,
    carry_grid,
    dequantize,
    read_node_grid,
    read_quantization,
)
from ..dialects.conversions import name_type
from ..dialects.operators import Dialect

#: constants of fewer codes are real numbers where no kernel takes their codes
_FEW = 1024
#: numbers of a channel that tell whether a step comes into question, and what they may be off by, as a part of it
_SAMPLE, _EXACT = 32, 1e-4
#: of how many numbers grids are sought at once
_BLOCK = 1 << 20
#: the trait of operators whose results have the elements of an operand, and a number beside them
PADS = "pads"


def round_to_grid(numbers: npt.NDArray[Any], known: Quantization, dtype: ir.DataType) -> npt.NDArray[Any]:
    """The codes nearest to some numbers, halves to the even one; what is beyond the type is at its ends."""
    kind: np.dtype[Any] = dtype.numpy()
    ends = np.iinfo(kind)
    steps = np.rint(numbers.astype(np.float64) / known.scale[0].astype(np.float64)) + known.zero_point[0]
    codes: npt.NDArray[Any] = np.clip(steps, ends.min, ends.max).astype(kind)
    return codes


def find_exact_grid(numbers: npt.NDArray[Any], dtype: ir.DataType) -> Quantization | None:
    """A grid on which numbers lie as they are: one number, its negative, and zero. None where there is none.

    The number is a quarter of the codes away from zero: kernels that bring two operands to the coarser of their grids
    count on grids that are alike, and one end the process where the result's is much finer.
    """
    sizes = np.unique(np.abs(numbers[numbers != 0]))
    if sizes.size > 1 or not np.isfinite(numbers).all():
        return None
    codes = 1 << dtype.bitwidth
    scale = np.float32(sizes[0] if sizes.size else 1) / np.float32(codes // 4)
    if not scale:
        return None
    return Quantization(np.array([scale], np.float32), np.array([0 if dtype.is_signed() else codes // 2], np.int64))


def find_grids_of_channels(numbers: npt.NDArray[Any], axis: int) -> Quantization | None:
    """The centred grids of 8-bit codes on which the numbers of all channels along an axis lie as they are, the coarsest
    for each; None where those of a channel lie on none."""
    if numbers.dtype != np.float32 or not numbers.size or axis >= numbers.ndim:
        return None
    rows = np.moveaxis(numbers, axis, 0).reshape(numbers.shape[axis], -1)
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    if not np.isfinite(largest).all() or not largest.any() or largest[largest > 0].min() < 2.0**-100:
        return None
    scale = np.full(largest.shape, largest.max())  # of channels of zeros alone any is right
    (used,) = np.nonzero(largest)
    count = max(1, _BLOCK // rows.shape[1])
    for channels in (used[first : first + count] for first in range(0, used.size, count)):
        found = _find_steps(rows[channels], largest[channels])
        if found is None:
            return None
        scale[channels] = found
    return Quantization(scale.astype(np.float32), np.zeros(scale.size, np.int64), axis)


def _find_steps(rows: npt.NDArray[Any], largest: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """The coarsest steps of which the numbers of each row are multiples; None where those of one are of none.

    A few numbers of each say which steps come into question, and those that spoke against a step join them.
    """
    scale, sample = np.zeros(largest.shape), rows[:, :_SAMPLE].copy()
    for code in range(1, 129):
        (left,) = np.nonzero((scale == 0) & (rows.max(axis=1) < largest) if code == 128 else scale == 0)
        left = left[(_measure_offsets(sample[left], code / largest[left]) <= _EXACT).all(axis=1)]
        offsets = _measure_offsets(rows[left], code / largest[left])
        worst = offsets.argmax(axis=1)
        fits = offsets[np.arange(left.size), worst] <= _EXACT
        sample[left[~fits], code % sample.shape[1]] = rows[left[~fits], worst[~fits]]
        scale[left[fits]] = largest[left[fits]] / code
        if scale.all():
            return scale
    return None


def _measure_offsets(rows: npt.NDArray[Any], factors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far numbers, times the factor of their row, are off the next integer."""
    steps = rows * factors[:, np.newaxis]
    return np.abs(steps - np.rint(steps))


def write_grids(graph: ir.Graph, dialect: Dialect, scope: Scope) -> None:
    """Let the types of codes say their grids, which operands of forms have named; these become operators."""
    reads, writes = dialect.find_role(DEQUANTIZE_BY), dialect.find_role(QUANTIZE_BY)
    for node in list(graph):
        if node.domain == writes.domain and node.op_type == writes.name:
            _write(graph, node, dialect, scope)
    for node in list(graph):
        if node.domain == reads.domain and node.op_type == reads.name:
            _read(graph, node, dialect, scope)
    carry_grids(graph, dialect, scope)


def _write(graph: ir.Graph, node: ir.Node, dialect: Dialect, scope: Scope) -> None:
    """Put real numbers on a grid by an operator, or codes on another one; those that are on it stay."""
    spec, reads = dialect.find_role("quantize"), dialect.find_role(DEQUANTIZE_BY)
    known, source = read_node_grid(node), node.inputs[0]
    result = node.outputs[0]
    form = None if source is None else source.producer()
    if form is not None and (form.domain, form.op_type) == (reads.domain, reads.name) and form.inputs[0] is not None:
        source = note_grid(form.inputs[0], read_node_grid(form), dialect, scope)
        if read_node_grid(form) == known and source.dtype == result.dtype and not result.is_graph_output():
            ir.convenience.replace_all_uses_with(result, source)
            graph.remove(node, safe=True)
            return
    _replace_operator(graph, node, spec.name, source)
    result.meta[KEY] = known


def _read(graph: ir.Graph, node: ir.Node, dialect: Dialect, scope: Scope) -> None:
    """Read real numbers off a grid by an operator; those of a small constant are a constant."""
    known, codes = read_node_grid(node), node.inputs[0]
    assert codes is not None
    array, result = read_initializer(codes), node.outputs[0]
    if array is not None and (array.size < _FEW or result.is_graph_output()):
        made = scope.make_constant(dequantize(array, known), f"{codes.name}/real")
        if made.graph is None:
            graph.register_initializer(made)
        ir.convenience.replace_all_uses_with(result, made, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        return
    _replace_operator(graph, node, dialect.find_role("dequantize").name, note_grid(codes, known, dialect, scope))


def _replace_operator(graph: ir.Graph, node: ir.Node, operator: str, source: ir.Value | None) -> None:
    node.op_type = operator
    node.attributes.clear()
    node.resize_inputs(1)
    node.replace_input_with(0, source)


def note_grid(codes: ir.Value, known: Quantization, dialect: Dialect, scope: Scope) -> ir.Value:
    """Let codes say their grid. Where they say another one, a twin of them says it: of what is computed by an operator
    that leaves all elements where they are."""
    has = read_quantization(codes)
    if has is None or has == known:
        codes.meta[KEY] = known
        return codes
    if codes.const_value is None or codes.is_graph_input():
        return _read_anew(codes, known, dialect, scope)
    twin = ir.Value(
        name=scope.make_name(f"{codes.name}"), shape=codes.shape, type=codes.type, const_value=codes.const_value
    )
    twin.meta[KEY] = known
    scope.graph.register_initializer(twin)
    return twin


def _read_anew(codes: ir.Value, known: Quantization, dialect: Dialect, scope: Scope) -> ir.Value:
    """Codes in the extents that they have, as a value whose type says another grid."""
    spec, producer = dialect.find_role("reshape"), codes.producer()
    extents = [extent if isinstance(extent, int) else -1 for extent in codes.shape or ()]
    told = None
    if codes.shape is None or extents.count(-1) > 1:
        told = _make_extents(codes, dialect, scope)
    to = told.outputs[0] if told else scope.register(scope.make_constant(np.array(extents, np.int32), "shape"))
    made = ir.Node(spec.domain, spec.name, [codes, to], num_outputs=1)
    made.outputs[0].type, made.outputs[0].shape, made.outputs[0].meta[KEY] = codes.type, codes.shape, known
    scope.name_node(made, f"{codes.name}/codes")
    graph = scope.graph
    nodes = [made] if told is None else [told, made]
    if producer is not None and producer.graph is not None:
        producer.graph.insert_after(producer, nodes)
    else:
        graph.insert_before(graph[0], nodes)
    return made.outputs[0]


def _make_extents(codes: ir.Value, dialect: Dialect, scope: Scope) -> ir.Node:
    """A node that tells the extents of codes, of which a reshape takes one at the most from the others."""
    spec = dialect.find_role("shape")
    kind = name_type(dialect, spec, ir.DataType.INT32)
    node = ir.Node(spec.domain, spec.name, [codes], [kind], num_outputs=1)
    node.outputs[0].dtype = ir.DataType.INT32
    node.outputs[0].shape = ir.Shape([None if codes.shape is None else len(codes.shape)])
    scope.name_node(node, f"{codes.name}/extents")
    return node


def carry_grids(graph: ir.Graph, dialect: Dialect, scope: Scope) -> None:
    """Let what moves or joins codes take and yield codes on one grid, that of the result where both say one: runtimes
    take a reshape alone that yields codes on another grid."""
    for node in graph:
        _carry(node, dialect)
    for node in reversed(list(graph)):
        spec = dialect.find_operator(node.op_type) if node.domain == dialect.domain else None
        result = node.outputs[0] if node.outputs else None
        known = read_quantization(result)
        if spec is None or result is None or known is None:
            continue
        if spec.facts.quantization not in (CODES, MATCHED) and PADS not in spec.traits:
            continue
        for position, value in enumerate(node.inputs):
            if value is None or value.dtype != result.dtype:
                continue
            has = read_quantization(value)
            if has is None:
                value.meta[KEY] = known
            elif has != known and spec.role != "reshape":
                node.replace_input_with(position, note_grid(value, known, dialect, scope))


def _carry(node: ir.Node, dialect: Dialect) -> None:
    """Let what moves codes yield codes on the same grid."""
    spec = dialect.find_operator(node.op_type) if node.domain == dialect.domain else None
    if spec is not None and spec.facts.quantization in (CODES, MATCHED):
        carry_grid(node.inputs, node.outputs)

"""Extents that onnx.shape_inference leaves open: polynomials over those of operands, or names that tell them apart."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import find_known_elements
from . import symbols
from .fitted_extents import fit_extents
from .inference import UNCOUNTED, Extents, Inferred, read_extents
from .operators import OperatorSpec, get_option
from .symbols import Symbol

#: from here on, the end of a slice stands for the end of the axis: tf2onnx writes this, others 2**31 - 1
_END = 10**9


def complete(node: ir.Node, spec: OperatorSpec, opset: int, inferred: list[Inferred]) -> list[Inferred]:
    """What was inferred of results at an opset, with extents that were open."""
    facts = spec.facts
    fillers: list[Callable[[ir.Node, OperatorSpec, Extents], Extents]] = []
    if facts.regroups:
        fillers.append(_regroup)
    if facts.joins is not None:
        fillers.append(_join)
    if facts.span:
        fillers.append(_compute_span)
    if facts.broadcasts and facts.extents:
        fillers.append(_broadcast)
    elif facts.extents and not facts.regroups and not facts.span:
        fillers.append(_read_sizes)
    found = list(inferred)
    if facts.same_extents and found[0].shape is None and node.inputs[0] is not None:
        found[0] = Inferred(found[0].dtype or node.inputs[0].dtype, read_extents(node.inputs[0]))
    if facts.scaled_by and found[0].shape is not None:
        found[0] = Inferred(found[0].dtype, _multiply_by_factors(node, spec, found[0].shape))
    for fill in fillers:
        if found[0].shape is not None and None in found[0].shape:
            found[0] = Inferred(found[0].dtype, fill(node, spec, found[0].shape))
    if any(map(_is_open, found)):
        found = fit_extents(node, opset, found)
    if any(map(_is_open, found)) and (key := _make_key(node, spec)) is not None:
        # Equal nodes over equal extents have results of equal extents.
        found = [_name_extents(one, node.outputs[place], f"{key}.{place}") for place, one in enumerate(found)]
    return found


def _is_open(result: Inferred) -> bool:
    return result.shape is not None and None in result.shape


def _name_extents(result: Inferred, output: ir.Value, key: str) -> Inferred:
    if result.shape is None:
        return result
    told = _list_told(output, len(result.shape))
    named = [
        (name or f"{key}.{axis}") if extent is None else extent
        for axis, (extent, name) in enumerate(zip(result.shape, told, strict=True))
    ]
    return Inferred(result.dtype, tuple(named))


def _list_told(output: ir.Value, rank: int) -> Sequence[str | None]:
    """The names of a graph's extents that the source gives a value between others: exporters know them, whereas what
    users call an output's extents need not be those of inputs."""
    own, node = read_extents(output), output.producer()
    if own is None or len(own) != rank or node is None or node.graph is None or output.is_graph_output():
        return [None] * rank
    given = {name for value in node.graph.inputs for name in read_extents(value) or () if isinstance(name, str)}
    return [name if isinstance(name, str) and name in given else None for name in own]


def _make_key(node: ir.Node, spec: OperatorSpec) -> str | None:
    """A text that is the same for nodes whose results have the same extents; None where elements decide them."""
    told = [str(node.op_type)]
    by_shape = spec.facts.layout in ("transparent", "attribute", "implicit") or "view" in spec.traits
    for place, value in enumerate(node.inputs):
        if value is None:
            told.append("")
            continue
        shape, known = read_extents(value), find_known_elements(value)
        if shape is None or None in shape:
            return None
        told.append(f"{value.dtype} {shape}")
        if known is not None and None not in (items := known.ravel().tolist()):
            told.append(f"{items}")
        elif not by_shape:
            return None
        elif place and len(shape) <= 1 and value.const_value is None and spec.facts.layout != "transparent":
            return None  # it may say how much
    for attribute in node.attributes.values():
        if attribute.type in UNCOUNTED:
            return None
        told.append(f"{attribute.name} {attribute.value}")
    return f"{node.op_type}_{hashlib.sha256('|'.join(told).encode()).hexdigest()[:16]}"


def _multiply_extents(shape: Extents | None) -> Symbol | None:
    total: Symbol | None = None if shape is None else 1
    for extent in shape or ():
        total = None if total is None or extent is None else symbols.multiply(total, extent)
    return total


def _regroup(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """As many elements are in the result as in the operand, which tells one extent."""
    total = None if node.inputs[0] is None else _multiply_extents(read_extents(node.inputs[0]))
    rest = _multiply_extents(tuple([extent for extent in shape if extent is not None]))
    if total is None or rest in (None, 0) or shape.count(None) != 1:
        return shape
    found = symbols.divide_exactly(total, rest or 1)
    return tuple([found if extent is None else extent for extent in shape])


def _join(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """Operands stand one behind the other, so their extents add up."""
    axis = get_option(node, spec.options[spec.facts.joins or ""])
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape) or shape[axis] is not None:
        return shape
    total: Symbol | None = 0
    for value in node.inputs:
        one = None if value is None else read_extents(value)
        extent = None if one is None or len(one) != len(shape) else one[axis]
        total = None if total is None or extent is None else symbols.add(total, extent)
    return (*shape[:axis], total, *shape[axis + 1 :])


def _broadcast(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """An axis is as long as in the operand or as asked for, whichever is not 1."""
    wanted = _find_operand_elements(node, spec, next(iter(spec.facts.extents)))
    whole = None if node.inputs[0] is None else read_extents(node.inputs[0])
    if wanted is None or whole is None:
        return shape
    asked: list[Symbol | None] = wanted.ravel().tolist()
    found = list(shape)
    for axis, extent in enumerate(shape):
        own, other = (side[axis - len(shape)] if axis >= len(shape) - len(side) else 1 for side in (whole, asked))
        if extent is None and not (isinstance(other, int) and other < 0):
            found[axis] = own if other in (1, own) else other if own == 1 else None
    return tuple(found)


def _read_sizes(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """An operand with a number for each axis tells the extents of the result, as far as its elements are known."""
    sizes = _find_operand_elements(node, spec, next(iter(spec.facts.extents)))
    listed = any(name in node.attributes for name in spec.facts.scaled_by[1:])  # the axes that have a number
    bounds = any(
        name in spec.options and get_option(node, spec.options[name]) != wanted
        for name, wanted in spec.facts.only.items()
    )
    if sizes is None or listed or bounds or sizes.shape != (len(shape),):
        return shape
    told: list[Symbol | None] = sizes.ravel().tolist()
    return tuple([size if extent is None else extent for size, extent in zip(told, shape, strict=True)])


def _find_operand_elements(node: ir.Node, spec: OperatorSpec, name: str) -> np.ndarray | None:
    """The elements of an operand as far as they are known; None where nothing is, or the operand is left out."""
    given, place = spec.list_inputs(node), spec.find_operand(name)
    return find_known_elements(given[place]) if place is not None and place < len(given) else None


def list_scale_factors(node: ir.Node, spec: OperatorSpec) -> Sequence[float]:
    """The numbers that extents of the first operand are multiplied by, where they are known; none where not."""
    factors = _find_operand_elements(node, spec, spec.facts.scaled_by[0]) if spec.facts.scaled_by else None
    found = [] if factors is None else factors.ravel().tolist()
    return found if all(isinstance(one, int | float) and 0 < one < math.inf for one in found) else ()


def _multiply_by_factors(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """Products in single precision, as runtimes compute them: 1.4 times 5 is 7. onnx.shape_inference says 6."""
    factors = list_scale_factors(node, spec)
    whole = read_extents(node.inputs[0]) if node.inputs[0] is not None else None
    listed = next((node.attributes[name] for name in spec.facts.scaled_by[1:] if name in node.attributes), None)
    if whole is None or len(whole) != len(shape):
        return shape
    axes = range(len(whole)) if listed is None else listed.as_ints()
    found = list(shape)
    for axis, factor in zip(axes, factors, strict=False):
        extent = whole[axis] if -len(whole) <= axis < len(whole) else None
        if isinstance(extent, int):
            found[axis] = int(np.float32(extent) * np.float32(factor))
    return tuple(found)


def _compute_span(node: ir.Node, spec: OperatorSpec, shape: Extents) -> Extents:
    """From where to where elements are taken, in steps of one, tells how many they are."""
    given = spec.list_inputs(node)
    names = [operand.name for operand in spec.operands]
    numbers: list[list[Symbol | None] | None] = []
    hidden = False
    for name in spec.facts.span:
        place = names.index(name) if name in names else len(given)
        known = find_known_elements(given[place]) if place < len(given) else None
        numbers.append(None if known is None else known.ravel().tolist())
        hidden = hidden or (known is None and place < len(given) and given[place] is not None)
    starts, ends, steps, *rest = numbers
    whole = read_extents(given[0]) if len(spec.facts.span) > 3 and given[0] is not None else None
    if whole is not None and rest[0] is not None and len(whole) == len(shape) > 0:
        # Axes that nothing is taken of stay as they are, whatever is known of the bounds of others.
        taken = [axis % len(shape) for axis in rest[0] if isinstance(axis, int)]
        if len(taken) == len(rest[0]):
            shape = tuple([extent if i in taken else whole[i] for i, extent in enumerate(shape)])
    if hidden or starts is None or ends is None or len(starts) != len(ends):
        return shape
    axes: Sequence[Symbol | None] = rest[0] if rest and rest[0] is not None else range(len(starts))
    found = list(shape)
    for place, axis in enumerate(axes):
        step = 1 if steps is None else steps[place]
        if not isinstance(axis, int) or step != 1:
            continue
        axis += len(shape) if axis < 0 else 0
        limit = None if whole is None else whole[axis]
        if found[axis] is None:
            found[axis] = _compute_length(starts[place], ends[place], limit, bounded=whole is not None)
    return tuple(found)


def _compute_length(start: Symbol | None, end: Symbol | None, whole: Symbol | None, bounded: bool) -> Symbol | None:
    if start is None or end is None:
        return None
    if bounded:
        if whole is None:
            return None
        if isinstance(end, int) and end >= _END:
            end = whole
        elif isinstance(end, int) and end < 0:
            end = symbols.add(whole, end)
        if isinstance(start, int) and start < 0:
            start = symbols.add(whole, start)
        if end is None or start is None or symbols.find_sign(start) not in (0, 1):
            return None
        if symbols.compare(end, whole) not in (-1, 0):
            return None
    length = symbols.subtract(end, start)
    return length if length is not None and symbols.find_sign(length) in (0, 1) else None


def note_rank(node: ir.Node, spec: OperatorSpec) -> None:
    """Let the first result of a node have as many axes as its first operand, and its type, where ops.yaml says so."""
    first, result = node.inputs[0] if node.inputs else None, node.outputs[0]
    if not spec.facts.same_rank or first is None or result.shape is not None:
        return
    result.type = result.type or first.type
    if first.shape is not None:
        result.shape = ir.Shape([None] * len(first.shape))

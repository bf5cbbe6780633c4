"""What operators make of numbers, as ops.yaml says: computed by numpy, without the modules of onnx.reference."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir

from .inference import Inferred
from .operators import OperatorSpec, get_option

Array = np.ndarray[Any, Any]
T = TypeVar("T")

#: what ops.yaml says of an operator whose result is its first operand in another type
CONVERSION = "conversion"
#: kinds of numpy's types that are computed with
_KINDS = "biuf"


def _divide(left: Array, right: Array) -> Array | None:
    """Quotients; those of integers are cut towards zero, as ONNX has it."""
    if left.dtype.kind == "f":
        return np.asarray(np.divide(left, right))
    if not right.all():
        return None
    quotient, rest = np.divmod(left, right)
    return np.asarray(quotient + ((rest != 0) & ((left < 0) != (right < 0))).astype(left.dtype))


def _compute_remainder(left: Array, right: Array) -> Array | None:
    """Remainders of integers that are not negative; None for others, of which options and types decide."""
    if left.dtype.kind not in "iu" or (left < 0).any() or (right <= 0).any():
        return None
    return np.asarray(np.mod(left, right))


def _count(start: Array, limit: Array, step: Array) -> Array | None:
    """Integers from one on, in steps; None for real numbers, whose last one depends on rounding."""
    if start.dtype.kind not in "iu" or not step.all():
        return None
    return np.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


#: by the sign of an operator or of a relation, and by what ops.yaml says that it computes
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "==": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "square root": np.sqrt,
    "choice": np.where,
    "remainder": _compute_remainder,
    "maximum": lambda *numbers: functools.reduce(np.maximum, numbers),
    "minimum": lambda *numbers: functools.reduce(np.minimum, numbers),
    "sequence": _count,
}


def compute_results(
    node: ir.Node, spec: OperatorSpec, operands: Sequence[Array | None], inferred: Sequence[Inferred]
) -> list[Array] | None:
    """The one result of a node over numbers; None where ops.yaml does not say enough, or the types are others."""
    if len(inferred) != 1 or not operands:
        return None
    dtype = None if inferred[0].dtype is None or inferred[0].dtype == ir.DataType.STRING else inferred[0].dtype.numpy()
    if dtype is None or dtype.kind not in _KINDS:
        return None
    if any(operand is not None and operand.dtype.kind not in _KINDS for operand in operands):
        return None
    found = _compute(node, spec, operands, inferred[0], dtype)
    return None if found is None or found.dtype != dtype else [found]


def pick_extents(node: ir.Node, spec: OperatorSpec, extents: Sequence[T]) -> Sequence[T]:
    """Those of the extents of its operand that a node tells."""
    names = [name for name in spec.facts.between if name in spec.options]
    return extents[slice(*(get_option(node, spec.options[name]) for name in names))] if names else extents


def _compute(
    node: ir.Node, spec: OperatorSpec, operands: Sequence[Array | None], result: Inferred, dtype: np.dtype[Any]
) -> Array | None:
    facts, first = spec.facts, operands[0]
    shape = None if result.shape is None else [extent for extent in result.shape if isinstance(extent, int)]
    known = shape is not None and result.shape is not None and len(shape) == len(result.shape)
    compute = _FUNCTIONS.get(spec.infix or facts.relation or facts.computes or "")
    if compute is not None:
        return _apply(compute, operands)
    if facts.tells == "extents" and first is not None:
        return np.array(pick_extents(node, spec, first.shape), dtype)
    if facts.tells == "count" and first is not None:
        return np.array(first.size, dtype)
    if facts.computes == CONVERSION and first is not None:
        return _convert(first, dtype)
    if known and first is not None and ("view" in spec.traits or spec.role == "copy"):
        return first.reshape(shape or ()) if first.size == math.prod(shape or ()) else None  # a file may say it wrongly
    if known and first is not None and facts.broadcasts:
        return np.broadcast_to(first, shape or ()).copy()
    if known and facts.fills is not None:
        given = get_option(node, spec.options[facts.fills])
        return np.full(shape or (), 0 if given is None else given.numpy().reshape(-1)[0], dtype)
    if facts.joins is not None and facts.joins in spec.options and all(operand is not None for operand in operands):
        return np.concatenate(list(operands), axis=get_option(node, spec.options[facts.joins]))
    for name, table in facts.replaces.items():
        places = dict(zip((one.name for one in spec.operands), operands, strict=False)).get(table)
        if first is not None and places is not None and name in spec.options:
            return _take(first, places, get_option(node, spec.options[name]))
    if facts.span and facts.rearranges and not spec.stored and first is not None:
        return _take_slice(first, spec, operands)
    return None


def _apply(compute: Callable[..., Any], operands: Sequence[Array | None]) -> Array | None:
    if any(operand is None for operand in operands):
        return None
    try:
        with np.errstate(all="ignore"):
            found = compute(*operands)
    except (TypeError, ValueError):
        return None
    return None if found is None else np.asarray(found)


def _convert(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """Numbers in another type; None where that does not hold them, which runtimes treat in different ways."""
    if array.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not (np.isfinite(array).all() and (np.trunc(array) >= limits.min).all() and (array < limits.max).all()):
            return None
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _take(array: Array, places: Array, axis: int) -> Array | None:
    try:
        return np.asarray(np.take(array, places, axis=axis))
    except (IndexError, ValueError):
        return None


def _take_slice(array: Array, spec: OperatorSpec, operands: Sequence[Array | None]) -> Array | None:
    """The part of an array between numbers that operands are, each along an axis."""
    given = dict(zip((one.name for one in spec.operands), operands, strict=False))
    starts, ends, steps, axes = (given.get(name) for name in (*spec.facts.span, *[""] * 4)[:4])
    if starts is None or ends is None:
        return None
    along: Sequence[int] = range(starts.size) if axes is None else axes.ravel().tolist()
    strides = [1] * starts.size if steps is None else steps.ravel().tolist()
    taken = [slice(None)] * array.ndim
    for axis, start, end, step in zip(along, starts.ravel().tolist(), ends.ravel().tolist(), strides, strict=False):
        if step == 0 or not -array.ndim <= axis < array.ndim:
            return None
        taken[axis] = slice(start, end, step)
    return array[tuple(taken)]

"""Checks that what a rule builds has the type and shape of the value that it replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.errors import Span
from ..base.names import Scope
from ..dialects.inference import InferenceError, make_shape, merge, read_extents
from ..expressions.functions import PAIR, is_complex


class MalformedError(Exception):
    """A template that built something its operator, or the value it replaces, does not admit."""

    def __init__(self, span: Span, message: str) -> None:
        self.span = span
        super().__init__(message)


def make_known_result(scope: Scope, span: Span, old: ir.Value, value: Any) -> ir.Value:
    """A result that is known at conversion time, as a constant of the type it has in the source.

    Raises MalformedError where the value is `none`, or a part of it.
    """
    if value is None or (isinstance(value, list) and None in value):
        raise MalformedError(span, f"yields nothing for {old.name}")
    elements = np.asarray(value)
    if old.dtype is not None and old.dtype != ir.DataType.STRING:
        elements = elements.astype(old.dtype.numpy())
    return scope.make_constant(elements, old.name or "constant")


def has_another_shape(old: ir.Value, new: ir.Value) -> bool:
    """Whether a value is known to have another rank, or another extent, than the one that it is to replace."""
    try:
        merge(read_extents(old), read_extents(new))
    except InferenceError:
        return True
    return False


def note_extents(old: ir.Value, new: ir.Value, order: Sequence[int]) -> None:
    """Let a value have the extents of another, axes in some order, where its own are not known."""
    was, now = read_extents(old), read_extents(new)
    if was is None or len(was) != len(order) or new.is_graph_input() or new.const_value is not None:
        return
    told = tuple(was[axis] for axis in order)
    with contextlib.suppress(InferenceError):  # where they differ, the check of the result tells
        new.shape = make_shape(told if now is None else merge(now, told) or now)


def check(span: Span, old: ir.Value, new: ir.Value) -> str | None:
    """Compare what a rule yields with what it replaces, and keep what both say of the shape.

    Raises MalformedError where element types or ranks differ. Extents that differ are told in words and those of
    the new value kept: some files hold stale extents, which the interpreter computes anew as well.
    """
    if old.dtype is not None and new.dtype is not None and old.dtype != new.dtype:
        raise MalformedError(span, f"yields {new.dtype.name} where {old.name} is {old.dtype.name}")
    was, now = read_extents(old), read_extents(new)
    if was is not None and now is not None and len(was) != len(now):
        raise MalformedError(span, f"yields rank {len(now)} where {old.name} has rank {len(was)}")
    remark = None
    try:
        shape = now if was == now else merge(was, now)
    except InferenceError as error:
        shape, remark = now, f"{old.name}: {error}"
    if is_complex(old):
        new.meta[PAIR] = True
    if new.is_graph_input() or new.const_value is not None or _is_from_outside(new, old):
        return remark
    if new.type is None:
        new.type = old.type
    if shape is not None and shape != now:
        new.shape = make_shape(shape)
    return remark


def _is_from_outside(new: ir.Value, old: ir.Value) -> bool:
    """Whether a value stands in a graph around that of the one that it replaces, where what holds in a branch need
    not hold."""
    here, there = (None if one is None else one.graph for one in (new.producer(), old.producer()))
    return here is not None and there is not None and here is not there

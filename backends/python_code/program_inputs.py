"""Inputs of a program: what code that calls it has to know of them."""

from __future__ import annotations

import onnx_ir as ir

from ...engine.base.startup import dataclass
from ...engine.expressions.functions.registry import SHORT


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a program."""

    name: str
    #: its name in the source
    source: str
    #: its extents, 1 for each that is free
    shape: tuple[int, ...]
    dtype: str
    #: the number that its default consists of; None without a default, or for one of several numbers
    begin: float | None = None
    #: whether extents behind the first are free
    free: bool = False


def describe_input(value: ir.Value, name: str) -> Input:
    """The input that a value of the source is, under its name in the program."""
    extents = [] if value.shape is None else list(value.shape)
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in extents)
    default = None if value.const_value is None else value.const_value.numpy()
    begin = (
        default.flat[0].item() if default is not None and default.size and (default == default.flat[0]).all() else None
    )
    free = any(not isinstance(extent, int) for extent in extents[1:])
    return Input(name, value.name or "", shape, SHORT.get(value.dtype or ir.DataType.FLOAT, "f32"), begin, free)

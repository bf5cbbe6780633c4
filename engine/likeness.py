"""What a node looks like to a rule that asks for its options, the types and extents around it, and small constants."""

from __future__ import annotations

import itertools
from typing import Any

import onnx_ir as ir

from .constants import KEPT, NUMBERS
from .inference import Extents, extents, settings
from .quantization import quantization
from .records import dataclass

#: constants of at most as many integers are told apart by them, and those of one element
TOLD = 8
#: how many different nodes are known at a time
_MOST = 1 << 14

#: what is said of a constant with other elements, and of an input with an initial value
_UNTOLD, _UNTOLD_CODES, _DEFAULT = "untold", "untold codes", "default"
_TYPES = frozenset({ir.TensorType, type(None)})


@dataclass(frozen=True, slots=True)
class Likeness:
    """A number that equal nodes have in common; `complete` says that they have equal constants as well."""

    number: int
    complete: bool


class Likenesses:
    """Numbers for what nodes look like."""

    __slots__ = ("_found", "_numbers")

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._found: dict[tuple[Any, ...], Likeness] = {}

    def of(self, node: ir.Node) -> Likeness | None:
        """What a node looks like; None where it has attributes or values that are not told apart."""
        options = settings(node)
        if options is None:
            return None
        key: list[Any] = [node.domain, node.op_type, *options]
        places: dict[ir.Value, int] = {}
        complete = True
        for place, value in enumerate(node.inputs):
            if value is None or value in places:
                key.append(None if value is None else places[value])
                continue
            places[value] = place
            told = _told(value)
            if told is None:
                return None
            key.append(told)
            complete = complete and told[2] is not _UNTOLD and told[2] is not _UNTOLD_CODES
        for value in node.outputs:
            key += value.dtype, extents(value), quantization(value) is not None
        return self._numbered(tuple(key), complete)

    def _numbered(self, key: tuple[Any, ...], complete: bool) -> Likeness:
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MOST:
                self._found.clear()
            found = self._found[key] = Likeness(next(self._numbers), complete)
        return found


def _told(value: ir.Value) -> tuple[ir.DataType | None, Extents | None, object] | None:
    """The type and the extents of an operand, and what is told of its elements; None where these do not tell enough."""
    meta = value.meta
    if KEPT in meta or type(value.type) not in _TYPES:
        return None
    tensor = value.const_value
    if tensor is None:
        return value.dtype, extents(value), _UNTOLD if NUMBERS in meta else quantization(value) is not None
    if value.is_graph_input():
        return value.dtype, extents(value), (_DEFAULT, quantization(value) is not None)
    size, dtype = tensor.size, tensor.dtype
    few = size <= 1 or (size <= TOLD and dtype.is_integer())
    if not few or dtype == ir.DataType.STRING:
        return value.dtype, extents(value), _UNTOLD_CODES if quantization(value) is not None else _UNTOLD
    return value.dtype, extents(value), (tensor.tobytes(), quantization(value) is not None)

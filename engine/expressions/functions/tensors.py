"""Functions about values of the graph and their element types."""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from ...base.constants import AS_STORED, CONTENT, TRAINED, find_fill, find_known_elements, find_number, read_constant
from .registry import (
    PAIR,
    SHORT,
    ElementType,
    EvaluationError,
    Tensor,
    UnknownValueError,
    find_data_type,
    register,
    require_known,
)

#: so many elements of a constant are looked at before all are
_FIRST = 1024
#: so many values are looked at for what a value is computed from
_MOST_SOURCES = 256


@register
def shape(x: Tensor) -> list[int | None] | None:
    """The extents of a value, `none` for each that is unknown; `none` where even the rank is unknown."""
    if type(x) is ir.Value:
        if x.shape is None:
            return None
        return [d if isinstance(d, int) else None for d in x.shape]
    return list(np.shape(x))


@register
def extents(x: Tensor) -> list[Any] | None:
    """The extents of a value, each a number or the name of one that runs decide; `none` where the rank is unknown."""
    if type(x) is ir.Value:
        return None if x.shape is None else [d if isinstance(d, int) else d.value for d in x.shape]
    return list(np.shape(x))


@register
def elements(x: Tensor) -> list[Any] | None:
    """The elements of a value that is computed from extents: numbers, names of extents, `none` for what is open."""
    found = find_known_elements(x) if type(x) is ir.Value else None if x is None else np.asarray(x)
    return None if found is None else list(found.ravel().tolist())


@register
def fill(x: Tensor) -> Any:
    """The number that all elements of a value equal; `none` where they differ or it is not known."""
    return find_fill(x) if type(x) is ir.Value else find_number(x) if isinstance(x, np.ndarray) else None


@register
def text(x: Tensor) -> str:
    """The text that a constant of one string holds."""
    found = read_constant(x) if type(x) is ir.Value else np.asarray(x)
    if found is None or found.size != 1 or not isinstance(found.item(), (str, bytes)):
        raise EvaluationError("the text is not known before run time")
    item = found.item()
    return item.decode() if isinstance(item, bytes) else str(item)


@register
def rank(x: Tensor) -> int:
    """The number of dimensions of a value."""
    extents = shape(x)
    if extents is None:
        raise UnknownValueError("the rank is not known before run time")
    return len(extents)


@register
def size(x: Tensor) -> int | None:
    """The number of elements of a value; `none` where an extent is unknown."""
    extents = shape(x)
    return None if extents is None or None in extents else math.prod(e for e in extents if e is not None)


@register
def content(x: Tensor) -> list[Any] | None:
    """The columns of a table, keys first, that a value names; `none` for any other value."""
    found = x.meta.get(CONTENT) if type(x) is ir.Value else None
    return None if found is None else list(found)


@register
def dtype(x: Any) -> ElementType:
    """The short name (f32, i64, ...) of the element type of a value, or of a type enumerant of the source."""
    if isinstance(x, str):
        name = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}.get(x, x)
        found = SHORT.get(ir.DataType.__members__.get(name, ir.DataType.UNDEFINED))
    elif type(x) is ir.Value:
        found = SHORT.get(x.dtype or ir.DataType.UNDEFINED)
    else:
        found = SHORT.get(ir.DataType.from_numpy(np.asarray(x).dtype))
    return str(require_known(found, "the element type"))


@register
def is_complex(x: Any) -> bool:
    """Whether a value holds complex numbers: their real and imaginary parts lie along its last axis."""
    return type(x) is ir.Value and PAIR in x.meta


@register
def element_type(name: ElementType) -> int:
    """The number that ONNX gives an element type named in short."""
    return int(find_data_type(name))


@register
def is_float(name: ElementType) -> bool:
    """Whether an element type is a floating-point type."""
    return name[0] == "f" or name == "bf16"


@register
def is_integer(name: ElementType) -> bool:
    """Whether an element type is an integer type."""
    return name[0] in "iu"


@register
def is_signed(name: ElementType) -> bool:
    """Whether an element type is a signed integer or a floating-point type."""
    return name[0] == "i" or is_float(name)


@register
def bits(name: ElementType) -> int:
    """How many bits an element of a type takes."""
    return int(find_data_type(name).bitwidth)


@register
def lowest(name: ElementType) -> int | float:
    """The lowest finite value of a numeric element type."""
    return _find_limits(name)[0]


@register
def highest(name: ElementType) -> int | float:
    """The highest finite value of a numeric element type."""
    return _find_limits(name)[1]


@register
def producer(x: Tensor) -> str | None:
    """The name of the operator that computes a value; `none` for an input or a constant."""
    node = x.producer() if type(x) is ir.Value else None
    return None if node is None else node.op_type


@register
def look_through(x: Tensor, operators: list[str]) -> Tensor:
    """The value of which operators among `operators`, one behind the other, make this one by their first operand."""
    found: Any = x
    while type(found) is ir.Value and (node := found.producer()) is not None and node.op_type in operators:
        if not node.inputs or node.inputs[0] is None:
            break
        found = node.inputs[0]
    return found


@register
def operand(x: Tensor, place: int) -> Tensor | None:
    """An operand of the operator that computes a value, counted from 0; `none` where there is none."""
    node = x.producer() if type(x) is ir.Value else None
    return node.inputs[place] if node is not None and 0 <= place < len(node.inputs) else None


@register
def sources(x: Tensor, past: list[str]) -> list[Tensor]:
    """The values of its element type that operators in `past` compute a value of, with no option below zero; of many
    operators those next to the value, as each of a chain may be asked."""
    found, work = list[Tensor](), [x]
    seen = {x} if type(x) is ir.Value else set()
    while work and len(seen) <= _MOST_SOURCES:
        one = work.pop()
        node = one.producer() if type(one) is ir.Value else None
        if node is None or node.op_type not in past or _has_negative_option(node):
            found.append(one)
            continue
        read = [given for given in node.inputs if given is not None and given.dtype == one.dtype and given not in seen]
        seen.update(read)
        work += read
    return found + work


def _has_negative_option(node: ir.Node) -> bool:
    return any(one.type == ir.AttributeType.FLOAT and one.as_float() < 0 for one in node.attributes.values())


@register
def readers(x: Tensor) -> int:
    """How often nodes read a value whose own results are used."""
    return len(_list_readers(x))


@register
def users(x: Tensor) -> list[str | None]:
    """The names of the operators that read a value, without repeats; `none` among them where it is an output."""
    names: list[str | None] = [node.op_type for node in _list_readers(x)]
    return list(dict.fromkeys([*names, None] if type(x) is ir.Value and x.is_graph_output() else names))


@register
def sole(x: Tensor) -> bool:
    """Whether a value is read, and no other result of its operator."""
    node = x.producer() if type(x) is ir.Value else None
    return node is not None and [y for y in node.outputs if y.uses() or y.is_graph_output()] == [x]


def _list_readers(x: Tensor) -> list[ir.Node]:
    if type(x) is not ir.Value:
        raise EvaluationError(
            "these are the elements of a constant, of which nobody knows who reads them: match it without `const`"
        )
    # What a rewrite leaves behind reads as well until it is swept away.
    return [u.node for u in x.uses() if any(y.uses() or y.is_graph_output() for y in u.node.outputs)]


@register
def value(x: Tensor) -> Any:
    """The elements of a value that is constant; `none` for any other."""
    if type(x) is not ir.Value:
        return x
    return read_constant(x)


@register
def exactly(x: Tensor, name: str) -> Tensor | None:
    """A constant in another element type, named in short; `none` where an element would not be the same there."""
    array = value(x)
    if array is None:
        raise EvaluationError("only a constant has elements of another type")
    known, wanted = np.asarray(array), find_data_type(name).numpy()
    for part in (known.flat[:_FIRST], known):  # of most constants the first elements tell
        with np.errstate(over="ignore"):
            found = part.astype(wanted)
        if not np.array_equal(found.astype(known.dtype), part):
            return None
    return found


@register
def stored(x: Tensor) -> Tensor:
    """A constant as one that stays in the type in which it is stored: its conversion is a node, which is not folded."""
    array = value(x)
    if array is None:
        raise EvaluationError("only a constant is stored")
    found = ir.Value(
        const_value=ir.Tensor(array), shape=ir.Shape(array.shape), type=ir.TensorType(find_data_type(dtype(x)))
    )
    found.meta[AS_STORED] = True
    return found


@register
def trained(x: Tensor) -> bool:
    """Whether a constant is a weight that the source says is trained, so that its elements are not for good."""
    return type(x) is ir.Value and TRAINED in x.meta


@functools.cache
def _find_limits(name: str) -> tuple[int | float, int | float]:
    numpy_type = find_data_type(name).numpy()
    if is_float(name):
        info = ml_dtypes.finfo(numpy_type)  # type: ignore[no-untyped-call]
        return float(info.min), float(info.max)
    if not is_integer(name):
        raise EvaluationError(f"element type {name} has no lowest and highest value")
    limits = ml_dtypes.iinfo(numpy_type)  # type: ignore[no-untyped-call]
    return int(limits.min), int(limits.max)

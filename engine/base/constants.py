"""Constants: what is known of a value at conversion time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

#: what a constant holds: an array, or a tensor that has it when it is asked
Elements: TypeAlias = np.ndarray[Any, Any] | ir.LazyTensor

#: the key under which a dequantized constant holds a function that computes its real numbers
NUMBERS = "numbers"
#: constants of as many bytes are computed when they are written, so that one at a time is in memory
_LATER = 1 << 16
#: the key under which a constant says that it is to stay as it is stored
AS_STORED = "kept"
#: the key under which a constant holds the name of the weight that it is in the source
WEIGHT = "weight"
#: the same where it is one that takes no gradient; a graph lists under it the tensors of all such weights
FROZEN = "frozen"
#: the same where it is to be trained, so that nothing is computed of it but an order of its elements; a graph lists
#: under it the tensors of all such weights
TRAINED = "trained"
#: the key under which a graph lists the tensors that several nodes of the source read
SHARED = "shared"

#: the key under which a graph has, by the names of constants, those of the constants that they are made of
CALLED = "called"
#: the key under which a value that names a table holds its columns
CONTENT = "content"
#: the key under which a value that is computed from extents holds its elements: integers, names, None for what is open
ELEMENTS = "elements"
#: the key under which a value whose elements are all equal holds the one
FILL = "fill"
#: the key under which a value of a file says that it keeps its elements between calls
STATEFUL = "variable"
#: the key under which a graph lists the state that its reader found: what each begins as, and what becomes of it
STATE = "state"
#: the key under which an output holds its type as its file has it, where a graph has none for it
DECLARED = "declared"
#: values of more elements than these are not followed
FOLLOWED = 128


def keep_stored(graph: ir.Graph, dtype: ir.DataType) -> None:
    """Mark the constants of an element type to stay as stored and be converted at run time."""
    for value in graph.initializers.values():
        if value.dtype == dtype:
            value.meta[AS_STORED] = True


def keep_trained(graph: ir.Graph) -> None:
    """Mark the weights of a graph to be trained, and note those that several nodes share.

    Where the source does not tell weights from other constants, equal ones may be shared by whoever wrote the file.
    """
    weights = [v for v in graph.initializers.values() if WEIGHT in v.meta and v.dtype == ir.DataType.FLOAT]
    for value in weights:
        value.meta[TRAINED] = value.meta[WEIGHT]
    graph.meta[TRAINED] = [value.const_value for value in weights]
    graph.meta[FROZEN] = [v.const_value for v in graph.initializers.values() if FROZEN in v.meta]
    graph.meta[SHARED] = [value.const_value for value in weights if len(value.uses()) > 1]


def find_trained(values: Iterable[ir.Value | None]) -> str | None:
    """The name of a weight among operands that is to be trained."""
    return next((value.meta[TRAINED] for value in values if value is not None and TRAINED in value.meta), None)


def read_initializer(value: ir.Value) -> np.ndarray[Any, Any] | None:
    """The elements of an initializer; a graph input with an initial value is none."""
    if value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def read_constant(value: ir.Value) -> np.ndarray[Any, Any] | None:
    """The elements of a value that is known at conversion time, also where it is stored as quantized integers."""
    found = read_initializer(value)
    if found is None and NUMBERS in value.meta:
        real: np.ndarray[Any, Any] = value.meta[NUMBERS]()
        return real
    return found


def find_known_elements(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    """The elements of a value as far as they are known, names of extents among them; None where nothing is known."""
    if value is None:
        return None
    if value.const_value is None or value.is_graph_input():
        found: np.ndarray[Any, Any] | None = value.meta.get(ELEMENTS)
        return found
    if value.const_value.size > FOLLOWED or value.dtype == ir.DataType.STRING:
        return None
    array = read_initializer(value)
    return None if array is None else array.astype(object)


def find_fill(value: ir.Value) -> Any:
    """The number that all elements of a value equal; None where they differ, or it is not known."""
    if value.const_value is None or value.is_graph_input():
        return value.meta.get(FILL)
    if not 0 < value.const_value.size <= _LATER or value.dtype == ir.DataType.STRING:
        return None
    return find_number(value.const_value.numpy())


def find_number(array: np.ndarray[Any, Any]) -> Any:
    """The number that all elements of an array equal; None where they differ."""
    if not array.size or array.dtype.kind not in "biuf":
        return None
    first, last = array[(0,) * array.ndim], array[(-1,) * array.ndim]
    return first.item() if first == last and bool((array == first).all()) else None


def read_scalar(value: ir.Value) -> np.ndarray[Any, Any] | None:
    """The element of a value that is known at conversion time and has only one."""
    if value.shape is not None and any(isinstance(extent, int) and extent != 1 for extent in value.shape):
        return None
    found = read_constant(value)
    return found if found is not None and found.size == 1 else None


def is_number(value: ir.Value, number: float) -> bool:
    """Whether a value is a constant of one element that equals a number, in the constant's own type."""
    array = read_scalar(value)
    if array is None or array.dtype.kind not in "biuf":
        return False
    # A rule writes 0.1 and means the nearest number of the constant's type.
    return bool(array.reshape(()) == np.asarray(number).astype(array.dtype))


def permute_elements(value: ir.Value, perm: Sequence[int]) -> Elements | None:
    """The elements of an initializer with its axes in another order; None where it is none."""
    tensor = None if value.is_graph_input() else value.const_value
    if isinstance(tensor, ir.LazyTensor):
        extents = tensor.shape.numpy()
        return make_lazy_tensor(
            lambda: np.transpose(tensor.numpy(), perm), tensor.dtype, [extents[axis] for axis in perm]
        )
    return None if tensor is None else np.transpose(tensor.numpy(), perm)


def widen_elements(tensor: ir.TensorProtocol, dtype: ir.DataType) -> Elements | None:
    """A tensor in an element type that holds all it can hold; None where the other type does not."""
    if ir.DataType.STRING in (tensor.dtype, dtype) or not np.can_cast(tensor.dtype.numpy(), dtype.numpy(), "safe"):
        return None
    return defer_elements(lambda: tensor.numpy().astype(dtype.numpy(), copy=False), dtype, tensor.shape.numpy())


def defer_elements(elements: Callable[[], np.ndarray[Any, Any]], dtype: ir.DataType, shape: Sequence[int]) -> Elements:
    """What a function computes: now where that is small, else each time that it is asked for."""
    return elements() if math.prod(shape) * dtype.itemsize < _LATER else make_lazy_tensor(elements, dtype, shape)


def make_lazy_tensor(
    elements: Callable[[], np.ndarray[Any, Any]], dtype: ir.DataType, shape: Sequence[int]
) -> ir.LazyTensor:
    return ir.LazyTensor(lambda: ir.Tensor(elements(), dtype), dtype=dtype, shape=ir.Shape(shape))

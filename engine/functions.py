"""The functions of the compile-time language: pure, total, and numpy-like."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from .constants import constant

#: short names of element types, as `dtype` yields them and as test clauses write them
DTYPES: dict[str, ir.DataType] = {
    "f32": ir.DataType.FLOAT,
    "f16": ir.DataType.FLOAT16,
    "bf16": ir.DataType.BFLOAT16,
    "f64": ir.DataType.DOUBLE,
    "i4": ir.DataType.INT4,
    "i8": ir.DataType.INT8,
    "i16": ir.DataType.INT16,
    "i32": ir.DataType.INT32,
    "i64": ir.DataType.INT64,
    "u4": ir.DataType.UINT4,
    "u8": ir.DataType.UINT8,
    "u16": ir.DataType.UINT16,
    "u32": ir.DataType.UINT32,
    "u64": ir.DataType.UINT64,
    "bool": ir.DataType.BOOL,
    "c64": ir.DataType.COMPLEX64,
    "c128": ir.DataType.COMPLEX128,
    "string": ir.DataType.STRING,
}
_SHORT = {dtype: name for name, dtype in DTYPES.items()}
#: constants of the language; INT_MAX and INT_MIN are the ends that ONNX slices take for "to the end"
CONSTANTS: dict[str, int | float] = {"INT_MAX": 2**63 - 1, "INT_MIN": -(2**63), "INFINITY": math.inf, "PI": math.pi}
#: the key under which a value says that its last axis holds the parts of complex numbers
PAIR = "pair"
#: the most elements a function may make, so that no rule file can exhaust the memory
LIMIT = 1 << 24


# What parameters take, said to the checker: an element type by its short name, a value of the graph or a constant,
# a number, numbers in any form (one, a list, an array), a list of anything (or one item), and a list that has a length.
ElementType = Annotated[str, "element type"]
Tensor = Annotated[Any, "tensor"]
Number = Annotated[Any, "number"]
Numbers = Annotated[Any, "numbers"]
Items = Annotated[Any, "items"]
Sequences = Annotated[Any, "sequences"]


class EvaluationError(Exception):
    """A compile-time expression that has no value, in words for the reader of the rule."""


class Unsupported(Exception):
    """Raised by `fail`: the rule applies, but the case has no form in the target."""


class Stuck(EvaluationError):
    """A dimension or constant that is not known at conversion time was needed."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language: what it computes and how many arguments it takes."""

    name: str
    call: Callable[..., Any]
    least: int
    most: int | None

    @property
    def doc(self) -> str:
        """One sentence of what it yields."""
        return (self.call.__doc__ or "").strip()


FUNCTIONS: dict[str, Function] = {}


def function(call: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a Python function into the library, under its name without a trailing underscore."""
    parameters = inspect.signature(call).parameters.values()
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)
    name = call.__name__.strip("_")
    FUNCTIONS[name] = Function(name, call, least, most)
    return call


def plain(value: Any) -> Any:
    """Turn numpy values into Python numbers and lists, so that comparisons mean what they say."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def listed(value: Any) -> list[Any]:
    """A list of the items of a list or an array; a scalar is a list of one."""
    value = plain(value)
    return value if isinstance(value, list) else [value]


def known(value: Any, what: str) -> Any:
    """The value itself, where no part of it is `none`."""
    if value is None or (isinstance(value, list) and None in value):
        raise Stuck(f"{what} is not known before run time")
    return value


# ---- values of the graph


@function
def shape(x: Tensor) -> list[int | None] | None:
    """The extents of a value, `none` for each that is unknown; `none` where even the rank is unknown."""
    if isinstance(x, ir.Value):
        if x.shape is None:
            return None
        return [d if isinstance(d, int) else None for d in x.shape]
    return list(np.shape(x))


@function
def rank(x: Tensor) -> int:
    """The number of dimensions of a value."""
    extents = shape(x)
    if extents is None:
        raise Stuck("the rank is not known before run time")
    return len(extents)


@function
def size(x: Tensor) -> int | None:
    """The number of elements of a value; `none` where an extent is unknown."""
    extents = shape(x)
    return None if extents is None or None in extents else math.prod(e for e in extents if e is not None)


@function
def dtype(x: Any) -> ElementType:
    """The short name (f32, i64, ...) of the element type of a value, or of a type enumerant of the source."""
    if isinstance(x, str):
        name = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}.get(x, x)
        found = _SHORT.get(ir.DataType.__members__.get(name, ir.DataType.UNDEFINED))
    elif isinstance(x, ir.Value):
        found = _SHORT.get(x.dtype or ir.DataType.UNDEFINED)
    else:
        found = _SHORT.get(ir.DataType.from_numpy(np.asarray(x).dtype))
    return str(known(found, "the element type"))


@function
def is_complex(x: Any) -> bool:
    """Whether a value holds complex numbers: their real and imaginary parts lie along its last axis."""
    return isinstance(x, ir.Value) and PAIR in x.meta


@function
def element_type(name: ElementType) -> int:
    """The number that ONNX gives an element type named in short."""
    return int(_data_type(name))


@function
def is_float(name: ElementType) -> bool:
    """Whether an element type is a floating-point type."""
    return name in ("f16", "bf16", "f32", "f64")


@function
def is_integer(name: ElementType) -> bool:
    """Whether an element type is an integer type."""
    return name[0] in "iu"


@function
def is_signed(name: ElementType) -> bool:
    """Whether an element type is a signed integer or a floating-point type."""
    return name[0] in "if" or name == "bf16"


@function
def bits(name: ElementType) -> int:
    """How many bits an element of a type takes."""
    return int(_data_type(name).bitwidth)


@function
def lowest(name: ElementType) -> int | float:
    """The lowest finite value of a numeric element type."""
    return _limits(name)[0]


@function
def highest(name: ElementType) -> int | float:
    """The highest finite value of a numeric element type."""
    return _limits(name)[1]


@function
def producer(x: ir.Value) -> str | None:
    """The name of the operator that computes a value; `none` for an input or a constant."""
    node = x.producer()
    return None if node is None else node.op_type


@function
def value(x: Tensor) -> Any:
    """The elements of a value that is constant; `none` for any other."""
    if not isinstance(x, ir.Value):
        return x
    return constant(x)


# ---- numbers


@function
def abs_(x: Number) -> Any:
    """The absolute value."""
    return np.abs(x) if isinstance(x, np.ndarray) else abs(x)


@function
def min_(*xs: Numbers) -> Any:
    """The least of several numbers, or of one list."""
    return min(_operands(xs, "min"))


@function
def max_(*xs: Numbers) -> Any:
    """The greatest of several numbers, or of one list."""
    return max(_operands(xs, "max"))


@function
def sum_(xs: Numbers) -> Any:
    """The sum of a list of numbers."""
    return sum(known(listed(xs), "an extent"))


@function
def prod(xs: Numbers) -> Any:
    """The product of a list of numbers."""
    return math.prod(known(listed(xs), "an extent"))


@function
def ceil_div(a: int, b: int) -> int:
    """The quotient of two integers, rounded up."""
    if known(b, "a divisor") == 0:
        raise EvaluationError("division by zero")
    return -(-known(a, "an extent") // b)


@function
def floor(x: float) -> int:
    """The greatest integer not above a number."""
    return math.floor(x)


@function
def ceil(x: float) -> int:
    """The least integer not below a number."""
    return math.ceil(x)


@function
def sqrt(x: float) -> float:
    """The square root of a number that is not negative."""
    if x < 0:
        raise EvaluationError("square root of a negative number")
    return math.sqrt(x)


@function
def int_(x: Numbers) -> int:
    """A number, a truth value or an array of one element as an integer."""
    return int(_single(x))


@function
def float_(x: Numbers) -> float:
    """A number, a truth value or an array of one element as a floating-point number."""
    return float(_single(x))


@function
def bit(mask: int, index: int) -> bool:
    """Whether a bit of a mask is set; the lowest is bit 0."""
    return bool(int(mask) >> min(int(index), 63) & 1)


# ---- lists


@function
def len_(xs: Sequences) -> int:
    """The number of items of a list, or of rows of an array."""
    if np.ndim(xs) == 0 and not isinstance(xs, (list, tuple, str)):
        raise EvaluationError("a single number has no length")
    return len(xs)


@function
def range_(start: int, stop: int | None = None, step: int = 1) -> list[int]:
    """The integers from 0 (or `start`) up to, not including, `stop`."""
    found = range(known(start, "an extent")) if stop is None else range(start, stop, step)
    if len(found) > LIMIT:
        raise EvaluationError(f"a range of {len(found)} integers is longer than any rule needs")
    return list(found)


@function
def zip_(*lists: Items) -> list[list[Any]]:
    """Lists of the first items, the second items, and so on, of lists of equal length."""
    items = [listed(xs) for xs in lists]
    if len({len(xs) for xs in items}) > 1:
        raise EvaluationError(f"zip over lists of different lengths: {', '.join(str(len(xs)) for xs in items)}")
    return [list(group) for group in zip(*items, strict=True)]


@function
def enumerate_(xs: Items) -> list[list[Any]]:
    """Pairs of index and item."""
    return [[i, x] for i, x in enumerate(_items(xs))]


@function
def sorted_(xs: Items) -> list[Any]:
    """The items in ascending order."""
    return sorted(listed(xs))


@function
def reversed_(xs: Items) -> list[Any]:
    """The items in the opposite order."""
    return list(reversed(_items(xs)))


@function
def unique(xs: Items) -> list[Any]:
    """The items without repeats, in the order of their first occurrence."""
    return list(dict.fromkeys(listed(xs)))


@function
def index_of(xs: Items, x: Any) -> int:
    """The position of an item in a list."""
    items = listed(xs)
    if plain(x) not in items:
        raise EvaluationError(f"{plain(x)} is not in {items}")
    return items.index(plain(x))


@function
def norm(axes: Numbers, rank: int) -> list[int]:
    """Axes counted from the front: negative ones have the rank added."""
    counted = [axis + rank if axis < 0 else axis for axis in listed(axes)]
    if any(not 0 <= axis < rank for axis in counted):
        raise EvaluationError(f"axes {listed(axes)} are out of range for rank {rank}")
    return counted


@function
def inverse(perm: Numbers) -> list[int]:
    """The permutation that undoes a permutation."""
    items = listed(perm)
    return [items.index(i) for i in range(len(items))]


# ---- arrays


@function
def array(values: Numbers, name: ElementType) -> np.ndarray[Any, Any]:
    """A list of numbers as an array of an element type named in short."""
    return np.asarray(plain(values)).astype(_data_type(name).numpy())


@function
def full(extents: Numbers, number: Number, name: ElementType) -> np.ndarray[Any, Any]:
    """An array of a shape filled with one number."""
    extents = known(listed(extents), "an extent")
    if math.prod(extents) > LIMIT:
        raise EvaluationError(f"an array of shape {extents} is larger than any rule needs")
    return np.full(extents, plain(number), _data_type(name).numpy())


@function
def reshape(x: Numbers, extents: Numbers) -> np.ndarray[Any, Any]:
    """An array with the same elements in another shape."""
    try:
        return np.reshape(x, listed(extents))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@function
def transpose(x: Numbers, perm: Numbers) -> np.ndarray[Any, Any]:
    """An array with its axes permuted."""
    try:
        return np.transpose(x, listed(perm))
    except ValueError as error:
        raise EvaluationError(str(error)) from error


@function
def flatten(x: Numbers) -> list[Any]:
    """The elements of an array, last axis fastest, as a list."""
    return listed(np.ravel(x))


# ---- helpers


def _data_type(name: str) -> ir.DataType:
    if name not in DTYPES:
        raise EvaluationError(f"there is no element type {name}")
    return DTYPES[name]


def _limits(name: str) -> tuple[int | float, int | float]:
    numpy_type = _data_type(name).numpy()
    if is_float(name):
        info = ml_dtypes.finfo(numpy_type)
        return float(info.min), float(info.max)
    if not is_integer(name):
        raise EvaluationError(f"element type {name} has no lowest and highest value")
    limits = ml_dtypes.iinfo(numpy_type)
    return int(limits.min), int(limits.max)


def _single(x: Any) -> Any:
    x = known(plain(x), "a number")
    while isinstance(x, list) and len(x) == 1:
        x = x[0]
    if not isinstance(x, (bool, int, float)):
        raise EvaluationError(f"{x} is not a single number")
    return x


def _items(xs: Any) -> list[Any]:
    return list(xs) if isinstance(xs, (list, tuple, np.ndarray)) else [xs]


def _operands(xs: Sequence[Any], what: str) -> list[Any]:
    items = [plain(x) for x in (_items(xs[0]) if len(xs) == 1 else xs)]
    if not items:
        raise EvaluationError(f"{what} of nothing")
    return list(known(items, "an extent"))


@function
def fail(message: str) -> None:
    """Refuse the case with a message, in which `{name}` stands for a variable's value."""
    raise Unsupported(message)


__all__ = ["CONSTANTS", "DTYPES", "FUNCTIONS", "PAIR", "EvaluationError", "Function", "Stuck", "Unsupported"]

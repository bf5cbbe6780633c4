"""The library of functions: how one is entered, what they take, and what they raise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any

import numpy as np
import onnx_ir as ir

from ...base.startup import dataclass

#: short names of element types, as `dtype` yields them and as test clauses write them
DTYPES: dict[str, ir.DataType] = {
    "f32": ir.DataType.FLOAT,
    "f16": ir.DataType.FLOAT16,
    "bf16": ir.DataType.BFLOAT16,
    "f64": ir.DataType.DOUBLE,
    "f8e4m3fn": ir.DataType.FLOAT8E4M3FN,
    "f8e4m3fnuz": ir.DataType.FLOAT8E4M3FNUZ,
    "f8e5m2": ir.DataType.FLOAT8E5M2,
    "f8e5m2fnuz": ir.DataType.FLOAT8E5M2FNUZ,
    "f4e2m1": ir.DataType.FLOAT4E2M1,
    "i2": ir.DataType.INT2,
    "i4": ir.DataType.INT4,
    "i8": ir.DataType.INT8,
    "i16": ir.DataType.INT16,
    "i32": ir.DataType.INT32,
    "i64": ir.DataType.INT64,
    "u2": ir.DataType.UINT2,
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
#: those of them that kernels have no arithmetic for
NARROW_FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1")
SHORT = {dtype: name for name, dtype in DTYPES.items()}
#: constants of the language; INT_MAX and INT_MIN are the ends that ONNX slices take for "to the end"
CONSTANTS: dict[str, int | float] = {"INT_MAX": 2**63 - 1, "INT_MIN": -(2**63), "INFINITY": math.inf, "PI": math.pi}
#: the key under which a value says that its last axis holds the parts of complex numbers
PAIR = "pair"
#: the most elements a function may make, so that no rule file can exhaust the memory
LIMIT = 1 << 24


# What parameters take, said to the checker: an element type by its short name, a value of the graph or a constant,
# a number, numbers in any form (one, a list, an array), numbers or texts so, a list of anything (or one item), and a
# list that has a length.
ElementType = Annotated[str, "element type"]
Tensor = Annotated[Any, "tensor"]
Number = Annotated[Any, "number"]
Numbers = Annotated[Any, "numbers"]
Elements = Annotated[Any, "elements"]
Items = Annotated[Any, "items"]
Sequences = Annotated[Any, "sequences"]


class EvaluationError(Exception):
    """A compile-time expression that has no value, in words for the reader of the rule."""


class Unsupported(Exception):
    """Raised by `fail`: the rule applies, but the case has no form in the target."""


class UnknownValueError(EvaluationError):
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


def register(call: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a Python function into the library, under its name without a trailing underscore."""
    assert isinstance(call, FunctionType)
    named = call.__code__.co_argcount
    least = named - len(call.__defaults__ or ())
    most = None if call.__code__.co_flags & inspect.CO_VARARGS else named
    name = call.__name__.strip("_")
    FUNCTIONS[name] = Function(name, call, least, most)
    return call


#: characters of a value that a message has at the most
_LONGEST = 120
#: the types of Python's own values that hold no others
SCALARS = frozenset({int, float, bool, str, type(None)})
#: how rules write what Python calls otherwise
_WORDS = {None: "none", True: "true", False: "false"}


def convert_to_python(value: Any) -> Any:
    """Turn numpy values into Python numbers and lists, so that comparisons mean what they say."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        if SCALARS.issuperset(map(type, value)):  # most lists hold nothing to be turned, and may be long
            return list(value)
        return [convert_to_python(item) for item in value]
    return value


def format_value(value: Any) -> str:
    """A value as a message has it, in the words of rules: of a long list only how it begins."""
    plain = convert_to_python(value)
    text = plain if isinstance(plain, str) else _write_plain(plain)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _write_plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write_plain, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return _WORDS.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


def convert_to_list(value: Any) -> list[Any]:
    """A list of the items of a list or an array; a scalar is a list of one."""
    value = convert_to_python(value)
    return value if isinstance(value, list) else [value]


def require_known(value: Any, what: str) -> Any:
    """The value itself; raises UnknownValueError where a part of it is `none`."""
    if value is None or (isinstance(value, list) and None in value):
        raise UnknownValueError(f"{what} is not known before run time")
    return value


def list_items(xs: Any) -> list[Any]:
    return list(xs) if isinstance(xs, (list, tuple, np.ndarray)) else [xs]


def find_data_type(name: str) -> ir.DataType:
    if name not in DTYPES:
        raise EvaluationError(f"there is no element type {name}")
    return DTYPES[name]


@register
def fail(message: str) -> None:
    """Refuse the case with a message, in which `{name}` stands for a variable's value."""
    raise Unsupported(message)

"""What keeps the start of a command short: dataclasses made when they are wanted, and imports that wait.

`dataclasses.dataclass` compiles six methods for each class as it is defined, half a millisecond for one that is frozen
and slotted. Here a class shares all of them but `__init__` with the others, and that is compiled for its first object.
To a type checker, and to `dataclasses.fields` and `replace`, these are dataclasses.

onnx_ir imports sympy to compute with symbolic extents, which no conversion does, and which takes as long to load as all
the rest.

Converting a small model takes 1.07 times the time with the standard library's dataclasses, and 1.6 times with sympy:
`python benchmarks/startup.py` prints both side by side.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, FrozenInstanceError, field
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "field", "import_onnx_ir", "replace"]

Record = TypeVar("Record")


class _Fields:
    """What `dataclasses` asks a class for, made by itself on a class of the same fields."""

    __slots__ = ("_found", "_like")

    def __init__(self, like: Callable[[], type[Any]]) -> None:
        self._like = like
        self._found: dict[str, Any] | None = None

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, Any]:
        if self._found is None:
            self._found = vars(self._like())["__dataclass_fields__"]
        return self._found


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots, frozen=False, eq=True, kw_only=False):
        """Do as `dataclasses.dataclass` does for a class without bases that has fields."""
        assert slots
        return lambda plain: _make_class(plain, frozen, eq, kw_only)


def replace(record: Record, /, **changes: Any) -> Record:
    """Do as `dataclasses.replace` does for an object of one of these classes, without what that makes first."""
    kept = {name: getattr(record, name) for name in vars(type(record))["__slots__"]}
    return type(record)(**{**kept, **changes})


def _make_class(plain: Any, frozen: bool, eq: bool, kw_only: bool) -> Any:
    assert plain.__bases__ == (object,) or plain.__bases__[0].__name__ == "Generic", plain
    space = dict(vars(plain))
    annotations = space.get("__annotations__", {})
    names = tuple(annotations)
    defaults = {name: space.pop(name) for name in names if name in space}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    like = type(plain.__name__, (), {"__annotations__": annotations, "__module__": plain.__module__, **defaults})
    options = {"init": False, "repr": False, "eq": False, "kw_only": kw_only}
    space["__slots__"] = names
    space["__qualname__"] = plain.__qualname__
    space["__dataclass_fields__"] = _Fields(lambda: dataclasses.dataclass(**options)(like))
    space["__match_args__"] = () if kw_only else names
    space.setdefault("__repr__", _format_fields)
    space["__getstate__"], space["__setstate__"] = _get_state, _set_state
    if frozen:
        space["__setattr__"], space["__delattr__"] = _refuse, _refuse
    if eq:
        read = _make_reader([name for name in names if getattr(defaults.get(name), "compare", None) is not False])
        space.setdefault("__eq__", _make_equality(read))
        space.setdefault("__hash__", (lambda self: hash(read(self))) if frozen else None)

    def initialize(self: Any, *operands: Any, **named: Any) -> None:
        made.__init__ = _compile_init(made, names, defaults, kw_only)
        made.__init__(self, *operands, **named)

    space["__init__"] = initialize
    made = type(plain)(plain.__name__, plain.__bases__, space)
    return made


def _make_reader(names: list[str]) -> Callable[[Any], Any]:
    """The fields of an object as a tuple, or its only one."""
    return attrgetter(*names) if names else lambda self: ()


def _make_equality(read: Callable[[Any], Any]) -> Callable[[Any, object], Any]:
    def compare(self: Any, other: object) -> Any:
        return read(self) == read(other) if type(self) is type(other) else NotImplemented

    return compare


def _compile_init(
    made: type[Any], names: tuple[str, ...], defaults: dict[str, Any], kw_only: bool
) -> Callable[..., None]:
    """Compile the method that takes the fields of a class; each is set through its slot, also where it is frozen."""
    space: dict[str, Any] = {"_missing": MISSING}
    parameters, lines = ["self", *(["*"] if kw_only else [])], []
    for name in names:
        space[f"_set_{name}"] = vars(made)[name].__set__
        parameter, value = name, name
        if name in defaults:
            default: Any = defaults[name]
            factory: Any = MISSING
            if isinstance(default, dataclasses.Field):
                default, factory = default.default, default.default_factory
            if factory is not MISSING:
                space[f"_make_{name}"], default = factory, MISSING
                value = f"_make_{name}() if {name} is _missing else {name}"
            space[f"_default_{name}"] = default
            parameter = f"{name}=_default_{name}"
        parameters.append(parameter)
        lines.append(f" _set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _format_fields(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in type(self).__slots__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(type(self).__slots__, state, strict=True):
        object.__setattr__(self, name, value)


# ---- imports that wait


def import_onnx_ir() -> None:
    """Import onnx_ir without the package that only arithmetic on symbolic extents needs."""
    if "onnx_ir" in sys.modules:
        return
    try:
        with _defer("sympy"):
            importlib.import_module("onnx_ir")
    except (AttributeError, TypeError):
        # Another release of onnx_ir, which uses the package as it is imported: then it has to be there.
        importlib.import_module("onnx_ir")


class _Deferred(ModuleType):
    """Stands for a module in those that are imported meanwhile; the module itself is imported on first use."""

    imported = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._make_late_call(name) if not self.imported else self._get_now(name)

    def _get_now(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)

    def _make_late_call(self, name: str) -> Callable[..., Any]:
        """A function that may be put into a table before the module is there."""

        def call(*arguments: Any, **named: Any) -> Any:
            return self._get_now(name)(*arguments, **named)

        return call


@contextmanager
def _defer(name: str) -> Iterator[None]:
    """Let what imports a module get a stand-in for it, unless it is there already."""
    if name in sys.modules:
        yield
        return
    standing = sys.modules[name] = _Deferred(name)
    try:
        yield
    finally:
        standing.imported = True
        del sys.modules[name]

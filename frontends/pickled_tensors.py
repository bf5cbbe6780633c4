"""Tensors in a file of `torch.save`: where their elements lie, told from its pickle, of which nothing is run."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Mapping
from typing import Any

from ..engine.base.errors import ModelError, join_lines
from ..engine.base.startup import dataclass
from .byte_view import ByteView
from .zip_members import MALFORMED, read_member

#: the classes of torch that a pickle names for storages, in the order of the numbers that programs have for their types
_STORAGES = (
    *("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"),
    *("ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool", "BFloat16"),
)
_TYPES = {f"torch {name}Storage": number for number, name in enumerate(_STORAGES, start=1)}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
#: what is said of an object that is no plain tensor
_OTHER = {"use_pickle": True}
#: more axes than a tensor has, and more bytes than the pickle of a program's weights
_RANK, _LONGEST = 64, 1 << 28


@dataclass(frozen=True, slots=True)
class _GlobalName:
    """A class or function of Python, which is never called."""

    name: str


@dataclass(frozen=True, slots=True)
class _Storage:
    """The elements that tensors are views of: their type, and the member of the archive that holds them."""

    type: int | None
    member: str


def read_tensors(data: memoryview, file: str) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, memoryview]]:
    """The tensors in a dictionary that was saved, by their names, and the members that their elements lie in.

    A tensor is said as in the tables in JSON that torch writes since 2.9: `tensor_meta`, and `path_name` of its member;
    with `use_pickle` for what is no plain tensor. Raises ModelError, in the name of the file, for what is malformed.
    """
    try:
        archive = zipfile.ZipFile(ByteView(data))
    except MALFORMED as error:
        raise ModelError(
            f"{file}: malformed: its tensors are in no archive of torch.save: {join_lines(error)}"
        ) from error
    entries = {entry.filename.partition("/")[2]: entry for entry in archive.infolist()}
    members = {path: read_member(archive, entry, data, file) for path, entry in entries.items() if path}
    pickled = members.get("data.pkl", memoryview(b""))
    if len(pickled) > _LONGEST:
        raise ModelError(f"{file}: its tensors are listed in {len(pickled)} bytes, more than {_LONGEST}")
    if bytes(members.get("byteorder", b"little")).strip() != b"little":
        raise ModelError(f"{file}: the weights are not in little byte order")
    try:
        saved = _evaluate_pickle(bytes(pickled))
    except (ValueError, LookupError, TypeError) as error:
        raise ModelError(f"{file}: malformed list of tensors: {join_lines(error):.200}") from error
    if not isinstance(saved, dict):
        raise ModelError(f"{file}: malformed: its tensors are not in a dictionary")
    return {
        key: one if isinstance(one, dict) and "tensor_meta" in one else _OTHER for key, one in saved.items()
    }, members


def _evaluate_pickle(pickled: bytes) -> Any:
    """What a pickle describes, its tensors as records; raises ValueError, LookupError or TypeError for what is none.

    Each of its instructions takes time by what it moves on the stack, and calls nothing.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any
    for instruction, argument, _ in pickletools.genops(io.BytesIO(pickled)):
        match instruction.name:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                return stack.pop()
            case "MARK":
                marks.append(len(stack))
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append(_CONSTANTS[instruction.name])
            case "GLOBAL":
                stack.append(_GlobalName(argument))
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(_take_items(stack, len(stack) - int(instruction.name[-1])))
            case "TUPLE":
                stack.append(_take_items(stack, marks.pop()))
            case "SETITEM" | "SETITEMS":
                items = _take_items(stack, marks.pop() if instruction.name == "SETITEMS" else len(stack) - 2)
                if isinstance(stack[-1], dict):
                    stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "APPEND" | "APPENDS":
                items = _take_items(stack, marks.pop() if instruction.name == "APPENDS" else len(stack) - 1)
                if isinstance(stack[-1], list):
                    stack[-1].extend(items)
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "BINPERSID":
                _, named, key, *_ = stack.pop()
                stack.append(
                    _Storage(_TYPES.get(named.name) if isinstance(named, _GlobalName) else None, f"data/{key}")
                )
            case "REDUCE":
                given = stack.pop()
                stack.append(_describe_call(stack.pop(), given))
            case "BUILD":  # attributes beside what an object holds
                stack.pop()
            case name if instruction.stack_after and not instruction.stack_before and argument is not None:
                stack.append(argument)  # a number or a text
            case name:
                raise ValueError(f"{name} is no instruction that torch writes")
    raise ValueError("it ends too early")


def _take_items(stack: list[Any], start: int) -> tuple[Any, ...]:
    """What stands on a stack from a place on, which is taken away."""
    if not 0 <= start <= len(stack):
        raise ValueError("less is there than is taken")
    items = tuple(stack[start:])
    del stack[start:]
    return items


def _describe_call(function: Any, given: Any) -> Any:
    """What the call of a function that torch saves objects by would make of its arguments; None for no plain tensor."""
    match function, given:
        case _GlobalName("torch._utils _rebuild_tensor_v2"), (
            _Storage(int(kind), path),
            offset,
            sizes,
            strides,
            trains,
            _,
        ):
            if len(sizes) > _RANK or len(strides) > _RANK:
                raise ValueError(f"a tensor of {len(sizes)} axes")
            meta = {
                "dtype": kind,
                "sizes": [{"as_int": n} for n in sizes],
                "strides": [{"as_int": n} for n in strides],
                "storage_offset": {"as_int": offset},
                "requires_grad": trains,
            }
            return {"path_name": path, "use_pickle": False, "tensor_meta": meta}
        case _GlobalName("torch._utils _rebuild_parameter" | "torch._utils _rebuild_parameter_with_state"), (
            {"tensor_meta": meta, **record},
            trains,
            *_,
        ):
            return {**record, "tensor_meta": {**meta, "requires_grad": trains}}
        case _GlobalName("collections OrderedDict"), ():
            return {}
    return None

"""Archives of exported PyTorch programs: zips with a graph in JSON and weights. Nothing in them is unpickled."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.base.errors import ModelError, join_lines, quote_name
from .byte_view import ByteView
from .file_kinds import explain_kind
from .zip_members import HEADER, MALFORMED, RATIO, read_member

#: more members than programs have, and more bytes of JSON than can be read in the memory that there is
_MEMBERS, _TEXT = 1 << 17, 1 << 30
#: so much larger than the archive may tensors be whose elements lie upon each other, beyond as many bytes, together
_SPREAD = 1 << 28
#: what numpy can hold
_RANK, _ELEMENTS = 64, 1 << 58
#: the members of programs before torch 2.8, by what they are called since then
_FORMER = {
    "serialized_exported_program.json": "models/model.json",
    "serialized_state_dict.pt": "data/weights/model.pt",
    "serialized_constants.pt": "data/constants/model.pt",
}
#: how to export what tensors of other classes hold
_PLAIN = "torchao.utils.unwrap_tensor_subclass(model) before the export makes plain tensors of it"
#: how a program is written that can be read
EXPORT = (
    "export the model in Python:\n"
    "    import torch\n"
    "    program = torch.export.export(model.eval(), (example,))\n"
    '    torch.export.save(program, "model.pt2")'
)


class Archive:
    """The members of a zip, found by their names under its one root folder.

    Raises ModelError, from every method, on bytes that are no such archive, and on those that would take unbounded
    memory.
    """

    def __init__(self, data: memoryview, name: str) -> None:
        self.data, self.name = data, name
        self._room = RATIO * len(data) + _SPREAD
        self._tables: dict[tuple[str, str], Mapping[str, Any]] = {}
        #: whether any tensor of a table takes a gradient
        self._trained: dict[tuple[str, str], bool] = {}
        self._tensors: dict[tuple[Any, ...], ir.TensorProtocol] = {}
        #: members of files of `torch.save` within the archive
        self._saved: dict[str, memoryview] = {}
        if bytes(data[:4]) != HEADER:
            kind = explain_kind(data, "aten") or f"; a checkpoint holds weights and no graph: {EXPORT}"
            raise self.make_error(f"no exported program of PyTorch{kind}")
        try:
            self._zip = zipfile.ZipFile(ByteView(data))
            entries = self._zip.infolist()
        except zipfile.BadZipFile as error:
            raise self.make_error("truncated or damaged: the archive has no directory at its end") from error
        except MALFORMED as error:
            raise self.make_error(f"malformed archive: {join_lines(error)}") from error
        if len(entries) > _MEMBERS:
            raise self.make_error(f"the archive has {len(entries)} members, more than {_MEMBERS}")
        self._entries = {_FORMER.get(e.filename, e.filename.partition("/")[2]): e for e in entries}
        if any(path.startswith("code/") or path in ("data.pkl", "constants.pkl") for path in self._entries):
            raise self.make_error(f"a pickle or TorchScript, which is not run to be read: {EXPORT}")
        order = bytes(self.read_content("byteorder")) if "byteorder" in self._entries else b"little"
        if order.strip() != b"little":
            raise self.make_error(f"the weights are in {quote_name(order.decode('latin1'))} byte order")

    def make_error(self, message: str) -> ModelError:
        """What is wrong with the file, in its name."""
        return ModelError(f"{self.name}: {message}")

    def list_programs(self) -> list[str]:
        """The names of the programs in the archive."""
        paths = [path for path in self._entries if path.startswith("models/") and path.endswith(".json")]
        return [path.removeprefix("models/").removesuffix(".json") for path in paths]

    def read_json(self, path: str) -> Any:
        """A member in JSON, which is an object; raises ModelError where it is none."""
        content = self.read_content(path)
        if len(content) > _TEXT:
            raise self.make_error(f"{quote_name(path)} has {len(content)} bytes, more than {_TEXT}")
        try:
            found = json.loads(bytes(content), parse_int=_read_integer, parse_float=_read_real)
        except (ValueError, RecursionError) as error:
            raise self.make_error(f"malformed: {quote_name(path)} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise self.make_error(f"malformed: {quote_name(path)} is no JSON object")
        return found

    def read_content(self, path: str) -> memoryview:
        """The bytes of a member: a view where it is stored as it is; raises ModelError where there is none."""
        if path in self._saved:
            return self._saved[path]
        entry = self._entries.get(path)
        if entry is None:
            raise self.make_error(f"malformed: there is no {quote_name(path)} in the archive")
        return read_member(self._zip, entry, self.data, self.name)

    def read_tensor(self, program: str, folder: str, key: str, types: Mapping[int, ir.DataType]) -> ir.TensorProtocol:
        """A weight (`folder` weights) or constant (`constants`) of a program: the same for those that are tied.

        A view of the file where the elements lie one behind the other, else a copy. Raises ModelError where there is
        none, or of a kind that is not read.
        """
        record = self._find_tensor_table(program, folder).get(key)
        if record is None:
            raise self.make_error(f"malformed: no {quote_name(key)} is among the {folder} of {quote_name(program)}")
        if record["use_pickle"]:
            raise self.make_error(
                f"{quote_name(key)} is pickled, as no plain tensor is, and not run to be read: {_PLAIN}"
            )
        meta, path = record["tensor_meta"], f"data/{folder}/{record['path_name']}"
        shape = tuple(extent["as_int"] for extent in meta["sizes"])
        strides = tuple(stride["as_int"] for stride in meta["strides"])
        kind, offset = meta["dtype"], meta["storage_offset"]["as_int"]
        identity = (path, kind, shape, strides, offset)
        if identity not in self._tensors:
            if kind not in types:
                raise self.make_error(f"{quote_name(key)} is of element type {kind}, which is not supported")
            self._tensors[identity] = self._make_tensor(key, path, types[kind], shape, strides, offset)
        return self._tensors[identity]

    def is_frozen(self, program: str, folder: str, key: str) -> bool:
        """Whether a weight takes no gradient where others of the program do."""
        table = self._find_tensor_table(program, folder)
        if (program, folder) not in self._trained:
            self._trained[program, folder] = any(_is_trained(record) for record in table.values())
        return self._trained[program, folder] and not _is_trained(table[key])

    def _find_tensor_table(self, program: str, folder: str) -> Mapping[str, Any]:
        """What the archive says of the tensors in a folder: in JSON, or before torch 2.9 in a file of `torch.save`."""
        if (program, folder) not in self._tables:
            path = f"data/{folder}/{program}.pt"
            if path in self._entries:
                from .pickled_tensors import read_tensors  # newer programs do without

                table, members = read_tensors(self.read_content(path), f"{self.name}: {quote_name(path)}")
                self._saved.update({f"data/{folder}/{member}": content for member, content in members.items()})
            else:
                table = self.read_json(f"data/{folder}/{program}_{folder}_config.json")["config"]
            self._tables[program, folder] = table
        return self._tables[program, folder]

    def _make_tensor(
        self, key: str, path: str, kind: ir.DataType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> ir.TensorProtocol:
        data = self.read_content(path)
        numbers = (*shape, *strides, offset)
        if len(shape) != len(strides) or len(shape) > _RANK or any(type(n) is not int or n < 0 for n in numbers):
            raise self.make_error(f"malformed: the extents of {quote_name(key)} are {shape}, its strides {strides}")
        dtype = kind.numpy()
        stored = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        count = math.prod(shape)
        if count > _ELEMENTS or (count and last >= stored.size) or offset > stored.size:
            raise self.make_error(f"malformed: {quote_name(key)} ends behind its {stored.size} elements")
        if count > stored.size:
            self._room -= count * dtype.itemsize
        if self._room < 0:
            raise self.make_error(f"{quote_name(key)} would unpack to {count} elements of {stored.size}")
        array = np.lib.stride_tricks.as_strided(
            stored[offset:], shape, [stride * dtype.itemsize for stride in strides], writeable=False
        )
        return ir.Tensor(np.ascontiguousarray(array).reshape(shape), kind, name=key)


def _is_trained(record: Mapping[str, Any]) -> bool:
    return bool(record.get("tensor_meta", {}).get("requires_grad"))


def _read_integer(text: str) -> int:
    """A number of JSON, which other programs hold in 64 bits; raises ValueError for others."""
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{text:.40} is no integer of 64 bits")
    return number


def _read_real(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text:.40} is larger than any number")
    return number

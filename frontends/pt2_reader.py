"""Exported PyTorch programs (`.pt2`) as graphs: a walk over the schema of arguments that knows no operator."""

from __future__ import annotations

import os

import onnx_ir as ir

from ..engine.base.errors import ModelError, join_lines
from ..engine.base.garbage_collection import pause_collection
from ..engine.dialects.operators import Catalogue, Dialect
from .mapping import load
from .pt2_archive import Archive
from .pt2_graph import Program
from .stated_results import forget_wrong_extents

#: the major version of the schema that is read
_SCHEMA = 8
#: the program that is read where an archive has several
_MAIN = "model"


def recognize(head: bytes) -> bool:
    """Whether a file begins as an exported program does, or as what else torch writes, which is refused with advice."""
    path = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    first = b"/" + path.partition(b"/")[2]
    named = first.startswith((b"/data", b"/models/", b"/archive", b"/.data", b"/byteorder", b"/code/"))
    named = named or path.startswith(b"serialized_exported_program")  # before torch 2.8
    return (head.startswith(b"PK\x03\x04") and named) or head.startswith(b"\x80\x02")


def read(
    source: str | os.PathLike[str] | bytes | memoryview, catalogue: Catalogue, name: str | None = None
) -> ir.Model:
    """Read an exported program, from a file or from bytes, as a graph of the dialect `aten`.

    Constants are views of the mapped file where their elements lie one behind the other. What may be computed (tensors,
    sizes, numbers) is an operand, whatever else an option. `name` is what errors call the source. `meta` of the model
    is as of `tflite_reader.read`; `meta` of the main graph has `state`, pairs of values, where the program writes to
    its buffers.

    Raises ModelError when there is no such file, or it is not a well-formed program.
    """
    if isinstance(source, bytes | memoryview):
        data, name = memoryview(source).cast("B"), name or "model"
    else:
        data, name = load(source), name or os.fspath(source)
    with pause_collection():
        try:
            return _read(Archive(data, name), catalogue.find_dialect("aten"))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError) as error:
            said = join_lines(error)
            raise ModelError(f"{name}: malformed program: {type(error).__name__} {said:.200}") from error


def _read(archive: Archive, dialect: Dialect) -> ir.Model:
    programs = archive.list_programs()
    if not programs:
        raise archive.make_error("the archive has no exported program")
    program = _MAIN if _MAIN in programs else programs[0]
    if len(programs) > 1 and program != _MAIN:
        raise archive.make_error(
            f"the archive has several programs ({', '.join(programs)}), none of them called {_MAIN}"
        )
    root = archive.read_json(f"models/{program}.json")
    version = root["schema_version"]
    if version["major"] != _SCHEMA:
        raise archive.make_error(
            f"schema version {version['major']}.{version['minor']} is not {_SCHEMA}, that of torch 2.6 and later"
        )
    subgraphs: list[ir.Graph] = []
    reader = Program(archive, dialect, program, subgraphs)
    graph = reader.read_main(root["graph_module"])
    for one in (graph, *subgraphs):
        forget_wrong_extents(one, dialect)
    model = ir.Model(graph, ir_version=10, producer_name=dialect.name)
    model.meta["subgraphs"] = [graph, *subgraphs]
    model.meta["signatures"] = ()
    model.meta["description"] = ""
    model.meta["metadata"] = {}
    return model

"""What is converted: a model that is read, the graph of it that is asked for, and the names of its outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ..engine.base.errors import CallError, ModelError
from ..engine.base.startup import dataclass
from ..engine.packs import loader
from ..engine.rewrite import origins
from ..engine.rewrite.origins import Origin
from ..engine.rewrite.profile import time_part
from ..frontends import bundle, readers
from ..frontends.tflite_reader import Signature
from . import signatures
from .compiled_rules import prepare
from .options import DEFAULT, Options
from .routes import find_reading_rules


@dataclass(frozen=True, slots=True)
class Subject:
    """What is converted: one graph of a model, those that it may call, and what a signature calls its outputs.

    `renamed` has the source's names of inputs and outputs by those of the signature, `opset` is that of the file, where
    it has one.
    """

    model: ir.Model
    graph: ir.Graph
    subgraphs: Sequence[ir.Graph]
    signature: Signature | None
    outputs: Sequence[str]
    renamed: Mapping[str, str]
    opset: int | None = None


def members(path: str | os.PathLike[str]) -> list[str]:
    """The models inside a bundle; none for a plain model file. Raises ModelError when it cannot be read."""
    return bundle.list_members(path) if bundle.is_bundle(path) else []


def list_origins(path: str | os.PathLike[str]) -> list[Origin]:
    """Which rule made each node of a model, of whatever format; raises ModelError when it cannot be read."""
    source = os.fspath(path)
    reader = readers.find_reader(source)
    catalogue = prepare(find_reading_rules(reader.dialect), None).pack.catalogue
    return origins.list_origins(reader.read(source, catalogue))


def list_signatures(path: str | os.PathLike[str], member: str | None = None) -> list[str]:
    """The names of a model's signatures; raises ModelError when it cannot be read."""
    data = os.fspath(path) if member is None else bundle.open_member(path, member)
    model = readers.READERS[0].read(data, prepare(DEFAULT.stacked, None).pack.catalogue)
    return signatures.list_keys(model)


def find_reader(source: str | bytes, options: Options) -> readers.Reader:
    """The format that a model is read from; a model of a bundle has that of bundles."""
    return readers.READERS[0] if options.member is not None else readers.find_reader(source)


def read_subject(source: str | bytes, options: Options, pack: loader.Pack) -> Subject:
    """Read a model, and find the graph that is asked for.

    Raises ModelError where that has no outputs or cannot be read, CallError for a member of what is no path.
    """
    member = options.member
    if member is not None and isinstance(source, bytes):
        raise CallError(f"member {member} is of a bundle, which is read from its path")
    data = source if member is None or isinstance(source, bytes) else bundle.open_member(source, member)
    with time_part("reading"):
        model = find_reader(source, options).read(data, pack.catalogue, _name_source(source, member))
    code = pack.catalogue.find_dialect(pack.target).facts.python is not None
    if code:
        _name_extents(model.graph, model.meta.get("told", {}))
    opset = model.opset_imports.get("")
    signature = signatures.choose(model, options.signature)
    subgraphs: Sequence[ir.Graph] = model.meta["subgraphs"]
    graph = model.graph if signature is None else subgraphs[signature.subgraph]
    if not graph.outputs:
        raise ModelError(
            f"{_name_source(source, member) or 'model'}: graph {graph.name} has no outputs: nothing to compute"
        )
    same = pack.source == pack.target  # the file keeps its signatures, and what they name
    names, renamed = signatures.name_interface(graph, None if same else signature)
    return Subject(model, graph, subgraphs, signature, list(options.outputs) or names, renamed, opset)


def _name_extents(graph: ir.Graph, told: Mapping[str, Sequence[str | None]]) -> None:
    """Let open extents of values between nodes have the names of inputs' extents that the file gives them: code is
    written by those names, and no extent is computed by them."""
    for value in (output for node in graph for output in node.outputs):
        names = told.get(value.name or "", ())
        if value.shape is not None and len(names) == len(value.shape):
            dims = zip(value.shape, names, strict=True)
            value.shape = ir.Shape([old if isinstance(old, int) or name is None else name for old, name in dims])


def _name_source(source: str | bytes, member: str | None) -> str | None:
    if isinstance(source, bytes):
        return None
    return source if member is None else f"{source}:{member}"

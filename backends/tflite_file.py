"""Converted graphs as TensorFlow Lite files, each with one signature that has the names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from ..engine.base.atomic_write import open_replacement
from ..engine.base.startup import dataclass, replace
from ..engine.dialects.operators import Catalogue
from ..frontends.tflite_reader import Signature
from . import tflite_writer
from .flatbuffer_writer import Buffer
from .writers import Output


@dataclass(frozen=True, slots=True)
class Encoded:
    """A model as its file will have it: parts that stand one behind the other."""

    contents: Sequence[Buffer]

    @property
    def size(self) -> int:
        """How many bytes the model takes."""
        return sum(map(len, self.contents))

    @staticmethod
    def list_files(path: Path) -> list[Path]:
        """The one file that a model is written as."""
        return [path]

    def save(self, path: Path, external_data: bool = False) -> int:
        """Write the model to a file, constants included; raises DestinationError for what the system refuses."""
        with open_replacement(path) as file:
            for part in self.contents:
                file.write(part)
        return self.size

    def encode(self) -> bytes:
        """The whole file."""
        return b"".join(self.contents)


def encode(output: Output, recorded: bool = True) -> Encoded:
    """Encode a graph as a model, with one signature that has the names of its inputs and outputs.

    Graphs that its nodes call are those of the model that it is made of, as is what that says of signatures and more.
    Which rule made each operator stands beside it where it is to be `recorded`.

    Raises ModelError where the format cannot hold the graph.
    """
    graph = output.graph
    model = ir.Model(graph, ir_version=10)
    _name_results(graph, output.names)
    named = {value.name or "": value.name or "" for value in graph.inputs}
    results = {name: value.name or "" for name, value in zip(output.names, graph.outputs, strict=True)}
    model.meta["signatures"] = (Signature("serving_default", 0, named, results),)
    model.meta["metadata"] = {name: text.encode() for name, text in output.metadata.items()}
    if output.origin is not None:  # what stands around the graph stays as it was read
        around = output.origin.meta
        for key in ("subgraphs", "description"):  # graphs that nodes call by their numbers among it
            if key in around:
                model.meta[key] = around[key]
        model.meta["metadata"] = {**around.get("metadata", {}), **model.meta["metadata"]}
        if "signatures" in around:
            model.meta["signatures"] = tuple(_update_signature(one, named, results) for one in around["signatures"])
    catalogue = Catalogue({output.dialect.name: output.dialect})
    return Encoded(list(tflite_writer.write_parts(model, catalogue, recorded=recorded)))


def _name_results(graph: ir.Graph, names: Sequence[str]) -> None:
    """Give results of nodes the names that outputs are to have, where no other value has them."""
    nodes = [value.name for node in graph for value in node.outputs]
    taken = {*nodes, *graph.initializers, *(value.name for value in graph.inputs)}
    for name, value in zip(names, graph.outputs, strict=True):
        if name not in taken and value.producer() is not None and value.name not in names:
            value.name = name
            taken.add(name)


def _update_signature(signature: Signature, named: Mapping[str, str], results: Mapping[str, str]) -> Signature:
    """A signature whose outputs have other names in the graph; of a part of the graph it has the inputs and outputs."""
    if signature.subgraph:
        return signature
    outputs = {key: results.get(name, name) for key, name in signature.outputs.items()}
    whole = {*signature.inputs.values()} <= {*named} and {*outputs.values()} <= {*results.values()}
    return replace(signature, outputs=outputs) if whole else replace(signature, inputs=named, outputs=results)

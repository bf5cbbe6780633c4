"""Cuts: a model that goes on with other values than those that it has computed so far."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import onnx

from ..engine.base.errors import ModelError
from ..frontends.onnx_graphs import read_proto
from .frames import Array
from .runtime import Runtime

#: what follows the name of a value that is computed where others go on with another
_COMPUTED = "/computed"


@dataclass(frozen=True, slots=True)
class Segment:
    """What computes a value: the nodes, and the values at which these begin, inputs of the model left out."""

    nodes: tuple[int, ...]
    begins: frozenset[str]


class Wiring:
    """The graph of a model, each of whose values may be read, and be replaced for those who read it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self.nodes = list(model.graph.node)
        self._producers = {name: place for place, node in enumerate(self.nodes) for name in node.output if name}
        self._reads = [tuple(_read(node)) for node in self.nodes]

    @property
    def values(self) -> tuple[str, ...]:
        """The names of all values that nodes compute, in that order."""
        return tuple(self._producers)

    def segment(self, value: str, replaced: Collection[str]) -> Segment:
        """What computes a value, given the values that are replaced."""
        begins, nodes = set[str](), set[int]()
        work = [value]
        while work:
            place = self._producers.get(work.pop())
            if place is None or place in nodes:
                continue
            nodes.add(place)
            begins.update(name for name in self._reads[place] if name in replaced)
            work += [name for name in self._reads[place] if name not in replaced]
        return Segment(tuple(sorted(nodes)), frozenset(begins))

    def run(
        self, feeds: Mapping[str, Array], shown: Collection[str], replaced: Mapping[str, Array], precise: bool = False
    ) -> dict[str, Array]:
        """Run what computes some values, as it is written, given the inputs and the values that are replaced.

        A value that is shown may be replaced as well: it is computed, and others go on with what is in its place.
        With `precise` products of bytes are kept from saturating, which the runtime does where it optimizes the model.
        Raises VerificationError as Runtime does.
        """
        if not shown:
            return {}  # the runtime refuses a model that computes nothing
        segments = [self.segment(name, replaced) for name in shown]
        begins = frozenset[str]().union(*(segment.begins for segment in segments))
        called = {name: f"{name}{_COMPUTED}" if name in begins else name for name in shown}
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        graph = model.graph
        del graph.node[:], graph.output[:], graph.value_info[:]
        for place in sorted({place for segment in segments for place in segment.nodes}):
            node = graph.node.add()
            node.CopyFrom(self.nodes[place])
            node.output[:] = [called.get(name, name) for name in node.output]
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in called.values())
        given = {name: replaced[name] for name in begins}
        for name, array in given.items():
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
        found = Runtime(model.SerializeToString(), optimized=precise, precise=precise).evaluate({**feeds, **given})
        return {name: found[called[name]] for name in called}


def read_wiring(model: str | bytes) -> Wiring:
    """Read the graph of a model from its path or its bytes; raises ModelError for what is none."""
    try:
        return Wiring(read_proto(model))
    except Exception as error:  # the parser's exceptions have no common root but this
        raise ModelError(f"{model if isinstance(model, str) else 'the model'}: {error}") from error


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The values that a node reads, those that its graphs take from around it included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            own = {value.name for value in graph.input} | {value.name for value in graph.initializer}
            for inner in graph.node:
                yield from (name for name in _read(inner) if name not in own)
                own.update(inner.output)
            yield from (value.name for value in graph.output if value.name not in own)

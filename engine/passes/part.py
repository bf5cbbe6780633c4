"""Pass `part`: a model between some of its values, in the place of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..base.constants import STATE
from ..base.errors import CallError, suggest_nearest
from ..base.startup import dataclass
from ..dialects.operators import Dialect
from ..rewrite.edits import remove_unused
from .base import Module, Visit
from .fix_defaults import fix_inputs
from .keep_state import find_state


@dataclass(frozen=True, slots=True)
class Part:
    """Let the main graph begin at some values and end at others, by their names; none leaves that end as it is.

    What the outputs do not need goes, inputs among it where others are asked for; of these, what has a default is that,
    unless it is given what the call before yielded.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    name, visits = "part", Visit.MAIN

    def run(self, module: Module) -> None:
        """Cut the module's graph, as `extract` does."""
        self.extract(module.graph, module.source)

    def extract(self, graph: ir.Graph, dialect: Dialect) -> None:
        """Cut a graph of a dialect.

        Raises CallError for a name that no value has, one of a constant, one of a value that no file can pass on, and
        for an input that is still needed.
        """
        fed_back = {begun.name or "" for begun, _ in find_state(graph)}
        values = {value.name or "": value for value in graph.inputs}
        values |= {value.name or "": value for node in graph for value in node.outputs}
        if self.outputs:
            ends = _find(graph, values, self.outputs)
            if not dialect.schemas:  # files state all types, of tensors alone
                _require_types(ends)
            graph.outputs.clear()
            graph.outputs.extend(ends)
        if self.inputs:
            begins = _find(graph, values, self.inputs)
            _require_types(begins)
            self._begin_at(graph, begins)
        if STATE in graph.meta:
            graph.meta[STATE] = _list_state(graph)
        ended = [end for _, end in graph.meta.get(STATE, ())]
        graph.outputs.extend(ended)
        remove_unused(graph)
        for _ in ended:
            graph.outputs.pop()
        if self.inputs:
            fix_inputs(graph, {*self.inputs, *fed_back})
            _drop_inputs(graph, self.inputs)

    def _begin_at(self, graph: ir.Graph, values: Sequence[ir.Value]) -> None:
        """Put an input in the place of each value, which keeps its name."""
        for value in values:
            if value.is_graph_input():
                continue
            made = ir.Value(name=value.name, type=value.type, shape=value.shape)
            made.meta.update(value.meta)
            value.name = f"{value.name}/before"
            for user, place in tuple(value.uses()):
                user.replace_input_with(place, made)
            for place, output in enumerate(graph.outputs):
                if output is value:
                    graph.outputs[place] = made
            graph.inputs.append(made)


def _find(graph: ir.Graph, values: dict[str, ir.Value], names: Sequence[str]) -> list[ir.Value]:
    for name in names:
        if name not in values and name in graph.initializers:
            raise CallError(f"{name} is a constant: a part begins and ends at values that are computed")
        if name not in values:
            raise CallError(f"the model has no value {name}{suggest_nearest(name, values)}")
    return [values[name] for name in names]


def _list_state(graph: ir.Graph) -> list[tuple[ir.Value, ir.Value]]:
    """The state that a reader found on which the outputs of a graph depend, now or in a later call."""
    pairs: dict[ir.Value, ir.Value] = dict(graph.meta[STATE])
    needed: dict[ir.Value, ir.Value] = {}
    work, seen = list(graph.outputs), set[ir.Value]()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.producer()
        work += [] if node is None else [one for one in node.inputs if one is not None]
        if value in pairs:
            needed[value] = pairs[value]
            work.append(pairs[value])
    return list(needed.items())


def _require_types(values: Sequence[ir.Value]) -> None:
    for value in values:
        if value.dtype is None:
            node = value.producer()
            yielded = "" if node is None else f", which {node.op_type} yields,"
            raise CallError(f"{value.name}{yielded} has no element type that is known: no part begins or ends there")


def _drop_inputs(graph: ir.Graph, names: Sequence[str]) -> None:
    needed = [
        value.name or ""
        for value in graph.inputs
        if value.name not in names and (value.uses() or value.is_graph_output())
    ]
    if needed:
        raise CallError(f"the outputs need {', '.join(needed)} besides the inputs asked for")
    kept = {value.name: value for value in graph.inputs}
    graph.inputs.clear()
    graph.inputs.extend(kept[name] for name in names)

"""Passes `hold-state` and `keep-state`: inputs that are given what the call before yielded become variables."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..base.startup import dataclass
from .base import Module, Visit, insert_first
from .output_names import name_outputs
from .variables import ASSIGN, INITIALIZE, READ, VARIABLE

#: what names of state have behind them where a call ends
_ENDED = "_out"


@dataclass(frozen=True, slots=True)
class HoldState:
    """Find what a model is given of the call before, as pass `state` writes it where a dialect has no variables: an
    input with a default and an output of its name with `_out` behind it, of one type.

    What an earlier step has made so is known, and has such names when it is written. The outputs are to be called
    `outputs`: in the graph, one value may be several."""

    outputs: tuple[str, ...] = ()
    name, visits = "hold-state", Visit.MAIN

    def run(self, module: Module) -> None:
        """Let such inputs have no default, and note what it was, or where there are no variables note both ends."""
        graph, variables = module.graph, module.target.has_role(VARIABLE)
        first = len(graph.outputs) - len(module.state)
        name_outputs(graph, dict(enumerate(module.state.values(), first)), module.source)
        for begun, called in find_state(graph, self.outputs):
            module.state[begun.name or ""] = called
            if variables and begun.const_value is not None:
                graph.initializers.pop(begun.name or "", None)
                module.kept[called] = begun.const_value
                begun.const_value = None


def find_state(graph: ir.Graph, names: Sequence[str] = ()) -> list[tuple[ir.Value, str]]:
    """The inputs that are given what the call before yielded, with the names of the outputs that they are given.

    `names` are those of the first outputs, where these have others in the graph.
    """
    called = (*names, *(value.name or "" for value in graph.outputs[len(names) :]))
    ended = dict(zip(called, graph.outputs, strict=False))
    inputs = [(value, f"{value.name}{_ENDED}") for value in graph.inputs if value.const_value is not None]
    return [(begun, end) for begun, end in inputs if end in ended and ended[end].dtype in (begun.dtype, None)]


@dataclass(frozen=True, slots=True)
class KeepState:
    """Let a model keep what it yields for its next call in variables, which its first call fills; its outputs are to be
    called `outputs`."""

    outputs: tuple[str, ...]
    name, visits = "keep-state", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change the main graph, whose inputs and outputs that state were are none any more."""
        graph = module.graph
        begins = {f"{value.name}{_ENDED}": value for value in graph.inputs}
        # Of outputs by their places, as the values there may be called otherwise.
        names = (*self.outputs, *(end for end in module.state.values() if end not in self.outputs))
        kept = {place: name for place, name in enumerate(names) if name in module.kept and name in begins}
        if not kept:
            return
        first = ir.Graph([], [], nodes=[], name="initial_state")
        handles = {}
        for place, called in kept.items():
            begun = begins[called]
            name = begun.name or ""
            del module.state[name]
            graph.inputs.remove(begun)
            initial = ir.Value(
                name=f"{name}/initial", type=begun.type, shape=begun.shape, const_value=module.kept[called]
            )
            first.register_initializer(initial)
            handle = _make_handle(module, name)
            first.extend([handle, ir.Node(*_find_role(module, ASSIGN), [handle.outputs[0], initial], num_outputs=0)])
            handles[place] = handle = _make_handle(module, name)
            read = ir.Node(*_find_role(module, READ), [handle.outputs[0]], num_outputs=1)
            value = read.outputs[0]
            value.name, value.type, value.shape = name, begun.type, begun.shape
            value.meta.update(begun.meta)
            begun.name = None
            ir.convenience.replace_all_uses_with(begun, value, replace_graph_outputs=True)
            insert_first(graph, [handle, read])
        for place in sorted(handles, reverse=True):
            end = graph.outputs.pop(place)
            graph.append(ir.Node(*_find_role(module, ASSIGN), [handles[place].outputs[0], end], num_outputs=0))
        spec = module.target.find_role(INITIALIZE)
        option = next(name for name, one in spec.options.items() if "subgraph" in one.type)
        insert_first(graph, [ir.Node(spec.domain, spec.name, [], [ir.AttrGraph(option, first)], num_outputs=0)])


def _find_role(module: Module, role: str) -> tuple[str, str]:
    spec = module.target.find_role(role)
    return spec.domain, spec.name


def _make_handle(module: Module, name: str) -> ir.Node:
    spec = module.target.find_role(VARIABLE)
    named = [] if spec.facts.names_variable is None else [ir.AttrString(spec.facts.names_variable, name)]
    handle = ir.Node(spec.domain, spec.name, [], named, num_outputs=1)
    handle.outputs[0].name, handle.outputs[0].shape = f"{name}/handle", ir.Shape([])
    handle.outputs[0].meta["type"] = spec.facts.opaque
    return handle

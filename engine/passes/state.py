"""Pass `state`: variables that a model keeps between calls become inputs and outputs that the caller feeds back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import CONTENT, STATE, STATEFUL
from ..base.errors import ModelError
from ..base.names import Scope
from ..base.quantization import read_quantization
from ..base.startup import dataclass
from ..dialects.operators import Dialect, OperatorSpec
from .base import Module, Pass, Visit, run_passes
from .evaluation import compute_outputs
from .variables import ASSIGN, FILL, INITIALIZE, READ, TABLE, VARIABLE, Variables, refuse_node

#: the prefix of the metadata that lists a model's state
METADATA = "nnrewrite.state"
#: what becomes of the operators of each role, in words for whoever asks which operators are supported
ROLES = {
    VARIABLE: "a variable is an input and an output of the model, which the caller feeds back",
    READ: "reads the input that a variable has become, or what was assigned before",
    ASSIGN: "what is assigned is an output of the model, which the caller feeds back",
    INITIALIZE: "what it assigns to variables is the default of their inputs",
    TABLE: "a table is known when the model is converted, and goes into what reads it",
    FILL: "the columns of a table are constant",
}


@dataclass(frozen=True, slots=True)
class State:
    """Turn what a model keeps between calls into inputs and outputs.

    `passes` convert the graphs that compute initial values; with `internal` all state begins with its initial values at
    each call, and none is an input or output.
    """

    passes: Sequence[Pass]
    internal: bool = False
    name, visits = "state", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change the main graph and its functions, and note which outputs are to be fed to which inputs."""
        if not self.internal:
            module.state.update(expose(module.graph))
        if any(_may_keep(one, module.source) for one in {module.graph, *module.functions}):
            module.state.update(self._externalize(module))

    def _externalize(self, module: Module) -> dict[str, str]:
        """Turn the variables of a graph into inputs and outputs; the names of the inputs, and the outputs to feed them.

        An input has the variable's initial value as its default, so that a single call needs nothing new: the value
        that the model's own initialization gives it, else zeros. Reads see the assignments before them in the order of
        the nodes, as the interpreter runs them; an operator with a mutable operand yields what becomes of it after its
        own results; graphs of nodes take what they touch as operands and yield it. Variables that never change are
        constants.

        Raises UnsupportedError where a variable is beyond this.
        """
        variables = Variables(module.source, module.functions)
        variables.survey_graph(module.graph)
        for graph, names in variables.computed:
            initial = Module(graph, module.rules, Scope(graph), module.functions)
            run_passes(self.passes, initial)
            variables.initial.update(zip(names, compute_outputs(initial), strict=True))
        return _State(module.graph, variables, self.internal).run()


def expose(graph: ir.Graph) -> dict[str, str]:
    """Make inputs and outputs of the state that a reader found; the names of the inputs, and the outputs to feed them.

    `meta` of the graph lists it under `state`: pairs of a constant, which is what a call begins with, and the value
    that it ends with.
    """
    pairs: dict[str, str] = {}
    for begun, ended in graph.meta.pop(STATE, ()):
        graph.inputs.append(begun)
        graph.outputs.append(ended)
        pairs[begun.name] = f"{begun.name}_out"
    return pairs


def _may_keep(graph: ir.Graph, dialect: Dialect) -> bool:
    """Whether there is a variable in a graph, or a node that could lead to one: a look at what most models lack."""
    if any(value.meta.get(STATEFUL) for value in graph.outputs):
        return True
    if any(_is_stateful(dialect.operators.get(name)) for name in {node.op_type for node in graph}):
        return True
    return any(value is not None and value.meta.get(STATEFUL) for node in graph for value in node.inputs)


def _is_stateful(spec: OperatorSpec | None) -> bool:
    if spec is None:
        return False
    inner = any("subgraph" in option.type for option in spec.options.values())
    return spec.role in ROLES or inner or any(operand.mutable for operand in spec.operands)


class _State:
    """The variables of one model, followed through its nodes."""

    def __init__(self, graph: ir.Graph, variables: Variables, internal: bool) -> None:
        self._graph = graph
        self._known = variables
        self._internal = internal
        self._threaded: set[ir.Graph] = {graph}
        #: what nodes have made of values that are computed anew in each call and then written to
        self._written: dict[ir.Value, ir.Value] = {}

    def run(self) -> dict[str, str]:
        graph, known = self._graph, self._known
        touched = [key for key in known.samples if key in known.touched[graph]]
        begun = {key: self._make_start(graph, key) for key in touched}
        current = dict(begun)
        self._follow(graph, current)
        self._settle(begun)
        pairs: dict[str, str] = {}
        for key, value in begun.items():
            changed = current[key] is not value
            if changed and not self._internal:
                graph.outputs.append(current[key])
                pairs[value.name or key] = f"{value.name}_out"
            if value.uses() or value.is_graph_output() or (changed and not self._internal):
                shape = [extent if isinstance(extent, int) else 1 for extent in value.shape or ()]
                initial = known.initial.get(key)
                content = self._make_zeros(value, shape) if initial is None else initial
                value.const_value = ir.Tensor(content, name=value.name)
                value.shape = ir.Shape(content.shape)
                graph.register_initializer(value)
                if changed and not self._internal:
                    graph.inputs.append(value)
        return pairs

    def _make_zeros(self, value: ir.Value, shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """What a variable begins with where the model does not say: zeros, of some types the codes that stand for 0."""
        if value.dtype is None or value.dtype == ir.DataType.STRING:
            kind = "no type of ONNX" if value.dtype is None else "strings"
            raise ModelError(f"variable {value.name} holds {kind}, so that there are no zeros for it to begin with")
        known = read_quantization(value)
        meant = value.dtype.name in self._known.dialect.facts.begins and known is not None
        number = known.zero_point.ravel()[0] if meant and known is not None else 0
        return np.full(shape, number, value.dtype.numpy())

    def _make_start(self, graph: ir.Graph, key: str) -> ir.Value:
        """What a variable is at the start of a graph."""
        sample = self._known.samples[key]
        value = ir.Value(name=key, type=sample.type, shape=sample.shape)
        value.meta.update(sample.meta)
        value.meta.pop(STATEFUL, None)
        return value

    def _settle(self, begun: Mapping[str, ir.Value]) -> None:
        """Let each variable have its name alone: inputs and outputs of the model keep theirs, inner values do not."""
        graph = self._graph
        inner = {output.name: output for node in graph for output in node.outputs}
        fixed = {value.name for value in (*graph.inputs, *graph.outputs, *graph.initializers.values())}
        for value in begun.values():
            while value.name in fixed:
                value.name = f"{value.name}_state"
            fixed.add(value.name)
            other = inner.get(value.name)
            if other is not None:
                name = f"{value.name}_inner"
                while name in inner or name in fixed:
                    name = f"{name}_"
                inner[name] = other
                other.name = name

    def _follow(self, graph: ir.Graph, current: dict[str, ir.Value]) -> None:
        """Let the nodes of a graph read and write `current`, the values that variables have so far."""
        known = self._known
        handles = known.handles
        for value in graph.inputs:
            self._fill(value)
        for node in list(graph):
            role = known.find_role(node)
            key = handles.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
            if role == READ and key is not None:
                ir.convenience.replace_all_uses_with(node.outputs[0], current[key], replace_graph_outputs=True)
            elif role == ASSIGN and key is not None:
                current[key] = node.inputs[1] or current[key]
            elif role == TABLE:
                self._fill(node.outputs[0])
                continue
            elif not (role == INITIALIZE or (role == FILL and key is not None)):
                if role != VARIABLE:
                    self._rewrite_node(graph, node, current)
                continue
            graph.remove(node, safe=True)
        for position, output in enumerate(graph.outputs):
            own = known.find_name(output)
            if own in current:
                graph.outputs[position] = current[own]
            elif output in self._written:
                graph.outputs[position] = self._written[output]
        for node in list(graph):
            if known.find_role(node) == VARIABLE and not any(output.uses() for output in node.outputs):
                graph.remove(node, safe=True)

    def _fill(self, value: ir.Value) -> None:
        content = self._known.tables.get(self._known.handles.get(value, ""))
        if content is not None:
            value.meta[CONTENT] = content

    def _rewrite_node(self, graph: ir.Graph, node: ir.Node, current: dict[str, ir.Value]) -> None:
        """Let a node read variables, and yield what it makes of them after its own results."""
        known, spec = self._known, self._known.find_spec(node)
        names = [known.find_name(value) for value in node.inputs]
        for position, (name, value) in enumerate(zip(names, node.inputs, strict=True)):
            if name is not None:
                node.replace_input_with(position, current[name])
            elif value is not None and value in self._written:
                node.replace_input_with(position, self._written[value])
        operands = spec.operands if spec is not None else ()
        mutable = [place for place, operand in enumerate(operands[: len(node.inputs)]) if operand.mutable]
        if mutable:
            count = len(node.outputs)
            node.resize_outputs(count + len(mutable))
            for place, output in zip(mutable, node.outputs[count:], strict=True):
                operand, name = node.inputs[place], names[place]
                if operand is not None:
                    output.name = f"{operand.name}_out"
                    output.type, output.shape = operand.type, operand.shape
                    output.meta.update(operand.meta)
                if name is not None:
                    current[name] = output
                elif operand is not None:
                    self._written[operand] = output
        if any(True for _ in known.list_bodies(node)):
            self._thread_node(graph, node, current)

    def _thread_node(self, graph: ir.Graph, node: ir.Node, current: dict[str, ir.Value]) -> None:
        """Give the graphs of a node the variables that they touch, and let the node yield them."""
        known, keys = self._known, self._known.list_shared(node)
        spec = known.find_spec(node)
        named = [value for value in node.inputs if value in known.handles]
        variadic = spec is not None and spec.operands[-1].variadic and spec.results[-1].variadic
        if (keys or named) and not variadic:
            raise refuse_node(node, f"its graphs touch variables ({', '.join(keys)}), and it can hand on none")
        for body, decides in known.list_graphs(node):
            self._thread_body(node, body, keys, decides)
        if not keys and not named:
            return
        kept = [output for output in node.outputs if output not in known.handles]
        made = ir.Node(
            node.domain,
            node.op_type,
            [*(value for value in node.inputs if value not in named), *(current[key] for key in keys)],
            node.attributes.values(),
            num_outputs=len(kept) + len(keys),
            version=node.version,
            name=node.name,
        )
        made.meta.update(node.meta)
        made.metadata_props.update(node.metadata_props)
        graph.insert_before(node, made)
        for old, new in zip(kept, made.outputs, strict=False):
            new.type, new.shape, new.name, old.name = old.type, old.shape, old.name, None
            new.meta.update(old.meta)
            ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        for key, new in zip(keys, made.outputs[len(kept) :], strict=True):
            sample = self._known.samples[key]
            new.type, new.shape, new.name = sample.type, sample.shape, f"{node.name}/{key}"
            new.meta.update({name: what for name, what in sample.meta.items() if name != STATEFUL})
            current[key] = new
        graph.remove(node, safe=True)

    def _thread_body(self, node: ir.Node, body: ir.Graph, keys: Sequence[str], decides: bool) -> None:
        """Let a graph of a node take variables after its inputs, and yield them after its outputs."""
        if body in self._threaded:
            return
        self._threaded.add(body)
        handles = self._known.handles
        begun = {key: self._make_start(body, key) for key in keys}
        current = dict(begun)
        self._follow(body, current)
        body.inputs[:] = [*(value for value in body.inputs if value not in handles), *begun.values()]
        body.outputs[:] = [value for value in body.outputs if value not in handles]
        if not decides:
            body.outputs.extend(current.values())
        elif any(current[key] is not value for key, value in begun.items()):
            raise refuse_node(node, f"{body.name}, which only decides, assigns a variable")


def describe_state(state: Mapping[str, str]) -> dict[str, str]:
    """State as entries of a model's metadata: `nnrewrite.state.INPUT` is the output to feed to it."""
    return {f"{METADATA}.{name}": output for name, output in state.items()}


def read_state(metadata: Mapping[str, str]) -> dict[str, str]:
    """The state that a model's metadata describes: for each input the output to feed to it."""
    begin = f"{METADATA}."
    return {name.removeprefix(begin): output for name, output in metadata.items() if name.startswith(begin)}

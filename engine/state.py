"""Variables that a model keeps between calls, as inputs and outputs that the caller feeds back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from .constants import stored
from .errors import Reason, Refusal, Span, UnsupportedError
from .operators import Dialect, OperatorSpec, option_value
from .subgraphs import Body, bound

#: the roles in ops.yaml of the operators that name a variable, read it, write it, and run a graph the first time
VARIABLE, READ, ASSIGN, INITIALIZE = "variable", "read", "assign", "initialize"

#: what becomes of the operators of each role, in words for whoever asks which operators are supported
ROLES = {
    VARIABLE: "a variable is an input and an output of the model, which the caller feeds back",
    READ: "reads the input that a variable has become, or what was assigned before",
    ASSIGN: "what is assigned is an output of the model, which the caller feeds back",
    INITIALIZE: "what it assigns to variables is the default of their inputs; it may assign constants only",
}


def externalize(graph: ir.Graph, dialect: Dialect, subgraphs: Sequence[ir.Graph]) -> dict[str, str]:
    """Turn the variables of a graph into inputs and outputs; the names of the inputs, and the outputs to feed to them.

    An input has the variable's initial value as its default, so that a single call needs nothing new: the value that
    the model's own initialization gives it, else zeros. Reads see the assignments before them in the order of the
    nodes, as the interpreter runs them.

    Raises UnsupportedError where an initial value is computed and not a constant.
    """
    return _State(graph, dialect, subgraphs).run()


class _State:
    """The variables of one graph, followed through its nodes."""

    def __init__(self, graph: ir.Graph, dialect: Dialect, subgraphs: Sequence[ir.Graph]) -> None:
        self._graph = graph
        self._dialect = dialect
        self._subgraphs = subgraphs
        self._initial: dict[str, np.ndarray] = {}
        self._inputs: dict[str, ir.Value] = {}
        self._current: dict[str, ir.Value] = {}

    def run(self) -> dict[str, str]:
        handles: dict[ir.Value, str] = {}
        for node in list(self._graph):
            spec = self._dialect.operators.get(node.op_type)
            if spec is None or spec.role not in (VARIABLE, READ, ASSIGN, INITIALIZE):
                continue
            if spec.role == VARIABLE:
                handles[node.outputs[0]] = _key(node, spec)
                continue
            if spec.role == INITIALIZE:
                self._initialize(node, spec)
            elif node.inputs[0] in handles:
                key = handles[node.inputs[0]]
                if spec.role == READ:
                    self._read(node.outputs[0], key)
                elif node.inputs[1] is not None:
                    self._current[key] = node.inputs[1]
            else:
                continue
            self._graph.remove(node, safe=True)
        for value in handles:
            producer = value.producer()
            if producer is not None and not value.uses():
                self._graph.remove(producer)
        return dict(self._fed_back())

    def _fed_back(self) -> list[tuple[str, str]]:
        pairs = []
        for key, value in self._current.items():
            own = self._inputs.get(key)
            if value is own:
                continue
            # A variable that is written and never read is state all the same to whoever looks at it.
            self._graph.outputs.append(value)
            pairs.append((key if own is None else own.name or key, f"{key}_out"))
        return pairs

    def _read(self, result: ir.Value, key: str) -> None:
        current = self._current.get(key)
        if current is None:
            current = self._current[key] = self._inputs[key] = self._input(result, key)
        ir.convenience.replace_all_uses_with(result, current, replace_graph_outputs=True)

    def _input(self, result: ir.Value, key: str) -> ir.Value:
        initial = self._initial.get(key)
        extents = [d if isinstance(d, int) else 1 for d in result.shape or ()]
        if initial is not None:
            extents = list(initial.shape)
        value = ir.Value(name=key, type=result.type, shape=ir.Shape(extents))
        value.meta.update(result.meta)
        assert result.dtype is not None
        tensor = np.zeros(extents, result.dtype.numpy()) if initial is None else initial
        value.const_value = ir.Tensor(tensor, name=key)
        self._graph.inputs.append(value)
        self._graph.register_initializer(value)
        return value

    def _initialize(self, node: ir.Node, spec: OperatorSpec) -> None:
        """Read initial values off the graph that runs once."""
        for option in spec.options.values():
            body = bound(option, option_value(node, option), self._subgraphs)
            if isinstance(body, Body):
                self._assigned(node, body.graph)

    def _assigned(self, node: ir.Node, graph: ir.Graph) -> None:
        handles: dict[ir.Value, str] = {}
        for inner in graph:
            spec = self._dialect.operators.get(inner.op_type)
            role = spec.role if spec is not None else None
            if spec is not None and role == VARIABLE:
                handles[inner.outputs[0]] = _key(inner, spec)
            elif role == ASSIGN and inner.inputs[0] in handles and inner.inputs[1] is not None:
                value = stored(inner.inputs[1])
                if value is None:
                    raise _computed(node, inner)
                self._initial[handles[inner.inputs[0]]] = value
            elif role is None:
                raise _computed(node, inner)


def _key(node: ir.Node, spec: OperatorSpec) -> str:
    """What a variable is called: its options, which name it the same in every graph of the model."""
    words = [str(option_value(node, option)) for option in spec.options.values()]
    return "/".join(word for word in words if word) or "variable"


def _computed(node: ir.Node, inner: ir.Node) -> UnsupportedError:
    reason = Reason("", Span("", 0, 0, 0, 0), f"the initial value of a variable is computed, by {inner.name}")
    return UnsupportedError([Refusal(node.op_type, node.name or "", (reason,))])


def described(state: Mapping[str, str]) -> dict[str, str]:
    """State as entries of a model's metadata: `nnrewrite.state.INPUT` is the output to feed to it."""
    return {f"{STATE}.{name}": output for name, output in state.items()}


#: the prefix of the metadata that lists a model's state
STATE = "nnrewrite.state"

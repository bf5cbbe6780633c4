"""The variables of a model: what each graph reads and writes of them, and how they begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import STATEFUL, read_initializer
from ..base.errors import Refusal, UnsupportedError
from ..base.names import show_name
from ..base.provenance import SOURCE
from ..base.startup import dataclass, field
from ..dialects.operators import Dialect, OperatorSpec, get_option
from ..rewrite.subgraphs import Body, bind_option

#: the roles in ops.yaml of the operators that name a variable, read it, write it, and run a graph the first time
VARIABLE, READ, ASSIGN, INITIALIZE = "variable", "read", "assign", "initialize"
#: the roles of the operators that name a table and fill it
TABLE, FILL = "table", "fill"

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Variables:
    """What is known of a model's variables, by their names.

    `handles` are the values that name one; `touched` has the variables that each graph and those it calls read or
    write; `samples` a value of the type and shape of each; `initial` what they begin with, where the model says so;
    `computed` the graphs whose outputs some begin with, and the names of these.
    """

    dialect: Dialect
    subgraphs: Sequence[ir.Graph]
    handles: dict[ir.Value, str] = field(default_factory=dict)
    touched: dict[ir.Graph, set[str]] = field(default_factory=dict)
    samples: dict[str, ir.Value] = field(default_factory=dict)
    initial: dict[str, Array] = field(default_factory=dict)
    computed: list[tuple[ir.Graph, tuple[str, ...]]] = field(default_factory=list)
    tables: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    #: how the variables are called that are no resources but values of a graph
    _names: dict[ir.Value, str] = field(default_factory=dict)

    def survey_graph(self, graph: ir.Graph) -> None:
        """Go through a graph and all that it calls; raises UnsupportedError where a table is not constant."""
        self._survey_body(graph)
        changed = True
        while changed:
            changed = False
            for caller, own in self.touched.items():
                for node in caller:
                    called = [self.touched[body] for body in self.list_bodies(node)]
                    together = {key for keys in called for key in keys}
                    # All graphs of one node are given the same, and who calls them has it to give.
                    for keys in (*called, own) if together else ():
                        changed = changed or not together <= keys
                        keys |= together

    def list_shared(self, node: ir.Node) -> list[str]:
        """The variables that the graphs of a node touch, in the order in which they came up."""
        called = [self.touched[body] for body in self.list_bodies(node)]
        return [key for key in self.samples if any(key in keys for keys in called)]

    def find_spec(self, node: ir.Node) -> OperatorSpec | None:
        return self.dialect.operators.get(node.op_type)

    def find_role(self, node: ir.Node) -> str | None:
        """What an operator does to variables; raises UnsupportedError where it has fewer operands or results than that
        takes."""
        spec = self.find_spec(node)
        if spec is None or spec.role is None:
            return None
        for declared, there in ((spec.operands, node.inputs), (spec.results, node.outputs)):
            for missing in declared[len(there) :]:
                if not (missing.optional or missing.variadic):
                    raise refuse_node(node, f"{missing.name} is missing")
        return spec.role

    def list_graphs(self, node: ir.Node) -> Iterator[tuple[ir.Graph, bool]]:
        """The graphs that a node runs each time, and for each whether it is a condition, which yields no results."""
        spec = self.find_spec(node)
        if spec is None or spec.role == INITIALIZE:
            return
        deciding = spec.facts.decides
        for option in spec.options.values():
            if "subgraph" in option.type:
                value = bind_option(option, get_option(node, option), self.subgraphs)
                for body in value if isinstance(value, list) else [value]:
                    if body is not None:
                        yield body.graph, option.name in deciding

    def list_bodies(self, node: ir.Node) -> Iterator[ir.Graph]:
        """The graphs that a node runs whenever it is run."""
        return (graph for graph, _ in self.list_graphs(node))

    def find_name(self, value: ir.Value | None) -> str | None:
        """The name of the variable that a value is itself, None where it is none or computed anew in each call."""
        if value is None or not value.meta.get(STATEFUL) or value.is_graph_input() or value.producer() is not None:
            return None
        if value not in self._names:
            base = value.name or STATEFUL
            taken = set(self._names.values())
            self._names[value] = base if base not in taken else f"{base}_{len(taken)}"
        return self._names[value]

    # ---- the survey

    def _survey_body(self, graph: ir.Graph) -> None:
        if graph in self.touched:
            return
        own = self.touched[graph] = set()
        for node in graph:
            role, first = self.find_role(node), node.inputs[0] if node.inputs else None
            if role in (VARIABLE, TABLE):
                self.handles[node.outputs[0]] = self._make_key(node)
            elif role == INITIALIZE:
                self._initialize(node)
            elif first in self.handles and role in (READ, ASSIGN):
                value = node.outputs[0] if role == READ else node.inputs[1]
                if value is not None:
                    self._touch(own, self.handles[first], value, role == READ)
            elif first in self.handles and role == FILL:
                self._fill(node, self.handles[first])
            for value in (*node.inputs, *(graph.outputs if node is graph[-1] else ())):
                name = self.find_name(value)
                if name is not None and value is not None:
                    self._touch(own, name, value, True)
            self._follow_calls(node)

    def _touch(self, own: set[str], key: str, value: ir.Value, read: bool) -> None:
        own.add(key)
        if read or key not in self.samples:
            self.samples[key] = value

    def _follow_calls(self, node: ir.Node) -> None:
        """Follow names of variables into the graphs of a node and out of them."""
        for body, decides in self.list_graphs(node):
            shift = len(node.inputs) - len(body.inputs)
            for outer, inner in zip(node.inputs[max(shift, 0) :], body.inputs, strict=False):
                if outer in self.handles:
                    known = self.handles.setdefault(inner, self.handles[outer])
                    if known != self.handles[outer]:
                        raise refuse_node(
                            node, f"a graph is given {known} by one node and {self.handles[outer]} by another"
                        )
            self._survey_body(body)
            if not decides:
                for inner, outer in zip(body.outputs, node.outputs, strict=False):
                    if inner in self.handles:
                        self.handles[outer] = self.handles[inner]

    def _make_key(self, node: ir.Node) -> str:
        """What a variable is called: its options, which name it the same in every graph of the model, or its node."""
        spec = self.find_spec(node)
        assert spec is not None
        named = [option for option in spec.options.values() if not option.type.startswith("[")]
        if not named:
            return node.name or spec.name.lower()
        options = [option for option in named if option.type == "string"] or named
        words = [str(get_option(node, option)) for option in options]
        return "/".join(word for word in words if word) or spec.name.lower()

    # ---- how they begin

    def _initialize(self, node: ir.Node) -> None:
        """Read initial values off the graph that runs once."""
        spec = self.find_spec(node)
        assert spec is not None
        for option in spec.options.values():
            body = bind_option(option, get_option(node, option), self.subgraphs)
            if isinstance(body, Body):
                self._assign(node, body.graph)

    def _assign(self, node: ir.Node, graph: ir.Graph) -> None:
        handles: dict[ir.Value | None, str] = {}
        given: dict[str, ir.Value] = {}
        for inner in list(graph):
            role, key = self.find_role(inner), handles.get(inner.inputs[0]) if inner.inputs else None
            if role in (VARIABLE, TABLE):
                handles[inner.outputs[0]] = self._make_key(inner)
            elif role == FILL and key is not None:
                self._fill(inner, key)
            elif role == ASSIGN and key is not None and inner.inputs[1] is not None:
                given[key] = inner.inputs[1]
            elif role in (READ, INITIALIZE):
                raise refuse_node(node, f"{inner.name} stands in the graph that initializes variables")
            if role in (FILL, ASSIGN):
                graph.remove(inner, safe=True)
        computed = {key: value for key, value in given.items() if read_initializer(value) is None}
        if computed and graph.inputs:
            raise refuse_node(node, "the graph that initializes variables has inputs")
        if computed:
            graph.outputs[:] = list(computed.values())
            self.computed.append((graph, tuple(computed)))
        for key, value in given.items():
            constant = read_initializer(value)
            if constant is not None:
                self.initial.setdefault(key, constant)
            self.samples.setdefault(key, value)

    def _fill(self, node: ir.Node, key: str) -> None:
        """What a table holds; the first to fill it does."""
        columns = [None if value is None else read_initializer(value) for value in node.inputs[1:]]
        columns = [c.astype(object) if c is not None and c.dtype.kind in "SU" else c for c in columns]
        if any(column is None for column in columns):
            raise refuse_node(node, "what a table holds is computed when the model runs")
        self.tables.setdefault(key, tuple(column for column in columns if column is not None))


def refuse_node(node: ir.Node, why: str) -> UnsupportedError:
    """An error about one node that no rule can do anything about."""
    source = node.metadata_props.get(SOURCE, "")
    return UnsupportedError([Refusal(node.op_type, show_name(node), why=why, source=source)])

"""The contract of a pass, the module that passes work on, and the one runner."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Protocol

import onnx_ir as ir

from ..base.errors import Refusal, RewriteError, UnsupportedError
from ..base.names import Scope
from ..base.startup import dataclass, field, replace
from ..dialects.operators import Dialect
from ..rewrite.apply import Outcome
from ..rewrite.profile import time_part
from ..rewrite.rules import RuleSet
from ..rewrite.subgraphs import NESTED, detach, find_bodies, list_called


class Visit(Enum):
    """The graphs that a pass runs on, and in which order."""

    #: the main graph alone
    MAIN = "main"
    #: the functions that the main graph may call, then the main graph
    FUNCTIONS_FIRST = "functions first"
    #: the main graph, then the bodies of its nodes, and theirs
    OUTSIDE_FIRST = "outside first"
    #: the bodies of nodes before the graph that the nodes are in, and both again where the pass makes new bodies
    INSIDE_FIRST = "inside first"


@dataclass(slots=True, eq=False)
class Module:
    """One graph of a model, what a pass needs to know to change it, and what passes found.

    `rules` are compiled for one opset. `functions` are the graphs that nodes of the source call by their numbers.
    `depth` is 0 for the main graph and for functions, and 1 more for the body of a node than for the graph it is in.

    `outcome` is what came of rules, `refusals` what cannot be converted: the runner raises them after the pass.
    `real` counts the quantized operators that compute with real numbers. `layouts` has the inputs and outputs whose
    axes stand in another order than in the source, as letters before and after. `state` maps the inputs that carry
    state to the outputs to feed to them, `kept` the outputs that a model is to
    keep for its next call to what the first one has. The modules of functions and
    bodies share all six. `forms` is the opset whose forms nodes have, where it is not that of the rules.
    """

    graph: ir.Graph
    rules: RuleSet
    names: Scope
    functions: Sequence[ir.Graph] = ()
    depth: int = 0
    outcome: Outcome = field(default_factory=Outcome)
    refusals: list[Refusal] = field(default_factory=list)
    real: Counter[str] = field(default_factory=Counter)
    layouts: dict[str, str] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    forms: int | None = None
    kept: dict[str, ir.TensorProtocol] = field(default_factory=dict)

    @property
    def source(self) -> Dialect:
        """The dialect that rules read."""
        return self.rules.source

    @property
    def target(self) -> Dialect:
        """The dialect that rules write."""
        return self.rules.target

    @property
    def schematic(self) -> Dialect:
        """The dialect whose operators have schemas, which tell types and shapes: the target where it has them."""
        return self.target if self.target.schemas else self.source

    @property
    def opset(self) -> int:
        """The opset whose forms nodes have."""
        return self.forms or self.rules.opset

    def enter_function(self, graph: ir.Graph) -> Module:
        """The module of a function: its names are its own."""
        return replace(self, graph=graph, names=Scope(graph))

    def enter_body(self, graph: ir.Graph) -> Module:
        """The module of a node's body, whose names and constants are those of the graph around it.

        Raises RewriteError where bodies nest too deep.
        """
        if self.depth == NESTED:
            raise RewriteError(f"graphs of nodes nest deeper than {NESTED}: {graph.name}")
        return replace(self, graph=graph, depth=self.depth + 1)


@contextmanager
def copy_graph(module: Module, graph: ir.Graph) -> Iterator[Module]:
    """The module of a copy of a graph, on which something is tried; nothing reads what it reads afterwards."""
    copied = graph.clone(allow_outer_scope_values=True)
    try:
        yield replace(module, graph=copied, names=Scope(copied))
    finally:
        for node in copied:
            detach(node)


def insert_first(graph: ir.Graph, nodes: Sequence[ir.Node]) -> None:
    """Put nodes in front of all others of a graph, which may have none."""
    if len(graph):
        graph.insert_before(graph[0], nodes)
    else:
        graph.extend(nodes)


class Pass(Protocol):
    """One step of a conversion: it changes the graph of its module and nothing else.

    The runner calls `run` for each graph that `visits` names; a pass never looks for the bodies of nodes itself.
    """

    @property
    def name(self) -> str:
        """What profiles, traces and `--print-after` call it."""

    @property
    def visits(self) -> Visit:
        """The graphs that it runs on."""

    def run(self, module: Module) -> None:
        """Change the graph of a module; raises RewriteError for what the user can mend."""


#: is told the pass that has run, and the module as it left it
Observer = Callable[[Pass, Module], None]


_OBSERVERS: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


@contextmanager
def observe(*observers: Observer) -> Iterator[None]:
    """Let observers be told of each pass that runs meanwhile."""
    token = _OBSERVERS.set((*_OBSERVERS.get(), *observers))
    try:
        yield
    finally:
        _OBSERVERS.reset(token)


def run_passes(passes: Iterable[Pass], module: Module) -> None:
    """Run passes one after the other, each on the graphs that it visits, and tell whoever observes.

    Raises UnsupportedError after a pass that left refusals, with all of them.
    """
    for one in passes:
        with time_part(one.name):
            for each in _visit(module, one):
                one.run(each)
        if module.refusals:
            raise UnsupportedError(module.refusals)
        for tell in _OBSERVERS.get():
            tell(one, module)


def _visit(module: Module, one: Pass) -> Iterator[Module]:
    if one.visits is Visit.FUNCTIONS_FIRST and module.functions:
        for graph in list_called(module.graph, module.source, module.functions):
            yield module.enter_function(graph)
    if one.visits is Visit.INSIDE_FIRST:
        yield from _visit_from_inside(module, one)
        return
    yield module
    if one.visits is Visit.OUTSIDE_FIRST:
        yield from _visit_inside(module, one)


def _visit_from_inside(module: Module, one: Pass) -> Iterator[Module]:
    """The modules of the bodies, then of the graph, and again while nodes get new bodies, which are better known."""
    visited: list[ir.Graph] = []
    for _ in range(NESTED):
        fresh = [body for node in _list_nodes_with_bodies(module) for body in find_bodies(node) if body not in visited]
        if visited and not fresh:
            return
        for body in fresh:
            yield from _visit(module.enter_body(body), one)
        visited += fresh
        yield module
        if not visited:
            return


def _visit_inside(module: Module, one: Pass) -> Iterator[Module]:
    for node in _list_nodes_with_bodies(module):
        for body in find_bodies(node):
            yield from _visit(module.enter_body(body), one)


def _list_nodes_with_bodies(module: Module) -> list[ir.Node]:
    """The nodes whose operators may have graphs among their attributes: few operators have."""
    domains = {module.source.domain, module.target.domain}
    may_have = _find_body_table((module.source, module.target), module.opset)
    return [node for node in module.graph if may_have[node.op_type] and node.domain in domains]


class _BodyTable(dict[str, bool]):
    """Whether nodes of an operator may have graphs among their attributes, as those may of which nothing is known."""

    def __init__(self, dialects: tuple[Dialect, ...], opset: int) -> None:
        self._dialects, self._opset = dialects, opset

    def __missing__(self, operator: str) -> bool:
        specs = [spec for dialect in self._dialects if (spec := dialect.find_operator(operator, self._opset))]
        if not specs:
            return True
        found = self[operator] = any(option.type == "subgraph" for spec in specs for option in spec.options.values())
        return found


#: what is known of the operators of dialects at an opset, once for all conversions
_find_body_table = functools.lru_cache(maxsize=64)(_BodyTable)

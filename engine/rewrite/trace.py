"""Trace of rules: each match, and why a rule did not apply, told to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import onnx_ir as ir

from ..base.errors import Reason, suggest_nearest
from ..base.provenance import SOURCE
from ..base.startup import dataclass, field


@dataclass(frozen=True, slots=True)
class Subject:
    """A node as it was before a rule was tried on it."""

    operator: str
    name: str
    names: frozenset[str]

    @classmethod
    def describe(cls, node: ir.Node) -> Subject:
        """Take down what a node is called, by its own name, its source's and those of its results."""
        results = [output.name for output in node.outputs if output.name]
        name = node.name or next(iter(results), node.op_type)
        source = node.metadata_props.get(SOURCE)
        return cls(node.op_type, name, frozenset({name, *results, *([source] if source else [])}))


@dataclass(frozen=True, slots=True)
class Trace:
    """Words each match by `say`; for the nodes called `node`, also each rule that was tried and where it stopped."""

    say: Callable[[str], None]
    node: str | None = None
    #: the names of the nodes that rules were tried on, and of their values
    met: set[str] = field(default_factory=set)

    def is_watching(self, subject: Subject) -> bool:
        """Whether rules that do not take a node are told too."""
        self.met.update(subject.names)
        return self.node is not None and self.node in subject.names

    def explain_silence(self) -> str:
        """Why the trace is empty: rules were tried, and none on a node called `node`; else nothing."""
        if self.node is None or not self.met or self.node in self.met:
            return ""
        inside = sorted(name for name in self.met if self.node in name)
        hint = f"; did you mean {inside[0]}?" if inside else suggest_nearest(self.node, sorted(self.met))
        return f"no node or value is called {self.node}{hint}"

    def report_fired(self, stage: str, place: str, subject: Subject, made: Sequence[ir.Node]) -> None:
        """Report that a rule rewrote a node."""
        if self.node is None or self.is_watching(subject):
            built = ", ".join(node.op_type for node in made) or "no node"
            self.say(f"{stage}: {place} takes {subject.operator} {subject.name}: {built}")

    def report_missed(self, stage: str, place: str, subject: Subject, reason: Reason | None) -> None:
        """Report that a rule did not match a node."""
        why = "it does not match" if reason is None else f"{reason.span}: {reason.message}"
        self.say(f"{stage}: {place} does not take {subject.operator} {subject.name}: {why}")


_WATCHING: ContextVar[Trace | None] = ContextVar("trace", default=None)


def get_trace() -> Trace | None:
    """The trace that is being taken, None where there is none."""
    return _WATCHING.get()


@contextmanager
def trace_rules(trace: Trace | None) -> Iterator[None]:
    """Let somebody watch while rules run."""
    token = _WATCHING.set(trace)
    try:
        yield
    finally:
        _WATCHING.reset(token)

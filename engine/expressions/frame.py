"""What an expression is evaluated in: the variables of a match, and what makes nodes in a template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..base.budget import Budget
from ..base.errors import Span
from ..base.startup import dataclass, field
from ..syntax import tree
from .functions import EvaluationError, Unsupported


class Emitter(Protocol):
    """What makes nodes when a template is evaluated; patterns and guards have none."""

    def emit(self, frame: Frame, call: tree.Call, operator: str, operands: list[Any], options: dict[str, Any]) -> Any:
        """Make a node; return its result, or the list of its results where several were asked for."""

    def make_graph(
        self,
        frame: Frame,
        expression: tree.GraphOf,
        operator: str,
        option: str,
        operands: list[Any],
        options: dict[str, Any],
    ) -> Any:
        """Build the graph that is an attribute of an operator; its parameters stand for the operator's operands."""

    def find_place(self, frame: Frame, call: tree.Call, result: str) -> int:
        """The position of a result that is named; what the call makes next has it and those before it."""

    def make_infix(self, frame: Frame, symbol: str, left: Any, right: Any) -> Any:
        """Make the node that an infix operator on run-time values stands for."""

    def arrange(self, frame: Frame, name: str, layout: str) -> Any:
        """The value of a variable, permuted to a layout."""


@dataclass(slots=True)
class Frame:
    """The variables of one match: values, and the layouts they were bound in."""

    values: dict[str, Any]
    layouts: dict[str, str] = field(default_factory=dict)
    definitions: Mapping[str, tree.Definition] = field(default_factory=dict)
    traits: Callable[[str], frozenset[str]] = lambda operator: frozenset()
    emitter: Emitter | None = None
    budget: Budget = field(default_factory=Budget)

    def make_inner(self, values: dict[str, Any]) -> Frame:
        """A frame for the body of a definition or comprehension."""
        return Frame(values, self.layouts, self.definitions, self.traits, self.emitter, self.budget)


class Located(Exception):
    """An evaluation that failed, with the place of the expression at fault."""

    def __init__(self, span: Span, cause: EvaluationError | Unsupported) -> None:
        self.span, self.cause = span, cause
        super().__init__(str(cause))

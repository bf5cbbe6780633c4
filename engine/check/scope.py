"""Variables in scope, and what an expression is checked against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..base.errors import Span
from ..base.startup import dataclass, field
from ..dialects.operators import Catalogue, Dialect
from ..expressions.opset_range import Opsets
from ..rewrite.availability import Availability
from ..syntax import tree
from ..syntax.diagnostics import Collector
from .kinds import ANY, Kinds

#: what a variable was bound as
OPERAND, OPTION, RESULT, WILDCARD = "operand", "option", "result", "operator variable"
LET, LOCAL, PARAMETER, ITEM = "`let`", "value", "parameter", "item"
#: a value inside a graph that a pattern looks into; how many values a name stands for
INSIDE, COUNT = "value inside a graph", "number of values"


@dataclass(slots=True)
class Variable:
    """A name that stands for something; `used` is set where an expression mentions it."""

    name: str
    span: Span
    bound_as: str
    kinds: Kinds
    layout: str | None = None
    used: bool = False
    #: bound in some of the alternatives of a pattern only
    partial: bool = False


@dataclass(slots=True)
class World:
    """What all rules of a run share."""

    catalogue: Catalogue
    definitions: dict[str, tree.Definition]
    #: definitions whose bodies make nodes
    builders: frozenset[str]
    #: definitions that may refuse what is converted
    refusers: frozenset[str]
    #: whether all files could be read, so that a definition that is not there is missing
    complete: bool
    diagnosis: Collector
    #: bodies of definitions that were checked, and what they yield
    bodies: dict[object, Kinds] = field(default_factory=dict)
    #: what exists at which opset, beside the definitions
    availability: Availability = field(init=False)

    def __post_init__(self) -> None:
        self.availability = Availability(self.definitions)


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands: what is in scope, which operators it may make, and at which opsets."""

    world: World
    scope: Mapping[str, Variable]
    source: Dialect
    target: Dialect
    builds: tuple[Dialect, ...]
    opsets: Opsets
    stage: str = ""
    #: all opsets that the file is for
    declared: Opsets = frozenset()
    #: inside a template, where nodes are made
    emits: bool = False
    #: the body of a definition that is checked for itself, of which no call is known
    general: bool = False
    #: the operator at the root of the pattern, None where it may be any
    root: str | None = None

    def extend(self, *variables: Variable) -> Context:
        """The same place with more variables."""
        return replace(self, scope={**self.scope, **{variable.name: variable for variable in variables}})

    def restrict(self, opsets: Opsets) -> Context:
        """The same place at fewer opsets."""
        return replace(self, opsets=opsets)

    def report(self, span: Span, message: str, help: str | None = None) -> None:
        """Tell a mistake."""
        self.world.diagnosis.add_error(span, message, help)

    @property
    def enums(self) -> dict[str, Mapping[str, int]]:
        """The enumerations of both dialects."""
        return {**self.target.enums, **self.source.enums}


def make_parameter(name: str, span: Span, kinds: Kinds = ANY, layout: str | None = None) -> Variable:
    """A parameter of a definition, whose dimensions have the names that they have where it is called."""
    return Variable(name, span, PARAMETER, kinds, layout)

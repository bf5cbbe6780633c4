"""The syntax tree of rule files: frozen nodes, each with the span it was read from."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import Span
from ..base.startup import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, `true`, `false` or `none`."""

    value: int | float | str | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """A variable: lower case."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Symbol:
    """An enumerant or a constant: upper case and not called."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """`not x` or `-x`."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """An infix operator between two expressions."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """`then if condition else other`."""

    then: Expression
    condition: Expression
    other: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Choice:
    """`left | right`: in a pattern either stands there, in a template the first is built that exists at the opset."""

    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """`x.C`, a dimension of a value whose layout was named; `TopK(x, k).Indices`, one result of an operator."""

    value: Expression
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    """`xs[i]`."""

    value: Expression
    index: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b, c]`."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Numbers:
    """A long list of plain numbers, as it is written."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[item for names in source if condition]`."""

    item: Expression
    names: tuple[str, ...]
    source: Expression
    condition: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Fold:
    """`fold(total = start for names in source: body)`: the body's value at each item, given the one before."""

    total: str
    start: Expression
    names: tuple[str, ...]
    source: Expression
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, with its marks: `const x`, `x?`, `xs...`, `x @ NHWC`, and the operand in `name: x`."""

    value: Expression
    const: bool
    optional: bool
    spread: bool
    layout: str | None
    span: Span
    operand: str | None = None
    group: tuple[str, str] | None = None  #: in `w[g] for g in gates`, both names


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name: value` in braces; `value` is the name itself where only the name was written, also in `name...`."""

    name: str
    value: Expression
    span: Span
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function applied to arguments; `wildcard` is the variable of `any op(...)`."""

    callee: str
    wildcard: bool
    arguments: tuple[Argument, ...]
    attributes: tuple[Attribute, ...]
    rest: bool
    span: Span
    callee_span: Span


@dataclass(frozen=True, slots=True)
class GraphOf:
    """`graph(parameters) { equations carried yield results }`: a graph as the value of an attribute."""

    parameters: tuple[Target, ...]
    equations: tuple[Equation, ...]
    results: tuple[Argument, ...]
    span: Span
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """`carry name: first -> next -> last` of a loop, `carry name...` for all others, `collect next -> last`."""

    name: str | None
    first: Argument | None
    next: Argument | None
    last: str | None
    span: Span


Expression = (
    Literal | Name | Symbol | Numbers | Unary | Binary | Conditional | Choice | Member | Index | ListOf
    | Comprehension | Fold | Call | GraphOf
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A name on the left of an equation; `count` names how many values it takes, where `xs[n]...` says so."""

    name: str
    spread: bool
    layout: str | None
    span: Span
    count: str | None = None


@dataclass(frozen=True, slots=True)
class Equation:
    """`targets = value`; `ys... = value...` where it is `repeated`, for any number of nodes beside the root."""

    targets: tuple[Target, ...]
    value: Expression
    span: Span
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """A guard: false means that the rule does not apply."""

    condition: Expression
    message: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Require:
    """A demand: false means that the rule applies but the case is unsupported."""

    condition: Expression
    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Remark:
    """What is to be told of a node that the rule is about."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """A compile-time value given a name; in `let name...` all clauses of a fragment."""

    name: str
    value: Expression
    span: Span
    spread: bool = False


Clause = Where | Require | Remark | Let


@dataclass(frozen=True, slots=True)
class Template:
    """One right-hand side, used where its condition holds; `reversible` for `<=>`."""

    condition: Expression | None
    equations: tuple[Equation, ...]
    span: Span
    reversible: bool = False


@dataclass(frozen=True, slots=True)
class Dimension:
    """An extent, a range of extents, or a name for one that is drawn."""

    low: int | None
    high: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """`x: f32[1, 5..8]` in a test clause; `member` names one of a group, or the group, in `w[gates]: f32[4, 3]`."""

    name: str
    type: str
    shape: tuple[Dimension, ...]
    span: Span
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Generator:
    """`option in [values]` in a test clause."""

    name: str
    domain: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Test:
    """What is needed to try a rule: operand types, and the domains of options and constants."""

    __test__ = False  # not for pytest to collect
    declarations: tuple[Declaration, ...]
    generators: tuple[Generator, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """`SOURCE => Target` in a table or an `over` family; `reversible` for `<=>`."""

    source: str
    target: str
    reversible: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewriting rule as written."""

    name: str
    stage: str
    priority: int
    over: tuple[Entry, ...]
    equations: tuple[Equation, ...]
    clauses: tuple[Clause, ...]
    templates: tuple[Template, ...]
    tests: tuple[Test, ...]
    span: Span
    definitions: tuple[Definition, ...] = ()  #: those that it alone calls
    other_stages: tuple[str, ...] = ()  #: in which it is tried as well


@dataclass(frozen=True, slots=True)
class Table:
    """Operators that correspond one to one."""

    name: str
    entries: tuple[Entry, ...]
    tests: tuple[Test, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Definition:
    """A named compile-time expression with parameters."""

    name: str
    parameters: tuple[str, ...]
    body: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Group:
    """`group gates = [input, output]`: names for values that are alike."""

    name: str
    members: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Fragment:
    """`fragment real(v) = Cast(v) {to: _}`, a part of patterns, or `fragment window = {strides, pads}`, options."""

    name: str
    parameters: tuple[str, ...]
    body: Expression | tuple[Attribute, ...]
    span: Span
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """`use kernels.codes as codes_of`: what is meant of another pack, and what it is called here; as in `reverse`."""

    pack: str
    name: str
    called: str
    span: Span


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One file: from which dialect to which, for which opsets, its items, and the pack `base` that it lies over."""

    name: str
    source: str
    target: str
    opsets: tuple[int, int]
    default_opset: int | None
    items: Sequence[Rule | Table | Definition]
    span: Span
    base: str | None = None  #: its definitions are called as the file's own, its rules come after the file's
    without: tuple[str, ...] = ()  #: rules of the base that do not hold
    rank: int = 0  #: of packs that are laid over each other, the last has the highest
    groups: tuple[Group, ...] = ()  #: written out in its items
    fragments: tuple[Fragment, ...] = ()  #: put in there
    awaited: tuple[str, ...] = ()  #: those of other packs, which are yet to be
    uses: tuple[Use, ...] = ()
    reverses: tuple[Use, ...] = ()
    after: tuple[str, ...] = ()  #: the pack that a step of its own applies before, and rules of it that do not hold

"""What the left side of a rule binds: its variables, each with the kinds of value that it may have."""

from __future__ import annotations

from collections import Counter

from ..base.errors import Span
from ..base.startup import dataclass, field
from ..syntax import tree
from ..syntax.tree_traversal import walk
from .kinds import ANY, ARRAY, NONE, NUMBER, VALUE, VALUES, Kinds, are_comparable, make_single, name_kinds
from .scope import COUNT, OPERAND, RESULT, Context, Variable


@dataclass(slots=True)
class LeftSide:
    """What the equations of a left side bind.

    `places` counts where a variable stands; `roots` are results that no other equation takes as an operand, `beside`
    those of them that are not of the root.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)
    certain: set[str] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    #: names that stand for a list, of an item for each of several operands or nodes, with what an item may be
    repeated: dict[str, Kinds] = field(default_factory=dict)
    #: what graphs of nodes yield, whatever it is
    yields: set[str] = field(default_factory=set)
    #: the options of the root, with their specs: the names that a test may give
    options: dict[str, Kinds] = field(default_factory=dict)
    operands: list[tree.Argument] = field(default_factory=list)
    root: str | None = None


class Binder:
    """Binds the names of a left side, and tells of those that cannot be what they are to be."""

    def __init__(self, context: Context, found: LeftSide) -> None:
        self._context, self._found = context, found

    def bind_target(self, target: tree.Target, bound_as: str) -> None:
        """Bind a name on the left of an equation, and that of its number of values."""
        self.bind_count(target.count, target.span)
        if target.name == "_":
            return
        known = self._found.variables.get(target.name)
        if known is not None and known.bound_as == RESULT:
            self._context.report(target.span, f"`{target.name}` is the result of two equations")
        self.check_layout(target.layout, target)
        if target.layout and target.spread:
            self._context.report(target.span, "several values have no common layout: `@` stands after a single name")
        kinds = make_single(VALUES) if target.spread else make_single(VALUE)
        self.bind_variable(Variable(target.name, target.span, bound_as, kinds, target.layout))

    def bind_count(self, name: str | None, span: Span) -> None:
        """Bind the name of how many values others take."""
        if name is not None:
            self.bind_variable(Variable(name, span, COUNT, make_single(NUMBER), used=True))
            self._found.certain.add(name)

    def bind_variable(self, variable: Variable) -> None:
        """Bind a variable, or hold it against what it is in other places."""
        known = self._found.variables.get(variable.name)
        if variable.name == "opset":
            self._context.report(variable.span, "`opset` is the opset aimed at and cannot be bound")
        elif known is None:
            self._found.variables[variable.name] = variable
        elif variable.name in self._found.repeated:
            self.report_repeated(variable, variable.span)
        elif known.layout and variable.layout and known.layout != variable.layout:
            message = f"`{variable.name}` is {known.layout} in one place and {variable.layout} in another"
            self._context.report(variable.span, message)
        elif not (are_comparable(known.kinds, variable.kinds) or self._share_constness(known, variable)):
            self._context.report(
                variable.span,
                f"`{variable.name}` is {name_kinds(known.kinds)} in one place and {name_kinds(variable.kinds)} here",
            )
        else:
            if ARRAY in variable.kinds:
                known.kinds = variable.kinds
            known.layout = known.layout or variable.layout

    def _share_constness(self, known: Variable, variable: Variable) -> bool:
        """Whether an operand is `const` in one place and not in another; it then counts as `const` in all."""
        kinds = frozenset({VALUE, ARRAY, NONE})
        return known.bound_as == variable.bound_as == OPERAND and known.kinds | variable.kinds <= kinds

    def check_layout(self, layout: str | None, place: tree.Target | tree.Argument) -> None:
        """Tell of a layout that names a dimension twice."""
        if layout and len(set(layout)) < len(layout):
            self._context.report(place.span, f"layout {layout} names a dimension twice")

    def report_repeated(self, variable: Variable, span: Span) -> None:
        """Tell of a name that is a list in one place and stands for one value in another."""
        self._context.report(
            span,
            f"`{variable.name}` has a value for each of several nodes, and stands for one elsewhere",
            "give it a name of its own, and compare the two in a `where`",
        )

    def bind_all_names(self, value: tree.Expression) -> tuple[Counter[str], set[str]]:
        """Bind the names in what is no pattern, so that one mistake is not reported again at each use."""
        names = [node.name for node in walk(value) if isinstance(node, tree.Name)]
        for name in names:
            self.bind_variable(Variable(name, value.span, OPERAND, ANY, used=True))
        return Counter(names), set(names)

"""Left sides of rules: patterns, and the variables that they bind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..base.errors import Span
from ..dialects.operators import Dialect, OperatorSpec, Option, list_catalogue
from ..expressions.opset_range import format_opsets
from ..rewrite.stages import JUDGING
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.tree_traversal import walk
from .arity import check_operands, check_results
from .connectivity import list_operands, report_unconnected
from .kinds import (
    ANY,
    ARRAY,
    GRAPH,
    LIST,
    NONE,
    VALUE,
    VALUES,
    Kinds,
    are_comparable,
    can_be,
    can_fit,
    find_option_kinds,
    make_single,
    name_kinds,
)
from .left_side import Binder, LeftSide
from .operations import find_specs, group_specs
from .scope import INSIDE, OPERAND, OPTION, RESULT, WILDCARD, Context, Variable
from .types import check_equality, infer

#: where a value is computed that is no operator's result
_LET = "what is computed once is a clause after the pattern, `let name = ...`"


def check_pattern(equations: tuple[tree.Equation, ...], reads: Dialect, context: Context) -> LeftSide:
    """Check the equations of a left side, of operators of the dialect that the stage reads."""
    found = LeftSide()
    walker = _Walker(reads, context, found)
    for equation in equations:
        if not equation.repeated:
            walker.check_equation(equation)
    for equation in equations:
        if equation.repeated:
            walker.check_siblings(equation, equation is equations[-1])
    counts = Counter(name for equation in equations for name in list_operands(equation.value))
    found.results = {t.name for equation in equations for t in equation.targets if t.name != "_"}
    found.roots = {name for name in found.results if not counts[name]}
    last = equations[-1]
    found.beside = found.roots - {target.name for target in last.targets}
    if isinstance(last.value, tree.Call) and not last.value.wildcard:
        found.root = last.value.callee
    walker.finish(equations)
    return found


class _Walker:
    def __init__(self, reads: Dialect, context: Context, found: LeftSide) -> None:
        self._reads, self._context, self._found = reads, context, found
        self._binder = Binder(context, found)

    # ---- equations

    def check_equation(self, equation: tree.Equation, bound_as: str = RESULT) -> None:
        self._check_variadics([target for target in equation.targets if target.spread and target.count is None])
        if all(target.name == "_" for target in equation.targets):
            self._report(equation.span, "an equation of a pattern names one result at least")
        for target in equation.targets:
            self._binder.bind_target(target, bound_as)
        counts = self._check_root(equation.value, equation)
        self._count_uses(counts)

    def check_siblings(self, equation: tree.Equation, root: bool) -> None:
        """An equation about any number of nodes beside the root: what no other equation binds is a list."""
        value, target, others = equation.value, equation.targets[0], equation.targets[1:]
        if root:
            self._report(equation.span, "the root of a pattern is one node", "an equation with `...` stands before it")
        if others or not target.spread or target.count is not None:
            self._report(equation.span, "the results of any number of nodes have one name", "write `ys... = ...`")
        if not isinstance(value, tree.Call):
            self._report(value.span, "what stands for several nodes is one operator and its operands")
            return
        before = set(self._found.variables)
        if target.name in before:
            self._report(target.span, f"`{target.name}` stands for any number of nodes, and is bound elsewhere")
        for one in equation.targets:
            self._binder.bind_target(one, RESULT)
        self._count_uses(self._check_repeated(value, replace(equation, targets=(replace(target, spread=False),))))

    def _check_variadics(self, without_count: Sequence[tree.Target | tree.Argument]) -> None:
        if len(without_count) > 1:
            self._report(
                without_count[1].span,
                "two names take any number of values each",
                "say of one how many: `xs[n]...`, where another names `n` values too",
            )

    def _check_root(self, value: tree.Expression, equation: tree.Equation) -> tuple[Counter[str], set[str]]:
        if isinstance(value, tree.Choice):
            return self._check_choice(value, equation)
        if isinstance(value, tree.Call):
            return self._check_call(value, equation)
        self._report(
            value.span,
            "an equation of a pattern has an operator on its right",
            self._find_infix_operator(value) or _LET,
        )
        return self._binder.bind_all_names(value)

    # ---- operators

    def _check_choice(self, choice: tree.Choice, equation: tree.Equation | None) -> tuple[Counter[str], set[str]]:
        sides = []
        for side in (choice.left, choice.right):
            if isinstance(side, tree.Choice):
                sides.append(self._check_choice(side, equation))
            elif isinstance(side, tree.Call):
                sides.append(self._check_call(side, equation))
            else:
                self._report(side.span, "an alternative of a pattern is an operator")
        if len(sides) < 2:
            return sides[0] if sides else (Counter(), set())
        (one_count, one_certain), (other_count, other_certain) = sides
        return one_count | other_count, one_certain & other_certain

    def _check_call(self, call: tree.Call, equation: tree.Equation | None) -> tuple[Counter[str], set[str]]:
        counts: Counter[str] = Counter()
        certain: set[str] = {call.callee} if call.wildcard else set()
        specs = self._find_specs(call)
        if call.wildcard:
            self._binder.bind_variable(Variable(call.callee, call.callee_span, WILDCARD, make_single("operator")))
            counts[call.callee] += 1
        elif call.rest and self._context.stage not in JUDGING:
            self._report(
                call.span,
                "`..` goes with `any`: a rule about one operator names its options",
                "`{option: _}` ignores one on purpose",
            )
        for attribute in call.attributes:
            options = self._check_option(attribute, specs, call)
            counts += options
            certain |= set(options)
        gaps = any(operand.variadic and operand.optional for spec in specs.values() for operand in spec.operands)
        for argument in call.arguments:
            more, sure = self._check_operand(argument, gaps)
            counts += more
            certain |= sure
        self._check_marks(call)
        if not call.wildcard:
            # What an older form asks for besides keeps the rule from its nodes, as for templates.
            for spec, opsets in list(group_specs(specs))[-1:]:
                whole = spec.dialect != self._context.target.name or opsets == self._context.declared
                check_operands(self._context, call, spec, "" if whole else f" at {format_opsets(opsets)}")
            if equation is not None and specs:
                check_results(self._context, equation, specs)
        if equation is not None and equation.value is call:
            self._found.operands = list(call.arguments)
            self._found.options = {
                option.name: find_option_kinds(option, self._context.enums)
                for spec in specs.values()
                for option in spec.options.values()
            }
        return counts, certain

    def _find_specs(self, call: tree.Call) -> dict[int, OperatorSpec]:
        """The specs in question, by opset; those of all operators with the options for `any`."""
        context, name = self._context, call.callee
        if call.wildcard:
            wanted = {attribute.name for attribute in call.attributes}
            known = list_catalogue(self._reads, max(context.opsets)).values()
            return {position: spec for position, spec in enumerate(known) if wanted <= spec.options.keys()}
        if not name[0].isupper():
            help = "a variable for any operator is written `any op(...)`"
            if name in context.world.definitions:
                help = "definitions are expanded in templates only"
            self._report(call.callee_span, f"a pattern names operators, and `{name}` is none", help)
            return {}
        other = context.target if self._reads is context.source else context.source
        if (
            self._reads.find_operator(name) is None
            and self._reads is not other
            and other.find_operator(name) is not None
        ):
            self._report(
                call.callee_span,
                f"`{name}` is an operator of {other.name}; stage {context.stage} reads {self._reads.name}",
            )
            return {}
        inner = replace(context, builds=(self._reads,), target=self._reads)
        return find_specs(name, call.callee_span, inner, "write `where opset >= {0}`")

    def _check_option(self, attribute: tree.Attribute, specs: dict[int, OperatorSpec], call: tree.Call) -> Counter[str]:
        name, value = attribute.name, attribute.value
        if [other.name for other in call.attributes].count(name) > 1:
            self._report(attribute.span, f"`{name}` is given twice")
        found = [spec.options[name] for spec in specs.values() if name in spec.options]
        kinds: Kinds = (
            frozenset().union(*(find_option_kinds(option, self._context.enums) for option in found)) if found else ANY
        )
        lacking = [opset for opset, spec in specs.items() if name not in spec.options]
        if call.wildcard and not specs:
            all_of_them = list_catalogue(self._reads, max(self._context.opsets)).values()
            known = {option for spec in all_of_them for option in spec.options}
            if name not in known:
                self._report(
                    attribute.span, f"no operator of {self._reads.name} has an option `{name}`", suggest(name, known)
                )
        elif specs and not found:
            some = next(iter(specs.values()))
            help = suggest(name, some.options, "its options") or (None if some.options else "it has no options at all")
            self._report(attribute.span, f"`{some.name}` has no option `{name}`", help)
        elif lacking and not call.wildcard and not (isinstance(value, tree.Name) and value.name == "_"):
            there = format_opsets(opset for opset, spec in specs.items() if name in spec.options)
            self._report(
                attribute.span,
                f"`{call.callee}` has no option `{name}` at {format_opsets(lacking)}",
                f"it has one at {there}: a guard such as `where opset >= {max(lacking) + 1}` limits the rule to those",
            )
        if isinstance(value, tree.Name):
            if value.name == "_":
                return Counter()
            self._binder.bind_variable(Variable(value.name, value.span, OPTION, kinds))
            return Counter([value.name])
        if isinstance(value, tree.GraphOf):
            if found and not can_be(kinds, make_single(GRAPH)):
                self._report(value.span, f"option `{name}` is {name_kinds(kinds)}, and this is a graph")
            return self._check_graph(value)
        self._check_constant(value, kinds, name, found)
        return Counter()

    def _check_graph(self, graph: tree.GraphOf) -> Counter[str]:
        """A graph of a node: what stands for its inputs, the equations that hold in it, and what it yields."""
        self._check_variadics([target for target in graph.parameters if target.spread and target.count is None])
        self._check_variadics([a for a in graph.results if a.spread and not isinstance(a.value, tree.Index)])
        names = Counter(target.name for target in graph.parameters if target.name != "_")
        for target in graph.parameters:
            self._binder.bind_target(target, INSIDE)
        for equation in graph.equations:
            if equation.repeated:
                self._report(equation.span, "in a graph an equation is about one node")
            self.check_equation(equation, INSIDE)
            names.update(target.name for target in equation.targets if target.name != "_")
        for argument in graph.results:
            counts, _ = self._check_operand(argument)
            names += counts
            if not isinstance(argument.value, tree.Call | tree.Choice):
                self._found.yields |= set(counts)
        return names

    def _check_constant(self, value: tree.Expression, kinds: Kinds, name: str, found: Sequence[Option]) -> None:
        for node in walk(value):
            if isinstance(node, tree.Name) and node.name != "opset":
                self._report(
                    value.span,
                    "an option is bound to a variable or compared with a constant",
                    f"write `{{{name}: v}}` and compare `v` in a `where`",
                )
                return
        others = infer(value, self._context)
        if found and not are_comparable(kinds, others):
            self._report(value.span, f"option `{name}` is {name_kinds(kinds)}, and this is {name_kinds(others)}")
        elif not all(can_fit(others, option) for option in found):
            self._report(value.span, f"option `{name}` is an integer, and this is a floating-point number")
        elif found:
            check_equality(value, kinds, value, others, value, self._context)

    def _check_operand(self, argument: tree.Argument, gaps: bool = False) -> tuple[Counter[str], set[str]]:
        """An operand of a pattern; with `gaps`, some of several values may be none."""
        value = argument.value
        self._binder.check_layout(argument.layout, argument)
        if isinstance(value, tree.Index) and isinstance(value.value, tree.Name) and isinstance(value.index, tree.Name):
            if not argument.spread:
                self._report(argument.span, "an item of a list is no pattern; so many values are `xs[n]...`")
            self._binder.bind_count(value.index.name, value.index.span)
            argument = replace(argument, value=value.value)
            value = value.value
        if isinstance(value, tree.Name):
            return self._bind_operand(argument, value, gaps)
        if argument.spread and isinstance(value, tree.Call):
            return self._check_repeated(value, None)
        for mark, there in (
            ("const", argument.const),
            ("?", argument.optional),
            ("...", argument.spread),
            ("@", argument.layout is not None),
        ):
            if there:
                self._report(argument.span, f"`{mark}` marks a variable of a pattern, and this is none")
        if isinstance(value, tree.Call):
            return self._check_call(value, None)
        if isinstance(value, tree.Choice):
            return self._check_choice(value, None)
        if not isinstance(value, tree.Literal) or isinstance(value.value, str):
            self._report(
                value.span,
                "an operand of a pattern is a variable, a number, `none` or an operator",
                self._find_infix_operator(value),
            )
            return self._binder.bind_all_names(value)
        return Counter(), set()

    def _bind_operand(self, argument: tree.Argument, value: tree.Name, gaps: bool) -> tuple[Counter[str], set[str]]:
        """An operand that is a variable, unless it is called `_`."""
        if value.name == "_":
            return Counter(), set()
        if argument.const and argument.spread:
            self._report(argument.span, "`const` and `...` exclude each other")
        if argument.layout and argument.spread:
            self._report(argument.span, "several values have no common layout: `@` stands after a single name")
        several = frozenset({VALUES, LIST}) if gaps else make_single(VALUES)
        kinds = several if argument.spread else make_single(ARRAY) if argument.const else make_single(VALUE)
        kinds |= make_single(NONE) if argument.optional else frozenset()
        self._binder.bind_variable(Variable(value.name, value.span, OPERAND, kinds, argument.layout))
        return Counter([value.name]), {value.name}

    def _check_repeated(self, call: tree.Call, equation: tree.Equation | None) -> tuple[Counter[str], set[str]]:
        """An operator that stands for any number of nodes: names are lists, but those that others have as well."""
        for node in walk(call):
            if isinstance(node, tree.Choice | tree.GraphOf) or (isinstance(node, tree.Call) and node.wildcard):
                self._report(node.span, "what stands for several nodes is one operator and its operands")
        before = set(self._found.variables)
        counts, certain = self._check_call(call, equation)
        for name in counts:
            variable = self._found.variables[name]
            if name in before:
                if equation is None:
                    self._binder.report_repeated(variable, call.span)
                continue
            self._found.repeated[name] = variable.kinds
            variable.kinds = make_single(VALUES if variable.kinds <= make_single(VALUE) else LIST)
        return counts, certain

    def _find_infix_operator(self, value: tree.Expression) -> str | None:
        if isinstance(value, tree.Binary):
            operator = self._reads.find_infix(value.operator)
            return f"a pattern names the operator: `{operator}(...)`" if operator else None
        return None

    def _check_marks(self, call: tree.Call) -> None:
        self._check_variadics([a for a in call.arguments if a.spread and not isinstance(a.value, tree.Index)])

    # ---- the whole

    def _count_uses(self, counted: tuple[Counter[str], set[str]]) -> None:
        counts, certain = counted
        self._found.places += counts
        self._found.certain |= certain

    def finish(self, equations: tuple[tree.Equation, ...]) -> None:
        found = self._found
        for equation in equations:
            found.certain |= {target.name for target in equation.targets}
            found.places.update(target.name for target in equation.targets)
        for name, variable in found.variables.items():
            variable.partial = name not in found.certain
            variable.used = found.places[name] > 1
        report_unconnected(equations, found.variables, self._context)

    def _report(self, span: Span, message: str, help: str | None = None) -> None:
        self._context.report(span, message, help)

"""`test` clauses: whether they say enough, and of things that are there."""

from __future__ import annotations

from ..errors import times
from ..functions import DTYPES
from ..operators import CONTEXT, FORM, UNTRIED, Dialect
from ..rules import MEANING
from . import tree
from .diagnosis import suggest
from .kinds import ANY, LIST, OPERATOR, VALUE, VALUES, Kinds, comparable, may, one, words
from .lefts import Left
from .meaning import element_type, equality, infer
from .scope import OPERAND, OPTION, WILDCARD, Context

_HOW = "such as `test x: f32[2, 3..5] for axis in [0, 1]`"


def rule_tests(rule: tree.Rule, left: Left, context: Context) -> None:
    """Check the tests of a rule against the variables of its pattern."""
    if rule.stage == MEANING:
        for test in rule.tests:
            help = f"the tests of the rules about `{left.root}` try it"
            context.error(test.span, "what an operator means is not tried by itself", help)
        return
    spec = context.source.operator(left.root) if left.root is not None else None
    form = spec is not None and not spec.traits.isdisjoint((FORM, CONTEXT))
    graphs = spec is not None and any("subgraph" in option.type for option in spec.options.values())
    if not rule.tests and not form and not graphs:
        # A test clause draws operands and options; a model with graphs of its own it cannot draw.
        context.error(rule.span, f"rule `{rule.name}` has no `test`", f"say how to try it, {_HOW}")
    operands = {v.name for v in left.variables.values() if v.bound_as == OPERAND}
    bound = {v.name: v.kinds for v in left.variables.values() if v.bound_as in (OPTION, WILDCARD)}
    domains: dict[str, Kinds] = {**left.options, **dict.fromkeys(operands, ANY), **bound}
    needed = {
        v.name
        for v in left.variables.values()
        if v.bound_as in (OPERAND, WILDCARD)
        and v.kinds & frozenset({VALUE, VALUES, "array", OPERATOR})
        and "none" not in v.kinds
        and v.name not in left.results | left.yields  # a graph may yield anything
    }
    # What no interpreter yields has the types and shapes that files say.
    said = set(left.results) if spec is not None and UNTRIED in spec.facts else set()
    for test in rule.tests:
        given = _clause(test, operands | said, domains, context)
        for name in sorted(needed - given):
            if name in bound:
                help = f"name some operators: `for {name} in [...]`"
            else:
                help = f"give it a type, `{name}: f32[2, 3]`, or values, `for {name} in [...]`"
            context.error(test.span, f"the test says nothing about `{name}`", help)


def table_tests(table: tree.Table, reads: Dialect, context: Context) -> None:
    """Check the tests of a table, whose operands have no names of their own: they are given in order."""
    if not table.tests:
        context.error(table.span, f"table `{table.name}` has no `test`", f"say how to try its operators, {_HOW}")
    for test in table.tests:
        names = {declaration.name for declaration in test.declarations}
        _clause(test, names, {}, context)
        for entry in table.entries:
            spec = reads.operator(entry.source)
            if spec is None:
                continue
            least, most = spec.arity()
            count = len(names)
            if count < min(least, 1) or (most is not None and count > most) or (count < least and most is not None):
                context.error(test.span, f"the test gives {times(count, 'operand')}, `{entry.source}` takes {least}")


def _clause(test: tree.Test, operands: set[str], domains: dict[str, Kinds], context: Context) -> set[str]:
    given: set[str] = set()
    for declaration in test.declarations:
        if declaration.name in given:
            context.error(declaration.span, f"the test gives `{declaration.name}` twice")
        given.add(declaration.name)
        if declaration.name not in operands:
            help = suggest(declaration.name, operands, "the operands")
            if declaration.name in domains:
                help = f"it is an option: `for {declaration.name} in [...]`"
            context.error(declaration.span, f"the pattern has no operand `{declaration.name}`", help)
        if declaration.type.removeprefix("q") not in DTYPES:
            help = element_type(declaration.type)
            context.error(declaration.span, f"there is no element type `{declaration.type}`", help)
        for dimension in declaration.shape:
            if dimension.low is not None and dimension.high is not None and dimension.low > dimension.high:
                context.error(declaration.span, f"the range {dimension.low}..{dimension.high} is empty")
    for generator in test.generators:
        name = generator.name
        if name in given:
            context.error(generator.span, f"the test gives `{name}` twice")
        given.add(name)
        if name not in domains:
            help = suggest(name, domains, "the operands and options")
            context.error(generator.span, f"the pattern has no operand or option `{name}`", help)
        _domain(generator, domains.get(name, ANY), context)
    return given


def _domain(generator: tree.Generator, kinds: Kinds, context: Context) -> None:
    domain = generator.domain
    if isinstance(domain, tree.ListOf):
        if not domain.items:
            context.error(domain.span, f"there is no value for `{generator.name}` to try")
        for item in domain.items:
            found = infer(item, context)
            if not comparable(kinds, found):
                context.error(item.span, f"`{generator.name}` is {words(kinds)}, and this is {words(found)}")
            else:
                equality(item, kinds, item, found, item, context)
        return
    found = infer(domain, context)
    if not may(found, one(LIST)):
        context.error(domain.span, f"values to try are a list, and this is {words(found)}")

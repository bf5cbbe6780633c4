"""`test` clauses: whether they set all that the pattern demands, and name only what exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import format_count
from ..dialects.onnx_schemas import Signature
from ..dialects.operators import CONTEXT, FORM, Dialect
from ..expressions.compile import Frame, Located, evaluate
from ..expressions.functions import DTYPES, convert_to_python
from ..expressions.values import is_same
from ..rewrite.stages import ADAPT, MEANING, OF_SOURCE
from ..syntax import tree
from ..syntax.diagnostics import spell, suggest
from .kinds import (
    ANY,
    GRAPH,
    LIST,
    NONE,
    NUMBER,
    OPERATOR,
    REAL,
    VALUE,
    VALUES,
    Kinds,
    are_comparable,
    can_be,
    make_single,
    name_kinds,
)
from .left_side import LeftSide
from .scope import OPERAND, OPTION, WILDCARD, Context
from .types import check_equality, infer, suggest_element_type

_HOW = "such as `test x: f32[2, 3..5] for axis in [0, 1]`"


def check_rule_tests(rule: tree.Rule, left: LeftSide, context: Context) -> None:
    """Check the tests of a rule against the variables of its pattern."""
    if rule.stage == MEANING:
        for test in rule.tests:
            help = f"the tests of the rules about `{left.root}` try it"
            context.report(test.span, "what an operator means is not tried by itself", help)
        return
    if rule.stage == ADAPT and not rule.tests:
        return  # the node tests of older opsets try it
    spec = context.source.find_operator(left.root) if left.root is not None else None
    form = spec is not None and not spec.traits.isdisjoint((FORM, CONTEXT))
    graphs = spec is not None and any("subgraph" in option.type for option in spec.options.values())
    lists = spec is not None and spec.schema is not None and _is_about_lists(spec.schema)
    if not rule.tests and not (form or graphs or lists) and not context.source.facts.fuzz.samples:
        # A test clause draws operands and options; lists, or a model with graphs of its own, it cannot draw.
        context.report(rule.span, f"rule `{rule.name}` has no `test`", f"say how to try it, {_HOW}")
    operands = {v.name for v in left.variables.values() if v.bound_as == OPERAND}
    kinds = {v.name: left.repeated.get(v.name, v.kinds) for v in left.variables.values()}  # a test gives each the same
    bound = {v.name: kinds[v.name] for v in left.variables.values() if v.bound_as in (OPTION, WILDCARD)}
    domains: dict[str, Kinds] = {**left.options, **dict.fromkeys(operands, ANY), **bound}
    needed = {
        v.name
        for v in left.variables.values()
        if v.bound_as in (OPERAND, WILDCARD)
        and kinds[v.name] & frozenset({VALUE, VALUES, "array", OPERATOR})
        and "none" not in kinds[v.name]
        and v.name not in left.results | left.yields  # a graph may yield anything
    }
    # What no interpreter yields has the types and shapes that files say.
    said = set(left.results) if spec is not None and spec.facts.fuzz.untried is not None else set()
    demanded = _list_demands(rule, context)
    for test in rule.tests:
        given = _check_clause(test, operands | said, domains, context)
        _check_matches(test, left, demanded, context)
        for name in sorted(needed - given):
            if name in bound:
                help = f"name some operators: `for {name} in [...]`"
            else:
                help = f"give it a type, `{name}: f32[2, 3]`, or values, `for {name} in [...]`"
            context.report(test.span, f"the test says nothing about `{name}`", help)


def _list_demands(rule: tree.Rule, context: Context) -> dict[str, tuple[Any, str]]:
    """The values that the root of a pattern wants options to have, those that it does not mention their defaults, each
    with why."""
    call = rule.equations[-1].value
    if not isinstance(call, tree.Call) or call.wildcard or call.rest:
        return {}
    reads = context.source if rule.stage in OF_SOURCE else context.target
    spec = reads.find_operator(call.callee, max(context.opsets))
    wanted = {attribute.name: attribute.value for attribute in call.attributes}
    found: dict[str, tuple[Any, str]] = {}
    for option in spec.options.values() if spec is not None else ():
        value = wanted.get(option.name)
        if value is None and not option.required:
            found[option.name] = (
                convert_to_python(option.default),
                "an option that it does not mention must have its default",
            )
        elif isinstance(value, tree.Literal | tree.Symbol):
            found[option.name] = (
                convert_to_python(evaluate(value, Frame({}))),
                "the pattern names the value that it takes",
            )
    return found


def _is_about_lists(schema: Signature) -> bool:
    """Whether an operator takes or yields something that has no element types: lists of values, or optional ones."""
    return any(one.variable and not one.types for one in (*schema.operands, *schema.results))


def _check_matches(test: tree.Test, left: LeftSide, demanded: Mapping[str, tuple[Any, str]], context: Context) -> None:
    """Tell what the pattern never takes of what a test says to try."""
    for generator in test.generators:
        if generator.name not in demanded or not isinstance(generator.domain, tree.ListOf):
            continue
        value, why = demanded[generator.name]
        for item in generator.domain.items:
            try:
                takes = is_same(convert_to_python(evaluate(item, Frame({}))), value)
            except (Located, KeyError):
                continue  # what is wrong with it has been told
            if not takes:
                message = f"the pattern takes `{generator.name}` only where it is {spell(value)}"
                context.report(item.span, message, f"{why}; `{{{generator.name}}}` in its braces takes any value")
    for declaration in test.declarations:
        variable = left.variables.get(declaration.name)
        if variable is None or not variable.layout or len(variable.layout) == len(declaration.shape):
            continue
        dimensions = format_count(len(declaration.shape), "dimension")
        context.report(declaration.span, f"`{variable.name}` is {variable.layout}, and the test gives it {dimensions}")


def check_table_tests(table: tree.Table, reads: Dialect, context: Context) -> None:
    """Check the tests of a table, whose operands have no names of their own: they are given in order."""
    if not table.tests and not reads.facts.fuzz.samples:
        context.report(table.span, f"table `{table.name}` has no `test`", f"say how to try its operators, {_HOW}")
    for test in table.tests:
        names = {declaration.name for declaration in test.declarations}
        _check_clause(test, names, {}, context)
        for entry in table.entries:
            spec = reads.find_operator(entry.source)
            if spec is None:
                continue
            least, most = spec.count_operands()
            count = len(names)
            if count < min(least, 1) or (most is not None and count > most) or (count < least and most is not None):
                context.report(
                    test.span, f"the test gives {format_count(count, 'operand')}, `{entry.source}` takes {least}"
                )


def _check_clause(test: tree.Test, operands: set[str], domains: dict[str, Kinds], context: Context) -> set[str]:
    given: set[str] = set()
    for declaration in test.declarations:
        if declaration.name in given:
            context.report(declaration.span, f"the test gives `{declaration.name}` twice")
        given.add(declaration.name)
        if declaration.name not in operands:
            help = suggest(declaration.name, operands, "the operands")
            if declaration.name in domains:
                help = f"it is an option: `for {declaration.name} in [...]`"
            context.report(declaration.span, f"the pattern has no operand `{declaration.name}`", help)
        if declaration.type.removeprefix("q") not in DTYPES:
            help = suggest_element_type(declaration.type)
            context.report(declaration.span, f"there is no element type `{declaration.type}`", help)
        for dimension in declaration.shape:
            if dimension.low is not None and dimension.high is not None and dimension.low > dimension.high:
                context.report(declaration.span, f"the range {dimension.low}..{dimension.high} is empty")
    for generator in test.generators:
        name = generator.name
        if name in given:
            context.report(generator.span, f"the test gives `{name}` twice")
        given.add(name)
        if name not in domains:
            help = suggest(name, domains, "the operands and options")
            context.report(generator.span, f"the pattern has no operand or option `{name}`", help)
        _check_domain(generator, domains.get(name, ANY), context)
    return given


def _check_graph(name: str, item: tree.Expression, context: Context) -> None:
    """Check that the value of an option that is a graph lists the operators in it."""
    words = item.items if isinstance(item, tree.ListOf) else ()
    named = [word for word in words if isinstance(word, tree.Literal) and isinstance(word.value, str)]
    if not isinstance(item, tree.ListOf) or len(named) < len(words):
        help = 'one after the other, `["ADD"]`; `[]` is a graph that yields the last of what it is given'
        context.report(item.span, f"`{name}` is a subgraph, of which a test lists the operators", help)
    for word in named:
        if context.source.find_operator(str(word.value)) is None:
            meant = suggest(str(word.value), context.source.operators)
            context.report(word.span, f"{context.source.name} has no operator `{word.value}`", meant)


def _check_domain(generator: tree.Generator, kinds: Kinds, context: Context) -> None:
    domain = generator.domain
    if isinstance(domain, tree.ListOf):
        if not domain.items:
            context.report(domain.span, f"there is no value for `{generator.name}` to try")
        for item in domain.items:
            if kinds - {NONE} == make_single(GRAPH):
                _check_graph(generator.name, item, context)
                continue
            found = infer(item, context)
            if kinds - {NONE} == make_single(NUMBER) and found == make_single(REAL):
                context.report(item.span, f"`{generator.name}` is an integer, and this is a floating-point number")
            elif not are_comparable(kinds, found):
                context.report(item.span, f"`{generator.name}` is {name_kinds(kinds)}, and this is {name_kinds(found)}")
            else:
                check_equality(item, kinds, item, found, item, context)
        return
    found = infer(domain, context)
    if not can_be(found, make_single(LIST)):
        context.report(domain.span, f"values to try are a list, and this is {name_kinds(found)}")

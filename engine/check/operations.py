"""Operators in templates: whether they exist at each opset, and take what they are given."""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import Span
from ..dialects.operators import Dialect, OperatorSpec
from ..expressions.opset_range import format_opsets, is_omitted
from ..rewrite.stages import MEANING
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.habits import suggest_for_member
from .kinds import (
    ANY,
    ARRAY,
    ENUM,
    NONE,
    NUMBER,
    RUNTIME,
    TEXT,
    VALUE,
    VALUES,
    Kinds,
    can_be,
    can_fit,
    find_attribute_kinds,
    make_single,
    name_kinds,
)
from .scope import PARAMETER, Context
from .types import infer, refuse_replaced
from .vocabulary import list_operators

_TEMPLATE = "write `when opset >= {0}:` and a template for older opsets"


#: how a template names what it makes on the way
_NAMED = "behind `=>` a line of its own, before that of the result, names what a node yields: `v = ...`"


class Given(NamedTuple):
    """An argument with the kinds of its value."""

    argument: tree.Argument
    kinds: Kinds


def check_matched_operator(expression: tree.Call, context: Context) -> Kinds:
    """`op(...)`: the operator that `any op` found."""
    if not context.emits:
        context.report(expression.span, "operators make nodes and stand in templates only")
    for argument in expression.arguments:
        check_operand(argument, context)
    known = (context.source, *context.builds)
    names = {name for dialect in known for spec in dialect.operators.values() for name in spec.options}
    for attribute in expression.attributes:
        infer(attribute.value, context)
        if attribute.name not in names:
            context.report(
                attribute.span, f"no operator has an option `{attribute.name}`", suggest(attribute.name, names)
            )
    return frozenset({VALUE, VALUES})


def check_operator(expression: tree.Call, context: Context) -> Kinds:
    name = expression.callee
    if not context.emits:
        context.report(expression.span, f"operators make nodes and stand in templates only: `{name}`", _NAMED)
    given = [Given(argument, check_operand(argument, context)) for argument in expression.arguments]
    values = [(attribute, infer(attribute.value, context)) for attribute in expression.attributes]
    written = [attribute.name for attribute in expression.attributes]
    for attribute in expression.attributes:
        if written.count(attribute.name) > 1:
            context.report(attribute.span, f"`{attribute.name}` is given twice")
    if expression.rest and name != context.root:
        context.report(expression.span, "`..` keeps the options of the operator replaced, and this is another one")
    specs = find_specs(name, expression.callee_span, context)
    for spec, opsets in group_specs(specs):
        at = "" if spec.dialect != context.target.name or opsets == context.declared else f" at {format_opsets(opsets)}"
        _check_operands(expression, given, spec, at, specs, context)
        for attribute, kinds in values:
            _check_attribute(attribute, kinds, spec, specs, context)
    if not expression.rest:
        _require_options(expression, specs, context)
    return frozenset({VALUE, VALUES})


@infer.register(tree.Member)
def _check_member(expression: tree.Member, context: Context) -> Kinds:
    letter, span = expression.name, expression.span
    if isinstance(expression.value, tree.Call):
        return check_picked_result(expression.value, letter, span, context)
    if not isinstance(expression.value, tree.Name):
        context.report(span, f"`.{letter}` stands after the name of a value whose layout the rule names")
        return frozenset({NUMBER, NONE})
    name = expression.value.name
    kinds = infer(expression.value, context)
    variable = context.scope.get(name)
    help = suggest_for_member(name, letter)
    if variable is not None and help is not None:
        context.report(span, f"`{name}` has no member `{letter}`", help)
        return ANY
    if variable is not None and not can_be(kinds, RUNTIME | frozenset({ARRAY})):
        context.report(span, f"`{name}` has no dimensions: it is {name_kinds(kinds)}")
    elif variable is not None and variable.layout is None and not (context.general and variable.bound_as == PARAMETER):
        help = f"name its dimensions in the pattern, such as `{name} @ NHWC`"
        if variable.bound_as == PARAMETER:
            help = f"name the dimensions of what is given for `{name}`, in the pattern or as `f(x @ NHWC)`"
        elif variable.bound_as not in ("operand", "result", "value"):
            help = f"layouts belong to the values of a pattern; pass `{name}.{letter}` in as a number"
        context.report(span, f"`{name}` has no layout, so it has no dimension `{letter}`", help)
    elif variable is not None and variable.layout is not None and letter not in variable.layout:
        context.report(
            span,
            f"`{name}` is {variable.layout} and has no dimension `{letter}`",
            suggest(letter, variable.layout, "its dimensions"),
        )
    return frozenset({NUMBER, NONE})


def check_picked_result(call: tree.Call, name: str, span: Span, context: Context) -> Kinds:
    """Check `OPERATOR(...).name`, one result of an operator by the name that it has there."""
    if not call.callee[0].isupper():
        context.report(span, f"`.{name}` stands after the name of a value whose layout the rule names, or an operator")
        return ANY
    check_operator(call, context)
    for dialect in context.builds:
        spec = dialect.find_operator(call.callee, max(context.opsets, default=None))
        if spec is None:
            continue
        names = [result.name for result in spec.results if not result.variadic]
        if name not in names:
            help = (
                suggest(name, names, "its results")
                or "`a, b... = ...` names the results of an operator with any number"
            )
            context.report(span, f"`{spec.name}` has no result `{name}`", help)
        break
    return make_single(VALUE)


def list_required(spec: OperatorSpec) -> list[str]:
    """The options that every node has, but for those that are given as operands."""
    stored = {option.name for option in spec.stored.values()}
    return [option.name for option in spec.options.values() if option.required and option.name not in stored]


def _require_options(expression: tree.Call, specs: dict[int, OperatorSpec], context: Context) -> None:
    written = {attribute.name for attribute in expression.attributes}
    for name in dict.fromkeys(option for spec in specs.values() for option in spec.options):
        wanting = frozenset(o for o, spec in specs.items() if name in list_required(spec))
        if wanting and name not in written:
            at = "" if wanting == context.declared else f" at {format_opsets(wanting)}"
            context.report(expression.span, f"`{expression.callee}` needs the attribute `{name}`{at}")


def find_specs(name: str, span: Span, context: Context, remedy: str = _TEMPLATE) -> dict[int, OperatorSpec]:
    """The spec of an operator at each opset in reach; where it does not exist at all of them, that is told.

    `remedy` says what to write where the operator exists from some opset on.
    """
    for dialect in context.builds:
        specs = {opset: spec for opset in context.opsets if (spec := dialect.find_operator(name, opset)) is not None}
        if specs:
            break
    if len(specs) == len(context.opsets) or (specs and context.general):
        return specs
    target = context.builds[-1]
    newest = target.find_operator(name)
    if name in ("SRC", "DST"):
        context.report(span, f"`{name}` stands in `over` families only")
    elif not specs and newest is None and context.source.find_operator(name) is not None:
        context.report(
            span,
            f"`{name}` is an operator of {context.source.name}; stage {context.stage or 'lower'} writes {target.name}",
            "only the stages meaning, integers and normalize write operators of the source",
        )
    elif not specs and newest is None and context.stage == MEANING and context.target.find_operator(name) is not None:
        context.report(
            span,
            f"`{name}` is an operator of {context.target.name}; stage meaning writes {target.name}",
            suggest(name, list_operators(target, context.opsets)),
        )
    elif not specs and newest is None:
        context.report(
            span,
            f"dialect {target.name} has no operator `{name}`",
            suggest(name, list_operators(target, context.opsets)) or _find_custom_domain(target),
        )
    else:
        there = frozenset(range(1, max(context.opsets) + 1))
        first = next((opset for opset in sorted(there) if target.find_operator(name, opset) is not None), None)
        lacking = frozenset(context.opsets) - frozenset(specs)
        since = first is not None and all(opset < first for opset in lacking)
        context.report(
            span,
            f"operator `{name}` does not exist at {format_opsets(lacking)}",
            f"it exists from opset {first} on: {remedy.format(first)}" if first is not None and since else None,
        )
    return specs


def _find_custom_domain(dialect: Dialect) -> str | None:
    """Where operators come from that only their author knows, in a dialect that has a place for them."""
    known = any(spec.role == "custom" for spec in dialect.operators.values())
    return "an operator of your own is described in the `ops.yaml` of its pack" if known else None


def group_specs(specs: dict[int, OperatorSpec]) -> list[tuple[OperatorSpec, frozenset[int]]]:
    """Specs that are alike with the opsets they hold at, so that each mistake is told once."""
    groups: list[tuple[OperatorSpec, set[int]]] = []
    for opset, spec in specs.items():
        for known, opsets in groups:
            if known is spec or (
                (known.operands, known.results, known.options) == (spec.operands, spec.results, spec.options)
            ):
                opsets.add(opset)
                break
        else:
            groups.append((spec, {opset}))
    return [(spec, frozenset(opsets)) for spec, opsets in groups]


def check_operand(argument: tree.Argument, context: Context) -> Kinds:
    value = argument.value
    if argument.const:
        context.report(argument.span, "`const` stands in patterns only")
    kinds = infer(value, context)
    refuse_replaced(value, kinds, context)
    if argument.layout:
        check_arranged(argument, context)
    if argument.spread:
        if not can_be(kinds, frozenset({VALUES, "list", "array"})):
            context.report(argument.span, f"`...` spreads a list, and this is {name_kinds(kinds)}")
        return ANY
    if kinds == make_single(VALUES):
        context.report(argument.span, "several values stand where one belongs", "spread them: `xs...`")
    elif not can_be(kinds, ANY - TEXT - frozenset({"subgraph"})):
        context.report(argument.span, f"an operand is a value or a number, and this is {name_kinds(kinds)}")
    if argument.optional and (kinds and NONE not in kinds and kinds != ANY):
        context.report(argument.span, "`?` marks an operand that may be left out, and this one never is")
    return kinds


def check_arranged(argument: tree.Argument, context: Context) -> None:
    """Check `x @ NCHW` where it stands for a value, permuted."""
    layout = argument.layout
    assert layout is not None
    if context.stage == MEANING:
        help = "the source's own operator permutes, and takes its order as an operand"
        context.report(argument.span, "a meaning says what is computed, and permutes nothing by `@`", help)
        return
    if not isinstance(argument.value, tree.Name):
        context.report(argument.span, "`@` stands after a name", "name the value in an equation of its own")
        return
    if not context.emits:
        context.report(
            argument.span, f"`@ {layout}` permutes a value, in templates only", "leave it out: names are enough"
        )
    variable = context.scope.get(argument.value.name)
    if variable is None or (context.general and variable.bound_as == PARAMETER):
        return
    if variable.layout is None:
        context.report(
            argument.span,
            f"`{variable.name}` has no layout to be turned into {layout}",
            f"name its dimensions where it is bound, such as `{variable.name} @ NHWC`",
        )
    elif sorted(variable.layout) != sorted(layout):
        context.report(
            argument.span, f"`{variable.name}` is {variable.layout}, which has other dimensions than {layout}"
        )


def _check_operands(
    expression: tree.Call,
    given: list[Given],
    spec: OperatorSpec,
    at: str,
    specs: dict[int, OperatorSpec],
    context: Context,
) -> None:
    """Compare operands with those that an operator has."""
    least, most = spec.count_operands()
    spread = any(argument.spread for argument, _ in given)
    fixed = sum(not argument.spread for argument, _ in given)
    if (fixed < least and not spread) or (most is not None and fixed > most):
        takes = frozenset(o for o, other in specs.items() if _is_count_allowed(other, fixed))
        help = f"its operands are {', '.join(_describe_operands(spec))}" if spec.operands else None
        if takes:
            help = f"it does at {format_opsets(takes)}: write a template for each: what an opset lacks is passed over"
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        context.report(
            expression.span,
            f"`{spec.name}` takes {wanted} operand{'s' * (wanted != '1')}{at}, "
            f"{fixed} {'is' if fixed == 1 else 'are'} given",
            help,
        )
        return
    if spread:
        return
    for (argument, kinds), formal in zip(given, spec.operands, strict=False):
        if formal.optional or formal.variadic:
            continue
        if kinds == make_single(NONE):
            context.report(argument.span, f"operand `{formal.name}` of `{spec.name}` cannot be left out{at}")
        elif argument.optional:
            context.report(argument.span, f"operand `{formal.name}` of `{spec.name}` is not optional{at}")


def _is_count_allowed(spec: OperatorSpec, count: int) -> bool:
    least, most = spec.count_operands()
    return count >= least and (most is None or count <= most)


def _describe_operands(spec: OperatorSpec) -> list[str]:
    return [f"{o.name}{'?' * o.optional}{'...' * o.variadic}" for o in spec.operands]


def _report_lacking(
    attribute: tree.Attribute, spec: OperatorSpec, specs: dict[int, OperatorSpec], context: Context
) -> None:
    """Tell at which opsets an operator has no such attribute, and where it has one."""
    name = attribute.name
    lacking = frozenset(
        opset for opset, other in specs.items() if name not in other.options and not is_omitted(attribute.value, opset)
    )
    if len(lacking) == len(specs):
        help = suggest(name, spec.options, "its attributes")
        at = "" if frozenset(specs) == context.declared else f" at {format_opsets(specs)}"
        context.report(attribute.span, f"`{spec.name}` has no attribute `{name}`{at}", help)
    elif lacking and not context.general:
        there = frozenset(opset for opset, other in specs.items() if name in other.options)
        context.report(
            attribute.span,
            f"`{spec.name}` has no attribute `{name}` at {format_opsets(lacking)}",
            f"it has one at {format_opsets(there)}: write a template for each: what an opset lacks is passed over",
        )


def _check_attribute(
    attribute: tree.Attribute, kinds: Kinds, spec: OperatorSpec, specs: dict[int, OperatorSpec], context: Context
) -> None:
    name, value = attribute.name, attribute.value
    option = spec.options.get(name)
    if option is None:
        _report_lacking(attribute, spec, specs, context)
        return
    if option.type in context.enums:
        known = context.enums[option.type]
        if isinstance(value, tree.Symbol) and value.name not in known:
            context.report(value.span, f"`{value.name}` is no {option.type}", suggest(value.name, known, "there"))
        elif not can_be(kinds, frozenset({ENUM, NONE})):
            context.report(value.span, f"`{name}` is an enumerant of {option.type}, and this is {name_kinds(kinds)}")
    elif kinds and kinds <= RUNTIME | make_single(VALUES):
        context.report(
            value.span,
            f"attribute `{name}` is a compile-time value, and this is {name_kinds(kinds)}",
            "write `const x` in the pattern for an operand whose value the rule needs",
        )
    elif not can_be(kinds, find_attribute_kinds(option)):
        context.report(
            value.span, f"attribute `{name}` of `{spec.name}` is {option.type}, and this is {name_kinds(kinds)}"
        )
    elif not all(can_fit(item, option) for item in (kinds, *_infer_items(value, context))):
        help = f"`int({value.name})` is an integer" if isinstance(value, tree.Name) else "`int(...)` makes an integer"
        message = f"attribute `{name}` of `{spec.name}` is {option.type}, and this is a floating-point number"
        context.report(value.span, message, help)
    elif option.required and kinds == make_single(NONE):
        context.report(value.span, f"attribute `{name}` of `{spec.name}` cannot be left out")


def _infer_items(value: tree.Expression, context: Context) -> list[Kinds]:
    """The kinds of each item of a list that is written out."""
    return [infer(item, context) for item in value.items] if isinstance(value, tree.ListOf) else []

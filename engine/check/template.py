"""Right sides of rules: which templates are reached at which opsets, and what each of them yields."""

from __future__ import annotations

from dataclasses import replace

from ..base.errors import format_count
from ..expressions.opset_range import Opsets, decide, find_possible
from ..rewrite.stages import MEANING
from ..syntax import tree
from ..syntax.diagnostics import add_article, join_words, suggest
from ..syntax.tree_traversal import iterate_tails, walk
from .kinds import ANY, OLD, RUNTIME, VALUE, VALUES, Kinds, can_be, make_single, name_kinds
from .left_side import LeftSide
from .scope import LOCAL, Context, Variable
from .types import check_condition, infer


def check_templates(rule: tree.Rule, left: LeftSide, context: Context) -> None:
    """Check the templates of a rule, each at the opsets at which it may be reached."""
    remaining = context.opsets
    for template in rule.templates:
        if not remaining:
            context.report(
                template.span, "this template is never reached: one before it holds always", "give that one a `when`"
            )
            continue
        asked = remaining
        if template.condition is not None:
            check_condition(template.condition, context.restrict(remaining))
            asked = find_possible(template.condition, remaining)
            if not asked:
                context.report(
                    template.condition.span, "this condition holds at none of the opsets that are left for it"
                )
        there = _list_available(template, rule, context)
        remaining -= {o for o in there if template.condition is None or decide(template.condition, o) is True}
        if reached := asked & there:
            _check_template(template, left, replace(context.restrict(reached), emits=True))


def _list_available(template: tree.Template, rule: tree.Rule, context: Context) -> Opsets:
    """The opsets at which a template is considered: those where everything that it names exists.

    The last one is held against all of them where the newest lacks something, so that it is told what is missing.
    """
    found = context.world.availability.list_opsets(template.equations, context.builds, context.opsets)
    gone = template is rule.templates[-1] and max(context.opsets) not in found
    return context.opsets if gone or not found else found


def _check_template(template: tree.Template, left: LeftSide, context: Context) -> None:
    assigned = {target.name: target for equation in template.equations for target in equation.targets}
    replaced = assigned.keys() & left.results
    stays = {one.name for one in walk(template.equations) if isinstance(one, tree.Name)} & left.beside - assigned.keys()
    for name in sorted(left.roots - assigned.keys() - stays):
        if name.startswith("_"):
            continue
        context.report(
            template.span, f"the template does not say what becomes of `{name}`", f"write an equation `{name} = ...`"
        )
    scope = dict(context.scope)
    for name in replaced | left.roots - stays:
        variable = scope[name]
        kinds = make_single(OLD) if variable.kinds == make_single(VALUE) else variable.kinds
        scope[name] = replace(variable, kinds=kinds)
    locals: list[Variable] = []
    inner = replace(context, scope=scope)
    for equation in template.equations:
        inner = _check_equation(equation, left, inner, locals)
    for name in scope:
        # What a template uses is used by the rule.
        context.scope[name].used = context.scope[name].used or scope[name].used
    for variable in locals:
        if not variable.used and not variable.name.startswith("_"):
            help = suggest(variable.name, left.roots) or f"call it `_{variable.name}` to ignore it on purpose"
            context.report(variable.span, f"`{variable.name}` is never used", help)


def _check_yield(equation: tree.Equation, kinds: Kinds, context: Context) -> None:
    """Tell what is yielded that is no value of a model, or are more or fewer than there are names for."""
    targets = equation.targets
    if kinds == make_single(OLD):
        context.report(equation.value.span, "the rule replaces this value by itself")
    elif kinds and kinds <= make_single(VALUES) and not any(target.spread for target in targets) and len(targets) == 1:
        context.report(equation.span, f"several values are yielded for `{targets[0].name}`", "write `ys... = ...`")
    elif kinds and kinds <= RUNTIME and (len(targets) > 1 or targets[0].spread) and not _list_calls(equation.value):
        context.report(
            equation.span, f"one value is yielded for {format_count(len(targets), 'name')}", "write a list: `[x]`"
        )
    elif not can_be(kinds, RUNTIME | frozenset({VALUES, "number", "bool", "list", "array"})):
        context.report(equation.value.span, f"a template yields values, and this is {name_kinds(kinds)}")


def _check_equation(equation: tree.Equation, left: LeftSide, context: Context, locals: list[Variable]) -> Context:
    targets = equation.targets
    kinds = infer(equation.value, context)
    if equation.repeated:
        help = "one list is `ys... = [... for x in xs]`"
        context.report(equation.span, "`...` behind an equation is about nodes of a pattern", help)
    _check_yield(equation, kinds, context)
    for call in _list_calls(equation.value):
        _check_results(call, equation, context)
    yields = _infer_result_kinds(equation, kinds)
    spreads = [target for target in targets if target.spread and target.name not in left.results]
    if len(spreads) > 1:
        context.report(spreads[1].span, "only one name on the left of an equation can be spread by `...`")
    for target in targets:
        if target.count is not None:
            infer(tree.Name(target.count, target.span), context)
        known = context.scope.get(target.name)
        layout = target.layout
        if known is not None and known.bound_as != LOCAL and target.name not in left.results:
            results = join_words([f"`{name}`" for name in sorted(left.roots)], "and")
            help = f"choose another name; what the rule replaces is {results}"
            context.report(target.span, f"`{target.name}` is bound already, as {add_article(known.bound_as)}", help)
            continue
        if layout and len(set(layout)) < len(layout):
            context.report(target.span, f"layout {layout} names a dimension twice")
        if target.name in left.results:
            assert known is not None
            _check_result_layout(target, left.variables[target.name], context)
            variable = Variable(target.name, target.span, LOCAL, yields, layout or known.layout, used=True)
        else:
            variable = Variable(target.name, target.span, LOCAL, yields, layout)
            locals.append(variable)
        context = context.extend(variable)
    return context


def _check_result_layout(target: tree.Target, variable: Variable, context: Context) -> None:
    """A layout that a template says of a result must be a permutation of the one it has in the pattern."""
    if target.spread != (variable.kinds == make_single(VALUES)):
        context.report(target.span, f"`{target.name}` is {name_kinds(variable.kinds)} in the pattern")
    if target.layout is None:
        return
    if context.stage == MEANING:
        context.report(target.span, "a meaning says what is computed, and permutes nothing by `@`")
    elif variable.layout is None:
        context.report(
            target.span,
            f"`{target.name}` has no layout in the pattern to be turned back into from {target.layout}",
            f"write `{target.name} @ NHWC = ...` there",
        )
    elif sorted(variable.layout) != sorted(target.layout):
        context.report(
            target.span,
            f"`{target.name}` is {variable.layout} in the pattern, which has other dimensions than {target.layout}",
        )


def _infer_result_kinds(equation: tree.Equation, kinds: Kinds) -> Kinds:
    """The kinds of what an equation binds."""
    if any(target.spread for target in equation.targets):
        return make_single(VALUES) if len(equation.targets) == 1 else ANY
    if len(equation.targets) > 1:
        return make_single(VALUE)
    # An operator yields a single value where a single one is named.
    return kinds - make_single(VALUES) if VALUE in kinds and kinds < ANY else kinds or ANY


def _list_calls(expression: tree.Expression) -> list[tree.Call]:
    """The calls of operators that an expression may yield the results of."""
    return [call for call in iterate_tails(expression) if call.callee[0].isupper()]


def _check_results(call: tree.Call, equation: tree.Equation, context: Context) -> None:
    named = sum(not target.spread for target in equation.targets)
    for dialect in context.builds:
        spec = dialect.find_operator(call.callee, max(context.opsets, default=None))
        if spec is not None:
            least = sum(not (result.optional or result.variadic) for result in spec.yields)
            many = not any(result.variadic for result in spec.yields) and named > len(spec.yields)
            few = named < least and named == len(equation.targets)
            if many or few:
                has = format_count(len(spec.yields), "result")
                help = f"`{call.callee}(...).{spec.yields[0].name}` is one of them" if few else None
                context.report(equation.span, f"`{spec.name}` has {has}, the equation names {named}", help)
            return

"""Rules and tables, one at a time: what each part may mention, and what must not be forgotten."""

from __future__ import annotations

from dataclasses import replace

from ..base.errors import Note, format_count
from ..dialects.operators import Dialect, OperatorSpec
from ..expressions.compile import Frame, Located, evaluate, read_truth
from ..expressions.opset_range import find_possible
from ..rewrite.families import list_members
from ..rewrite.stages import ACCEPT, ADAPT, JUDGING, OF_SOURCE, ONCE, REWRITING, STAGES, list_template_dialects
from ..syntax import tree
from ..syntax.diagnostics import add_article, join_words, suggest
from ..syntax.reversal import Irreversible, is_reversible, reverse
from ..syntax.tree_traversal import walk
from .definitions import FAIL
from .left_side import LeftSide
from .messages import check_placeholders
from .operations import find_specs, list_required
from .pattern import check_pattern
from .scope import LET, OPERAND, OPTION, Context, Variable
from .template import check_templates
from .tests import check_rule_tests, check_table_tests
from .types import check_condition, infer

#: what to do where a rule over the target is to refuse
_REFUSING = "write `where`; what the target cannot run is said by rules of `stage accept`"


def check_rule(written: tree.Rule, context: Context) -> None:
    """Check a rule, or each member of the family that it stands for."""
    if not _check_stages(written, context):
        return
    if written.stage in ONCE and context.source is context.target:
        context.report(
            written.span,
            f"nothing is lowered from {context.source.name} to itself",
            "say which stage the rule belongs to, such as `stage simplify`",
        )
        return
    reads = context.source if written.stage in OF_SOURCE else context.target
    inner = replace(
        context, stage=written.stage, builds=list_template_dialects(written.stage, context.source, context.target)
    )
    if is_reversible(written):
        _check_reversible(written, reads, inner)
    if not written.over:
        _check_member(written, reads, inner)
        return
    _check_family(written, reads, inner)
    with context.world.diagnosis.merge_family():
        for (_, member), entry in zip(list_members(written), written.over, strict=True):
            with context.world.diagnosis.add_note(f"for {entry.source} => {entry.target}", entry.span):
                _check_member(member, reads, inner)


def _check_stages(written: tree.Rule, context: Context) -> bool:
    """Report stages that there are not, or that share no rules; whether what else the rule says can be checked."""
    stages = (written.stage, *written.other_stages)
    unknown = [stage for stage in stages if stage not in STAGES]
    for stage in unknown:
        context.report(written.span, f"there is no stage `{stage}`", suggest(stage, STAGES, "the stages"))
    if unknown:
        return False
    alone = next((stage for stage in stages if stage not in REWRITING), None)
    if written.other_stages and alone is not None:
        help = f"{join_words(REWRITING, 'and')} may have a rule together"
        context.report(written.span, f"a rule of stage `{alone}` is of no other", help)
    elif len(set(stages)) < len(stages):
        context.report(written.span, f"rule `{written.name}` names a stage twice")
    return True


def _check_reversible(written: tree.Rule, reads: Dialect, context: Context) -> None:
    """Report where a rule with `<=>` has no meaning from right to left."""
    if reads in context.builds:
        context.report(written.span, "`<=>` leads from one dialect to another; this rule is about one", "write `=>`")
        return
    try:
        reverse(written, reads.list_enumerants)
    except Irreversible as error:
        context.report(error.span, f"`<=>` cannot be read backwards: {error.reason}", "write `=>`")


def _check_family(written: tree.Rule, reads: Dialect, context: Context) -> None:
    everything = (written.equations, written.clauses, written.templates)
    mentioned = {n.callee for n in walk(everything) if isinstance(n, tree.Call)}
    mentioned |= {n.name for n in walk(everything) if isinstance(n, tree.Symbol)}
    renamed = any(entry.source != entry.target for entry in written.over)
    for name in ("SRC", "DST"):
        if name not in mentioned and (renamed or name == "SRC"):
            context.report(written.span, f"rule `{written.name}` is a family, and does not mention `{name}`")
    seen: dict[str, tree.Entry] = {}
    for entry in written.over:
        if entry.reversible:
            context.report(entry.span, "a family holds both ways where its rule has `<=>`: write `=>` here")
        first = seen.setdefault(entry.source, entry)
        if first is not entry:
            context.report(entry.span, f"`{entry.source}` is in the family already")


def _check_member(written: tree.Rule, reads: Dialect, context: Context) -> None:
    for clause in written.clauses:
        if isinstance(clause, tree.Where):
            context = context.restrict(find_possible(clause.condition, context.opsets))
    if not context.opsets:
        context.report(written.span, f"the guards of rule `{written.name}` hold at no opset")
        return
    if written.stage != ADAPT:  # a rule is passed over where there is nothing for it to match
        there = context.world.availability.list_opsets(written.equations, (reads,), context.opsets, pattern=True)
        context = context.restrict(there or context.opsets)
    if written.stage == ADAPT:
        declared = frozenset(context.declared)
        context = context.restrict(context.opsets & context.world.availability.list_adapted(written, reads, declared))
    newest = context.restrict(frozenset({max(context.declared)})) if written.stage == ADAPT else context
    found = check_pattern(written.equations, reads, newest)
    context = replace(context, root=found.root).extend(*found.variables.values())
    before = len(context.world.diagnosis.found)
    context = _check_clauses(written, context)
    if written.stage in JUDGING:
        _check_accepts_rule(written, reads, context)
        return
    if not written.templates:
        context.report(written.span, "a rule says what is built by `=>` and an equation")
        return
    check_templates(written, found, context)
    _report_refusals(written, context)
    if len(context.world.diagnosis.found) == before:  # what is misspelt would be told twice
        _report_unused(found, context)
    tried = newest if written.stage == ADAPT else context  # what it reads has the newest form whatever is written
    check_rule_tests(written, found, replace(tried, root=found.root, scope={"opset": context.scope["opset"]}))


def _check_accepts_rule(written: tree.Rule, reads: Dialect, context: Context) -> None:
    """Check what a rule of the stage that only refuses and remarks has, and has not."""
    for template in written.templates:
        message = f"stage {written.stage} builds nothing: its rules say what the target takes"
        context.report(
            template.span, message, "a rule of `stage simplify` or `stage tune` builds what it takes instead"
        )
    said = written.stage != ACCEPT or any(isinstance(clause, tree.Require | tree.Remark) for clause in written.clauses)
    if not said:
        help = 'such as `require mode != "cubic", "this target has no cubic interpolation"`'
        message = "a rule of stage accept says by `require` what the target takes, or by `remark` what to tell of it"
        context.report(written.span, message, help)
    for call in walk(written.equations):
        if not isinstance(call, tree.Call) or call.wildcard or call.rest:
            continue
        spec = reads.find_operator(call.callee, max(context.opsets))
        named = {attribute.name for attribute in call.attributes}
        if spec is not None and spec.options.keys() - named:
            message = f"of `{call.callee}` this is only about those whose other options have their defaults"
            context.report(call.span, message, "end its options with `..`, which stands for all others")


def _check_clauses(written: tree.Rule, context: Context) -> Context:
    for clause in written.clauses:
        if isinstance(clause, tree.Let):
            kinds = infer(clause.value, context)
            known = context.scope.get(clause.name)
            if known is not None:
                context.report(clause.span, f"`{clause.name}` is bound already, as {add_article(known.bound_as)}")
                continue
            context = context.extend(Variable(clause.name, clause.span, LET, kinds))
            continue
        if isinstance(clause, tree.Remark):
            if written.stage != ACCEPT:
                help = "what is to be told of the result is said by rules of `stage accept`"
                context.report(clause.span, f"`remark` tells nothing in stage {written.stage}", help)
            check_placeholders(clause.message, clause.span, context)
            continue
        check_condition(clause.condition, context)
        if isinstance(clause, tree.Require) and written.stage not in (*OF_SOURCE, *JUDGING, ADAPT):
            context.report(clause.span, f"`require` refuses nothing in stage {written.stage}", _REFUSING)
        if (
            written.stage not in JUDGING
        ):  # which may forbid an operator whatever is asked of it, and at some opsets alone
            _report_constant_condition(clause, context)
            if isinstance(clause, tree.Require):
                context = context.restrict(find_possible(clause.condition, context.opsets))
        if clause.message is not None:
            check_placeholders(clause.message, clause.span, context)
    return context


def _report_refusals(written: tree.Rule, context: Context) -> None:
    """Tell where a rule over the target refuses: it does not apply there, and nobody would hear of it."""
    if written.stage in OF_SOURCE:
        return
    for call in walk((written.clauses, written.templates)):
        if isinstance(call, tree.Call) and (call.callee == FAIL or call.callee in context.world.refusers):
            within = "" if call.callee == FAIL else f" in `{call.callee}`"
            context.report(call.span, f"`{FAIL}`{within} refuses nothing in stage {written.stage}", _REFUSING)


def _report_constant_condition(clause: tree.Where | tree.Require, context: Context) -> None:
    """Report a condition that has the same value for every match, since it mentions no variable."""
    for node in walk(clause.condition):
        if isinstance(node, tree.Name | tree.Symbol | tree.Call | tree.Comprehension | tree.Fold | tree.GraphOf):
            return
    try:
        holds = read_truth(evaluate(clause.condition, Frame({})))
    except Located:
        return  # what is wrong with it has been told
    context.report(clause.condition.span, f"this condition holds {'always' if holds else 'never'}")


def _report_unused(found: LeftSide, context: Context) -> None:
    for name, variable in context.scope.items():
        if variable.used or name.startswith("_"):
            continue
        if variable.bound_as == OPTION:
            context.report(
                variable.span,
                f"option variable `{name}` is never used, so the rule would drop the option",
                "write `_` for its value to ignore it on purpose",
            )
        elif variable.bound_as == OPERAND:
            context.report(
                variable.span,
                f"operand `{name}` is never used, so the rule would drop it",
                f"call it `_{name}` to ignore it on purpose",
            )
        elif variable.bound_as == LET:
            context.report(variable.span, f"`{name}` is never used")


# ---- tables


def check_table(written: tree.Table, context: Context) -> None:
    """Check a table: operators that correspond must take and yield alike, and `<=>` must lead back."""
    if context.source is context.target:
        context.report(written.span, f"nothing is lowered from {context.source.name} to itself, so tables have no use")
        return
    seen: dict[str, tree.Entry] = {}
    back: dict[str, tree.Entry] = {}
    for entry in written.entries:
        first = seen.setdefault(entry.source, entry)
        if first is not entry:
            context.world.diagnosis.add_error(
                entry.span, f"`{entry.source}` is in the table already", None, [Note("it is here", first.span)]
            )
        _check_entry(entry, context)
        if entry.reversible:
            other = back.setdefault(entry.target, entry)
            if other is not entry:
                context.world.diagnosis.add_error(
                    entry.span,
                    f"`<=>` cannot be read backwards: `{entry.target}` would become "
                    f"`{entry.source}` as well as `{other.source}`",
                    "write `=>` in one of the two",
                    [Note("the other one is here", other.span)],
                )
    check_table_tests(written, context.source, context)


def _check_entry(entry: tree.Entry, context: Context) -> None:
    source = context.source.find_operator(entry.source)
    if source is None:
        from .vocabulary import list_operators

        known = list_operators(context.source)
        context.report(
            entry.span,
            f"dialect {context.source.name} has no operator `{entry.source}`",
            suggest(entry.source, known),
        )
    targets = find_specs(entry.target, entry.span, context, "write a rule, with a template for older opsets")
    if source is None:
        return
    for target in targets.values():
        required = list_required(target)
        if required:
            context.report(
                entry.span,
                f"`{target.name}` needs the attribute `{required[0]}`, which a table cannot give",
                "write a rule",
            )
        _check_alike(entry, source, target, context)


def _check_alike(entry: tree.Entry, source: OperatorSpec, target: OperatorSpec, context: Context) -> None:
    (least, most), (few, many) = source.count_operands(), target.count_operands()
    if (many is not None and (most is None or most > many)) or least < few:
        context.report(
            entry.span,
            f"`{source.name}` takes {_format_range(least, most)}, `{target.name}` takes {_format_range(few, many)}",
        )
    elif entry.reversible and (few, many) != (least, most) and not (few < least and many is None and most is None):
        context.report(
            entry.span,
            f"`<=>` cannot be read backwards: `{target.name}` takes {_format_range(few, many)}, "
            f"`{source.name}` takes {_format_range(least, most)}",
            "write `=>`",
        )
    yields = sum(not result.optional for result in target.results)
    if source.results and len(source.results) != yields and not any(r.variadic for r in target.results):
        context.report(
            entry.span,
            f"`{source.name}` has {format_count(len(source.results), 'result')}, `{target.name}` has {yields}",
        )


def _format_range(least: int, most: int | None) -> str:
    if least == most:
        return format_count(least, "operand")
    return f"{least} or more operands" if most is None else f"{least} to {most} operands"

"""Shadowed rules: one that can never fire because an earlier one takes all that it would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..base.errors import Note
from ..dialects.operators import Catalogue, OperatorSpec
from ..expressions.compile import Frame, Located, evaluate
from ..expressions.functions import convert_to_python
from ..rewrite.outlines import Contents, Outline
from ..rewrite.pattern import Absent, AnyOf, Defined, NodePattern, Number, Operand, Variable
from ..rewrite.rules import Override, Rule, RuleSet
from ..rewrite.stages import JUDGING, ONCE
from ..syntax import tree
from ..syntax.diagnostics import Collector
from ..syntax.tree_traversal import walk

#: an option that may have any value
_FREE = object()


def report_shadowed(
    files: Sequence[tree.RuleFile], catalogue: Catalogue, contents: Contents, diagnosis: Collector
) -> list[Override]:
    """Tell every rule that can never fire, at the highest opset; the files, whose contents are given, must have no
    other mistakes.

    A rule of one pack may take the place of a rule of another: those are returned, and are no mistake.
    """
    ruleset = RuleSet(files, catalogue, max(file.opsets[1] for file in files), contents)
    told: set[str] = set()
    overrides: dict[str, Override] = {}
    for stage, (domain, operator) in ruleset.list_roots():
        if stage in JUDGING:
            continue  # each of them is asked
        outlines = ruleset.list_outlines(stage, domain, operator)
        # Patterns of several nodes are tried before all others where rules are tried once.
        ordered = sorted(outlines, key=lambda one: not one.deep) if stage in ONCE else outlines
        for first, second in _pair_outlines(ordered, files):
            earlier, later = ruleset.find_rule(first, operator), ruleset.find_rule(second, operator)
            if earlier is None or later is None or later.place in told or not _can_cover(earlier, later):
                continue
            told.add(later.place)
            if earlier.order[0] == later.order[0]:
                _report_pair(earlier, later, diagnosis)
            else:
                overrides[later.place] = Override(earlier.place, later.place, operator)
    return list(overrides.values())


def _pair_outlines(outlines: Sequence[Outline], files: Sequence[tree.RuleFile]) -> Iterator[tuple[Outline, Outline]]:
    """Each rule with each before it that always fires where it matches: few do, and others need not be compiled."""
    free = list[Outline]()
    for later in outlines:
        for earlier in free:
            yield earlier, later
        if _is_unconditional(files[later.file].items[later.item]):
            free.append(later)


def _report_pair(earlier: Rule, later: Rule, diagnosis: Collector) -> None:
    same = _can_cover(later, earlier)
    message = (
        f"rule `{later.name}` has the same pattern as `{earlier.name}`, which is tried first"
        if same
        else f"rule `{later.name}` never fires: `{earlier.name}` is tried first and takes all that it would take"
    )
    diagnosis.add_error(
        later.span,
        message,
        "guard the first one with `where`, or give this one a `priority`",
        [Note(f"`{earlier.name}` is here", earlier.span)],
    )


def _is_unconditional(item: tree.Rule | tree.Table | tree.Definition) -> bool:
    """Whether a rule that matches always fires, or stops: no guard, no `let` without a value, a template for all. Those
    of a table do."""
    if not isinstance(item, tree.Rule):
        return True
    for clause in item.clauses:
        if isinstance(clause, tree.Where) or (isinstance(clause, tree.Let) and not _has_value(clause.value)):
            return False
    return any(template.condition is None for template in item.templates)


def _has_value(expression: tree.Expression) -> bool:
    """Whether an expression surely has a value."""
    return all(isinstance(node, tree.Literal | tree.Name | tree.Symbol | tree.ListOf) for node in walk(expression))


def _can_cover(general: Rule, special: Rule) -> bool:
    """Whether a pattern of one node matches wherever another rule's root does."""
    if len(general.equations) > 1 or not _has_distinct_names(general):
        return False
    wide, narrow = general.equations[-1], special.equations[-1]
    if any(target.layout for target in wide.targets):
        return False
    if len(special.equations) > 1 and general.deep:
        return False
    return _is_value_covered(wide.value, _find_root(narrow))


def _find_root(equation: Defined) -> Operand:
    return equation.value


def _has_distinct_names(rule: Rule) -> bool:
    """Whether no variable stands twice, which would be a condition of its own."""
    seen: set[str] = set()

    def is_new(pattern: Operand) -> bool:
        if isinstance(pattern, Variable):
            new = pattern.name not in seen
            seen.add(pattern.name)
            return new
        if isinstance(pattern, NodePattern):
            names = [o.variable for o in pattern.options if o.variable not in (None, "_")]
            new = not seen.intersection(names) and len(set(names)) == len(names)
            seen.update(name for name in names if name)
            return all([new, *map(is_new, pattern.operands)])
        return not isinstance(pattern, AnyOf)

    return all(is_new(equation.value) for equation in rule.equations)


def _is_value_covered(wide: Operand, narrow: Operand) -> bool:
    match wide, narrow:
        case Variable(), Variable():
            if wide.spread:
                return narrow.spread
            fits = not wide.const or narrow.const
            fits = fits and (wide.layout is None or len(wide.layout) == len(narrow.layout or ""))
            return fits and (wide.optional or not narrow.optional) and not narrow.spread
        case Variable(), Absent():
            return wide.optional
        case Variable(), Number():
            return wide.layout is None
        case Variable(), _:
            return not wide.const and wide.layout is None and not wide.spread
        case Number(), Number():
            return wide.value == narrow.value
        case Absent(), Absent():
            return True
        case NodePattern(), NodePattern():
            return (wide.spread or not narrow.spread) and _is_node_covered(wide, narrow)
        case _, AnyOf():
            return all(_is_value_covered(wide, alternative) for alternative in narrow.alternatives)
    return False


def _is_node_covered(wide: NodePattern, narrow: NodePattern) -> bool:
    if not narrow.specs.keys() <= wide.specs.keys():
        return False
    if not all(_are_options_covered(wide, narrow, spec) for spec in narrow.specs.values()):
        return False
    one, other = wide.operands, narrow.operands
    if len(one) == 1 and isinstance(one[0], Variable) and one[0].spread:
        return True
    if len(narrow.specs) == 1:
        one, other = (_expand_variadic(operands, *narrow.specs.values()) for operands in (one, other))
    absent = [Absent(narrow.span)] * (len(one) - len(other))
    return len(other) <= len(one) and all(_is_value_covered(a, b) for a, b in zip(one, [*other, *absent], strict=True))


def _expand_variadic(operands: tuple[Operand, ...], spec: OperatorSpec) -> tuple[Operand, ...]:
    """Operands with one variable for each that `xs...` stands for, where an operator has a fixed number of them."""
    least, most = spec.count_operands()
    found: list[Operand] = []
    for operand in operands:
        if isinstance(operand, Variable) and operand.spread and least == most:
            found += [replace(operand, spread=False)] * (least - len(operands) + 1)
        else:
            found.append(operand)
    return tuple(found)


def _are_options_covered(wide: NodePattern, narrow: NodePattern, spec: OperatorSpec) -> bool:
    first, second = _list_asked_options(wide, spec), _list_asked_options(narrow, spec)
    return all(
        first[name] is _FREE or (second[name] is not _FREE and first[name] == second[name]) for name in spec.options
    )


def _list_asked_options(pattern: NodePattern, spec: OperatorSpec) -> dict[str, Any]:
    """What a pattern asks of each option of an operator."""
    rest: Any = _FREE if pattern.rest else None
    found = {name: rest or ("is", convert_to_python(option.default)) for name, option in spec.options.items()}
    for option in pattern.options:
        if option.variable is not None:
            found[option.name] = _FREE
            continue
        if option.graph is not None:
            found[option.name] = ("is", option)
            continue
        try:
            found[option.name] = ("is", convert_to_python(evaluate(option.value, Frame({}))))
        except (Located, KeyError):
            found[option.name] = ("is", option)  # depends on the opset: equal to nothing else
    return found

"""Clauses between a rule's two sides: guards, `let`, `require`, and the choice of a template."""

from __future__ import annotations

from ..base.errors import Reason, Span
from ..expressions.compile import Frame, Located, evaluate, interpolate, truth
from ..expressions.functions import Unsupported
from ..syntax import tree
from .rules import OF_SOURCE, Rule


class Refused(Exception):
    """A rule that applies to a case it has no form for."""

    def __init__(self, span: Span, message: str) -> None:
        self.span = span
        super().__init__(message)


def holds(rule: Rule, frame: Frame, reasons: list[Reason] | None) -> bool:
    """Whether all clauses hold; adds to `reasons` why one does not, and raises Refused where that is a `require`."""
    for clause in rule.clauses:
        try:
            if isinstance(clause, tree.Let):
                frame.values[clause.name] = evaluate(clause.value, frame)
                continue
            if isinstance(clause, tree.Remark):
                continue
            if truth(evaluate(clause.condition, frame)):
                continue
        except Located as error:
            if isinstance(error.cause, Unsupported):
                raise Refused(error.span, str(error)) from error
            if reasons is not None:
                reasons.append(Reason(rule.name, error.span, str(error)))
            return False
        if isinstance(clause, tree.Require):
            raise Refused(clause.span, interpolate(clause.message, frame))
        if reasons is not None:
            message = interpolate(clause.message, frame) if clause.message else "the guard does not hold"
            reasons.append(Reason(rule.name, clause.span, message))
        return False
    return True


def remarks(rule: Rule, frame: Frame) -> list[str]:
    """What a rule whose clauses all hold has to tell of a node."""
    return [interpolate(clause.message, frame) for clause in rule.clauses if isinstance(clause, tree.Remark)]


def choose_template(rule: Rule, frame: Frame) -> tree.Template | None:
    """The first template whose condition holds and all of which exists at the opset.

    Raises Refused where a condition has no value, and where a rule over the source has no other template than such of
    other opsets.
    """
    lacking: list[tree.Template] = []
    for template in rule.templates:
        try:
            if template.condition is not None and not truth(evaluate(template.condition, frame)):
                continue
        except Located as error:
            raise Refused(error.span, str(error)) from error
        if rule.available.has_equations(template.equations):
            return template
        lacking.append(template)
    if lacking and rule.stage in OF_SOURCE:
        first = min(filter(None, (rule.available.first(template.equations) for template in lacking)), default=None)
        since = "at no later opset" if first is None else f"from opset {first} on"
        raise Refused(rule.span, f"what it builds exists {since}")
    return None

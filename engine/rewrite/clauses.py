"""Clauses between a rule's two sides: guards, `let`, `require`, and the choice of a template."""

from __future__ import annotations

from collections.abc import Iterator

import onnx.defs

from ..base.errors import Reason, Span
from ..expressions.compile import OPSET, Frame, Located, evaluate, interpolate, read_truth
from ..expressions.functions import Unsupported
from ..syntax import tree
from .rules import Rule


class Refused(Exception):
    """A rule that applies to a case it has no form for."""

    def __init__(self, span: Span, message: str) -> None:
        self.span = span
        super().__init__(message)


def check_clauses(rule: Rule, frame: Frame, reasons: list[Reason] | None) -> bool:
    """Whether all clauses hold; adds to `reasons` why one does not, and raises Refused where that is a `require`."""
    for clause in rule.clauses:
        try:
            if isinstance(clause, tree.Let):
                frame.values[clause.name] = evaluate(clause.value, frame)
                continue
            if isinstance(clause, tree.Remark):
                continue
            if read_truth(evaluate(clause.condition, frame)):
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


def list_remarks(rule: Rule, frame: Frame) -> list[str]:
    """What a rule whose clauses all hold has to tell of a node."""
    return [interpolate(clause.message, frame) for clause in rule.clauses if isinstance(clause, tree.Remark)]


def choose_template(rule: Rule, frame: Frame) -> tree.Template | None:
    """The first template whose condition holds and all of which exists at the opset; raises Refused where a condition
    has no value."""
    opset = frame.values[OPSET]
    return next((one for one in _list_reached(rule, frame) if _is_available(rule, one, opset)), None)


def explain_no_template(rule: Rule, frame: Frame) -> str:
    """Why a rule whose clauses all hold has no template for the opset."""
    reached = list(_list_reached(rule, frame))
    later = range(frame.values[OPSET] + 1, onnx.defs.onnx_opset_version() + 1)
    first = next((opset for opset in later if any(_is_available(rule, one, opset) for one in reached)), None)
    return "no template is for this opset" if first is None else f"what it builds exists from opset {first} on"


def _is_available(rule: Rule, template: tree.Template, opset: int) -> bool:
    return rule.availability.has(template.equations, rule.builds, opset)


def _list_reached(rule: Rule, frame: Frame) -> Iterator[tree.Template]:
    for template in rule.templates:
        try:
            if template.condition is None or read_truth(evaluate(template.condition, frame)):
                yield template
        except Located as error:
            raise Refused(error.span, str(error)) from error

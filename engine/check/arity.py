"""How many operands and results a pattern names, held against what an operator has."""

from __future__ import annotations

from ..base.errors import format_count
from ..dialects.operators import OperatorSpec
from ..rewrite.stages import ONCE
from ..syntax import tree
from .scope import Context


def check_operands(context: Context, call: tree.Call, spec: OperatorSpec, at: str) -> None:
    """Hold the operands that a pattern names against those of an operator; `at` says at which opset."""
    least, most = spec.count_operands()
    spread = any(argument.spread for argument in call.arguments)
    fixed = sum(not argument.spread for argument in call.arguments)
    if (fixed < least and not spread) or (most is not None and fixed > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        names = ", ".join(f"{o.name}{'?' * o.optional}{'...' * o.variadic}" for o in spec.operands)
        context.report(
            call.span,
            f"`{spec.name}` has {wanted} operand{'s' * (wanted != '1')}{at}, the pattern names {fixed}",
            f"its operands are {names}" if names else None,
        )
        return
    if spread:
        return
    for argument, formal in zip(call.arguments, spec.operands, strict=False):
        named = isinstance(argument.value, tree.Name)
        if argument.optional and named and not (formal.optional or formal.variadic):
            context.report(argument.span, f"operand `{formal.name}` of `{spec.name}` is never left out")


def check_results(context: Context, equation: tree.Equation, specs: dict[int, OperatorSpec]) -> None:
    """Hold the results that a pattern names against those of an operator, by the first of its forms."""
    spec = next(iter(specs.values()))
    spread = any(target.spread for target in equation.targets)
    most = None if any(result.variadic for result in spec.yields) else len(spec.yields)
    named = len(equation.targets)
    if most is not None and named - spread > most:
        context.report(equation.span, f"`{spec.name}` has {format_count(most, 'result')}, the pattern names {named}")
        return
    least = sum(not (result.optional or result.variadic) for result in spec.yields)
    if context.stage in ONCE and not spread and (named < least or (most is None and least == 0)):
        help = f"its results are {', '.join(result.name for result in spec.yields)}; `ys...` names all of them"
        context.report(equation.span, f"`{spec.name}` has more results than the pattern names", help)

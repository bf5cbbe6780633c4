"""Opsets as conditions speak of them: where a condition holds, and where it cannot."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from ..syntax import tree
from .values import ORDER

Opsets = frozenset[int]

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {**ORDER, "==": operator.eq, "!=": operator.ne}


def decide(condition: tree.Expression, opset: int) -> bool | None:
    """The truth of a condition at an opset, None where it depends on the model."""
    match condition:
        case tree.Literal(bool(value)):
            return value
        case tree.Unary("not", operand):
            inner = decide(operand, opset)
            return None if inner is None else not inner
        case tree.Binary("and" | "or" as word, left, right):
            sides = {decide(left, opset), decide(right, opset)}
            decisive = word == "or"
            return decisive if decisive in sides else None if None in sides else not decisive
        case tree.Binary(symbol, tree.Name("opset"), tree.Literal(int(number))) if symbol in _COMPARISONS:
            return _COMPARISONS[symbol](opset, number)
        case tree.Binary(symbol, tree.Literal(int(number)), tree.Name("opset")) if symbol in _COMPARISONS:
            return _COMPARISONS[symbol](number, opset)
    return None


def is_omitted(value: tree.Expression, opset: int) -> bool:
    """Whether the value of an attribute is `none` at an opset, which leaves the attribute out."""
    if isinstance(value, tree.Conditional):
        decided = decide(value.condition, opset)
        branches = [value.then] * (decided is not False) + [value.other] * (decided is not True)
        return all(is_omitted(branch, opset) for branch in branches)
    return isinstance(value, tree.Literal) and value.value is None


def find_possible(condition: tree.Expression, opsets: Opsets) -> Opsets:
    """The opsets at which a condition may hold."""
    return frozenset(opset for opset in opsets if decide(condition, opset) is not False)


def find_impossible(condition: tree.Expression, opsets: Opsets) -> Opsets:
    """The opsets at which a condition may fail to hold."""
    return frozenset(opset for opset in opsets if decide(condition, opset) is not True)


def format_opsets(opsets: Iterable[int]) -> str:
    """Opsets in words: `opset 13`, `opsets 13..17`, `opsets 13..14 and 20..22`."""
    found = sorted(opsets)
    runs: list[list[int]] = []
    for opset in found:
        if runs and opset == runs[-1][-1] + 1:
            runs[-1].append(opset)
        else:
            runs.append([opset])
    words = [f"{run[0]}..{run[-1]}" if run[1:] else f"{run[0]}" for run in runs]
    return f"opset{'s' * (len(found) > 1)} {' and '.join(words)}"

"""The grids of codes that a rule makes: what moves codes takes and yields them on one, and nothing may lose or change
it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..base.quantization import CODES, MATCHED, carry_grid, is_dropping_grid, read_quantization
from ..dialects.facts import OperatorFacts
from .rules import RuleSet

#: of operators whose kernels leave codes on the grid that they are on
_SAME = "same"
_UNKNOWN = OperatorFacts()


def carry_grids_over(made: Sequence[ir.Node], rules: RuleSet) -> None:
    """Let nodes that are made and move codes, join them or leave them on their grid take and yield codes on one."""
    known = [(node, _find_facts(node, rules)) for node in made]
    for node, facts in known:
        if facts.quantization in (CODES, MATCHED) or facts.grid == _SAME:
            carry_grid(node.inputs, node.outputs)
    for node, facts in reversed(known):
        if facts.quantization == CODES:
            carry_grid(node.outputs, node.inputs)


def has_lost_grid(made: Sequence[ir.Node], pairs: Sequence[tuple[ir.Value, ir.Value]], rules: RuleSet) -> bool:
    """Whether a node that is made yields codes of which nothing says what numbers they stand for; `pairs` are values
    and what takes their place."""
    ends = {after for _, after in pairs}
    return any(
        is_dropping_grid(
            node.inputs, [one for one in node.outputs if one not in ends], _find_facts(node, rules).quantization
        )
        for node in made
    )


def is_changing_grid(made: Sequence[ir.Node], pairs: Sequence[tuple[ir.Value, ir.Value]], rules: RuleSet) -> bool:
    """Whether codes would be read by another grid than they were: as a value in whose place one on another comes, or
    through what moves them, which runtimes ask to have one grid. A view alone may have two."""
    grids = {after: read_quantization(before) for before, after in pairs}
    if any(has is not None and read_quantization(after) not in (None, has) for after, has in grids.items()):
        return True
    for node in made:
        spec = rules.target.find_operator(node.op_type, rules.opset)
        if spec is None or spec.facts.quantization != CODES or spec.role == "reshape" or not node.inputs:
            continue
        known = read_quantization(node.inputs[0])
        if known is not None and any(grids.get(one) not in (None, known) for one in node.outputs):
            return True
    return False


def _find_facts(node: ir.Node, rules: RuleSet) -> OperatorFacts:
    dialect = rules.target if node.domain == rules.target.domain else rules.source
    spec = dialect.find_operator(node.op_type, rules.opset if dialect is rules.target else None)
    return _UNKNOWN if spec is None else spec.facts

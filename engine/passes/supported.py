"""Pass `supported`: refuses every operator that no rule lowered, all at once."""

from __future__ import annotations

import onnx_ir as ir

from ..base.errors import Reason, Refusal
from ..base.names import show_name
from ..base.provenance import RULE, SOURCE, find_source_operator
from ..base.startup import dataclass, replace
from ..rewrite.stages import NORMALIZE
from .base import Module, Visit
from .rule_stage import drive

#: the options of a custom operator as they stand in its file, among the facts about a node and as an attribute
_OPTIONS = "custom_options"


@dataclass(frozen=True, slots=True)
class Supported:
    """Refuse the nodes that the rules of `stage` were to take and did not, with the reason that each rule gave.

    With `keep` custom operators that no rule is about stay as they are, with `keep_all` all that no rule takes.
    """

    stage: str
    visits: Visit
    keep: bool = False
    keep_all: bool = False
    name = "supported"

    def run(self, module: Module) -> None:
        """Note what one graph still has of the source's operators; the runner raises UnsupportedError with all."""
        if module.source is module.target:
            return
        #: values of which too little is known, as a node was refused that they are made of
        unknown: set[ir.Value | None] = set()
        for node in module.graph:
            follows = not unknown.isdisjoint(node.inputs)
            taken = node.domain == module.target.domain or self.keep_all
            if not taken and not (self.keep and _keep(module, self.stage, node)):
                refusal = refuse(module, self.stage, node)
                follows = follows and bool(refusal.reasons) and not refusal.why
                module.refusals.append(replace(refusal, follows=follows))
                follows = True
            elif node.domain != module.target.domain:
                _leave_out_room(node)
            if follows and module.source.schemas:  # other files state what they know of each value
                unknown.update(value for value in node.outputs if value.dtype is None or value.shape is None)


def refuse(module: Module, stage: str, node: ir.Node) -> Refusal:
    """Say why no rule of a stage takes a node."""
    spec = module.source.find_operator(node.op_type)
    custom = "give one by --rules, or leave the node as it is by --keep-custom"
    if spec is None:
        why = f"no pack of rules describes {node.op_type}: {custom}"
    elif spec.domain != node.domain:
        whose = f"domain {node.domain}" if node.domain else "no domain"
        why = f"no pack of rules describes {node.op_type} of {whose}, only that of {spec.domain or 'none'}: {custom}"
    else:
        why = spec.unsupported or ""
    known = module.outcome.refused.get(node)
    if known is not None or why:
        reasons: tuple[Reason, ...] = () if known is None else (known,)
    else:  # of those that lower it, or else would have made others of it
        reasons = drive(module, stage).explain_misses(node) or drive(module, NORMALIZE).explain_misses(node)
    operator = find_source_operator(node)
    if operator != node.op_type and not why and not reasons:
        why = f"no rule is about {node.op_type}, which {node.metadata_props.get(RULE, 'a rule')} makes of it"
    return Refusal(
        _name_in_files(module, operator), show_name(node), reasons, why, source=node.metadata_props.get(SOURCE, "")
    )


def _name_in_files(module: Module, operator: str) -> str:
    """What files call an operator of the source, where rules have another name for it."""
    spec = module.source.find_operator(operator)
    return operator if spec is None or not spec.facts.called else f"{spec.facts.called} of {spec.domain}"


def _leave_out_room(node: ir.Node) -> None:
    """Leave out the operands of a node that stays which only its own runtime makes: room to work in, of no source."""
    for place, value in enumerate(node.inputs):
        if value is not None and value.producer() is None and value.const_value is None and not value.is_graph_input():
            node.replace_input_with(place, None)


def _keep(module: Module, stage: str, node: ir.Node) -> bool:
    """Keep a custom operator's node that no rule is about; whether it is one. Options of another form become bytes."""
    if node.domain == module.source.domain or module.rules.list_candidates(stage, node.domain, node.op_type):
        return False
    raw = node.meta.get(_OPTIONS)
    if raw and not node.attributes:
        node.attributes.add(ir.AttrTensor(_OPTIONS, ir.tensor(list(raw), dtype=ir.DataType.UINT8)))
    return True

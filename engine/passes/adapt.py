"""Pass `adapt`: the nodes of a model are given the form that their operators have in another opset.

Each node gets the form of the newest opset first. A rule of the stage `adapt` may then write it in operators of the
opset that is asked for; any other is written as its operator stands there: operands that were attributes as these, in
wider types where its own are not among those of the schema. An operator that the opset has no such form of becomes
what its schema says that it is made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..base.errors import Refusal
from ..base.names import show_name
from ..base.provenance import SOURCE
from ..base.startup import dataclass
from ..dialects.kernels import find_wider_type
from ..dialects.literals import make_attribute
from ..dialects.onnx_schemas import NEGATIVE_AXES, Signature, find_schema, pair_types
from ..dialects.operators import OperatorSpec
from ..dialects.opsets import NEWEST
from ..expressions.functions import DTYPES, SHORT, EvaluationError, convert_to_python
from ..rewrite.operands import split_attributes
from ..rewrite.stages import ADAPT
from .base import Module, Visit
from .functions import DEPTH, evaluate_nodes, expand
from .newest_forms import update_nodes
from .rule_stage import drive


@dataclass(frozen=True, slots=True)
class Adapt:
    """Write a model of the opset `given` in that for which rules are compiled."""

    given: int
    name, visits = ADAPT, Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Change the nodes of one graph; what the opset cannot say is noted as refused."""
        first = list(module.graph)
        settled = {*first}  # the pass before has let them have types and shapes
        update_nodes(first, module, self.given, NEWEST)
        driver = drive(module, ADAPT)
        work = [(node, 0) for node in reversed(first)]
        while work:
            node, depth = work.pop()
            if node.graph is None:
                continue
            made = driver.rewrite_nodes([node])
            refused = module.outcome.refused.get(node)
            if refused is not None:
                self._refuse(node, module, refused.message)
                continue
            if node.graph is None:
                for one in made:
                    if one.graph is module.graph and one.domain != module.target.domain:
                        _call_by_name(one, module)
                continue
            if node.domain != module.target.domain:
                why = _call_by_name(node, module)
            elif not depth and not self._is_given(node, module):
                why = f"{node.op_type} of opset {self.given} is not known" if _is_known(node, module) else None
            else:
                why = _lower(node, module)
            if why is None:
                continue
            if depth < DEPTH and (body := expand(module, node, NEWEST, NEWEST)):
                evaluate_nodes(module, settled, NEWEST)
                work += [(one, depth + 1) for one in reversed(body) if one.graph is module.graph]
                continue
            self._refuse(node, module, why)

    def _is_given(self, node: ir.Node, module: Module) -> bool:
        """Whether the opset of the model has an operator, or a runtime has the later one there under that name."""
        since = module.target.facts.extensions.get(node.op_type)
        if since is not None and since <= self.given:
            newest = module.target.find_operator(node.op_type, NEWEST)
            if newest is not None and newest.options.keys() >= node.attributes.keys():
                return True
        return module.target.find_operator(node.op_type, self.given) is not None

    def _refuse(self, node: ir.Node, module: Module, why: str) -> None:
        source = node.metadata_props.get(SOURCE, "")
        told = f"at opset {module.opset} {why}"
        module.refusals.append(Refusal(node.op_type, show_name(node), (), told, source=source))


def _is_known(node: ir.Node, module: Module) -> bool:
    return module.target.find_operator(node.op_type, NEWEST) is not None


def _call_by_name(node: ir.Node, module: Module) -> str | None:
    """Call an operator that meant another thing in older opsets as these do; None where it is none or that is done, or
    else why it is not."""
    called = None
    for name, spec in module.target.operators.items():
        for last, former in spec.facts.older.items():
            form = module.target.operators[former]
            if (form.domain, form.name) == (node.domain, node.op_type):
                called = f"{name} has not the meaning of opset {last}"
                if module.opset <= last and module.target.find_operator(name, module.opset) is not None:
                    node.op_type, node.domain = name, module.target.domain
                    return _lower(node, module, form)
    return called


def _lower(node: ir.Node, module: Module, former: OperatorSpec | None = None) -> str | None:
    """Write a node as its operator stands at the opset; None where that is done, or else why it is not.

    Its defaults are those of the newest form, or of a `former` one.
    """
    newest = former or module.target.find_operator(node.op_type, NEWEST)
    spec = module.target.find_operator(node.op_type, module.opset)
    if spec is None:
        return None if newest is None else f"{node.op_type} is of a later one"
    try:
        operands, attributes = split_attributes(spec, list(node.inputs), module.opset)
    except EvaluationError as error:
        return f"{error}"
    while operands and operands[-1] is None:
        operands.pop()
    if (why := _find_wrong_operand(node, operands, newest, spec)) is not None:
        return why
    kept = _choose_attributes(node, attributes, newest, spec)
    if isinstance(kept, str):
        return kept
    if len(node.outputs) > len(spec.results) and not any(one.variadic for one in spec.results):
        if any(one.uses() or one.is_graph_output() for one in node.outputs[len(spec.results) :]):
            return f"{node.op_type} has no result {len(spec.results) + 1}"
        node.resize_outputs(len(spec.results))
    why = _widen(node, operands, spec, module)
    if why is None:
        if module.opset < NEGATIVE_AXES:
            _count_from_front(kept, operands, spec)
        node.resize_inputs(len(operands))
        for place, operand in enumerate(operands):
            node.replace_input_with(place, operand)
        node.attributes.clear()
        node.attributes.update(kept)
    return why


def _find_wrong_operand(
    node: ir.Node, operands: Sequence[ir.Value | None], newest: OperatorSpec | None, spec: OperatorSpec
) -> str | None:
    """Which operand a node has too many for its operator at the opset, or too few; None where all are as there."""
    _, most = spec.count_operands()
    if most is not None and len(operands) > most - len(spec.stored):
        return f"{node.op_type} has no operand {newest.operands[len(operands) - 1].name if newest else ''}"
    for place, formal in enumerate(spec.operands[: len(spec.operands) - len(spec.stored)]):
        if not (formal.optional or formal.variadic) and (place >= len(operands) or operands[place] is None):
            return f"{node.op_type} needs operand {formal.name}"
    return None


def _choose_attributes(
    node: ir.Node, stored: Sequence[ir.Attr], newest: OperatorSpec | None, spec: OperatorSpec
) -> dict[str, ir.Attr] | str:
    """The attributes of a node at the opset, where some are `stored` that are operands in the newest form; or why there
    are none that mean the same."""
    kept: dict[str, ir.Attr] = {one.name: one for one in stored}
    for name, given in node.attributes.items():
        if name in spec.options:
            kept[name] = given
            continue
        later = None if newest is None else newest.options.get(name)
        if later is None or later.default is None or convert_to_python(given.value) != convert_to_python(later.default):
            return f"{node.op_type} has no attribute {name}"
    for name, option in spec.options.items():
        later = None if newest is None else newest.options.get(name)
        if name not in kept and later is not None and later.default != option.default and later.default is not None:
            kept[name] = make_attribute(option, later.default)
        if option.required and name not in kept:
            return f"{node.op_type} needs attribute {name}"
    return kept


def _count_from_front(kept: dict[str, ir.Attr], operands: list[ir.Value | None], spec: OperatorSpec) -> None:
    """Let axes that are counted from the end be counted from the front, where the rank is known."""
    shape = operands[0].shape if operands and operands[0] is not None else None
    for name, word in spec.facts.remap.items():
        if shape is None or name not in kept:
            continue
        if word == "axis" and kept[name].as_int() < 0:
            kept[name] = ir.AttrInt64(name, kept[name].as_int() + len(shape))
        elif word == "axes" and min(kept[name].as_ints(), default=0) < 0:
            kept[name] = ir.AttrInt64s(name, [axis % len(shape) for axis in kept[name].as_ints()])


def _widen(node: ir.Node, operands: list[ir.Value | None], spec: OperatorSpec, module: Module) -> str | None:
    """Let a node compute in wider types where the opset does not have its own; None, or why that cannot be."""
    schema = spec.schema
    if schema is None or find_schema(spec.name, NEWEST, spec.domain) is None:
        return None
    wider = _choose_wider_types(node, operands, spec, schema)
    if isinstance(wider, str):
        return wider
    if not wider:
        return None
    convert = module.target.find_role("convert")
    if spec.name == convert.name:
        return f"{spec.name} does not convert {', '.join(sorted(wider))}"
    for place, (value, variable) in enumerate(pair_types(list(operands), schema.operands)):
        if value is not None and variable in wider and value.dtype != wider[variable]:
            made = _make_cast(value, wider[variable], convert, module)
            module.graph.insert_before(node, made)
            operands[place] = made.outputs[0]
    for output, variable in list(pair_types(list(node.outputs), schema.results)):
        if variable not in wider or output.dtype in (None, wider[variable]):
            continue
        made = _make_cast(output, output.dtype, convert, module)
        result = made.outputs[0]
        ir.convenience.replace_all_uses_with(output, result, replace_graph_outputs=True)
        made.replace_input_with(0, output)
        result.name, output.name = output.name, result.name
        output.type = ir.TensorType(wider[variable])
        module.graph.insert_after(node, made)
    return None


def _choose_wider_types(
    node: ir.Node, operands: Sequence[ir.Value | None], spec: OperatorSpec, schema: Signature
) -> dict[str, ir.DataType] | str:
    """The types that variables of a schema stand for where it lacks those of a node; or which one has no wider one."""
    wider = dict[str, ir.DataType]()
    read = [one if one.uses() or one.is_graph_output() else None for one in node.outputs]
    for value, variable in (*pair_types(operands, schema.operands), *pair_types(read, schema.results)):
        own = None if value is None or value.dtype is None else SHORT.get(value.dtype)
        types = schema.kinds.get(variable)
        if own is None or not types or own in types:
            continue
        instead = find_wider_type(own, types, {})
        if instead is None:
            return f"{spec.name} takes no {own}"
        wider[variable] = DTYPES[instead]
    return wider


def _make_cast(value: ir.Value, dtype: ir.DataType, convert: OperatorSpec, module: Module) -> ir.Node:
    """A node that converts a value to a type."""
    to = ir.AttrInt64(convert.facts.names_type or "to", int(dtype))
    made = ir.Node(convert.domain, convert.name, [value], [to], num_outputs=1)
    made.outputs[0].name = module.names.make_name(f"{value.name}_{SHORT[dtype]}")
    made.outputs[0].type, made.outputs[0].shape = ir.TensorType(dtype), value.shape
    return made

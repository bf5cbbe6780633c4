"""Pass `newest-forms`: nodes of an older opset are given the form that their operators have in the newest one.

Attributes that have become operands since become constant operands, and defaults that have changed are written out.
Operators whose meaning has changed get the name under which ops.yaml has their older form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.names import Scope
from ..base.startup import dataclass
from ..dialects.literals import make_attribute
from ..dialects.operators import Dialect, OperatorSpec, get_option, leave_out_empty
from .base import Module, Visit
from .fix_defaults import fix_inputs


@dataclass(frozen=True, slots=True)
class NewestForms:
    """Write the nodes of a model of the opset `given` as the opset has them that rules are compiled for."""

    given: int
    name, visits = "newest-forms", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change the nodes of one graph and of the graphs inside it; inputs with a default are the default, but for
        those of a state."""
        fix_inputs(module.graph, module.state)
        update_nodes(list(ir.traversal.RecursiveGraphIterator(module.graph)), module, self.given)


def update_nodes(nodes: list[ir.Node], module: Module, given: int, newest: int | None = None) -> None:
    """Rewrite nodes that were written at the opset `given` in the forms that rules know, or those of `newest`."""
    dialect = module.source
    if not dialect.schemas:
        return
    newest = newest or module.opset
    leave_out_empty(nodes, dialect, newest)
    for node in nodes:
        if node.domain != dialect.domain:
            continue
        known = dialect.operators.get(node.op_type)
        # What is shown by more than one result is an option of the newer form alone.
        shows = known is not None and known.facts.shown is not None and len(node.outputs) > 1
        former = None if shows else next((name for last, name in _list_older_forms(known) if given <= last), None)
        if former is not None:
            form, was = dialect.operators[former], dialect.find_operator(node.op_type, given)
            if was is not None:
                _move_attributes(node, (was, form), module.names, dialect)
            node.op_type, node.domain = form.name, form.domain
            continue
        was, now = dialect.find_operator(node.op_type, given), dialect.find_operator(node.op_type, newest)
        if was is not None and now is not None and given < newest:
            _write_defaults(node, was, now)
            if now.facts.shown is not None:
                _write_shown(node, now.facts.shown, was, now)
            _move_attributes(node, (was, now), module.names, dialect)
            _drop_defaults(node, was, now)
            if now.facts.counted and (asked := dialect.find_operator(node.op_type, module.opset)) is not None:
                _write_result_counts(node, was, asked)


def _list_older_forms(spec: OperatorSpec | None) -> list[tuple[int, str]]:
    return [] if spec is None else sorted(spec.facts.older.items())


def _write_defaults(node: ir.Node, was: OperatorSpec, now: OperatorSpec) -> None:
    for name, option in was.options.items():
        kept = now.options.get(name)
        if name in node.attributes or kept is None or option.default is None or option.default == kept.default:
            continue
        node.attributes.add(make_attribute(kept, option.default))


def _drop_defaults(node: ir.Node, was: OperatorSpec, now: OperatorSpec) -> None:
    """Drop attributes that the newer form has not, where they say what it does anyway."""
    for name, option in was.options.items():
        if name in node.attributes and name not in now.options and get_option(node, option) == option.default:
            del node.attributes[name]


def _write_shown(node: ir.Node, name: str, was: OperatorSpec, now: OperatorSpec) -> None:
    """Write out an option that the older form showed by more than one result; those that the newer one has not and that
    nobody reads are left out."""
    if name not in now.options or name in was.options or len(node.outputs) <= 1:
        return
    node.attributes.add(make_attribute(now.options[name], 1))
    behind = node.outputs[len(now.results) :]
    if not any(one.uses() or one.is_graph_output() for one in behind):
        node.resize_outputs(len(node.outputs) - len(behind))


def _write_result_counts(node: ir.Node, was: OperatorSpec, now: OperatorSpec) -> None:
    """Write out how many results there are where the older form did not have to say so, and the newer one has."""
    for name, instead in now.facts.counted.items():
        place = now.find_operand(instead)
        said = place is not None and place < len(node.inputs) and node.inputs[place] is not None
        if name in now.options and name not in was.options and not said:
            node.attributes.add(make_attribute(now.options[name], len(node.outputs)))


def _move_attributes(
    node: ir.Node,
    forms: tuple[OperatorSpec, OperatorSpec],
    names: Scope,
    dialect: Dialect,
) -> None:
    """Put attributes that are operands by now where these stand; `forms` are the older and the newer."""
    was, now = forms
    before, found = was.schema, now.schema
    moved: dict[int, Any] = {}
    known = {operand.name for operand in before.operands} if before is not None else set()
    first = len(known)
    for place, operand in enumerate(now.operands):
        name = now.facts.former.get(operand.name, operand.name)
        option = was.options.get(name)
        if option is None or operand.name in known or name in now.options:
            continue
        value = get_option(node, option)
        node.attributes.pop(name, None)
        if value is not None:
            moved[place] = value
    if not moved or first > min(moved):
        return
    inputs: list[ir.Value | None] = [*node.inputs]
    inputs += [None] * (max(moved) + 1 - len(inputs))
    for place, value in moved.items():
        parameter = None if found is None else found.find_operand(place)
        elements = np.asarray(value, np.int64 if value == [] else None)  # an empty list tells no type
        if elements.dtype.kind == "f":
            own = next((v.dtype for v in node.inputs if v is not None and v.dtype is not None), None)
            elements = elements.astype(own.numpy() if own is not None else np.float32)
        elif parameter is not None and parameter.types and elements.dtype.kind == "i":
            elements = elements.astype(np.int64)
        inputs[place] = names.register(names.make_constant(elements, now.operands[place].name))
    node.resize_inputs(len(inputs))
    for place, operand_value in enumerate(inputs):
        node.replace_input_with(place, operand_value)

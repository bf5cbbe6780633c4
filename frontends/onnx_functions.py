"""Functions of an ONNX model, put where they are called."""

from __future__ import annotations

import itertools

import onnx
import onnx.inliner

from ..engine.dialects.onnx_schemas import find_schema
from ..engine.dialects.operators import Dialect
from .onnx_graphs import list_nodes

#: the domain, the name and the overload of a function
_Name = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto, dialect: Dialect) -> onnx.ModelProto:
    """A model without functions; one that has none is returned as it is.

    The inliner of onnx knows no defaults of attributes, and leaves functions of another opset as they are: calls are
    given the defaults before, and functions the opset of the model where that means the same.

    Raises ValueError where a function of another opset is called that means something else at the model's, or nothing.
    """
    if not model.functions:
        return model
    different = _match_opsets(model, dialect)
    _add_passed_defaults(model)
    _write_defaults(model)
    made = onnx.inliner.inline_local_functions(model)
    for node in list_nodes(made.graph):
        if (node.domain, node.op_type, node.overload) in different:
            raise ValueError(different[node.domain, node.op_type, node.overload])
    return made


def _match_opsets(model: onnx.ModelProto, dialect: Dialect) -> dict[_Name, str]:
    """Let functions of another opset be of the model's where their nodes mean the same in both; why others are not."""
    versions = {one.domain: one.version for one in model.opset_import}
    different: dict[_Name, str] = {}
    for function in model.functions:
        nodes = list(list_nodes(function))
        for entry in function.opset_import:
            wanted = versions.get(entry.domain, entry.version)
            called = [node for node in nodes if node.domain == entry.domain]
            wrong = next((one for one in called if not is_same_at(one, entry.version, wanted, dialect)), None)
            if wrong is None:
                entry.version = wanted
            elif entry.version != wanted:
                name = function.domain, function.name, function.overload
                different[name] = (
                    f"function {function.name} of {function.domain} is of opset {entry.version},"
                    f" and its {wrong.op_type} is not the same at opset {wanted}, which is that of the model"
                )
    return different


def is_same_at(node: onnx.NodeProto, stated: int, wanted: int, dialect: Dialect) -> bool:
    """Whether a node means at the opset wanted what it means at the one that is stated; element types aside, which
    later versions of operators have more of."""
    was, now = (find_schema(node.op_type, opset, node.domain) for opset in (stated, wanted))
    if was is None or now is None:
        return False
    if was.since_version == now.since_version:
        return True
    known = dialect.operators.get(node.op_type)
    changes = () if known is None or node.domain else known.facts.older
    if any(min(stated, wanted) <= last < max(stated, wanted) for last in changes):
        return False
    given = {one.name for one in node.attribute}
    defaults = [
        {name: one.default_value.SerializeToString() for name, one in form.attributes.items()} for form in (was, now)
    ]
    # One that a form lacks is left out there, which is to mean what the other form has by default.
    same = all(defaults[0][name] == defaults[1][name] or name in given for name in defaults[0].keys() & defaults[1])
    operands = [[one.name for one in form.inputs][: len(node.input)] for form in (was, now)]
    fits = now.min_input <= len(node.input) <= now.max_input and now.min_output <= len(node.output) <= now.max_output
    return same and fits and given <= defaults[1].keys() and operands[0] == operands[1]


def _add_passed_defaults(model: onnx.ModelProto) -> None:
    """Give functions the defaults of those that they hand an attribute on to, where it has none of its own.

    An attribute that a call leaves out is left out there too, which has its default then.
    """
    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    for _ in functions:  # once for each function that may stand between
        changed = False
        for function in functions.values():
            for name in list(function.attribute):
                found = _find_passed_default(function, name, functions)
                if found is not None:
                    function.attribute.remove(name)
                    function.attribute_proto.append(found)
                    changed = True
        if not changed:
            return


def _find_passed_default(
    function: onnx.FunctionProto, name: str, functions: dict[_Name, onnx.FunctionProto]
) -> onnx.AttributeProto | None:
    """The default that an attribute has wherever a function hands it on; None where it has none, or several."""
    found: list[bytes] = []
    for node in list_nodes(function):
        for asked in node.attribute:
            if asked.ref_attr_name != name:
                continue
            called = functions.get((node.domain, node.op_type, node.overload))
            defaults = () if called is None else called.attribute_proto
            default = next((one for one in defaults if one.name == asked.name), None)
            if default is None:
                return None
            renamed = onnx.AttributeProto()
            renamed.CopyFrom(default)
            renamed.name = name
            found.append(renamed.SerializeToString())
    return onnx.AttributeProto.FromString(found[0]) if len(set(found)) == 1 else None


def _write_defaults(model: onnx.ModelProto) -> None:
    """Let calls of functions say what these have by default."""
    defaults = {(one.domain, one.name, one.overload): one.attribute_proto for one in model.functions}
    if not any(defaults.values()):
        return
    for node in itertools.chain.from_iterable(map(list_nodes, (model.graph, *model.functions))):
        said = {attribute.name for attribute in node.attribute}
        own = defaults.get((node.domain, node.op_type, node.overload), ())
        node.attribute.extend(one for one in own if one.name not in said)

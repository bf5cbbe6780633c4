"""Functions of an ONNX model, put where they are called."""

from __future__ import annotations

import itertools

import onnx
import onnx.inliner

from ..engine.dialects.onnx_schemas import find_schema
from .onnx_graphs import list_nodes

#: the domain, the name and the overload of a function
_Name = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without functions; one that has none is returned as it is.

    The inliner of onnx knows no defaults of attributes, and leaves functions of another opset as they are: calls are
    given the defaults before, and functions the opset of the model where that is the same.
    """
    if not model.functions:
        return model
    _match_opsets(model)
    _add_passed_defaults(model)
    _write_defaults(model)
    return onnx.inliner.inline_local_functions(model)


def _match_opsets(model: onnx.ModelProto) -> None:
    """Let functions of another opset be of the model's where their operators are the same in both."""
    versions = {one.domain: one.version for one in model.opset_import}
    for function in model.functions:
        nodes = list(list_nodes(function))
        for entry in function.opset_import:
            wanted = versions.get(entry.domain, entry.version)
            called = {node.op_type for node in nodes if node.domain == entry.domain}
            forms = ([find_schema(name, at, entry.domain) for at in (entry.version, wanted)] for name in called)
            if all(was and now and was.since_version == now.since_version for was, now in forms):
                entry.version = wanted


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

"""Records of exported programs: the arguments of a node by name, and what it yields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.dialects.operators import OperatorSpec
from .pt2_names import OUT

#: the option that says how many values each operand of a node has, where several may have any number
COUNTS = "counts"
#: the tag of arguments that are given one by one where an operand has any number
EACH = "each"
#: numbers that may be computed: by the type of the argument, what a node yields there
SYMBOLIC = {
    "as_sym_int": ir.DataType.INT64,
    "as_sym_bool": ir.DataType.BOOL,
    "as_sym_float": ir.DataType.DOUBLE,
}

#: arguments that are numbers or lists of them, with the type of a constant of each
_NUMBERS = {"int": np.int64, "float": np.float64, "bool": np.bool_}
CONSTANTS = {f"as_{name}{many}": kind for name, kind in _NUMBERS.items() for many in ("", "s")}
SYMBOLIC_LISTS = frozenset({"as_sym_ints", "as_sym_bools", "as_sym_floats"})
#: what a program takes that the file holds: the folder of the archive, and the field with the name there
HELD = {
    "parameter": ("weights", "parameter_name"),
    "buffer": ("weights", "buffer_name"),
    "tensor_constant": ("constants", "tensor_constant_name"),
}
#: the kind of those that are trained
TRAINABLE = "parameter"
#: the inputs that a program has beside tensors, and that no node reads
UNREAD = frozenset({"constant_input", "token", "custom_obj"})


def separate_written(
    records: Sequence[Mapping[str, Any]], spec: OperatorSpec
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The argument that an operator writes to, and the arguments of its functional form.

    It is the one that is called `out`, which that form lacks, or else the first, which it may call otherwise.
    """
    for record in records:
        if record["name"] == OUT:
            return record, [one for one in records if one is not record]
    return records[0], [{**records[0], "name": spec.operands[0].name}, *records[1:]]


def find_type(default: Any) -> Any:
    """The element type that a default becomes a constant of."""
    first = default[0] if isinstance(default, tuple) and default else default
    return np.bool_ if isinstance(first, bool) else np.float64 if isinstance(first, float) else np.int64


def name_arguments(records: Sequence[Mapping[str, Any]], spec: OperatorSpec) -> dict[str, Mapping[str, Any]]:
    """Arguments by their names; those of higher-order operators, which have none, in the order of the entry."""
    if all(record["name"] for record in records):
        return {record["name"]: record["arg"] for record in records}
    graphs = [name for name, option in spec.options.items() if option.type == "subgraph"]
    others = [name for name, option in spec.options.items() if option.type != "subgraph" and name != COUNTS]
    operands = [operand.name for operand in spec.operands]
    found: dict[str, Mapping[str, Any]] = {}
    loose: list[Any] = []
    for record in records:
        tags = record["arg"].keys()
        computed = tags & {"as_tensor", "as_tensors", *SYMBOLIC}
        kind = graphs if "as_graph" in tags else others if others and not computed else operands
        if len(kind) == 1 and kind is operands and "as_tensors" not in tags and spec.operands[-1].variadic:
            loose.append(record["arg"])
        elif kind:
            found[kind.pop(0)] = record["arg"]
    if loose:
        found[spec.operands[-1].name] = {EACH: loose}
    return found


def list_results(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """The names of what a node yields, those in lists one behind the other, and the type of argument of each; raises
    ValueError for what is neither a tensor nor a number."""
    names, tags = [], []
    for record in records:
        ((tag, content),) = record.items()
        if tag in SYMBOLIC:
            names.append(content.get("as_name", ""))
            tags.append(tag)
        elif tag == "as_tensor":
            names.append(content["name"])
            tags.append(tag)
        elif tag == "as_tensors":
            names.extend(one["name"] for one in content)
            tags.extend(["as_tensor"] * len(content))
        elif tag == "as_optional_tensor":
            names.append(content["as_tensor"]["name"] if "as_tensor" in content else "")
            tags.append("as_tensor")
        elif tag == "as_none":
            names.append("")
            tags.append("as_tensor")
        else:
            raise ValueError(f"a node yields {tag}")
    return names, tags


def is_conversion(node: ir.Node, result: ir.Value, spec: OperatorSpec | None) -> bool:
    """Whether a node that is asked for an element type yields another than that of its operand: no view of it."""
    first = node.inputs[0] if node.inputs else None
    return spec is not None and "dtype" in spec.options and first is not None and first.type != result.type


def find_scope(record: Mapping[str, Any]) -> str:
    """The module that a node was traced in, as `layer1:Sequential/0:Bottleneck`; nothing for the outermost.

    The words behind colons are the classes of those modules that are called.
    """
    levels = [level.split(",") for level in record["metadata"].get("nn_module_stack", "").split(";")]
    if len(levels[-1]) < 3 or levels[-1][0].startswith("_"):
        return ""
    classes = {tuple(level[1].split(".")): level[2].rpartition(".")[2] for level in levels if len(level) > 2}
    words = [word for word in levels[-1][1].split(".") if word]
    known = [classes.get(tuple(words[: at + 1]), "") for at in range(len(words))]
    return "/".join(f"{word}:{kind}" if kind else word for word, kind in zip(words, known, strict=True))

"""Versions of operators in files: the least that has all that a node asks of it, as old runtimes know no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from ..base.quantization import read_quantization
from ..expressions.functions import DTYPES
from .operators import OperatorSpec, get_option

#: words of conditions that are no names of operands, results or options
_RANK, _OPERANDS, _CODED, _CHANNELS, _BROADCAST = "rank", "operands", "coded", "channels", "broadcast"


def find_version(spec: OperatorSpec, node: ir.Node) -> int:
    """The version that a node is written with: the highest of those of which a condition in ops.yaml holds."""
    asked = [
        version
        for version, ways in spec.facts.versions.items()
        if any(_is_met(condition, spec, node) for condition in ways)
    ]
    return max(asked, default=spec.facts.version)


def _is_met(condition: Mapping[str, Any], spec: OperatorSpec, node: ir.Node) -> bool:
    return all(_check_condition(name, said, spec, node) for name, said in condition.items())


def _check_condition(name: str, said: Any, spec: OperatorSpec, node: ir.Node) -> bool:
    values = _name_values(spec, node)
    first = next(iter(node.inputs), None)
    if name == _RANK:
        return bool(first is not None and first.shape is not None and len(first.shape) >= said)
    if name == _OPERANDS:
        return bool(sum(value is not None for value in node.inputs) <= said)
    if name == _CODED:
        return bool((first is not None and read_quantization(first) is not None) == said)
    if name == _CHANNELS:
        value = values.get(said)
        grid = None if value is None else read_quantization(value)
        return grid is not None and grid.scale.size > 1
    if name == _BROADCAST:
        shapes = {f"{value.shape}" for value in node.inputs if value is not None}
        return bool((len(shapes) > 1) == said)
    if name in spec.options:
        given = get_option(node, spec.options[name])
        return bool(given >= said if type(said) is int else given == said)
    value = values.get(name)
    return value is not None and value.dtype in [DTYPES[word] for word in said.split()]


def _name_values(spec: OperatorSpec, node: ir.Node) -> dict[str, ir.Value | None]:
    """The operands and results of a node by their names in ops.yaml."""
    operands = {one.name: value for one, value in zip(spec.operands, node.inputs, strict=False)}
    return operands | {one.name: value for one, value in zip(spec.results, node.outputs, strict=False)}


__all__ = ["find_version"]

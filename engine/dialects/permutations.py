"""Permutations of axes as nodes: the operator with the role `permute` has its order as an option or as an operand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import read_constant
from ..base.names import Scope
from .operators import OperatorSpec, describe_operator


def make_permutation(
    spec: OperatorSpec, value: ir.Value, perm: Sequence[int], scope: Scope
) -> tuple[list[ir.Value], list[ir.Attr]]:
    """The operands and attributes of a node that puts the axes of a value in another order."""
    name = spec.facts.permutes or ""
    names = [operand.name for operand in spec.operands]
    if name not in names:
        return [value], [ir.AttrInt64s(name, list(perm))]
    place = names.index(name)
    parameter = describe_operator(spec).find_operand(place)
    dtype = parameter.types[0].numpy() if parameter is not None and parameter.types else np.int64
    return [value, scope.make_constant(np.array(perm, dtype), name)], []


def read_permutation(node: ir.Node, spec: OperatorSpec, rank: int) -> tuple[int, ...] | None:
    """The order that a node with the role `permute` gives axes; None where it is not known before run time, or none."""
    name = spec.facts.permutes or ""
    if all(operand.name != name for operand in spec.operands):
        given = node.attributes.get(name)
        perm = tuple(reversed(range(rank))) if given is None else tuple(given.as_ints())
    else:
        operand = node.inputs[1] if len(node.inputs) > 1 else None
        found = None if operand is None else read_constant(operand)
        if found is None:
            return None
        perm = tuple(int(axis) % max(rank, 1) for axis in np.ravel(found))
    return perm if sorted(perm) == [*range(rank)] else None

"""What a conversion did, in numbers and names, and what is counted for that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

from ..engine.base.errors import Refusal, format_count
from ..engine.base.startup import dataclass, field
from ..engine.dialects.operators import Dialect
from ..engine.passes.layout import SOURCE_ORDER
from ..engine.rewrite.traversal import walk_nodes
from .options import PORTABLE

#: element types whose names in ONNX do not say how many bits they have
_NAMES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did: operators in and out, permutations left and the elements they move, rules fired.

    `layout` is what was asked of inputs and outputs, `layouts` has those with another order of axes than in the source,
    as letters before and after. `remarks` tells what is odd about the source, in sentences. `signature` is the one that
    was converted, where it is not of the source's first graph. `inexact` counts, by name, the quantized operators that
    integers of the option `exact` do not cover: they compute with real numbers and round once. `runtime` is what the
    model was converted for, `for_speed` counts, by rule, the permutations left that its rules put in on purpose.
    `opset` is None where the format that is written has none; `opset_reason` says why it is not the one that the rules
    aim at, where nobody asked for another. `constants` has the bytes of constants by element type, in the source and in
    the result. `told` counts the nodes of the result that rules of the target remark upon, in code also those that
    are to be written by hand, by what is said of them; it stands among the `remarks` as well.
    """

    source_operators: Mapping[str, int]
    target_operators: Mapping[str, int]
    permutations: int
    moved: int | None
    opset: int | None
    rules: Mapping[str, int]
    layout: str = SOURCE_ORDER
    layouts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    signature: str | None = None
    inexact: Mapping[str, int] = field(default_factory=dict)
    runtime: str = PORTABLE
    for_speed: Mapping[str, int] = field(default_factory=dict)
    opset_reason: str = ""
    constants: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)


def count_bytes(graphs: Iterable[ir.Graph]) -> Counter[str]:
    """The bytes of the constants of some graphs by element type."""
    sizes: Counter[str] = Counter()
    for one in graphs:
        for value in one.initializers.values():
            if value.const_value is not None and value.const_value.dtype != ir.DataType.STRING:
                dtype = value.const_value.dtype
                sizes[_NAMES.get(dtype, dtype.name.lower())] += value.const_value.nbytes
    return sizes


def count_unwritten(graph: ir.Graph, dialect: Dialect) -> Counter[str]:
    """The nodes that no rule took, for which code has methods to be filled in, by what a remark says of them."""
    names = (node.op_type for node in walk_nodes(graph) if node.domain != dialect.domain)
    return Counter(f"there is no code for {name}, and a method that raises stands in its place" for name in names)


def format_lack(refusal: Refusal) -> str:
    """What an earlier opset cannot say, and the rule that says so."""
    reasons = [f"{one.message} (rule {one.rule})" for one in refusal.reasons[-1:]]
    return f"{refusal.operator} needs it: {', '.join(reasons)}" if reasons else f"{refusal.operator} needs it"


def format_contradictions(contradictions: Sequence[str]) -> tuple[str, ...]:
    """What is odd about the shapes of a source, in a sentence."""
    if not contradictions:
        return ()
    more = f", and {len(contradictions) - 1} more" if len(contradictions) > 1 else ""
    return (f"shapes in the file are stale and were computed anew: {contradictions[0]}{more}",)


def count_elements(value: ir.Value) -> int | None:
    """How many elements a value has; None where that is not known before run time."""
    if value.shape is None or not all(isinstance(extent, int) for extent in value.shape):
        return None
    return math.prod(extent for extent in value.shape if isinstance(extent, int))


def format_bounds(rules: Mapping[str, int]) -> tuple[str, ...]:
    """Which rules were not tried to their end, in sentences."""
    return tuple(f"rule {said}, and was left out at {format_count(count, 'node')}" for said, count in rules.items())


def format_remarks(messages: Mapping[str, int]) -> tuple[str, ...]:
    """What rules of the target remark upon in the result, in sentences."""
    return tuple(f"{said}: {format_count(count, 'node')}" for said, count in messages.items())

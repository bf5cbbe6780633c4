"""Results: how many a generated step has, of which types, and what a pattern calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ..engine.rewrite.pattern import Defined
from ..engine.rewrite.variadics import assign_places
from ..engine.syntax import tree
from .choices import Choices
from .element_types import USUAL, Admitted
from .generate_body import list_leading_types
from .sketch import Body, Step, Value
from .subjects import Subject


def list_counts(step: Step, targets: Sequence[tree.Target]) -> list[int]:
    """How many results to try: as many as its graph yields or an option counts, or as the pattern names."""
    spec = step.operator
    for option, body in step.options.items():
        if isinstance(body, Body):
            count = len(body.yields) - len(list_leading_types(spec.facts, option))
            return [count] if count else []  # a node without results is none
    counted = {option for option, of in spec.facts.fuzz.counts.items() if of in {r.name for r in spec.results}}
    for name in counted & step.options.keys():
        return [int(step.options[name])]
    if any(result.variadic for result in spec.results):
        return [1, 2, 3] if not targets or any(target.spread for target in targets) else [len(targets)]
    least = max(1, sum(not result.optional for result in spec.results))
    if targets:
        most = min(len(targets), len(spec.results))
        return list(dict.fromkeys([most, min(most, least)]))
    return [least]


def name_results(equation: Defined, found: Sequence[Value], counts: Mapping[str, int]) -> dict[str, Any]:
    """The results of a step by the names that an equation gives them; `counts` says how many values names stand for."""
    # What becomes of mutable operands is no result in the file.
    wanted = equation.targets if any(target.spread for target in equation.targets) else equation.targets[: len(found)]
    places, _ = next(assign_places(wanted, len(found), counts), ([], {}))
    named = zip(wanted, places, strict=False)
    return {target.name: tuple(found[place]) if target.spread else found[place][0] for target, place in named}


def list_types(choices: Choices, subject: Subject, step: Step, kinds: Admitted) -> list[ir.DataType]:
    """Types to try for results: what ops.yaml or an option says, those of operands, then the usual ones.

    Weights may be narrower than what they weigh, and no result has their type then: kernels that let it pass are wrong.
    """
    weights = step.operator.facts.channels
    weighed = {place for place, operand in enumerate(step.operator.operands) if operand.name in weights}
    said = [choices.pick(names) for names in kinds.results[:1] if names]
    spec = step.operator
    naming = [name for name in step.options if name in spec.options and spec.options[name].type == "TensorType"]
    ordered = sorted(naming, key=lambda name: (name != spec.facts.names_type, name))
    types = [subject.reads.types[step.options[name]]["dtype"] for name in ordered]
    typed = [ir.DataType[dtype] for dtype in types if dtype is not None]
    data = sorted(
        (place for place, value in enumerate(step.operands) if value is not None), key=lambda p: kinds.is_index(p)
    )
    operands = [value.dtype for place in data if place not in weighed and (value := step.operands[place]) is not None]
    return list(dict.fromkeys([*typed, *said, *operands, *([] if said else USUAL)]))

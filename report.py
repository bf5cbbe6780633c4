"""What a conversion did, in numbers and names."""

from __future__ import annotations

from collections.abc import Mapping

from .engine.base.records import dataclass, field
from .engine.passes.layout import SOURCE
from .options import PORTABLE


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did: operators in and out, permutations left and the elements they move, rules fired.

    `layout` is what was asked of inputs and outputs, `layouts` has those with another order of axes than in the source,
    as letters before and after. `remarks` tells what is odd about the source, in sentences. `signature` is the one that
    was converted, where it is not of the source's first graph. `inexact` counts, by name, the quantized operators that
    integers of the option `exact` do not cover: they compute with real numbers and round once. `target` is what the
    model was converted for, `for_speed` counts, by rule, the permutations left that its rules put in on purpose.
    """

    source_operators: Mapping[str, int]
    target_operators: Mapping[str, int]
    permutations: int
    moved: int | None
    opset: int
    rules: Mapping[str, int]
    layout: str = SOURCE
    layouts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    signature: str | None = None
    inexact: Mapping[str, int] = field(default_factory=dict)
    target: str = PORTABLE
    for_speed: Mapping[str, int] = field(default_factory=dict)

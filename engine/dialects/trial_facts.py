"""The keys of ops.yaml that only fuzzing asks for, and what names and numbers stand for in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ..base.startup import dataclass, field

#: what the numbers of an operand must be; of floats alone the last three
Limit = Literal["nonzero", "natural", "positive", "byte", "few", "bits", "scale", "moderate", "distinct"]
#: a scale and a zero point
Grid = tuple[float, int]


class Member(str):
    """The name of an operand, a result or an option of the operator."""


@dataclass(frozen=True, slots=True)
class OperatorTrials:
    """What only fuzzing asks of an operator."""

    said: tuple[str, ...] = ()
    untried: Annotated[str | None, "In words, why the interpreter cannot be asked about it"] = None
    reference: Annotated[
        tuple[str, ...],
        "Options that ONNX Runtime takes at their default alone: of others the evaluator of the onnx package is asked",
    ] = ()
    counts: Annotated[
        Mapping[str, str],
        "Options, each with the operands or results whose number it is",
        Mapping[Member, str],
    ] = field(default_factory=dict)
    stays: Annotated[
        tuple[str, ...],
        "Options that keep their default unless a test says more, as kernels do not check them",
        tuple[Member, ...],
    ] = ()
    tried: Annotated[
        Mapping[str, tuple[Any, ...]],
        "Options and operands, each with values to try where no schema tells them",
        Mapping[Member, tuple[Any, ...]],
    ] = field(default_factory=dict)
    limits: Annotated[
        Mapping[str, Limit],
        "Operands, each with what its numbers must be. Integers and codes above all: nonzero, natural (not negative),"
        " positive, byte (-128 to 127), few (-2 to 2), bits (0 to 7); floats: scale (between 0 and 1), moderate (-2 to"
        " 2), distinct (no two alike)",
        Mapping[Member, Limit],
    ] = field(default_factory=dict)
    faulty: Annotated[
        tuple[str, ...], "Element types for which the interpreter itself is wrong, as docs/appendix/findings.md tells"
    ] = ()
    faulty_from: Annotated[float | None, "The scale of operands from which on the interpreter itself is wrong"] = None
    alike: Annotated[bool, "Whether all its results have one type"] = False
    same_shape: Annotated[bool, "Whether its operands must have one shape, which kernels do not check"] = False
    padded: Annotated[bool, "Whether a file has all its operands, those left out as well"] = False
    states: Annotated[
        Mapping[str, Grid],
        "Operands that are state, each with the scale and the zero point that kernels ask of it",
        Mapping[Member, Grid],
    ] = field(default_factory=dict)
    scratch: Annotated[
        tuple[tuple[str, float], ...] | None, "Types and scales of what integer kernels keep beside it in a file"
    ] = None
    follows: Annotated[
        tuple[str, ...],
        "Operands whose types its results have where these are quantized",
        tuple[Member, ...],
    ] = ()
    elements: Annotated[
        Mapping[str, tuple[int, ...]],
        "Options that are graphs of elements, each with the places of the operands of which it is given one",
        Mapping[Member, tuple[int, ...]],
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DialectTrials:
    """What only fuzzing asks of a dialect."""

    said: tuple[str, ...] = ()
    unheeded: Annotated[
        Mapping[str, tuple[str, ...]], "Enumerants that kernels read past, as if the option had its default"
    ] = field(default_factory=dict)
    others: Annotated[
        Mapping[str, tuple[Any, ...]],
        "Options by name, each with values that it is given at times where a rule reads it and no test names it",
    ] = field(default_factory=dict)
    windows: Annotated[
        Mapping[str, tuple[int | tuple[int, int], ...]],
        "The same of options that have a number for each axis of an image, or one for each of its two ends",
    ] = field(default_factory=dict)
    samples: Annotated[
        str | None, "In words, what its rules are tried on where no interpreter runs its operators: they need no test"
    ] = None

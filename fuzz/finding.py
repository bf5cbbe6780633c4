"""Findings: the result of trying a rule on one case."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import onnx_ir as ir

from ..engine.base.errors import InternalError, RewriteError, RewriteFailure
from ..engine.base.quantization import Quantization
from ..verify.frames import Array

Kind = tuple[ir.DataType, Quantization | None]
#: the quantizations that a result of some element type may have, the first to try in front; none where it has none
Grids = Callable[[ir.DataType], Sequence[Quantization]]


class Rejected(Exception):
    """A step that the interpreter does not take, whatever its results are said to be."""


class End(StrEnum):
    """What came of one case: the models agree, the rules say no, or something is wrong."""

    PASSED = "passed"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The end of one case, why, the rules that fired with how often, and the outputs of both sides where they ran.

    `operators` counts what is left of the graph when it is rewritten, of which there were `most` at most when the
    case was recorded, where that is what failed. `recorded` says that it failed beside the record alone.
    """

    end: End
    reason: str = ""
    fired: Mapping[str, int] = field(default_factory=dict)
    expected: tuple[Array, ...] = ()
    actual: tuple[Array, ...] = ()
    operators: int = 0
    most: int | None = None
    recorded: bool = False


def judge_error(error: Exception) -> Finding:
    """What it means for a case that its conversion ended with an error: rules may refuse it, all else is a failure."""
    if isinstance(error, InternalError):
        return Finding(End.FAILED, "".join(traceback.format_exception(error)))
    if isinstance(error, RewriteError):
        return Finding(End.FAILED if isinstance(error, RewriteFailure) else End.REFUSED, f"{error}")
    return Finding(End.FAILED, "internal error: " + "".join(traceback.format_exception(error)))

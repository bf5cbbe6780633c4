"""Rules tried on random models, and the same models for tests of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from ..conversion.options import DEFAULT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from .strategy import Sample


@overload
def models(
    *operators: str, names: Sequence[str] = ..., rules: Sequence[str] = ..., inputs: Literal[False] = ...
) -> SearchStrategy[bytes]: ...
@overload
def models(
    *operators: str, names: Sequence[str] = ..., rules: Sequence[str] = ..., inputs: Literal[True]
) -> SearchStrategy[Sample]: ...
def models(
    *operators: str, names: Sequence[str] = (), rules: Sequence[str] = DEFAULT.rules, inputs: bool = False
) -> SearchStrategy[bytes] | SearchStrategy[Sample]:
    """A strategy of Hypothesis for TensorFlow Lite models of one operator or a few, as the bytes of files.

    They are drawn from the `test` clauses of rules in the packs `rules`: of all of them, or of those about some
    `operators` and those called by some `names`, as `rewrite fuzz` draws them, and the interpreter takes each. With
    `inputs` each is a pair of the file and the arrays to run it on. Raises CallError where there are no such rules,
    VerificationError where the interpreter or Hypothesis is not installed.
    """
    from ..verify.interpreter import require

    require("ai_edge_litert", "hypothesis")
    from .strategy import draw_models, draw_samples

    drawn = draw_samples(operators, names, tuple(rules))
    return drawn if inputs else draw_models(drawn)


__all__ = ["models"]

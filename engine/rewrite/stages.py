"""The stages of a conversion in which rules run, and the dialects that they read and write."""

from __future__ import annotations

from ..dialects.operators import Dialect

#: in the order they run; what operators mean in others of the source is asked for where they are tried alone
STAGES = ("meaning", "integers", "normalize", "lower", "recover", "simplify", "tune", "accept", "support", "adapt")
MEANING, INTEGERS, NORMALIZE, LOWER, RECOVER, SIMPLIFY, TUNE, ACCEPT, SUPPORT, ADAPT = STAGES
#: those that read the source dialect, and those that go over each node once
OF_SOURCE, ONCE = STAGES[:4], (INTEGERS, LOWER)
#: those that rewrite the target until nothing applies, of which a rule may have several
REWRITING = (RECOVER, SIMPLIFY, TUNE)
#: those whose rules may leave any node as it is, and so leave one where what they make has another shape
OPTIONAL = (NORMALIZE, *REWRITING)
#: those whose rules build nothing: they say what a target takes, of a whole graph or for a part of it
JUDGING = (ACCEPT, SUPPORT)


def list_template_dialects(stage: str, source: Dialect, target: Dialect) -> tuple[Dialect, ...]:
    """The dialects in which the templates of a stage are written, the one that infix operators stand for last."""
    return {MEANING: (source,), INTEGERS: (source, target), NORMALIZE: (source, target)}.get(stage, (target,))

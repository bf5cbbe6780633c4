"""Models as a strategy of Hypothesis, for property tests of anything that reads them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from ..conversion.options import Options
from ..engine.base.errors import CallError
from ..engine.packs import loader
from ..verify.frames import Array
from ..verify.interpreter import Interpreter
from .cases import draw
from .choices import Choices
from .finding import Rejected
from .memory import Memory
from .oracle import Oracle
from .profiles import PROFILES
from .rule_sets import is_wanted, require_known
from .search import draw_cases
from .sketch import Case, encode
from .subjects import list_subjects

#: seconds that the interpreter may take for one model
_TIMEOUT = 20.0

for _name, _profile in PROFILES.items():
    settings.register_profile(f"nnrewrite-{_name}", max_examples=_profile.examples, deadline=None)


#: a model as the bytes of a file, and what to run it on
Sample = tuple[bytes, list[Array]]


def draw_models(samples: st.SearchStrategy[Sample]) -> st.SearchStrategy[bytes]:
    """The files of some samples alone."""
    return samples.map(operator.itemgetter(0))


def draw_samples(operators: Sequence[str], names: Sequence[str], rules: tuple[str, ...]) -> st.SearchStrategy[Sample]:
    """Models for rules about some operators or of some names, with inputs; raises CallError where there are none."""
    stacked = Options(rules=rules).stacked
    pack = loader.load(stacked)
    every = [one for one in list_subjects(pack) if one.of_source and one.interpreted and one.tests and not one.excuse]
    require_known(every, [pack], operators, names)
    chosen = [one for one in every if is_wanted(one, operators, names)]
    if not chosen:
        raise CallError("no rule of these packs reads models and has a `test`")

    def draw_case(choices: Choices) -> Case | None:
        oracle = _make_oracle(stacked)
        try:
            # What was found to be taken before is forgotten, so that the same choices draw the same model.
            with oracle.memory.recall(Memory()):
                case = draw(choices, choices.pick(chosen), oracle)
        except Rejected:
            return None
        return case

    @st.composite  # without arguments, which Hypothesis would word
    def draw_all(choose: st.DrawFn) -> Sample:
        case = choose(draw_cases(draw_case))
        return encode(case, pack.catalogue), [value.content for value in case.inputs]

    return draw_all()


@functools.cache
def _make_oracle(stacked: tuple[str, ...]) -> Oracle:
    """Where models are settled, with an interpreter that lives as long as the process."""
    return Oracle(Interpreter(_TIMEOUT), loader.load(stacked).catalogue, stacked)

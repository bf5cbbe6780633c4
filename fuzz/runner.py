"""Runs a bounded, seeded number of cases of one rule, and makes the failure among them small."""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..engine.base.errors import RewriteError
from . import baseline, categories, snapshot
from .cases import draw
from .categories import Category
from .choices import Choices
from .file_digest import digest_file
from .finding import End, Finding, Rejected
from .memory import Memory
from .oracle import Oracle
from .sketch import Case
from .subjects import Subject
from .tally import Tally

#: draws that the interpreter refuses for each case wanted, before giving up
PATIENCE = 8
#: seconds for making a failure small
SHRINKING = 3.0

Drawn = Callable[[Choices], Case]
Judge = Callable[[Case], Finding]


def examine(
    subject: Subject | Category,
    oracle: Oracle,
    examples: int,
    seed: int | str = 0,
    drawn: Drawn | None = None,
    patience: int = PATIENCE,
    until: bool = False,
    shrinking: float = SHRINKING,
    kept: Path | None = None,
) -> Tally:
    """Try a rule or a layout category on so many cases, with up to `patience` draws for each.

    With `until` only until it fires.

    The same seed draws the same. Stops at the first failure and makes it small, in `shrinking` seconds at most. `drawn`
    draws other cases than those of the rule's own tests. Of the latter, those that failed before are in the folder
    `kept`, and are tried first.
    """
    from . import search

    tally = Tally(subject.name, subject.place, excuse=subject.excuse, sought=until)
    judge, source = _make_trial(subject, oracle)
    source = drawn or source
    started = time.monotonic()
    failure = _Failure(source, judge, oracle, oracle.memory.copy(), shrinking)
    trial = _Examination(subject, tally, failure, examples * patience, until, drawn is None)
    kept = None if drawn else kept
    if kept is not None:
        search.repeat(kept, subject.name, trial.draw, trial.is_failing)
    if not failure.found:
        search.search(trial.draw, trial.is_failing, examples, f"{seed}/{subject.name}")
    if failure.found and kept is not None:
        search.keep(kept, subject.name, failure.made)
    tally.failure = failure.found
    tally.seconds = time.monotonic() - started
    return tally


def repeat(
    subject: Subject | Category,
    oracle: Oracle,
    before: Sequence[str],
    cases: int = baseline.CASES,
    shrinking: float = SHRINKING,
) -> Tally:
    """Try a rule or a layout category on the first fixed cases of the record, which had the outcomes `before` then.

    Stops at the first failure, and makes it small where it is one whatever is recorded: a smaller case has no outcome
    to compare with. The oracle must be one in which nothing was tried yet, for the same cases to be drawn.
    """
    tally = Tally(
        subject.name, subject.place, excuse=subject.excuse, sought=bool(subject.excuse) and cases == baseline.CASES
    )
    judge, source = _make_trial(subject, oracle)
    started = time.monotonic()
    outcomes: list[str] = []
    stored = isinstance(subject, Subject) and subject.of_source and subject.interpreted
    alone = isinstance(subject, Subject) and not subject.of_source
    whole = cases == baseline.CASES
    for place in range(baseline.ALONE if whole and alone else cases):
        finding = None
        memory = oracle.memory.copy()
        known = before[place] if place < len(before) else None
        case, choices, refused = _draw_fixed(subject, place, source, tally, judge, known)
        mark = _mark(case, oracle, tally) if case is not None and stored else ""
        if case is not None:
            finding = judge(case)
            if finding.end is End.FAILED:
                failure = _Failure(source, judge, oracle, memory, shrinking)
                case, finding = failure.reduce(choices, case, finding)
            elif known is not None:
                finding = baseline.judge_fixed(case, finding, known, alone, mark, before)
            tally.count(finding)
        outcomes.append(baseline.format_outcome(case, finding, mark, refused))
        if case is not None and finding is not None and finding.end is End.FAILED:
            tally.failure = case, finding
            break
    else:
        tally.worse = tally.worse or (baseline.explain_missing(outcomes, before) if whole else "")
    tally.outcomes, tally.seconds = tuple(outcomes), time.monotonic() - started
    return tally


def try_firing(subject: Subject, oracle: Oracle, before: Sequence[str], shrinking: float = SHRINKING) -> Tally:
    """Try a rule on the first fixed case on which it fired when these had the outcomes `before`, if there is one.

    A failure is made small; nothing is compared with what was recorded.
    """
    tally = Tally(subject.name, subject.place, excuse=subject.excuse)
    place = baseline.find_firing(before)
    if place is None:
        return tally
    judge, source = _make_trial(subject, oracle)
    memory = oracle.memory.copy()
    case, choices, _ = _draw_fixed(subject, place, source, tally, judge, before[place])
    if case is not None:
        finding = judge(case)
        if finding.end is End.FAILED:
            case, finding = _Failure(source, judge, oracle, memory, shrinking).reduce(choices, case, finding)
            tally.failure = case, finding
        tally.count(finding)
    return tally


def _draw_fixed(
    subject: Subject | Category, place: int, source: Drawn, tally: Tally, judge: Judge, known: str | None
) -> tuple[Case | None, Choices, int]:
    """One of the fixed cases, what it was drawn by, and how many draws were passed over before; None where all were.

    It is the one that was recorded where its outcome is `known`; else the first that the interpreter takes, and in some
    places the first on which the rule fires, if there is one.
    """
    seed = f"{baseline.SEED}/{subject.name}/{place}"
    draws = [
        Choices.make_seeded(seed, place),
        *(Choices.make_seeded(f"{seed}/{more}") for more in range(baseline.DRAWS - 1)),
    ]
    least = baseline.count_refused(known) if known is not None else 0
    sought = known is None and place % baseline.IN_A_ROW < baseline.FIRING
    found: tuple[Case | None, Choices, int] = None, draws[-1], len(draws)
    for refused, choices in enumerate(draws):  # from the second on with all the options that it may have to have
        case = _draw_case(source, choices, tally)
        if case is None or refused < least:
            continue
        if found[0] is None:
            found = case, choices, refused
        if not sought or judge(case).fired.get(subject.name):
            return case, choices, refused
    return found


def _mark(case: Case, oracle: Oracle, tally: Tally) -> str:
    """The digest of a case; why there is none is told of."""
    try:
        return digest_file(case, oracle.catalogue, oracle.describe_rebatched(case))
    except Exception:
        tally.worse = f"internal error while it was written: {traceback.format_exc()}"
        return ""


def _draw_case(source: Drawn, choices: Choices, tally: Tally) -> Case | None:
    """A case, or none; why there is none is told of."""
    try:
        return source(choices)
    except Rejected as rejection:
        tally.rejected[f"{rejection}"] += 1
    except RewriteError as error:
        tally.worse = f"no model can be made of it: {error}"
    except Exception:
        tally.worse = f"internal error while a model was made of it: {traceback.format_exc()}"
    return None


def _guard_judge(judge: Judge) -> Judge:
    """A judge that tells of what it stumbles over as a failure of the case."""

    def judge_guarded(case: Case) -> Finding:
        try:
            return judge(case)
        except RewriteError as error:
            return Finding(End.FAILED, f"{error}")
        except Exception:
            return Finding(End.FAILED, f"internal error: {traceback.format_exc()}")

    return judge_guarded


def _make_trial(subject: Subject | Category, oracle: Oracle) -> tuple[Judge, Drawn]:
    """How cases are judged, what a judge stumbles over being a failure of the case, and how they are drawn."""
    if subject.excuse:
        assert isinstance(subject, Subject)
        judged = functools.partial(snapshot.judge, rules=oracle.rules)
        return _guard_judge(judged), functools.partial(snapshot.draw, subject=subject, usual=oracle.opset)
    if isinstance(subject, Category):
        judging = categories.judge_shuffle if subject.family == categories.SHUFFLE else categories.judge
        return (
            _guard_judge(functools.partial(judging, category=subject, oracle=oracle)),
            functools.partial(categories.draw, category=subject, oracle=oracle),
        )
    return _guard_judge(_find_judge(subject, oracle)), functools.partial(draw, subject=subject, oracle=oracle)


def _find_judge(subject: Subject, oracle: Oracle) -> Judge:
    if subject.adapts:
        return functools.partial(oracle.conversions.judge_adapted, given=subject.newest)
    if not subject.of_source:
        return oracle.self_check.judge
    return oracle.judge if subject.interpreted else oracle.conversions.judge


@dataclass(slots=True)
class _Failure:
    """The smallest case that failed, and the choices it was drawn by; smaller ones are looked for in so many `seconds`.

    `memory` is what the oracle knew when the first was drawn.
    """

    source: Drawn
    judge: Judge
    oracle: Oracle
    memory: Memory
    seconds: float
    found: tuple[Case, Finding] | None = None
    made: list[int] = field(default_factory=list)
    drawn: list[int] = field(default_factory=list)
    end: float = 0.0

    def start(self, made: list[int], case: Case, finding: Finding) -> None:
        """Record the first failure."""
        self.made, self.found, self.end = list(made), (case, finding), time.monotonic() + self.seconds

    def reduce(self, choices: Choices, case: Case, finding: Finding) -> tuple[Case, Finding]:
        """Look for the smallest case that fails, beginning with one that does."""
        from . import search

        self.start(choices.made, case, finding)
        search.reduce(choices.made, self.draw, self.is_recurring)
        return self.found or (case, finding)

    def draw(self, choices: Choices) -> Case | None:
        """Draw another; none where nothing can be drawn. Raises SearchEnded when the time is."""
        from .search import SearchEnded

        if time.monotonic() > self.end:
            raise SearchEnded
        self.drawn = choices.made
        try:
            with self.oracle.memory.recall(self.memory):
                return self.source(choices)
        except (Rejected, RewriteError):
            return None

    def is_recurring(self, case: Case) -> bool:
        """Whether the case fails too that was drawn last."""
        finding = self.judge(case)
        if finding.end is not End.FAILED:
            return False
        if (len(self.drawn), self.drawn) < (len(self.made), self.made):
            self.made, self.found = list(self.drawn), (case, finding)
        return True


@dataclass(slots=True)
class _Examination:
    """A search for a case that fails, and for smaller ones once there is one; it ends after so many draws at the most.

    With `until` it ends where the rule fires. Cases are its `own` where they are of its own tests.
    """

    subject: Subject | Category
    tally: Tally
    failure: _Failure
    draws: int
    until: bool
    own: bool
    drawn: int = 0

    def draw(self, choices: Choices) -> Case | None:
        """Draw a case; none where there is none. Raises SearchEnded after the last."""
        from .search import SearchEnded

        if self.failure.found:
            return self.failure.draw(choices)
        self.drawn += 1
        if self.tally.worse or self.drawn > self.draws or (self.own and self.tally.unheard):
            raise SearchEnded
        self.failure.drawn = choices.made
        with self.failure.oracle.memory.recall(self.failure.memory):  # so that the same choices draw the same case
            return _draw_case(self.failure.source, choices, self.tally)

    def is_failing(self, case: Case) -> bool:
        """Whether a case fails; raises SearchEnded where it is enough that the rule fires."""
        from .search import SearchEnded

        if self.failure.found:
            return self.failure.is_recurring(case)
        finding = self.failure.judge(case)
        self.tally.count(finding)
        if self.until and finding.fired.get(self.subject.name):
            raise SearchEnded
        if finding.end is End.FAILED:
            self.failure.start(self.failure.drawn, case, finding)
        return finding.end is End.FAILED

"""What came of the cases of one rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .finding import End, Finding
from .sketch import Case

#: what the interpreter says of custom operators, whose kernels are the user's own
_UNHEARD = ("unresolved custom op", "is not a registered function/op")


@dataclass(slots=True)
class Tally:
    """What came of the cases of one rule.

    `rejected` counts draws that the interpreter refused, by what it said; `refused` cases that the rules refused, by
    their reasons; `fired` how often each rule fired. `failure` is the smallest case that failed; `crash` says how the
    process ended that tried it, where it did not live to tell. `excuse` says why it cannot be tried at all, and with
    `fires` it is at fault when it never fires although that was `sought`. `outcomes` are those of the cases that the
    record has, `worse` says what is wrong with the draws of these.
    """

    rule: str
    place: str = ""
    tried: int = 0
    passed: int = 0
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    failure: tuple[Case, Finding] | None = None
    crash: str = ""
    excuse: str = ""
    fires: bool = True
    sought: bool = False
    outcomes: tuple[str, ...] = ()
    worse: str = ""

    @property
    def failed(self) -> bool:
        """Whether something is wrong that further cases do not mend."""
        return self.failure is not None or bool(self.crash or self.worse)

    @property
    def acceptance(self) -> float:
        """The share of draws that the interpreter took."""
        draws = self.tried + self.rejected.total()
        return self.tried / draws if draws else 0.0

    def explain_problem(self) -> str:
        """What is wrong, in words; nothing where all is well."""
        if self.failure is not None:
            case, finding = self.failure
            opset = "" if case.opset is None else f" at opset {case.opset}"
            return f"{self.place}: {finding.reason}\n{case.describe()}{opset}"
        if self.crash or self.worse:
            return f"{self.place}: {self.crash or self.worse}"
        if self.unheard:
            said = "say in a rule of `stage meaning` what it means, or in ops.yaml why it is `untried`"
            return f"{self.place}: the interpreter has no kernel for the operator: {said}"
        if not (self.idle and self.sought):
            return ""
        if not self.tried:
            said = max(self.rejected, key=lambda words: self.rejected[words], default="nothing was drawn")
            return f"{self.place}: the interpreter takes none of {self.rejected.total()} draws: {said}"
        said = max(self.refused, key=lambda words: self.refused[words], default="other rules go first")
        return f"{self.place}: does not fire in {self.tried} cases: {said}"

    @property
    def idle(self) -> bool:
        """Whether it was tried in vain: nothing could be drawn, or it never fired."""
        drawn = bool(self.tried) or (bool(self.rejected) and not self.excuse and not self.unheard)
        return drawn and self.fires and self.failure is None and not self.fired[self.rule]

    @property
    def unheard(self) -> bool:
        """Whether nothing could be tried, as the interpreter knows the operators by name alone."""
        unheard = any(words in said for words in _UNHEARD for said in self.rejected)  # others are of wrong types
        return unheard and not self.tried and not self.excuse

    def count(self, finding: Finding) -> None:
        """Take in what came of one case."""
        self.tried += 1
        self.passed += finding.end is End.PASSED
        self.fired.update(finding.fired)
        if finding.end is End.REFUSED:
            self.refused[finding.reason] += 1

    def add(self, other: Tally) -> None:
        """Take in what came of more cases of the same rule."""
        self.tried, self.passed = self.tried + other.tried, self.passed + other.passed
        self.seconds += other.seconds
        for mine, theirs in (
            (self.rejected, other.rejected),
            (self.refused, other.refused),
            (self.fired, other.fired),
        ):
            mine.update(theirs)
        self.failure = self.failure or other.failure
        self.crash = self.crash or other.crash
        self.worse = self.worse or other.worse
        self.outcomes = other.outcomes or self.outcomes
        self.sought = self.sought or other.sought

"""What came of each model of a call: converted and perhaps verified, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..engine.base.startup import dataclass

if TYPE_CHECKING:
    from ..conversion.report import Report
    from ..engine.passes.layout.explain import Remaining
    from ..engine.rewrite.profile import Profile
    from ..verify import Verification
    from .jobs import Job


@dataclass(frozen=True, slots=True)
class Result:
    """One model converted: sizes in bytes, time in seconds without that of verification.

    `explained` has each Transpose that is left, where they were asked for. `unverified` says why a
    verification that was asked for could not be carried out.
    """

    job: Job
    report: Report
    bytes_in: int
    bytes_out: int
    seconds: float
    verification: Verification | None = None
    unverified: str = ""
    explained: tuple[Remaining, ...] = ()
    profile: Profile | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing that was asked for came out badly."""
        return not self.unverified and (self.verification is None or self.verification.passed)


@dataclass(frozen=True, slots=True)
class Failure:
    """A model that was not converted, why, and what that is as diagnostics of a document."""

    job: Job
    message: str
    diagnostics: tuple[dict[str, Any], ...] = ()

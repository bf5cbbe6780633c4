"""Results: what came of conversions and verifications, as objects of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .dispatch import INTERRUPTED
from .json_documents import make_diagnostic, make_plain, show

if TYPE_CHECKING:
    from ..conversion.report import Report
    from ..engine.rewrite.profile import Profile
    from ..engine.rewrite.rules import Override
    from ..verify import Verification
    from .result import Failure, Result


def show_conversions(
    results: Sequence[Result],
    failures: Sequence[Failure],
    jobs: int,
    seconds: float,
    overrides: Sequence[Override],
    interruption: str = "",
) -> None:
    """Print the document of a call that converts models, of which some may not have been tried.

    `interruption` says that it was interrupted, in words.
    """
    entries = [
        *map(_describe_conversion, results),
        *({"source": f.job.name, "target": None, "ok": False} for f in failures),
    ]
    told = [
        *(one for failure in failures for one in failure.diagnostics),
        *(one for result in results for one in _iterate_remarks(result)),
        *map(_make_note, select_occurring(overrides, [result.report for result in results])),
        *([make_diagnostic(interruption, INTERRUPTED)] if interruption else []),
    ]
    ok = not interruption and not failures and all(one.passed for one in results)
    counts = {"models": jobs, "converted": len(results), "failed": len(failures)}
    show("convert", ok, entries, told, **counts, seconds=round(seconds, 3))


def select_occurring(overrides: Sequence[Override], reports: Sequence[Report]) -> list[Override]:
    """The rules that took the place of others for operators that were converted."""
    met = {name for report in reports for name in (*report.source_operators, *report.rules)}
    return [one for one in overrides if not met.isdisjoint((one.operator, one.rule, one.rule.partition(" ")[0]))]


def override_note(override: Override) -> str:
    """Word that a rule takes the place of another."""
    return f"{override.rule} takes the place of {override.instead_of}"


def make_verification_entry(found: Verification) -> dict[str, Any]:
    """What a verification measured, each output by itself."""
    return {"passed": found.passed, **make_plain(found)}


def list_differences(found: Verification, name: str) -> list[dict[str, Any]]:
    """What is different, as diagnostics about a model."""
    return [make_diagnostic(f"differs from the original: {one}", "Difference", file=name) for one in found.differences]


def _describe_conversion(result: Result) -> dict[str, Any]:
    report, verification = result.report, result.verification
    return {
        "source": result.job.name,
        "target": result.job.target,
        "ok": result.passed,
        **make_plain(report),
        "bytes_in": result.bytes_in,
        "bytes_out": result.bytes_out,
        "seconds": round(result.seconds, 4),
        "explained": [f"{one}" for one in result.explained],
        "verification": None if verification is None else make_verification_entry(verification),
        "profile": None if result.profile is None else _make_profile(result.profile),
    }


def _iterate_remarks(result: Result) -> Iterator[dict[str, Any]]:
    name, verification = result.job.name, result.verification
    if result.unverified:
        yield make_diagnostic(f"converted, but not verified: {result.unverified}", "VerificationError", file=name)
    if verification is not None:
        yield from list_differences(verification, name)
    for remark in result.report.remarks:
        yield make_diagnostic(remark, "Remark", "note", file=name)


def _make_note(override: Override) -> dict[str, Any]:
    return make_diagnostic(override_note(override), "Override", "note")


def _make_profile(profile: Profile) -> dict[str, Any]:
    return {
        "parts": profile.parts,
        "rules": [{"stage": stage, "rule": name, **make_plain(cost)} for (stage, name), cost in profile.rules.items()],
    }

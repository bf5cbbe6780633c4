"""The baseline: digests of rules when they were last tried, and the outcomes of a few fixed cases."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from ..engine.base.errors import CallError
from . import snapshot
from .finding import End, Finding
from .sketch import Case

#: the record of the rules of a pack, in its folder
NAME = "outcomes.yaml"
#: the program, whose packs are in its folder `rules`; outcomes of layout categories are beside its ops.yaml
HOME = Path(__file__).parents[1]
#: what a clone of the program has, and an installed package has not
_PROJECT = "pyproject.toml"
#: the fixed cases of a rule, and what they are drawn by
CASES, SEED = 10, "recorded"
#: draws for each of them, of which the first that is taken is the case
DRAWS = 8
#: in so many cases of so many in a row the rule is to fire, if any of their draws lets it
FIRING, IN_A_ROW = 8, 16
#: those of a rule over the target alone, which cost little, and tell by whether it fires how far its guards let it
ALONE = 24
#: outcomes that are no case: the draw was refused by the interpreter, or the case by the rules
_NO_DRAW, _REFUSED = "-", "refused"
#: a rule of which fewer than this share of the recorded draws are still taken is not drawn as it was
_TAKEN = 0.5
#: so many cases that were not refused are more than chance
_SEVERAL = 3

_MEANT = "(`rewrite fuzz --record`, if that is meant)"
_FIRES = "the rule fires, which it did not when that was recorded"
#: how a record words that no draw was taken, and an outcome
_UNDRAWN = "nothing drawn"
_WORDED = re.compile(
    r"case ([0-9a-f]{8}), (?:refused|(fires|idle), leaves (\d+))(?:, yields ([^\s,]+))?(?:, file (\S{4}))?"
    r"(?:, after (\d+) refused draws)?"
)
_OUTCOME = re.compile(r"(?:\d+#)?([0-9a-f]{8}):(refused|([01])/(\d+))(?::([^\s@]+))?(?:@(\S{4}))?")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is recorded of one rule: its digest, and an outcome for each of its fixed cases."""

    digest: str
    outcomes: tuple[str, ...] = ()


def format_outcome(case: Case | None, finding: Finding | None, mark: str = "", before: int = 0) -> str:
    """One outcome in a word: which case it was, whether the rule fired, how many operators were left, what they yield
    where nothing else tells that, and the digest of the file that it is, where it is one. In front of it stands how
    many draws were refused `before` it."""
    if case is None or finding is None:
        return _NO_DRAW
    types = " ".join(f"{value.dtype}" for step in case.steps for value in step.results)
    told = f"{before}#" if before else ""
    told += f"{zlib.crc32(f'{case.describe()} {types} {case.opset}'.encode()):08x}"
    stored = f"@{mark}" if mark else ""
    if finding.end is End.REFUSED:
        return f"{told}:{_REFUSED}{stored}"
    arrays = finding.actual if case.unknown else finding.expected if any(step.meaning for step in case.steps) else ()
    yields = f":{snapshot.summarize_arrays(arrays)}" if arrays else ""
    return f"{told}:{int(bool(finding.fired.get(case.rule)))}/{finding.operators}{yields}{stored}"


def judge_fixed(
    case: Case, finding: Finding, before: str, alone: bool, mark: str = "", others: Sequence[str] = ()
) -> Finding:
    """A finding on a fixed case, which is a failure where the same case had a better outcome when that was recorded.

    It is one where rules refuse what they converted, where more operators are left than there were, where others than
    the recorded numbers come of an operator that no interpreter has, where the file that it is has another digest, and
    where the rule fires and did not, or did and does not. Of a rule that is tried `alone`, with no other to take its
    place, it is one too where what was refused is not. `others` are the outcomes of all its fixed cases.
    """
    known, now = _OUTCOME.fullmatch(before), _OUTCOME.fullmatch(format_outcome(case, finding, mark))
    if finding.end is End.FAILED or known is None or now is None or known[1] != now[1]:
        return finding
    most = None
    other = known[5] is not None and now[5] is not None and not snapshot.is_same(now[5], known[5])
    # Cases that are worded alike may be files that differ in what is fed first.
    alike = [found[6] for other in others if (found := _OUTCOME.fullmatch(other)) and found[1] == now[1]]
    written = None not in (known[6], now[6]) and now[6] not in (known[6], *alike)
    if known[2] == now[2] and not other and not written:
        return finding
    if written:
        said = "its file, what is read of it, or what becomes of its codes or batch, is not what was recorded"
    elif now[2] == _REFUSED:
        said = f"refused, which it was not when that was recorded: {finding.reason}"
    elif known[2] == _REFUSED:
        if not alone:
            return finding
        said = _FIRES
    elif other:
        said = "it yields other numbers than when that was recorded"
    elif now[3] == "1" and known[3] == "0":
        said = _FIRES
    elif now[3] == "0" and known[3] == "1":
        said = "the rule does not fire, which it did when that was recorded"
    elif int(now[4]) > int(known[4]):
        said, most = format_left(int(now[4]), int(known[4])), int(known[4])
    else:
        return finding
    reason = f"{said} {_MEANT}"
    return replace(finding, end=End.FAILED, reason=reason, most=most, recorded=True)


def format_left(operators: int, most: int) -> str:
    """What is said of a case of which more operators are left than there were."""
    return f"{operators} operators are left, where {most} were when that was recorded"


def explain_missing(now: Sequence[str], before: Sequence[str]) -> str:
    """What is wrong where fixed cases cannot be drawn that could; nothing where all is well.

    Where the others are the same cases as before, each counts; where they are drawn in another way, half of them. It is
    wrong too if all that can be drawn is refused by now, of several that were not, and if none is the same of those
    whose numbers the record alone knows.
    """
    if sum(map(_is_good, before)) >= _SEVERAL and not any(map(_is_good, now)):
        return "all that can be drawn of it is refused, which it was not when that was recorded"
    told = [found[1] for old in before if (found := _OUTCOME.fullmatch(old)) and found[5] is not None]
    if told and not any(found[1] in told for new in now if (found := _OUTCOME.fullmatch(new))):
        return f"none of its cases is what it was, and nothing else tells what is right {_MEANT}"
    pairs = [(new, old) for new, old in zip(now, before, strict=False) if old != _NO_DRAW]
    kept = [(new, old) for new, old in pairs if new != _NO_DRAW and count_refused(new) <= count_refused(old)]
    same = sum(new.split(":")[0] == old.split(":")[0] for new, old in kept)
    if len(kept) == len(pairs) or (2 * same < len(kept) and len(kept) >= _TAKEN * len(pairs)):
        return ""
    said = f"of {len(pairs)} recorded draws the interpreter takes {len(kept)} by now"
    return f"{said} {_MEANT}"


def _is_good(outcome: str) -> bool:
    """Whether an outcome is that of a case which was not refused."""
    return outcome != _NO_DRAW and f":{_REFUSED}" not in outcome


def count_refused(outcome: str) -> int:
    """How many draws were refused before one was taken."""
    count, found, _ = outcome.partition("#")
    return int(count) if found else 0


def find_firing(outcomes: Sequence[str]) -> int | None:
    """The place of the first fixed case on which the rule fired; None where it did on none."""
    found = (_OUTCOME.fullmatch(outcome) for outcome in outcomes)
    return next((place for place, one in enumerate(found) if one is not None and one[3] == "1"), None)


def read_entries(file: Path) -> dict[str, Entry]:
    """All that a record has, by the names of rules and categories; raises CallError where it cannot be read."""
    if not file.is_file():
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
        return {name: Entry(f"{said['rule']}", tuple(map(_read_case, said["cases"]))) for name, said in found.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{file}: cannot be read: {error}") from error
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CallError(f"{file}: is no record of outcomes: {error}") from error


def check_writable(files: Iterable[Path]) -> None:
    """Raise CallError where nothing can be recorded in some records: there are none, or one is the program's as it is
    installed, which is not the user's to change."""
    files = set(files)
    if any(file.is_relative_to(HOME) for file in files) and not (HOME / _PROJECT).is_file():
        said = "--record writes the record of the program's own rules in a clone alone"
        raise CallError(f"{said}; of packs of yours, given by --rules, it writes one into the folder of each")
    if not files:
        raise CallError("--record is about rules as they are tried for the default target, or about a target's own")


def list_changed(now: Mapping[str, str], known: Mapping[str, Entry]) -> frozenset[str]:
    """Of rules and categories with their digests, the names of those that are not as in what is recorded."""
    return frozenset(name for name, digest in now.items() if name not in known or known[name].digest != digest)


def merge(file: Path, now: Mapping[str, str], outcomes: Mapping[str, Sequence[str]], there: Collection[str]) -> str:
    """The text of a record by which rules with these digests were tried with these outcomes, and without those
    that are not `there` any more; raises CallError where the record as it is cannot be read."""
    known = {name: entry for name, entry in read_entries(file).items() if name in there}
    known |= {name: Entry(now[name], tuple(found)) for name, found in outcomes.items() if name in now}
    return "".join(_format_entry(name, entry) for name, entry in sorted(known.items()))


def _format_entry(name: str, entry: Entry) -> str:
    """An entry with a fact in each line."""
    found = [_OUTCOME.fullmatch(outcome) for outcome in entry.outcomes]
    taken = [one for one in found if one is not None]
    lines = [
        f"{name}:" if yaml.safe_load(name) == name else f"'{name}':",
        f"  rule: '{entry.digest}'",
        f"  tried: {len(taken)}",
        f"  refused: {sum(one[2] == _REFUSED for one in taken)}",
        f"  fired: {sum(one[3] == '1' for one in taken)}",
        "  cases:" if found else "  cases: []",
        *(f"  - {_format_case(outcome)}" for outcome in entry.outcomes),
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_case(outcome: str) -> str:
    """An outcome in words: `case 8114fc91, fires, leaves 15, file 96fd`."""
    found = _OUTCOME.fullmatch(outcome)
    if found is None:
        return _UNDRAWN
    words = [f"case {found[1]}"]
    words += [_REFUSED] if found[2] == _REFUSED else ["fires" if found[3] == "1" else "idle", f"leaves {found[4]}"]
    words += [f"yields {found[5]}"] if found[5] else []
    words += [f"file {found[6]}"] if found[6] else []
    return ", ".join(words + ([f"after {count} refused draws"] if (count := count_refused(outcome)) else []))


def _read_case(text: str) -> str:
    """The outcome that is so worded; raises ValueError where there is none."""
    if text == _UNDRAWN:
        return _NO_DRAW
    found = _WORDED.fullmatch(text)
    if found is None:
        raise ValueError(f"no outcome: {text}")
    case, fires, left, yields, mark, before = found.groups()
    end = _REFUSED if fires is None else f"{int(fires == 'fires')}/{left}"
    return "".join(
        [f"{before}#" if before else "", f"{case}:{end}", f":{yields}" if yields else "", f"@{mark}" if mark else ""]
    )


__all__ = [
    "CASES",
    "FIRING",
    "HOME",
    "IN_A_ROW",
    "NAME",
    "SEED",
    "Entry",
    "count_refused",
    "explain_missing",
    "find_firing",
    "format_outcome",
    "judge_fixed",
    "list_changed",
    "merge",
    "read_entries",
]

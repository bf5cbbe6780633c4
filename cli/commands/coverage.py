"""`rewrite coverage`: what of the rules was never tried, after a run that noted it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...conversion.options import TARGET
from ...engine.base.errors import RewriteError
from .. import flags

if TYPE_CHECKING:
    from ...engine.packs.loader import Pack
    from ...engine.rewrite.coverage import Coverage
    from ...engine.syntax import tree

#: where notes are looked for when the environment names no folder
DEFAULT = ".rule-coverage"


@dataclass(frozen=True, slots=True)
class Gap:
    """A rule, a template or an option that was not tried, with its place."""

    kind: str
    place: str
    name: str

    def make_entry(self) -> dict[str, object]:
        """The gap as an object of a document."""
        file, _, line = self.place.rpartition(":")
        return {"gap": self.kind.removesuffix(":"), "file": file, "line": int(line), "rule": self.name}


@click.command("rewrite coverage", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", required=False, type=flags.File(files=False, folders=True))
@flags.rules
@click.option("--target", metavar="TARGET", default=TARGET, show_default=True, help="The target with its rules.")
@click.option(
    "--fail-under",
    metavar="PERCENT",
    type=click.FloatRange(0, 100),
    default=100.0,
    show_default=True,
    help="Fail when fewer rules fired.",
)
@flags.as_json
@click.pass_context
def command(
    ctx: click.Context, folder: Path | None, rules: tuple[str, ...], target: str, fail_under: float, as_json: bool
) -> None:
    """List the rules that never fired, the templates never used, and the options that never had a second value.

    FOLDER is $NNREWRITE_COVERAGE where it is not given, or else .rule-coverage.

    Run the tests or `rewrite fuzz` with NNREWRITE_COVERAGE=FOLDER first; each process adds a file to the folder. Rules
    about operators that ops.yaml marks as `untried` do not count. Where some packs do not come with the program, their
    rules alone are listed.

    Exit status: 0 enough rules fired; 1 too few did, or FOLDER holds no records.
    """
    from ...conversion.options import Options
    from ...engine.packs import loader
    from ...engine.rewrite.coverage import FOLDER, load
    from ..json_documents import show

    folder = folder or Path(os.environ.get(FOLDER) or DEFAULT)
    stacked = Options(rules=rules, target=target).stacked
    pack, own = loader.load(stacked), loader.list_user_files(stacked)
    found = load(folder)
    if not found.templates:
        raise RewriteError(f"{folder} holds no records: run `rewrite fuzz` or your tests with {FOLDER}={folder} first")
    lines, share, missing = summarize(pack, found, own)
    if as_json:
        show("coverage", share >= fail_under, [gap.make_entry() for gap in missing], fired_percent=share)
    else:
        click.echo("\n".join(lines))
    ctx.exit(0 if share >= fail_under else 1)


def summarize(pack: Pack, found: Coverage, own: Collection[str] = ()) -> tuple[list[str], float, list[Gap]]:
    """A line for each gap and one for all; the share of rules that fired, in percent; the gaps themselves.

    They are those of a pack, or of its `own` files where there are such.
    """
    rules = [rule for rule in _iterate_rules(pack) if not own or rule.span.file in own]
    missing = list(find_gaps(rules, found))
    lines = [f"{gap.place}: {gap.kind} {gap.name}" for gap in missing]
    templates = sum(len(rule.templates) for rule in rules)
    idle = {kind: sum(gap.kind == kind for gap in missing) for kind in ("rule never fired:", "template never used:")}
    fired, used = len(rules) - idle["rule never fired:"], templates - idle["template never used:"]
    share = 100 * fired / len(rules) if rules else 100.0
    lines.append(f"{fired} of {len(rules)} rules fired ({share:.1f} %), {used} of {templates} templates were used")
    return lines, share, missing


def find_gaps(rules: Sequence[tree.Rule], found: Coverage) -> Iterator[Gap]:
    """What was not tried: rules, templates of rules that fired, and options of those that always had one value."""
    from ...engine.rewrite.coverage import make_key

    for rule in rules:
        place = f"{rule.span.file}:{rule.span.line}"
        name = make_key(rule.name, rule.span.file)
        used = found.templates.get(name, {})
        if not used:
            yield Gap("rule never fired:", place, rule.name)
        for template in rule.templates:
            if template.span.line not in used:
                spot = f"{template.span.file}:{template.span.line}"
                yield Gap("template never used:", spot, rule.name)
        if used:
            for option, seen in found.options.get(name, {}).items():
                if len(seen) < 2:
                    said = ", ".join(seen) or "nothing"
                    yield Gap("option never varied:", place, f"{rule.name} {{{option}}} was always {said}")


def _iterate_rules(pack: Pack) -> Iterator[tree.Rule]:
    from ...engine.rewrite.families import write_out
    from ...fuzz.subjects import list_subjects

    excused = {subject.name for subject in list_subjects(pack) if subject.excuse}
    for _, rule in write_out(pack.files):
        if rule.tests and rule.name not in excused:
            yield rule

"""The command `rewrite fuzz`: rules tried on models drawn from their own tests, against the interpreter."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..cli import complain
from ..options import DEFAULT, Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..verify.campaign import Tally
    from ..verify.record import Entry
    from ..verify.stacks import Stack, Trial

#: the default budget: cases for each rule, and seconds in all
EXAMPLES, SECONDS = 24, 15.0
#: rules of which the interpreter took less than this share of the draws are told of
_LOW = 0.2
#: so many of what changed are told by name
_NAMED = 20


@click.command("fuzz", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rules", multiple=True, default=("tflite2onnx",), metavar="PACK", help="Rules to try. May be repeated.")
@click.option("--op", "operators", multiple=True, metavar="OP", help="Only rules about this operator. May be repeated.")
@click.option("--rule", "names", multiple=True, metavar="NAME", help="Only this rule or family. May be repeated.")
@click.option(
    "--examples", metavar="N", type=click.IntRange(1), default=EXAMPLES, show_default=True, help="Models for each rule."
)
@click.option(
    "--time", "seconds", metavar="SECONDS", type=float, default=SECONDS, show_default=True, help="Time in all, at most."
)
@click.option(
    "--seed", metavar="N", type=int, default=0, show_default=True, help="The same seed generates the same models."
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1), default=None, help="Worker processes. [default: one for each core]"
)
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Record what passed, so that later runs begin with what has changed since.",
)
@click.option("--first", is_flag=True, help="Stop at the first failure.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("fuzz-failures"),
    show_default=True,
    help="The folder to save failures in.",
)
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="Run one saved failure again instead.")
def command(
    rules: tuple[str, ...],
    operators: tuple[str, ...],
    names: tuple[str, ...],
    examples: int,
    seconds: float,
    seed: int,
    jobs: int | None,
    recorded: bool,
    first: bool,
    out: Path,
    replay: Path | None,
) -> None:
    """Try rules on random models generated from their `test` clauses, and on small graphs of several operators.

    Each model runs in the TensorFlow Lite interpreter and, converted, in ONNX Runtime, and the outputs are compared. A
    model on which they differ is reduced, and saved with its inputs, both outputs and a report.

    Exit status: 0 all agree; 1 a rule failed.
    """
    if replay is not None:
        sys.exit(0 if _replayed(replay, Options(rules=rules).stacked) else 1)
    from ..engine.errors import CallError
    from ..verify import record
    from ..verify.chains import NAME
    from ..verify.fuzz import Budget, fuzz
    from ..verify.stacks import digests, stacks
    from ..verify.subjects import Subject

    started = time.monotonic()
    found = stacks(rules)
    every = [trial for stack in found for trial in stack.trials]
    chosen = [subject for subject in every if _wanted(subject, operators, names)]
    if not chosen:
        wanted = [*(f"is called {name}" for name in names), *(f"is about {name}" for name in operators)]
        raise CallError(f"no rule with a test {' or '.join(wanted)}")
    whole = not (operators or names)
    now = digests(found)
    ours = rules == DEFAULT.rules
    known = record.entries()
    early, gone = ([], []) if recorded else _since(now, known, {one.name for one in chosen}, ours, whole and ours)
    if not (whole or recorded):  # what is asked for is tried, though on the recorded cases alone
        early += [one.name for one in chosen if one.excuse]
    before = {name: known[name].outcomes if name in known else () for name in early}
    spent = time.monotonic() - started
    budget = Budget(examples, max(seconds - spent, seconds / 2), jobs or os.cpu_count() or 1, seed, first)
    with _progress(len(chosen) * examples, started) as told:
        tallies = fuzz(found, chosen, whole, budget, told, before, recorded)
    failed = _told(tallies.values(), time.monotonic() - started)
    places = {subject.name: subject.place for subject in every}
    sources = {one.name for one in every if isinstance(one, Subject) and one.of_source and not one.excuse}
    of = {trial.name: stack for stack in found for trial in stack.trials}
    for tally in failed:
        _complain(tally, out, places, tally.rule in {*sources, NAME}, of.get(tally.rule, found[0]), rules)
    if gone:
        complain(f"recorded, but there is no such rule or category any more: {', '.join(gone)} (`--record` forgets it)")
    if recorded:
        outcomes = {name: tally.outcomes for name, tally in tallies.items() if tally.outcomes and not tally.problem()}
        record.write(now, outcomes, now if rules == DEFAULT.rules else {*now, *record.entries()})
    sys.exit(1 if failed or gone else 0)


def _since(
    now: Mapping[str, str], known: Mapping[str, Entry], chosen: Collection[str], ours: bool, whole: bool
) -> tuple[list[str], list[str]]:
    """What of the chosen is not as it is known by the record, and what the record knows but is gone from the whole.

    Rules of packs that are not `ours` alone are in no record, and no news.
    """
    from ..verify import record

    others = record.changed(now, known)
    early = [name for name in now if name in others and name in chosen and (ours or name in known)]
    if early and 2 * len(early) <= len(now):
        click.echo(f"changed since they were last recorded, and tried first: {_listed(early)}", err=True)
    gone = sorted(known.keys() - now.keys()) if whole else []
    return early, gone


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _wanted(subject: Trial, operators: Sequence[str], names: Sequence[str]) -> bool:
    if not operators and not names:
        return True
    named = any(subject.name == name or subject.name.startswith(f"{name}.") for name in names)
    return named or not subject.operators().isdisjoint(operators)


@contextmanager
def _progress(total: int, started: float) -> Iterator[Callable[[Tally], None]]:
    """A bar on a terminal, with the rate; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda tally: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        tried = 0

        def told(tally: Tally) -> None:
            nonlocal tried
            tried += tally.tried
            rate = tried / max(time.monotonic() - started, 1e-3)
            progress.update(task, advance=tally.tried, description=f"{tally.rule} {rate:.0f}/s")

        yield told


def _told(tallies: Iterable[Tally], seconds: float) -> list[Tally]:
    """Print a line for each rule and one for all; the rules that failed."""
    rows = [tally for tally in tallies if tally.tried or tally.rejected or tally.failed]
    width = max((len(tally.rule) for tally in rows), default=4)
    click.echo(f"{'rule':<{width}}  tried  passed  refused  accepted  fired")
    for tally in sorted(rows, key=lambda one: one.rule):
        refused, accepted = tally.refused.total(), f"{tally.acceptance:.0%}"
        numbers = f"{tally.tried:>5}  {tally.passed:>6}  {refused:>7}  {accepted:>8}  {tally.fired[tally.rule]:>5}"
        wrong = tally.problem()
        click.secho(f"{tally.rule:<{width}}  {numbers}", fg="red" if wrong else None)
    failed = [tally for tally in rows if tally.problem()]
    tried, passed = sum(tally.tried for tally in rows), sum(tally.passed for tally in rows)
    refused, rejected = sum(t.refused.total() for t in rows), sum(t.rejected.total() for t in rows)
    low = [tally.rule for tally in rows if tally.acceptance < _LOW and not tally.excuse and not tally.unheard]
    if low:
        click.echo(f"the interpreter takes few of the draws for {', '.join(low)}")
    click.secho(
        f"{tried} cases of {len(rows)} rules in {seconds:.1f} s ({tried / seconds:.0f} a second): {passed} passed, "
        f"{refused} refused by rules, {len(failed)} rules failed; {rejected} draws refused by the interpreter",
        fg="red" if failed else "green",
    )
    return failed


def _complain(
    tally: Tally, out: Path, places: dict[str, str], of_source: bool, stack: Stack, rules: tuple[str, ...]
) -> None:
    from ..verify.evidence import save

    complain(tally.problem())
    if tally.failure is not None:
        report = save(*tally.failure, out, places, of_source, stack, rules)
        click.echo(f"  saved: {report}", err=True)


def _replayed(path: Path, rules: tuple[str, ...]) -> bool:
    """Run a saved failure again and print the comparison; whether it passes by now."""
    from ..verify.evidence import replay
    from ..verify.report import table

    verification = replay(path, rules)
    for line in table(verification, sys.stdout.isatty()):
        click.echo(line)
    return verification.passed

"""The command `rewrite fuzz`: rules tried on models drawn from their own tests, against the interpreter."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...conversion.options import TARGET, Options
from ...conversion.routes import find_route
from ...engine.base.atomic_write import open_replacement
from ...engine.base.errors import DestinationError, format_count
from ...engine.base.startup import dataclass
from ...engine.packs.headers import find_pair, read_pair
from ...fuzz.profiles import PROFILES
from .. import completion, flags
from ..dispatch import INTERRUPTED, Told, format_interruption, print_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...fuzz.selection import Plan
    from ...fuzz.tally import Tally
    from ...fuzz.turns import Budget

#: where in the folder of failures Hypothesis keeps examples
_EXAMPLES = "examples"
#: rules of which the interpreter took less than this share of the draws are told of
_LOW = 0.2
#: the parameters that say what is drawn, and what becomes of it
_DRAWN = (
    "operators", "names", "profile", "examples", "seconds", "seed", "jobs", "recorded", "only_odd", "first", "out",
)  # fmt: skip
#: so many of what changed are named
_NAMED = 20


@click.command("fuzz", context_settings={"help_option_names": ["-h", "--help"]})
@flags.rules
@click.option(
    "--target", metavar="TARGET", help=f"The target to try the rules for.  [default: {TARGET}, or the one of the rules]"
)
@click.option(
    "--op",
    "operators",
    multiple=True,
    metavar="OP",
    shell_complete=completion.offer_operators,
    help="Only rules about this operator. May be repeated.",
)
@click.option(
    "--rule",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.offer_rules,
    help="Only this rule or family. May be repeated.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="How much is tried: quick 8 models for each rule and 5 seconds, default 24 and 15, thorough 400 and 7200, or "
    "what --examples and --time say.",
)
@click.option("--examples", metavar="N", type=click.IntRange(1), help="Models for each rule.")
@flags.add_seconds("Time in all, at most.")
@flags.model_seed
@click.option("--jobs", metavar="N", type=click.IntRange(1), show_default="one for each core", help="Worker processes.")
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Record what passed in the folder of the pack, so that later runs begin with what has changed since.",
)
@click.option(
    "--odd", "only_odd", is_flag=True, help="Only odd models: no elements, operands left out, numbers far off."
)
@click.option("--first", is_flag=True, help="Stop at the first failure.")
@click.option(
    "--out",
    type=flags.File(files=False, folders=True, written=True),
    metavar="DIR",
    default=Path("fuzz-failures"),
    show_default=True,
    help="The folder to save failures in.",
)
@click.option(
    "--replay",
    type=flags.File(exists=True),
    metavar="FILE",
    help="Run one saved failure again instead.",
)
@flags.as_json
def command(
    rules: tuple[str, ...],
    target: str | None,
    operators: tuple[str, ...],
    names: tuple[str, ...],
    profile: str,
    examples: int | None,
    seconds: float | None,
    seed: int,
    jobs: int | None,
    recorded: bool,
    only_odd: bool,
    first: bool,
    out: Path,
    replay: Path | None,
    as_json: bool,
) -> None:
    """Try rules on random models generated from their `test` clauses, and on small graphs of several operators.

    Each model runs in the TensorFlow Lite interpreter and, converted, in ONNX Runtime, and the outputs are compared. A
    model on which they differ is reduced, and saved with its inputs, both outputs and a report.

    Where some packs do not come with the program, their rules alone are tried, unless others are named by --rule or
    --op.

    Exit status: 0 all agree; 1 a rule failed; 2 wrong options or mistakes in rule files; 130 interrupted.
    """
    options = Options(rules=_choose_rules(rules, target), target=target)
    examples, seconds = examples or PROFILES[profile].examples, seconds or PROFILES[profile].seconds
    if replay is not None:
        flags.refuse_idle(_DRAWN, "is about models that are drawn, and --replay names one that is there")
        sys.exit(0 if _replay(replay, options.stacked, as_json) else 1)
    from ...fuzz.selection import make_plans
    from ...fuzz.turns import Budget

    started = time.monotonic()
    plans = make_plans(options, operators, names, only_odd, recorded)
    for one in plans:
        _report_changed(one)
    left = max(seconds - (time.monotonic() - started), seconds / 2)
    budget = Budget(examples, left, jobs or os.cpu_count() or 1, seed, first, out / _EXAMPLES)
    total = sum(len(one.chosen) for one in plans) * examples
    with _show_progress(total, seconds * len(plans), started) as show_tally:
        run = _try_plans(plans, budget, recorded, only_odd, show_tally)
    sys.exit(0 if _finish(run, plans[0], time.monotonic() - started, out, seed, recorded, as_json) else 1)


@dataclass(frozen=True, slots=True)
class _Run:
    """What came of the rules of some plans, and whether the user interrupted it."""

    found: list[tuple[Plan, Tally]]
    interrupted: bool = False

    @property
    def tallies(self) -> list[Tally]:
        """One for each rule."""
        return [tally for _, tally in self.found]

    @property
    def failed(self) -> list[tuple[Plan, Tally]]:
        """Those of rules that something is wrong with."""
        return [(plan, tally) for plan, tally in self.found if tally.explain_problem()]


def _try_plans(
    plans: Sequence[Plan], budget: Budget, recorded: bool, only_odd: bool, report: Callable[[Tally], None]
) -> _Run:
    """Try what is planned, up to the first plan of which a rule fails."""
    from ...fuzz.schedule import Interrupted, fuzz
    from ...fuzz.turns import Wanted

    run = _Run([])
    for one in plans:
        wanted = Wanted(one.chosen, one.whole, one.before, recorded, reach=one.whole and one.own, only_odd=only_odd)
        try:
            tallies = fuzz(one.stacks, wanted, budget, report)
        except Interrupted as interruption:
            return _Run([*run.found, *((one, tally) for tally in interruption.tallies.values())], interrupted=True)
        run = _Run([*run.found, *((one, tally) for tally in tallies.values())])
        if run.failed:
            break
    return run


def _finish(run: _Run, plan: Plan, seconds: float, out: Path, seed: int, recorded: bool, as_json: bool) -> bool:
    """Report a run of so many seconds, save its failures and record what is to be recorded; whether all is well.

    Raises KeyboardInterrupt, or Told where a document was printed, for one that the user interrupted.
    """
    from ..json_documents import make_diagnostic, show

    _report(run.tallies, seconds, as_json)
    for one, tally in run.failed:
        _report_failure(tally, out, one, ("--seed", f"{seed}"))
    problems = [_diagnose(tally) for _, tally in run.failed]
    if plan.gone:
        names = ", ".join(plan.gone)
        print_error(f"recorded, but there is no such rule or category any more: {names} (`--record` forgets it)")

    def show_document(ok: bool) -> None:
        if as_json:
            entries = [_make_entry(tally) for tally in run.tallies]
            show("fuzz", ok, entries, problems, seconds=round(seconds, 3), gone=plan.gone)

    if run.interrupted:
        said = f"{format_count(sum(tally.tried for tally in run.tallies), 'case')} tried"
        if not as_json:
            raise KeyboardInterrupt(said)
        problems.append(make_diagnostic(format_interruption(said), INTERRUPTED))
        show_document(False)
        raise Told(said)
    if recorded:
        _record_outcomes(plan, run.tallies)
    ok = not (run.failed or plan.gone)
    show_document(ok)
    return ok


def _choose_rules(rules: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    """The rule sets that are named, else for a target of another dialect than the usual ones write those within it."""
    source = click.get_current_context().get_parameter_source("rules")
    if target is None or source is not click.core.ParameterSource.DEFAULT:
        return rules
    pair, usual = read_pair(target), find_pair(rules)
    other = pair is not None and usual is not None and pair[1] != usual[1]
    return find_route(pair[1], pair[1])[0] if pair and other else rules


def _record_outcomes(plan: Plan, tallies: Sequence[Tally]) -> None:
    """Write what came of the recorded cases into the records, of what has no problem."""
    from ...fuzz import baseline

    outcomes = {tally.rule: tally.outcomes for tally in tallies if tally.outcomes and not tally.explain_problem()}
    for file in set(plan.files.values()):
        there = {name for name in plan.files if plan.files[name] == file}
        others = () if plan.entire else baseline.read_entries(file)
        new = {name: outcome for name, outcome in outcomes.items() if name in there}
        with open_replacement(file) as written:
            written.write(baseline.merge(file, plan.digests, new, {*there, *others}).encode())


def _report_changed(plan: Plan) -> None:
    """Say what is not as it was recorded."""
    changed, every = plan.changed, plan.digests
    if changed and 2 * len(changed) <= len(every):
        click.echo(f"changed since they were last recorded, and tried first: {_list_names(changed)}", err=True)
    elif changed:
        said = f"{len(changed)} of {len(every)} are not as they were recorded, so that the record tells little"
        click.echo(f"{said}: `rewrite fuzz --record` makes it anew", err=True)


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@contextmanager
def _show_progress(total: int, seconds: float, started: float) -> Iterator[Callable[[Tally], None]]:
    """A bar on a terminal, for the models or the time, whichever is over first, with the rate; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda tally: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    columns = (BarColumn(), "{task.percentage:>3.0f}%", "{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=1)
        tried, wrong = 0, set()

        def show_tally(tally: Tally) -> None:
            nonlocal tried
            tried += tally.tried
            if tally.failed:
                wrong.add(tally.rule)
            spent = max(time.monotonic() - started, 1e-3)
            said = f"{tried} models, {tried / spent:.0f} a second, {len(wrong)} rules failed, now {tally.rule}"
            progress.update(task, completed=min(max(spent / seconds, tried / total), 1), description=said)

        yield show_tally


def _make_entry(tally: Tally) -> dict[str, Any]:
    """What came of a rule, as an object of a document."""
    counts = {"tried": tally.tried, "passed": tally.passed, "fired": tally.fired[tally.rule]}
    draws = {"refused": tally.refused, "rejected": tally.rejected, "acceptance": tally.acceptance}
    return {"rule": tally.rule, "ok": not tally.explain_problem(), **counts, **draws}


def _diagnose(tally: Tally) -> dict[str, Any]:
    """What is wrong with a rule, at its place, which is `name (file:line:column)`."""
    from ..json_documents import make_diagnostic

    place = re.search(r"\((.+):(\d+):(\d+)\)$", tally.place)
    at = {} if place is None else {"file": place[1], "line": int(place[2]), "column": int(place[3])}
    return make_diagnostic(tally.explain_problem(), "Failure") | at


def _report(tallies: Iterable[Tally], seconds: float, aside: bool = False) -> None:
    """Print a line for each rule and one for all, `aside` to standard error."""
    rows = [tally for tally in tallies if tally.tried or tally.rejected or tally.failed]
    width = max((len(tally.rule) for tally in rows), default=4)
    click.echo(f"{'rule':<{width}}  tried  passed  refused  accepted  fired", err=aside)
    for tally in sorted(rows, key=lambda one: one.rule):
        refused, accepted = tally.refused.total(), f"{tally.acceptance:.0%}"
        numbers = f"{tally.tried:>5}  {tally.passed:>6}  {refused:>7}  {accepted:>8}  {tally.fired[tally.rule]:>5}"
        wrong = tally.explain_problem()
        click.secho(f"{tally.rule:<{width}}  {numbers}", fg="red" if wrong else None, err=aside)
    failed = [tally for tally in rows if tally.explain_problem()]
    tried, passed = sum(tally.tried for tally in rows), sum(tally.passed for tally in rows)
    refused, rejected = sum(t.refused.total() for t in rows), sum(t.rejected.total() for t in rows)
    low = [tally.rule for tally in rows if tally.acceptance < _LOW and not tally.excuse and not tally.unheard]
    if low:
        click.echo(f"the interpreter takes few of the draws for {', '.join(low)}", err=aside)
    click.secho(
        f"{tried} cases of {format_count(len(rows), 'rule')} in {seconds:.1f} s ({tried / seconds:.0f} a second): "
        f"{passed} passed, {refused} refused by rules, {format_count(len(failed), 'rule')} failed; "
        f"{rejected} draws refused by the interpreter",
        fg="red" if failed else "green",
        err=aside,
    )


def _report_failure(tally: Tally, out: Path, plan: Plan, drawn: tuple[str, ...]) -> None:
    """Say what is wrong with a rule, and save the model that it failed on."""
    from ...fuzz.failure_files import save
    from ...fuzz.odd_models import NAME as ODD
    from ...fuzz.random_graphs import NAME
    from ...fuzz.subjects import Subject

    print_error(tally.explain_problem())
    if tally.failure is None:
        return
    of = {trial.name: (trial, stack) for stack in plan.stacks for trial in stack.trials}
    trial, stack = of.get(tally.rule, (None, plan.stacks[0]))
    of_source = tally.rule in (NAME, ODD) or (isinstance(trial, Subject) and trial.of_source and not trial.excuse)
    places = {name: one.place for name, (one, _) in of.items()}
    try:
        saved = save(*tally.failure, out, places, of_source, stack, plan.options, drawn)
    except DestinationError as error:
        print_error(f"{error}, the failure is not saved")
        return
    click.echo(f"  saved: {saved.report}\n  run it again: {saved.command}", err=True)


def _replay(path: Path, rules: tuple[str, ...], as_json: bool) -> bool:
    """Run a saved failure again and print the comparison; whether it passes by now."""
    from ...fuzz.failure_files import replay
    from ...verify.verification_table import format_table
    from ..json_documents import show
    from ..result_documents import list_differences, make_verification_entry

    verification = replay(path, rules)
    if as_json:
        show(
            "fuzz",
            verification.passed,
            [make_verification_entry(verification)],
            list_differences(verification, f"{path}"),
        )
        return verification.passed
    for line in format_table(verification, sys.stdout.isatty()):
        click.echo(line)
    return verification.passed
